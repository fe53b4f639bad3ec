//! Where a program is that is to be started: looked for as shells do, by `mpiexec` before it starts the first rank, and by a rank
//! before it asks a launcher that would end the job for what is not there.
use crate::sys::process;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The codes that shells use.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// What the user calls the places of a program.
pub(crate) struct Words {
    /// Where it is looked for.
    path: &'static str,
    /// Its working directory.
    directory: &'static str,
}

impl Words {
    /// Options of `mpiexec`.
    pub(crate) const OPTIONS: Words = Words { path: "-path", directory: "option -wdir" };
    /// Hints of MPI_Comm_spawn (MPI 5.0 section 11.8.4).
    pub(crate) const HINTS: Words = Words { path: "info key `path`", directory: "info key `wdir`" };
}

/// A program that is looked for.
pub(crate) struct Wanted<'a> {
    /// Its name.
    pub(crate) program: &'a Path,
    /// Where relative names begin.
    pub(crate) base: &'a Path,
    /// Its working directory, if the user names one.
    pub(crate) directory: Option<&'a Path>,
    /// Where the user has it looked for, instead of in PATH.
    pub(crate) path: Option<&'a OsStr>,
    /// PATH.
    pub(crate) inherited: Option<OsString>,
}

/// Where it is, or the code and the text of a refusal.
pub(crate) fn find(wanted: &Wanted, words: &Words) -> Result<PathBuf, (u8, String)> {
    let directory = wanted.base.join(wanted.directory.unwrap_or(Path::new("")));
    if let Some(named) = wanted.directory.filter(|_| !directory.is_dir()) {
        let (what, name) = (words.directory, named.display());
        return Err((1, format!("{what}: the working directory '{name}' does not exist")));
    }
    let program = wanted.program;
    let refusal = |code, why: String| (code, format!("cannot start '{}': {why}", program.display()));
    if has_slash(program) {
        let path = directory.join(program);
        return executable(&path).map(|()| path).map_err(|(code, why)| refusal(code, why));
    }
    let inherited = wanted.inherited.as_deref().unwrap_or(OsStr::new("/bin:/usr/bin"));
    let path = wanted.path.unwrap_or(inherited);
    let mut refused = None;
    for candidate in std::env::split_paths(path).map(|place| directory.join(place).join(program)) {
        match executable(&candidate) {
            Ok(()) => return std::path::absolute(candidate).map_err(|e| refusal(1, e.to_string())),
            Err((NOT_EXECUTABLE, why)) => refused = Some(format!("{}: {why}", candidate.display())),
            Err(_) => {}
        }
    }
    if let Some(why) = refused {
        return Err(refusal(NOT_EXECUTABLE, why));
    }
    let local = if directory.join(program).is_file() {
        format!("; there is one in the working directory: write ./{}", program.display())
    } else {
        String::new()
    };
    let place = match wanted.path {
        Some(given) => format!("{}, '{}'", words.path, given.display()),
        None => "PATH".to_string(),
    };
    Err(refusal(NOT_FOUND, format!("it is in no directory of {place}{local}")))
}

/// Whether a program is named by its place, and so not looked for.
pub(crate) fn has_slash(program: &Path) -> bool {
    program.as_os_str().as_encoded_bytes().contains(&b'/')
}

fn executable(path: &Path) -> Result<(), (u8, String)> {
    use std::os::unix::fs::PermissionsExt;
    let refused = |why: &str| Err((NOT_EXECUTABLE, why.to_string()));
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused(&error.to_string()),
        Err(error) => Err((NOT_FOUND, error.to_string())),
        Ok(meta) if meta.is_dir() => refused("it is a directory"),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
            refused("it is not executable (chmod +x makes it so)")
        }
        // Its owner, or the file system it is on, lets this user not.
        Ok(_) => process::may_execute(path).or_else(|error| refused(&error.to_string())),
    }
}
