//! The MPI libraries to compare: where they come from and how their launchers are called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whose launcher it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Tern's.
    Tern,
    /// MPICH's.
    Hydra,
    /// Intel MPI's, which is a Hydra with variables of its own.
    Intel,
    /// Open MPI's.
    OpenMpi,
}

/// One MPI library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Name in tables, unique in a run.
    pub name: String,
    /// First line of what its launcher says about itself.
    pub version: String,
    /// Its compiler wrapper.
    pub mpicc: PathBuf,
    /// Its launcher.
    pub mpiexec: PathBuf,
    /// Launcher options that put it on an equal footing: no binding (the benchmarks bind
    /// themselves), more ranks than cores, root.
    pub options: Vec<String>,
    /// Variables that its commands need.
    pub environment: Vec<(String, OsString)>,
    /// Whose launcher it is.
    pub kind: Vendor,
}

impl Library {
    /// Whether it is Tern: what is compared with the best of the others.
    pub fn is_tern(&self) -> bool {
        self.kind == Vendor::Tern
    }

    /// The same between hosts, where options for one host do not fit, and sockets are what there is: hosts that are
    /// namespaces look like one to who asks the kernel.
    pub fn between_hosts(&self) -> Library {
        let mut library = self.clone();
        match self.kind {
            Vendor::Intel => {
                library.options = ["-genv", "I_MPI_PIN", "0"].map(str::to_string).to_vec();
                library
                    .environment
                    .extend([variable("I_MPI_FABRICS", "shm:ofi"), variable("FI_PROVIDER", "tcp")]);
                let providers = self.mpicc.parent().and_then(Path::parent).map(|prefix| prefix.join("lib"));
                if let Some(dir) = providers.filter(|dir| dir.join("libtcp-fi.so").is_file()) {
                    // As the wheel has them; where an installation is elsewhere its set-up script tells.
                    library.environment.push(variable("FI_PROVIDER_PATH", &dir));
                    library.environment.push(variable("LD_LIBRARY_PATH", dir));
                }
            }
            Vendor::Hydra => library.environment.push(variable("UCX_TLS", "tcp,self")),
            Vendor::Tern | Vendor::OpenMpi => {}
        }
        library
    }

    /// Tern with another transport between hosts.
    pub fn over(&self, transport: &str) -> Library {
        let mut library = self.clone();
        library.name = format!("{} {transport}", self.name);
        library.environment.push(variable("TERN_TRANSPORT", transport));
        library
    }
}

/// Finds all libraries: Tern, those named by the user, those in `PATH`, those installed here.
pub fn find_all(
    named: &[(String, PathBuf)],
    tern: Option<&Path>,
    peers: &Path,
) -> Result<Vec<Library>, String> {
    let mut found: Vec<Library> = Vec::new();
    let mut add = |library: Library| {
        let known = |l: &Library| same_file(&l.mpiexec, &library.mpiexec) || l.name == library.name;
        if !found.iter().any(known) {
            found.push(library);
        }
    };
    match tern {
        Some(prefix) => add(open(None, prefix)?),
        None => own_directories()
            .iter()
            .filter_map(|dir| open(None, dir).ok())
            .filter(Library::is_tern)
            .for_each(&mut add),
    }
    for (name, prefix) in named {
        add(open(Some(name), prefix)?);
    }
    let installed = super::peers::PEERS.iter().map(|(name, _)| peers.join(name));
    installed.filter_map(|prefix| open(None, &prefix).ok()).for_each(&mut add);
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter_map(|dir| open(None, &dir).ok()).for_each(&mut add);
    Ok(found)
}

/// The library under `prefix`, whose commands are in `prefix/bin` or in `prefix` itself.
fn open(name: Option<&str>, prefix: &Path) -> Result<Library, String> {
    let dir = [prefix.join("bin"), prefix.to_path_buf()]
        .into_iter()
        .find(|dir| dir.join("mpicc").is_file() && dir.join("mpiexec").is_file())
        .ok_or_else(|| format!("no mpicc and mpiexec in {} or its bin directory", prefix.display()))?;
    let dir = std::path::absolute(&dir).unwrap_or(dir);
    let mpiexec = dir.join("mpiexec");
    let said = Command::new(&mpiexec)
        .arg("--version")
        .output()
        .map_err(|e| format!("{} --version: {e}", mpiexec.display()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let (called, options, kind) = recognise(&said)
        .ok_or_else(|| format!("{} --version does not say which MPI it is", mpiexec.display()))?;
    Ok(Library {
        name: name.unwrap_or(called).to_string(),
        version: version_line(&said),
        mpicc: dir.join("mpicc"),
        mpiexec,
        options: options.iter().map(|s| s.to_string()).collect(),
        environment: environment(kind, &dir),
        kind,
    })
}

/// Variables that a library needs where nobody has run its set-up script.
fn environment(kind: Vendor, commands: &Path) -> Vec<(String, OsString)> {
    const ROOT: &str = "I_MPI_ROOT";
    match commands.parent() {
        Some(prefix) if kind == Vendor::Intel && std::env::var_os(ROOT).is_none() => {
            vec![(ROOT.to_string(), prefix.into())]
        }
        _ => Vec::new(),
    }
}

fn variable(name: &str, value: impl Into<OsString>) -> (String, OsString) {
    (name.to_string(), value.into())
}

/// Which MPI a launcher belongs to: name, options, kind.
fn recognise(version: &str) -> Option<(&'static str, &'static [&'static str], Vendor)> {
    let lower = version.to_lowercase();
    let first = lower.lines().next().unwrap_or("");
    if first.split(|c: char| !c.is_alphanumeric()).any(|word| word == "tern") {
        Some(("Tern", &["--bind", "none"], Vendor::Tern))
    } else if lower.contains("intel(r) mpi") {
        // Without the second it would look for a network that one host does not need.
        Some(("Intel MPI", &["-genv", "I_MPI_PIN", "0", "-genv", "I_MPI_FABRICS", "shm"], Vendor::Intel))
    } else if lower.contains("open mpi") || lower.contains("openrte") || lower.contains("prte") {
        Some(("Open MPI", &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"], Vendor::OpenMpi))
    } else if lower.contains("hydra") {
        Some(("MPICH", &["-bind-to", "none"], Vendor::Hydra))
    } else {
        None
    }
}

fn version_line(said: &str) -> String {
    let wanted = |line: &&str| line.chars().any(|c| c.is_ascii_digit());
    said.lines().map(str::trim).find(wanted).unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where Tern's own commands are: beside this binary.
fn own_directories() -> Vec<PathBuf> {
    let own = std::env::current_exe().and_then(|exe| exe.canonicalize());
    own.ok().and_then(|exe| exe.parent().map(Path::to_path_buf)).into_iter().collect()
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_recognised_by_what_they_say() {
        let name = |text| recognise(text).map(|r| r.0);
        assert_eq!(name("HYDRA build details:\n    Version:   5.0.2\n"), Some("MPICH"));
        assert_eq!(name("mpiexec (Open MPI) 5.0.11\n"), Some("Open MPI"));
        assert_eq!(name("Intel(R) MPI Library for Linux* OS, Version 2021.18"), Some("Intel MPI"));
        assert_eq!(name("mpiexec (Tern MPI) 0.1.0\n"), Some("Tern"));
        assert_eq!(name("something else"), None);
        assert_eq!(version_line("HYDRA build details:\n    Version:     5.0.2\n"), "Version: 5.0.2");
    }

    #[test]
    fn intel_mpi_is_told_where_it_is() {
        let root = std::env::var_os("I_MPI_ROOT");
        let expected =
            if root.is_none() { vec![("I_MPI_ROOT".to_string(), "/opt/impi".into())] } else { Vec::new() };
        assert_eq!(environment(Vendor::Intel, Path::new("/opt/impi/bin")), expected);
        assert_eq!(environment(Vendor::Hydra, Path::new("/opt/mpich/bin")), []);
    }

    #[test]
    fn a_directory_without_commands_is_an_error_that_names_it() {
        let error = open(None, Path::new("/nonexistent/prefix")).unwrap_err();
        assert!(error.contains("/nonexistent/prefix"), "{error}");
    }
}
