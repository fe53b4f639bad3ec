//! What messages took on a link between two hosts, as jobs have measured it when they ended, and the rates that follow.
//!
//! ```text
//! end of a job ──▶ Link, a line of a file ──▶ start of the next one: rank 0 reads it ──▶ Rates of all ranks
//! ```
//!
//! The protocols' facts would not do: they are known where long messages went, while collectives need to know what short ones
//! cost each of their ends, and a program says nothing of its link that has others wait on its core. So each figure
//! is the time of a message of the library, sent for this when nothing else is under way: the shortest of
//! several, for whatever disturbs a measurement makes it longer.
use super::rates::{Level, Rates};

/// Bytes of the messages that are measured there and back: one without data worth mentioning, the longest that leaves at once (see
/// [`lengths`]), and two whose difference is that of their bytes alone.
pub const LENGTHS: [usize; 4] = [8, 64 << 10, 256 << 10, 1 << 20];
/// The shortest that says what bytes cost.
const SHORTEST: f64 = 4096.0;

/// The same where no longer one leaves at once. What a byte costs in shorter ones would say too much of those: calls of the kernel and
/// the segments of a message are in it, which long ones have no more of.
pub fn lengths(eager_bytes: f64) -> [usize; LENGTHS.len()] {
    let longest = eager_bytes.clamp(SHORTEST, LENGTHS[1] as f64) as usize;
    [LENGTHS[0], longest, LENGTHS[2], LENGTHS[3]]
}

/// Jobs that measure a link, as long as each must expect the others to have been disturbed. What is known changes
/// no more then, so that later jobs choose alike.
pub const JOBS: u32 = 4;

/// No message takes so long, which is more than a week.
const LONGEST_NS: f64 = 1e15;

/// A link as it was measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Jobs that have measured it.
    pub jobs: u32,
    /// The longest message that left at once, whatever was before it.
    pub eager_bytes: f64,
    /// What a message without data took its sender.
    pub send_ns: f64,
    /// From one such message to the next, of many in a row.
    pub gap_ns: f64,
    /// One way of a message of each length.
    pub trips_ns: [f64; LENGTHS.len()],
}

impl Link {
    /// What is known when one more job has measured it: the shortest of all times.
    pub fn and(self, seen: Link) -> Link {
        Link {
            jobs: self.jobs.saturating_add(seen.jobs),
            eager_bytes: seen.eager_bytes,
            send_ns: self.send_ns.min(seen.send_ns),
            gap_ns: self.gap_ns.min(seen.gap_ns),
            trips_ns: std::array::from_fn(|at| self.trips_ns[at].min(seen.trips_ns[at])),
        }
    }

    /// What several links are together for a collective that goes over all: the slowest in everything.
    pub fn slower(self, other: Link) -> Link {
        Link {
            jobs: self.jobs.min(other.jobs),
            eager_bytes: self.eager_bytes.min(other.eager_bytes),
            send_ns: self.send_ns.max(other.send_ns),
            gap_ns: self.gap_ns.max(other.gap_ns),
            trips_ns: std::array::from_fn(|at| self.trips_ns[at].max(other.trips_ns[at])),
        }
    }

    /// As a file has it.
    pub fn text(&self) -> String {
        let Link { jobs, eager_bytes, send_ns, gap_ns, trips_ns } = self;
        let trips = trips_ns.map(|ns| format!(" {ns:.0}")).concat();
        format!("{jobs} {eager_bytes:.0} {send_ns:.0} {gap_ns:.0}{trips}")
    }

    /// What a file says, if it says it as [`Link::text`] does: a longer message takes no less than a shorter one.
    pub fn parse(text: &str) -> Option<Link> {
        let (jobs, rest) = text.split_once(' ')?;
        let numbers: Option<Vec<f64>> = rest.split(' ').map(|number| number.parse().ok()).collect();
        let [eager_bytes, send_ns, gap_ns, trips_ns @ ..] = &numbers?[..] else { return None };
        let link = Link {
            jobs: jobs.parse().ok()?,
            eager_bytes: *eager_bytes,
            send_ns: *send_ns,
            gap_ns: *gap_ns,
            trips_ns: trips_ns.try_into().ok()?,
        };
        link.is_sane().then_some(link)
    }

    /// Whether these can be times of messages.
    pub fn is_sane(&self) -> bool {
        let trips = self.trips_ns;
        let mut all = trips.into_iter().chain([self.eager_bytes, self.send_ns, self.gap_ns]);
        self.jobs > 0
            && all.all(|number| (0.0..LONGEST_NS).contains(&number))
            && trips[0] >= 1.0
            && trips.is_sorted()
    }

    /// The rates between hosts where no message longer than `eager_max` leaves at once; of `assumed` remains what copies and
    /// combining cost.
    pub fn rates(&self, assumed: &Rates, eager_max: f64) -> Rates {
        let [bare, short, medium, long] = self.trips_ns;
        let bytes = lengths(self.eager_bytes).map(|len| len as f64);
        let per_byte = (long - medium) / (bytes[3] - bytes[2]);
        let short_per_byte = (short - bare) / (bytes[1] - bytes[0]);
        // Of a message that is alone its two ends are a part; who gets many pays his part for each.
        let overhead_ns = self.send_ns.min(bare / 2.0);
        let receive_ns = self.gap_ns.min(bare - overhead_ns);
        let level = |level: Level| Level {
            link: per_byte,
            short: short_per_byte,
            busy: per_byte.min(short_per_byte),
            ..level
        };
        Rates {
            latency_ns: bare - overhead_ns - receive_ns,
            overhead_ns,
            receive_ns,
            gap_ns: self.gap_ns,
            eager_bytes: self.eager_bytes.min(eager_max),
            handshake_ns: (medium - bare - per_byte * bytes[2]).max(0.0),
            levels: assumed.levels.map(level),
            ..*assumed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::{Collective, Problem, Spread, Tariff, cost};
    use fabric::settings::Settings;
    use proptest::prelude::*;

    /// 5 µs and 1 ns for each byte, which 20 µs more are waited for in long ones.
    const LINK: Link = Link {
        jobs: 1,
        eager_bytes: 65536.0,
        send_ns: 1000.0,
        gap_ns: 500.0,
        trips_ns: [5000.0, 70_528.0, 287_136.0, 1_073_568.0],
    };

    fn rates(link: &Link) -> Rates {
        link.rates(&Tariff::default().network, f64::INFINITY)
    }

    #[test]
    fn rates_give_back_what_was_measured() {
        let rates = rates(&LINK);
        let bare = rates.latency_ns + rates.overhead_ns + rates.receive_ns;
        assert_eq!((bare, rates.overhead_ns, rates.gap_ns), (5000.0, 1000.0, 500.0));
        for (len, ns) in lengths(65536.0).into_iter().zip(LINK.trips_ns).map(|(len, ns)| (len as f64, ns)) {
            let told = bare + rates.agreed_ns(len) + len * rates.per_byte(rates.level(len), len);
            assert!((told - ns).abs() < 0.01 * ns, "{len}: {told} instead of {ns}");
        }
        assert_eq!(LINK.rates(&Tariff::default().network, 4096.0).eager_bytes, 4096.0);
    }

    #[test]
    fn jobs_keep_the_shortest_and_collectives_wait_for_the_slowest() {
        let busy = Link { trips_ns: [64_000.0, 80_000.0, 280_000.0, 2e6], send_ns: 900.0, ..LINK };
        let both = LINK.and(busy);
        assert_eq!(
            (both.jobs, both.send_ns, both.trips_ns[0], both.trips_ns[2]),
            (2, 900.0, 5000.0, 280_000.0)
        );
        let all = LINK.slower(busy);
        assert_eq!(
            (all.jobs, all.send_ns, all.trips_ns[0], all.trips_ns[2]),
            (1, 1000.0, 64_000.0, 287_136.0)
        );
    }

    #[test]
    fn what_is_no_link_is_refused() {
        let good = LINK.text();
        assert_eq!(Link::parse(&good), Some(LINK));
        for bad in [
            "",
            "1",
            "0 65536 1000 500 5000 13184 287136 1073568",
            "1 65536 1000 500 5000 13184 287136",
            "1 65536 1000 500 5000 13184 287136 1073568 1",
            "1 65536 1000 500 5000 13184 287136 13184",
            "1 65536 1000 500 0 13184 287136 1073568",
            "1 65536 1000 -500 5000 13184 287136 1073568",
            "1 65536 1000 500 5000 13184 287136 NaN",
            "1 65536 inf 500 5000 13184 287136 1073568",
        ] {
            assert_eq!(Link::parse(bad), None, "{bad}");
        }
    }

    /// Where a message costs its ends much, few are sent; where bytes do, they go straight.
    #[test]
    fn what_is_measured_decides() {
        let settings = Settings::read(|_| None, std::iter::empty()).unwrap();
        let chosen = |link: Link| {
            let problem = Problem { size: 8, bytes: 4096, commutes: true, root: 0, spread: &Spread::Apart };
            let tariff = Tariff::of_job(&settings, 1).on(&link, &settings);
            assert_eq!(tariff.source, fabric::Source::Kept);
            cost::choose(Collective::Alltoall, &problem, &tariff, None).winner.word()
        };
        let ends_ns = 400_000.0;
        let dear = [1e6, 1.008e6, 1.03e6, 1.2e6];
        assert_eq!(chosen(Link { trips_ns: dear, send_ns: ends_ns, gap_ns: ends_ns, ..LINK }), "bruck");
        assert_eq!(chosen(Link { trips_ns: [2000.0, 650_000.0, 2.6e6, 1.05e7], ..LINK }), "linear");
    }

    proptest! {
        /// Whatever sane times there are, rates are numbers that ranks can tell each other.
        #[test]
        fn any_times_make_rates(times in proptest::array::uniform6(0.0..1e14)) {
            let [a, b, c, d, send_ns, gap_ns] = times;
            let mut trips_ns = [a + 1.0, b + 1.0, c + 1.0, d + 1.0];
            trips_ns.sort_by(f64::total_cmp);
            let link = Link { trips_ns, send_ns, gap_ns, ..LINK };
            prop_assert!(link.is_sane());
            let rates = rates(&link);
            let numbers = [rates.latency_ns, rates.overhead_ns, rates.receive_ns, rates.handshake_ns];
            let bytes = rates.levels.map(|level| level.link + level.short + level.busy);
            prop_assert!(numbers.into_iter().chain(bytes).all(|n| n.is_finite() && n >= 0.0), "{rates:?}");
        }
    }
}
