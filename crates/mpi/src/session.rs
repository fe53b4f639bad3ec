//! Sessions (MPI 5.0 section 11.3): what is kept for each, the process sets they name, and how the members of a
//! group who have no communicator yet find each other.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::bsend::Bsend;
use crate::comm::Purpose;
use crate::group::Group;
use crate::handle::Handle;
use crate::info::Info;

/// `MPI_SESSION_NULL`.
pub const SESSION_NULL: Handle = Handle(0x120);

/// How the names of the process sets of hosts begin.
pub const OF_HOSTS: &str = "tern://";

/// A session.
#[derive(Debug, Default)]
pub struct Session {
    /// What `MPI_Session_get_info` says.
    pub info: Info,
    /// Buffer attached to it for buffered sends on communicators made from its groups.
    pub bsend: Bsend,
}

/// Processes under a name.
#[derive(Clone, Debug)]
pub struct ProcessSet {
    /// What it is called: a URI.
    pub name: String,
    /// Who belongs to it.
    pub members: Group,
}

/// The process sets of a job of `size` ranks: those of the standard, and one per host, in the order of the ranks.
/// `hosts` are the names of the ranks' hosts, or the one name that all have; nothing where they are not known: sets may come later, but never
/// change their places (MPI 5.0 section 11.3.2).
pub fn process_sets(me: u32, size: u32, hosts: &[String]) -> Vec<ProcessSet> {
    let set = |name: &str, members| ProcessSet { name: name.into(), members };
    let all = Group::range(0, size);
    let mut sets = vec![set("mpi://WORLD", all.clone()), set("mpi://SELF", Group::range(me, 1))];
    if let [host] = hosts {
        sets.push(set(&format!("{OF_HOSTS}{host}"), all));
        return sets;
    }
    let (mut known, mut members) = (HashMap::new(), Vec::<(&str, Vec<u32>)>::new());
    for (rank, host) in (0u32..).zip(hosts) {
        let at = *known.entry(host.as_str()).or_insert(members.len());
        if at == members.len() {
            members.push((host, Vec::new()));
        }
        members[at].1.push(rank);
    }
    let of_host =
        |(host, ranks): (&str, Vec<u32>)| set(&format!("{OF_HOSTS}{host}"), Group::from_ranks(ranks));
    sets.extend(members.into_iter().map(of_host));
    sets
}

/// What all processes call one: a digest of the name of its job, or nothing where there is but one, and its rank there.
pub type Name = ([u8; 16], u32);

/// Where those meet who make a communicator of these groups under a name: a context that no communicator has, and
/// a tag. Others meet elsewhere, since both are made of 92 bits of a hash of all that tells them apart.
pub fn meeting(name: &[u8], groups: &[impl AsRef<[Name]>]) -> (u64, i32) {
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, name).hash(&mut hasher);
        for group in groups {
            group.as_ref().hash(&mut hasher);
        }
        hasher.finish()
    };
    // Contexts of communicators begin with the rank that made them, far below the highest bit.
    (1 << 63 | hash(0) << 2 | Purpose::Creation as u64, (hash(1) >> 33) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_a_set_each() {
        let hosts = ["b", "a", "b", "c"].map(String::from);
        let sets = process_sets(2, 4, &hosts);
        let found: Vec<(&str, Vec<u32>)> =
            sets.iter().map(|set| (set.name.as_str(), set.members.iter().collect())).collect();
        let wanted: [(&str, &[u32]); 5] = [
            ("mpi://WORLD", &[0, 1, 2, 3]),
            ("mpi://SELF", &[2]),
            ("tern://b", &[0, 2]),
            ("tern://a", &[1]),
            ("tern://c", &[3]),
        ];
        assert_eq!(found, wanted.map(|(name, members)| (name, members.to_vec())));
        let sets = process_sets(2, 4, &hosts[1..2]);
        let last = sets.last().expect("the host's");
        assert_eq!((last.name.as_str(), last.members.size()), ("tern://a", 4));
        assert_eq!(process_sets(2, 4, &[]).len(), 2);
    }

    #[test]
    fn groups_and_names_meet_apart() {
        let named = |ranks: [u32; 3]| -> Vec<Name> { ranks.map(|rank| ([0; 16], rank)).to_vec() };
        let (one, other) = (named([0, 1, 2]), named([0, 2, 1]));
        let foreign: Vec<Name> = vec![([1; 16], 0), ([0; 16], 1), ([0; 16], 2)];
        let places = [
            meeting(b"a", &[&one]),
            meeting(b"b", &[&one]),
            meeting(b"a", &[&other]),
            meeting(b"a", &[&foreign]),
            meeting(b"a", &[&one, &other]),
        ];
        assert_eq!(places[0], meeting(b"a", &[named([0, 1, 2])]));
        for (i, place) in places.iter().enumerate() {
            assert!(place.0 >> 63 == 1 && place.0 & 3 == 2 && place.1 >= 0);
            assert!(!places[..i].contains(place));
        }
    }
}
