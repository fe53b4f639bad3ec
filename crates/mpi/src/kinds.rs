//! Memory allocation kinds (MPI 5.0 section 11.4.3): who allocated the memory that buffers may be of. There is the system's and what
//! MPI itself has allocated; memory of accelerators is not known here, and is never claimed to be.

use crate::info::Info;

/// By this key sessions and programs ask for kinds, and objects say which there are.
pub const KEY: &str = "mpi_memory_alloc_kinds";
/// By this one a program says that it uses no others.
const ASSERTED: &str = "mpi_assert_memory_alloc_kinds";

/// The kinds, and what may be said of each more exactly.
const KINDS: [(&str, &[&str]); 2] =
    [("mpi", &["alloc_mem", "win_allocate", "win_allocate_shared"]), ("system", &[])];

/// The kinds that there are for one who asks for these: all in any case, and what was asked for more exactly.
pub fn provided(wanted: &str) -> String {
    let mut kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
    for kind in wanted.split(',').map(str::trim) {
        if is_there(kind) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.join(",")
}

fn is_there(kind: &str) -> bool {
    let mut words = kind.split(':');
    let name = words.next();
    let known = KINDS.iter().find(|(known, _)| Some(*known) == name);
    known.is_some_and(|(_, restrictors)| words.all(|word| restrictors.contains(&word)))
}

/// What of the hints of an object is kept: not what only sessions may ask for, nor an assertion about kinds that there are not.
pub fn keep(hints: &mut Info) {
    let is_vain = hints.hint(ASSERTED).is_some_and(|list| !list.split(',').all(|kind| is_there(kind.trim())));
    for (key, goes) in [(KEY, true), (ASSERTED, is_vain)] {
        if goes && hints.hint(key).is_some() {
            hints.delete(key.as_bytes()).expect("it is there");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_provided_and_nothing_else() {
        assert_eq!(provided(""), "mpi,system");
        assert_eq!(provided("system,mpi"), "mpi,system");
        assert_eq!(provided("cuda:device,mpi:alloc_mem , mpi:alloc_mem"), "mpi,system,mpi:alloc_mem");
        assert_eq!(provided("mpi:device,system:mpi,mpi:,:mpi"), "mpi,system");
    }

    #[test]
    fn an_assertion_about_what_is_not_there_counts_as_not_said() {
        let kept = |key: &str, value: &str| {
            let mut hints = Info::new();
            hints.set(key.as_bytes(), value.as_bytes()).unwrap();
            keep(&mut hints);
            hints.len()
        };
        assert_eq!(kept(ASSERTED, "system, mpi:win_allocate"), 1);
        assert_eq!(kept(ASSERTED, "system,rocm"), 0);
        assert_eq!(kept(KEY, "system"), 0);
        assert_eq!(kept("other", "rocm"), 1);
    }
}
