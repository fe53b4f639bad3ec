//! What a file is that the kernel does not take for a program (`ENOEXEC`).
//!
//! The C library hands such a file to `/bin/sh`, as POSIX has it for scripts that begin without `#!`. A shell that is given a
//! program of another machine runs what it finds there, so only text goes that way; the rest is refused before anything has run.
use crate::sys::process;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// So much of a file is looked at.
const HEAD: u64 = 512;

/// How a file begins.
pub(crate) fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // What cannot be read is no script for a shell either.
    let _ = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    head
}

/// Whether a file that begins so may be a script: no control characters but those that texts have.
pub fn is_text(head: &[u8]) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b'\t'..=b'\r' | 0x1b);
    !head.is_empty() && head.iter().all(|byte| is_blank(byte) || !byte.is_ascii_control())
}

/// What to tell the user of a file that begins so and cannot be executed.
pub fn describe(head: &[u8]) -> String {
    match head {
        [0x7f, b'E', b'L', b'F', rest @ ..] => match machine(rest) {
            Some(name) => format!("it is a program for {name}, not for this machine"),
            None => "it is a damaged program, or one for another machine".into(),
        },
        [] => "it is empty, or cannot be read".into(),
        _ => "it is no program".into(),
    }
}

/// Why a file cannot be executed, as far as its beginning says: for whoever cannot try.
pub(crate) fn refusal(path: &Path) -> Option<String> {
    // Where other formats are registered a file that is none of the kernel's own may be one of them.
    const REGISTERED: &str = "/proc/sys/fs/binfmt_misc";
    let head = head(path);
    if let Some(interpreter) = interpreter(&head) {
        let is_there = process::may_execute(interpreter);
        return is_there.err().map(|error| format!("its interpreter {}: {error}", interpreter.display()));
    }
    let is_known = head.is_empty() || is_text(&head) || machine_field(&head) == own_machine();
    let has_others = || std::fs::read_dir(REGISTERED).is_ok_and(|formats| formats.count() > 2);
    (!is_known && !has_others()).then(|| describe(&head))
}

/// What a script says it is to be run by.
pub fn interpreter(head: &[u8]) -> Option<&Path> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(u8::is_ascii_whitespace).next()?;
    (!word.is_empty()).then(|| Path::new(OsStr::from_bytes(word)))
}

/// The class, the order and the machine of an ELF file.
fn machine_field(head: &[u8]) -> Option<[u8; 4]> {
    let elf = head.strip_prefix(b"\x7fELF")?;
    Some([*elf.first()?, *elf.get(1)?, *elf.get(14)?, *elf.get(15)?])
}

/// Those of this program.
fn own_machine() -> Option<[u8; 4]> {
    machine_field(&head(Path::new("/proc/self/exe")))
}

/// The machine of an ELF file, behind its first four bytes; names and numbers are those of `elf(5)`.
fn machine(elf: &[u8]) -> Option<String> {
    let order = *elf.get(1)?;
    let field = [*elf.get(14)?, *elf.get(15)?];
    let number = if order == 2 { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) };
    let known = [
        (3, "x86"),
        (20, "PowerPC"),
        (21, "PowerPC 64"),
        (22, "S/390"),
        (40, "Arm"),
        (62, "x86-64"),
        (183, "AArch64"),
        (243, "RISC-V"),
        (258, "LoongArch"),
    ];
    let name = known.iter().find(|(known, _)| *known == number).map(|(_, name)| (*name).to_string());
    name.or_else(|| Some(format!("machine {number} of ELF")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_text_and_programs_are_not() {
        assert!(is_text(b"echo hello\n") && is_text("écho\r\n\tx\n".as_bytes()));
        let own = head(&std::env::current_exe().unwrap());
        assert_eq!(own.len() as u64, HEAD);
        assert!(!is_text(&own) && !is_text(b"") && !is_text(b"a\x00b") && !is_text(&[1, 2, 3]));
        assert!(head(Path::new("/no/such/file")).is_empty());
    }

    #[test]
    fn what_is_no_program_is_known_by_its_beginning() {
        assert_eq!(refusal(&std::env::current_exe().unwrap()), None);
        assert_eq!(refusal(Path::new("/no/such/file")), None);
        assert_eq!(interpreter(b"#! /bin/sh -e\necho"), Some(Path::new("/bin/sh")));
        assert_eq!((interpreter(b"#!\n"), interpreter(b"echo\n")), (None, None));
        assert_eq!((machine_field(b"\x7fELF\x02"), machine_field(b"MZ")), (None, None));
    }

    #[test]
    fn a_program_for_another_machine_is_said_to_be_one() {
        let mut own = head(&std::env::current_exe().unwrap());
        own[18..20].copy_from_slice(&183_u16.to_le_bytes());
        assert_eq!(describe(&own), "it is a program for AArch64, not for this machine");
        own[18..20].copy_from_slice(&9999_u16.to_le_bytes());
        assert_eq!(describe(&own), "it is a program for machine 9999 of ELF, not for this machine");
        assert_eq!(describe(&own[..10]), "it is a damaged program, or one for another machine");
        assert_eq!(describe(&[1, 2]), "it is no program");
    }
}
