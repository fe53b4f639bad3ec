//! `tern verbs`: runs a program that is written to verbs on Tern's software adapter, or measures adapters.

mod bench;
mod curves;
mod datagrams;
mod measure;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const HELP: &str = "\
usage: tern verbs PROGRAM [ARGUMENT ...]
       tern verbs bench [OPTIONS]

Runs a program that is written to verbs (libibverbs, librdmacm) on Tern's software adapter: no RDMA
hardware and no kernel module is needed. Each interface that is up and has an address is a
device, tern_ and its name, with one GID of index 0.

  tern verbs ibv_devinfo
  tern verbs ibv_rc_pingpong -d tern_eth0 -g 0            and on another host
  tern verbs ibv_rc_pingpong -d tern_eth0 -g 0 FIRST_HOST
  tern verbs ib_write_bw -d tern_eth0 [FIRST_HOST]
  tern verbs rping -s                                     and on another host
  tern verbs rping -c -a ADDRESS_OF_FIRST_HOST -v -C 5

`tern verbs bench` measures the adapters of this host (--help).";

/// The variable by which the loader of the system is told where to look first.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Runs the command; comes back only with the reason why it does not run.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let Some((program, rest)) = arguments.split_first() else {
        return Err(format!("verbs: no program given\n{HELP}"));
    };
    if program == "-h" || program == "--help" {
        println!("{HELP}");
        return Ok(());
    }
    if program == "bench" {
        return bench::run(rest.to_vec());
    }
    let folder = folder()?;
    let mut path = folder.into_os_string();
    if let Some(before) = std::env::var_os(LIBRARIES).filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    let error = Command::new(program).args(rest).env(LIBRARIES, path).exec();
    Err(format!("verbs: cannot run {}: {error}", program.display()))
}

/// Where the library is: beside this command, as it is installed.
fn folder() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("verbs: cannot tell where tern is: {e}"))?;
    let prefix = own.parent().and_then(|bin| bin.parent()).ok_or("verbs: tern is in no folder")?;
    let folder = prefix.join("lib/tern/verbs");
    let library = folder.join("libibverbs.so.1");
    if library.is_file() { Ok(folder) } else { Err(format!("verbs: there is no {}", library.display())) }
}
