//! Programs of another MPI that this launcher cannot make a job of.
//!
//! Open MPI's library speaks PMIx only. Started here each process finds no launcher and runs as a job of one rank,
//! all of them end with 0, and nobody says that the work was done several times over. Nothing is heard of
//! such a process on the PMI channel, but so it is with a program that does not use MPI at all; so the
//! dynamic section of the program is looked at, which says what it is linked with, and the memory of
//! what runs for a while, which shows libraries that were loaded later (by Python) or by another program (a script).
//!
//! Tern has a library of that name too (`--abi openmpi`): it is told by where it lies.
use crate::look;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How the names of Open MPI's own libraries begin. `libmpi.so.12` is not among them: that is MPICH and its kin,
/// which speak PMI-1.
const OPEN_MPI: &[&str] = &["libmpi.so.40", "libmpi.so.20", "libopen-pal.so.", "libopen-rte.so."];

/// Where Tern's library with Open MPI's ABI lies, below a prefix.
const OWN: &str = "tern/openmpi/libmpi.so.40";

/// The library of Open MPI that the program is linked with, if the loader, which looks first in the folders of
/// `searched`, does not find Tern's for it.
pub(super) fn linked(program: &Path, searched: &OsStr) -> Option<String> {
    let name = libraries(program)?.into_iter().find(|name| foreign(name))?;
    let found = env::split_paths(searched).map(|folder| folder.join(&name)).find(|path| path.exists());
    (!found.is_some_and(|path| path.ends_with(OWN))).then_some(name)
}

/// Whether Tern has a library of this name, for programs of this one.
pub(super) fn is_replaced(library: &str) -> bool {
    Path::new(OWN).ends_with(library)
}

/// The libraries that a program names; `None` for what is no program of this host's kind.
pub fn libraries(program: &Path) -> Option<Vec<String>> {
    let file = File::open(program).ok()?;
    needed(&|at, most| {
        let mut bytes = vec![0; most];
        let count = file.read_at(&mut bytes, at).ok()?;
        bytes.truncate(count);
        Some(bytes)
    })
}

/// The library of Open MPI that a process of `group` has loaded.
pub(super) fn loaded(group: i32) -> Option<String> {
    look::members(group).into_iter().find_map(|pid| {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        // A library of that name may do nothing but lead to Tern's.
        if maps.lines().any(|line| Path::new(line).ends_with(OWN)) {
            return None;
        }
        let mut names = maps.lines().filter_map(|line| Some(line.rsplit_once('/')?.1));
        names.find(|name| foreign(name)).map(String::from)
    })
}

fn foreign(name: &str) -> bool {
    OPEN_MPI.iter().any(|known| name.starts_with(known))
}

/// The libraries that the dynamic section of a 64-bit ELF program names; `None` for anything else. The names and
/// numbers are those of `elf(5)`.
pub fn needed(elf: Reader) -> Option<Vec<String>> {
    const PT_LOAD: u64 = 1;
    const PT_DYNAMIC: u64 = 2;
    const DT_NULL: u64 = 0;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    // Of the byte order of this host: another one cannot be run here.
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    if elf(0, 6)? != [0x7f, b'E', b'L', b'F', 2, order] {
        return None;
    }
    let (table, size, count) = (number(elf, 32, 8)?, number(elf, 54, 2)?, number(elf, 56, 2)?);
    let header = |i| segment(elf, table.checked_add(i * size)?);
    let headers: Vec<Segment> = (0..count).map(header).collect::<Option<_>>()?;
    let dynamic = headers.iter().find(|header| header.kind == PT_DYNAMIC)?;
    let mut entries = Vec::new();
    for at in (dynamic.offset..dynamic.offset.checked_add(dynamic.size)?).step_by(16) {
        match number(elf, at, 8)? {
            DT_NULL => break,
            tag => entries.push((tag, number(elf, at.checked_add(8)?, 8)?)),
        }
    }
    let address = entries.iter().find(|(tag, _)| *tag == DT_STRTAB)?.1;
    let holds = |header: &&Segment| {
        header.kind == PT_LOAD && address.checked_sub(header.address).is_some_and(|at| at < header.size)
    };
    let load = headers.iter().find(holds)?;
    let names = load.offset.checked_add(address - load.address)?;
    let wanted = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
    wanted.map(|(_, at)| text(elf, names.checked_add(*at)?)).collect()
}

/// Reads a file: so many bytes at most from a place on.
pub type Reader<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

fn segment(elf: Reader, at: u64) -> Option<Segment> {
    let field = |offset: u64, bytes: usize| number(elf, at.checked_add(offset)?, bytes);
    Some(Segment { kind: field(0, 4)?, offset: field(8, 8)?, address: field(16, 8)?, size: field(32, 8)? })
}

/// A number of this host's byte order.
fn number(elf: Reader, at: u64, bytes: usize) -> Option<u64> {
    let mut digits = elf(at, bytes).filter(|field| field.len() == bytes)?;
    if cfg!(target_endian = "little") {
        digits.reverse();
    }
    Some(digits.into_iter().fold(0, |value, byte| value << 8 | u64::from(byte)))
}

/// A name that ends with a zero byte; no name of a file is longer.
fn text(elf: Reader, at: u64) -> Option<String> {
    const NAME_MAX: usize = 256;
    let bytes = elf(at, NAME_MAX)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(elf: &[u8]) -> Option<Vec<String>> {
        super::needed(&|at, most| {
            let rest = elf.get(usize::try_from(at).ok()?..)?;
            Some(rest[..most.min(rest.len())].to_vec())
        })
    }

    #[test]
    fn a_program_says_what_it_needs() {
        let own = std::env::current_exe().unwrap();
        let names = needed(&fs::read(&own).unwrap()).unwrap();
        assert!(names.iter().any(|name| name.starts_with("libc.so")), "{names:?}");
        assert_eq!(linked(&own, OsStr::new("")), None);
        assert_eq!(linked(Path::new("/no/such/file"), OsStr::new("")), None);
        assert!(foreign("libmpi.so.40.40.7") && !foreign("libmpi.so.12") && !foreign("libmpi_abi.so.1"));
        assert!(is_replaced("libmpi.so.40") && !is_replaced("libmpi.so.20"));
    }

    /// Headers that are cut or wrong end in `None` or in other names, never in a panic.
    #[test]
    fn any_bytes_are_survived() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        for end in 0..500 {
            assert_eq!(needed(&own[..end]), None);
        }
        let mut wrong = own[..1 << 16].to_vec();
        for at in 6..800 {
            for value in [0, 1, 0x7f, 0xff] {
                let right = std::mem::replace(&mut wrong[at], value);
                let _ = needed(&wrong);
                wrong[at] = right;
            }
        }
        assert_eq!(needed(b"#!/bin/sh\n"), None);
    }
}
