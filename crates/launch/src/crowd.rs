//! Whose cores are whose: containers and network namespaces of one machine are hosts to each other, and share its cores.
//!
//! Each rank says which machine it is on and which CPUs it may use; all work out the same. CPUs that only some ranks of a
//! machine may use count as everybody's: who has been given too few of its own the launcher knows, not the ranks.

use crate::control;
use crate::sys::process;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// What a rank says of the CPUs it may use, in one word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The name of the running kernel.
    machine: String,
    /// What the launcher says, see [`control::job_cpus`].
    told: usize,
    /// CPUs by number.
    own: BTreeSet<usize>,
}

impl Seat {
    /// That of this process on a machine of this name, which has no `/` in it.
    pub fn here(machine: String) -> Seat {
        let own = process::allowed_cpus().unwrap_or_default().into_iter().collect();
        Seat { machine, told: control::job_cpus(), own }
    }
}

impl Display for Seat {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let own: Vec<String> = self.own.iter().map(usize::to_string).collect();
        write!(f, "{}/{}/{}", self.machine, self.told, own.join(","))
    }
}

impl FromStr for Seat {
    type Err = ();

    fn from_str(text: &str) -> Result<Seat, ()> {
        let mut parts = text.splitn(3, '/');
        let mut part = || parts.next().ok_or(());
        let (machine, told, own) = (part()?, part()?, part()?);
        let own = own.split(',').filter(|cpu| !cpu.is_empty()).map(str::parse).collect::<Result<_, _>>();
        Ok(Seat { machine: machine.into(), told: told.parse().map_err(drop)?, own: own.map_err(drop)? })
    }
}

/// The ranks of a machine and the CPUs that all of them have together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowd {
    /// Ranks of the job, of all its hosts on this machine.
    pub ranks: usize,
    /// CPUs.
    pub cpus: usize,
}

impl Crowd {
    /// That of `rank`, by the seats of all.
    pub fn of(rank: usize, seats: &[Seat]) -> Crowd {
        Crowd::among(seats.iter().filter(|seat| seat.machine == seats[rank].machine))
    }

    /// That of ranks which are all that a machine has.
    fn among<'a>(seats: impl Iterator<Item = &'a Seat>) -> Crowd {
        let (mut ranks, mut told, mut own) = (0, 1, BTreeSet::<usize>::new());
        for seat in seats {
            (ranks, told) = (ranks + 1, told.max(seat.told));
            own.extend(&seat.own);
        }
        Crowd { ranks, cpus: own.len().max(told) }
    }

    /// CPUs that are left to so many of them: 0 where each has but a part of one.
    pub fn share(self, ranks: usize) -> usize {
        // In numbers that are long enough for whatever the ranks have said.
        (self.cpus as u128 * ranks as u128 / self.ranks.max(1) as u128) as usize
    }

    /// What all ranks of a job have if those of each machine are as crowded as where they are most; nothing where all have a CPU.
    pub fn worst(seats: &[Seat]) -> Option<usize> {
        let mut machines: BTreeMap<&str, Vec<&Seat>> = BTreeMap::new();
        seats.iter().for_each(|seat| machines.entry(&seat.machine).or_default().push(seat));
        let crowds = machines.into_values().map(|seats| Crowd::among(seats.into_iter()));
        let few = crowds.filter(|crowd| crowd.ranks > crowd.cpus);
        few.map(|crowd| crowd.share(seats.len()).max(1)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(machine: &str, told: usize, own: &[usize]) -> Seat {
        Seat { machine: machine.into(), told, own: own.iter().copied().collect() }
    }

    #[test]
    fn hosts_of_one_machine_share_its_cpus() {
        let seats = vec![seat("m", 2, &[0, 1]); 4];
        let crowd = Crowd::of(3, &seats);
        assert_eq!(crowd, Crowd { ranks: 4, cpus: 2 });
        assert_eq!([1, 2, 4].map(|here| crowd.share(here)), [0, 1, 2]);
        assert_eq!(Crowd::worst(&seats), Some(2));
        assert_eq!(Crowd::worst(&seats[..2]), None);
    }

    #[test]
    fn hosts_of_their_own_machines_do_not() {
        let seats = ["a", "b", "c", "d"].map(|machine| seat(machine, 2, &[0, 1]));
        assert_eq!(Crowd::of(0, &seats), Crowd { ranks: 1, cpus: 2 });
        assert_eq!(Crowd::worst(&seats), None);
        // Where they are most crowded all wait.
        let mixed = ["a", "b", "b", "b", "b", "b"].map(|machine| seat(machine, 2, &[0, 1]));
        assert_eq!((Crowd::of(0, &mixed).share(1), Crowd::worst(&mixed)), (2, Some(2)));
    }

    /// Containers to which different CPUs are given have those together, and ranks that are bound to one all of the launcher's.
    #[test]
    fn cpus_of_their_own_add_up() {
        let given =
            [seat("m", 2, &[0, 1]), seat("m", 2, &[0, 1]), seat("m", 2, &[2, 3]), seat("m", 2, &[2, 3])];
        assert_eq!(Crowd::of(0, &given), Crowd { ranks: 4, cpus: 4 });
        let bound = [seat("m", 8, &[0]), seat("m", 8, &[0])];
        assert_eq!(Crowd::of(0, &bound), Crowd { ranks: 2, cpus: 8 });
    }

    #[test]
    fn what_is_said_is_read() {
        for seat in [seat("3f-1", 2, &[0, 1, 63]), seat("m", 1, &[]), Seat::here("m".into())] {
            assert_eq!(seat.to_string().parse(), Ok(seat));
        }
        for bad in ["", "m", "m/2", "m/x/0", "m/2/0,x"] {
            assert_eq!(bad.parse::<Seat>(), Err(()), "{bad}");
        }
    }
}
