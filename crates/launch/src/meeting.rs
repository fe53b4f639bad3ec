//! What ranks tell each other of themselves at the start, before they are connected. They may be of another version, which is refused by name.

use crate::crowd::Seat;
use std::str::FromStr;

/// What ranks must be to understand each other: bytes on the way are those of this version, and representations of numbers
/// are not converted.
pub fn kind() -> String {
    let order = if cfg!(target_endian = "little") { "le" } else { "be" };
    format!("tern-{}-{}-{}{order}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, usize::BITS)
}

/// What a rank tells that is reached `at` a place, goes by settings of this `manner`, and runs on a host of this name. Names of hosts may have
/// spaces, the rest has none.
pub fn place(at: &str, manner: &str, name: &str) -> String {
    format!("{} {at} {manner} {name}", kind())
}

/// Where a rank is reached and what its host is called, from what it has told all; an error if it is not of this kind, or
/// has other settings than this one.
pub fn read_place<At: FromStr>(rank: usize, text: &str, manner: &str) -> Result<(At, String), String> {
    let kind = kind();
    let mut words = text.splitn(4, ' ');
    match (words.next(), words.next().and_then(|at| at.parse().ok()), words.next(), words.next()) {
        (Some(theirs), Some(at), Some(said), Some(name)) if theirs == kind && said == manner => {
            Ok((at, name.to_owned()))
        }
        (Some(theirs), Some(_), Some(said), Some(name)) if theirs == kind => Err(format!(
            "rank {rank} on {name} has {said}, this rank {manner}: all ranks of a job must have the same"
        )),
        (Some(theirs), _, _, Some(name)) if theirs.starts_with("tern-") => Err(format!(
            "rank {rank} on {name} runs {theirs}, this rank {kind}: all ranks of a job must have the same version of Tern on \
             hosts of one architecture"
        )),
        _ => Err(format!(
            "rank {rank} says `{text}` of where it listens: it runs another version of Tern than this one, {kind}"
        )),
    }
}

/// What ranks say of the hosts they are on, by rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Met {
    /// Which memory each can share.
    pub memories: Vec<String>,
    /// What each says of adapters.
    pub cards: Vec<String>,
    /// Nothing if one does not say it: it is of another version, and refused by name when addresses are told.
    pub seats: Vec<Seat>,
}

/// What a rank tells that can share this memory, and sits there; and what it says of adapters. A memory and a seat have no spaces.
pub fn host(memory: &str, seat: &Seat, card: &str) -> String {
    format!("{memory} {seat} {card}")
}

/// What all ranks have told of their hosts.
pub fn read_hosts(told: &[Vec<u8>]) -> Met {
    let all: Vec<_> = told.iter().map(|told| String::from_utf8_lossy(told)).collect();
    let word = |at| all.iter().map(move |told| told.splitn(3, ' ').nth(at).unwrap_or_default());
    let seats: Option<Vec<Seat>> = word(1).map(|text| text.parse().ok()).collect();
    Met {
        memories: word(0).map(str::to_owned).collect(),
        cards: word(2).map(str::to_owned).collect(),
        seats: seats.unwrap_or_default(),
    }
}

/// The least of the numbers that all ranks have told, if all have told one.
pub fn least(told: &[Vec<u8>]) -> Option<usize> {
    let read = |text: &Vec<u8>| std::str::from_utf8(text).ok()?.parse().ok();
    told.iter().map(read).collect::<Option<Vec<usize>>>()?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn ranks_of_another_kind_are_refused_by_name() {
        let read = |rank, text: &str| read_place::<SocketAddr>(rank, text, "rc");
        let at = "[fd00::1]:7".parse().unwrap();
        assert_eq!(read(1, &place("[fd00::1]:7", "rc", "a b")), Ok((at, "a b".into())));
        let why = read(3, "tern-0.0.9-s390x-64be 10.0.0.1:7 rc big").unwrap_err();
        assert!(why.contains("rank 3 on big runs tern-0.0.9-s390x-64be, this rank tern-"), "{why}");
        for text in ["10.0.0.1:7 old", "", "x", &kind(), &format!("{} nowhere", kind())] {
            assert!(read(3, text).unwrap_err().contains("another version"), "{text}");
        }
        let why = read(3, &place("10.0.0.1:7", "rd", "big")).unwrap_err();
        assert!(why.contains("rank 3 on big has rd, this rank rc"), "{why}");
    }

    #[test]
    fn who_does_not_say_where_it_sits_has_all_seats_unknown() {
        let seat: Seat = "m/4/0,1".parse().unwrap();
        let told = [host("memory", &seat, "none: no adapter"), host("other", &seat, "")];
        let mut told = told.map(String::into_bytes).to_vec();
        let met = read_hosts(&told);
        assert_eq!(met.memories, ["memory", "other"]);
        assert_eq!(met.cards, ["none: no adapter", ""]);
        assert_eq!(met.seats, [seat.clone(), seat]);
        told.push(b"third".to_vec());
        let met = read_hosts(&told);
        assert_eq!((&met.memories[2][..], &met.cards[2][..], met.seats), ("third", "", vec![]));
    }

    #[test]
    fn the_least_is_known_if_all_have_told_a_number() {
        let told = |all: &[&str]| all.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(least(&told(&["1500", "9000"])), Some(1500));
        for all in [&["1500", "x"][..], &["-1"], &[]] {
            assert_eq!(least(&told(all)), None);
        }
    }
}
