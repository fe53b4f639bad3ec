//! Compiling the benchmark programs with each library's compiler wrapper.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use super::library::Library;

const FLAGS: &[&str] = &["-std=gnu11", "-O2", "-pthread", "-falign-loops=64", "-Wall", "-Wextra"];
const SHARED: &[&str] = &["exchange.c", "cores.c", "bench.c", "stats.c"];
const HEADERS: &[&str] = &["exchange.h", "cores.h", "bench.h", "stats.h", "kernels.h"];
/// Files of one program alone, besides that of its name.
const PARTS: &[(&str, &[&str])] =
    &[("kernels", &["kernel_cg.c", "kernel_mg.c", "kernel_lu.c", "kernel_smg.c", "kernel_radix.c"])];

/// The directory with the benchmark sources: as installed, or in the source tree that holds this
/// binary or the working directory.
pub fn find_sources() -> Result<PathBuf, String> {
    let is_sources = |dir: &PathBuf| dir.join("bench.h").is_file();
    let exe = std::env::current_exe().and_then(|exe| exe.canonicalize()).unwrap_or_default();
    let installed = exe.parent().map(|bin| bin.join("../share/tern/bench"));
    let beside = exe.ancestors().map(|dir| dir.join("bench"));
    let mut places = installed.into_iter().chain(beside).chain([PathBuf::from("bench")]);
    places
        .find(is_sources)
        .ok_or_else(|| "the benchmark sources are not there; name them with --source DIR".to_string())
}

/// Compiles one benchmark for one library into `dir` unless it is newer than what it comes from.
pub fn compile(library: &Library, sources: &Path, program: &str, dir: &Path) -> Result<PathBuf, String> {
    let mut files = vec![sources.join(program).with_extension("c")];
    let parts = PARTS.iter().filter(|(whole, _)| *whole == program).flat_map(|(_, parts)| *parts);
    files.extend(parts.chain(SHARED).map(|file| sources.join(file)));
    let mut inputs = files.clone();
    inputs.extend(HEADERS.iter().map(|file| sources.join(file)));
    inputs.push(library.mpicc.clone());
    let mut compiler = Command::new(&library.mpicc);
    compiler.envs(library.environment.iter().map(|(name, value)| (name, value)));
    run_compiler(compiler, &files, &inputs, &dir.join(program))
}

/// Compiles the flag ping-pong, which uses no MPI.
pub fn compile_flag(sources: &Path, dir: &Path) -> Result<PathBuf, String> {
    let files = [sources.join("flag.c"), sources.join("stats.c")];
    let mut inputs = files.to_vec();
    inputs.push(sources.join("stats.h"));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    run_compiler(Command::new(compiler), &files, &inputs, &dir.join("flag"))
}

fn run_compiler(
    mut compiler: Command,
    files: &[PathBuf],
    inputs: &[PathBuf],
    output: &Path,
) -> Result<PathBuf, String> {
    if is_newer(output, inputs) {
        return Ok(output.to_path_buf());
    }
    let dir = output.parent().expect("a file in a directory");
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let name = compiler.get_program().display().to_string();
    let result = compiler
        .args(FLAGS)
        .arg("-o")
        .arg(output)
        .args(files)
        .output()
        .map_err(|e| format!("{name}: {e}"))?;
    if result.status.success() {
        return Ok(output.to_path_buf());
    }
    let said = String::from_utf8_lossy(&result.stderr).into_owned();
    Err(format!("{name} cannot compile {}:\n{said}", files[0].display()))
}

fn is_newer(output: &Path, inputs: &[PathBuf]) -> bool {
    let time = |path: &Path| path.metadata().and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    output.is_file() && inputs.iter().all(|input| time(input) < time(output))
}
