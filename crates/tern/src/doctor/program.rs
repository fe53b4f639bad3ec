//! What starts programs here, and what a program is linked with.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use launch::mpiexec::foreign;

use super::Check;

/// The library of the standard ABI.
const STANDARD: &str = "libmpi_abi.so.";

/// Libraries of other ABIs that Tern has too: name, ABI as `mpiexec` takes it, whose it is. The second is the name at Debian.
const OTHERS: [(&str, &str, &str); 3] = [
    ("libmpi.so.12", "mpich", "MPICH"),
    ("libmpich.so.12", "mpich", "MPICH"),
    ("libmpi.so.40", "openmpi", "Open MPI"),
];

/// Which launchers there are, and whether the first `mpiexec` in the path is Tern's.
pub fn launchers() -> Vec<Check> {
    let own = std::env::current_exe().ok().map(|own| own.with_file_name("mpiexec")).unwrap_or_default();
    let directory = own.parent().unwrap_or(Path::new("")).display().to_string();
    let mend = format!("export PATH={directory}:$PATH");
    let mut checks = vec![match in_path("mpiexec") {
        Some(found) if same(&found, &own) => Check::pass("mpiexec", found.display().to_string()),
        Some(found) => {
            Check::weak("mpiexec", format!("the first in PATH is {}, another one", found.display()), mend)
        }
        None => Check::weak("mpiexec", "not in PATH", mend),
    }];
    let found: Vec<&str> = ["ssh", "srun"].into_iter().filter(|name| in_path(name).is_some()).collect();
    checks.push(match found.is_empty() {
        false => Check::pass("other hosts by", found.join(", ")),
        true => Check::weak(
            "other hosts by",
            "neither ssh nor srun is in PATH: other hosts need a --launcher of their own",
            "apt-get install openssh-client",
        ),
    });
    checks
}

/// What there is to say of a program.
pub fn checks(program: &Path) -> Vec<Check> {
    let shown = program.display();
    let found = if program.components().count() > 1 || program.exists() {
        Some(program.to_path_buf()).filter(|path| path.exists())
    } else {
        in_path(&program.to_string_lossy())
    };
    let Some(path) = found else {
        return vec![Check::fail(
            "program",
            format!("there is no {shown}"),
            "copy it to the same path on each host",
        )];
    };
    if !is_program(&path) {
        return vec![Check::fail(
            "program",
            format!("{shown} cannot be executed"),
            format!("chmod +x {shown}"),
        )];
    }
    let Some(libraries) = foreign::libraries(&path) else {
        return vec![Check::pass(
            "program",
            format!("{shown} is a script: what it loads is seen when it runs"),
        )];
    };
    let mut checks = vec![Check::pass("program", shown.to_string())];
    let linked = libraries.iter().find(|name| name.starts_with("libmpi"));
    let other = OTHERS.iter().find(|other| libraries.iter().any(|name| name == other.0));
    checks.push(match linked {
        None => Check::pass("ABI", "no MPI library is linked (it may be loaded later, or be none)"),
        Some(name) if name.starts_with(STANDARD) => loaded(&path, name),
        Some(name) => match other {
            Some((name, abi, whose)) => Check::weak(
                "ABI",
                format!("{name} has the ABI of {whose}, which has to be asked for"),
                format!("mpiexec --abi {abi} {shown}"),
            ),
            None => Check::fail(
                "ABI",
                format!("{name} is of another library's own ABI, not of the standard one"),
                "build it anew with Tern's mpicc",
            ),
        },
    });
    checks
}

/// Which file the program would load. The dynamic loader says so, and does not start it.
fn loaded(program: &Path, name: &str) -> Check {
    let own = std::env::current_exe().ok();
    let own = own.and_then(|own| Some(own.parent()?.parent()?.join("lib").join(name))).unwrap_or_default();
    let lib = own.parent().unwrap_or(Path::new("")).display().to_string();
    let mend = format!("export LD_LIBRARY_PATH={lib}:$LD_LIBRARY_PATH");
    let absolute = fs::canonicalize(program).unwrap_or_else(|_| program.into());
    let output = Command::new(absolute).env("LD_TRACE_LOADED_OBJECTS", "1").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let line =
        text.lines().map(str::trim).find_map(|line| line.strip_prefix(name)?.trim().strip_prefix("=>"));
    match line.map(|line| line.split(" (").next().unwrap_or_default().trim()) {
        Some("not found") | None => Check::fail("ABI", format!("{name} is not found when it starts"), mend),
        Some(path) if same(Path::new(path), &own) => {
            Check::pass("ABI", format!("the standard one; it loads {path}"))
        }
        Some(path) => Check::weak(
            "ABI",
            format!("the standard one, but it loads {path}, not this Tern's {}", own.display()),
            mend,
        ),
    }
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_program(file))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn programs_are_told_apart() {
        let verdict = |program: &str| checks(Path::new(program)).last().unwrap().clone();
        assert_eq!(verdict("/no/such/program").verdict, Verdict::Fail);
        assert_eq!(verdict("/etc/passwd").verdict, Verdict::Fail);
        let plain = verdict(&std::env::current_exe().unwrap().display().to_string());
        assert!(plain.verdict == Verdict::Pass && plain.found.contains("no MPI library"), "{plain:?}");
    }
}
