//! `mpiexec`: starts MPI programs on this host or on several.
fn main() -> std::process::ExitCode {
    launch::mpiexec::run(std::env::args_os().skip(1).collect()).into()
}
