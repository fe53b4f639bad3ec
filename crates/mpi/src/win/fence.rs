//! Which of two fences a window has whose memory is not shared.
//!
//! ```text
//! told:   each ── all there ──▶ each,  each ── my memory is done ──▶ each
//! asked:  origin ── all there? ──▶ target ── yes ──▶ origin,  barrier
//! ```
//!
//! Told is two ways instead of two and those of a barrier, but a message for each pair of ranks. So it is a question of what messages
//! cost, which collectives have to answer too: from the same prices, which are the same on all ranks.

use crate::coll::cost;
use crate::coll::{Algorithm, Collective, Problem, State};

/// Words of each rank to each other one in a fence that is told.
const WORDS: f64 = 2.0;

/// Whether a fence of so many ranks is expected to be over sooner if it is told.
pub fn is_told(ranks: usize, state: &State) -> bool {
    if ranks < 2 {
        return false;
    }
    let State { tariff, forced, spread, .. } = state;
    let all = Problem { size: ranks, bytes: 0, commutes: true, root: 0, spread };
    let by = |algorithm| cost::price(Collective::Barrier, algorithm, &all, tariff).total();
    let barrier =
        cost::choose(Collective::Barrier, &all, tariff, forced.get(Collective::Barrier)).price.total();
    // In a round of this one each rank has one message, as a target that is asked, or answers.
    let way = by(Algorithm::Dissemination) / f64::from(ranks.next_power_of_two().ilog2());
    let (told, asked) = (WORDS * by(Algorithm::Linear), 2.0 * way + barrier);
    // Prices between hosts are those of a rank that has a core. Where ranks share cores each waits for the messages of the others.
    let crowd = spread.levels().map_or(1, |levels| levels.most().div_ceil(tariff.host.cores.max(1) as usize));
    let shared_ns = (crowd - 1) as f64 * (tariff.network.overhead_ns + tariff.network.receive_ns);
    told + WORDS * (ranks - 1) as f64 * shared_ns < asked + 2.0 * shared_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::{Forced, Spread, Tariff};

    fn told(ranks: usize, spread: Spread) -> bool {
        is_told(ranks, &State::new(Tariff::default(), Forced::default(), spread))
    }

    /// A few ranks tell each other; of very many each would have more to tell than a tree has levels.
    #[test]
    fn few_are_told_and_many_are_asked() {
        for spread in [Spread::OneHost, Spread::Apart] {
            assert!(!told(1, spread.clone()) && told(2, spread.clone()), "{spread:?}");
            let last = (2..4096).take_while(|ranks| told(*ranks, spread.clone())).last().unwrap();
            assert!((last..4096).skip(64).all(|ranks| !told(ranks, spread.clone())), "{spread:?}: {last}");
        }
    }

    /// Between hosts ranks that have no core of their own are asked sooner.
    #[test]
    fn ranks_that_share_cores_are_asked() {
        let told = |cores: u32| {
            let mut tariff = Tariff::default();
            tariff.host.cores = cores;
            is_told(4, &State::new(tariff, Forced::default(), Spread::of(4, |rank| rank as u32 / 2)))
        };
        assert!(told(2) && !told(1));
    }

    /// It is cost that decides: where each message costs more of a core, fewer are worth it.
    #[test]
    fn dearer_messages_are_fewer() {
        let of = |overhead_ns: f64| {
            let mut tariff = Tariff::default();
            tariff.network.overhead_ns = overhead_ns;
            tariff.network.receive_ns = overhead_ns;
            let state = State::new(tariff, Forced::default(), Spread::Apart);
            (2..4096).take_while(|ranks| is_told(*ranks, &state)).last().unwrap()
        };
        let latency_ns = Tariff::default().network.latency_ns;
        assert!(
            of(latency_ns / 100.0) > of(latency_ns / 10.0),
            "{} {}",
            of(latency_ns / 100.0),
            of(latency_ns / 10.0)
        );
    }
}
