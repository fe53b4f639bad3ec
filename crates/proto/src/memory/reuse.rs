//! Which small buffers come again: the table of buffer usage.
//!
//! An eager message is copied into registered memory because registering its buffer costs more. For
//! a buffer that is sent again and again the opposite holds: registered once, it saves the copy each
//! time. Paper 000, section 3.3 (dissertation, section 5.3.3): with `R` the cost of registration,
//! `C` that of the copy and `V` what looking the buffer up costs, `n` uses after the registration pay
//! if `n > R / (C - V)`. Nobody knows how often a buffer will come, so it is taken for frequent when
//! it has come again a part of `n` times, hoping that it goes on (*speculation*).
//!
//! Buffers are found by a multiplicative hash of their address; those that share a bucket form a
//! chain. Looking at buffers that do not come again is a loss, so the table stops to grow (section
//! 3.4) once few of its buffers are frequent and chains have begun to form; before that a search
//! costs next to nothing. It goes on growing when more of them have become frequent, and begins anew when it
//! has refused many: the program may have come to another part.
//!
//! Pure data: costs come in as numbers, what a search compared comes out as one.

/// What a message of one length costs, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Payback {
    /// Registration of the buffer (R).
    pub register_ns: f64,
    /// Copy of the payload (C).
    pub copy_ns: f64,
    /// Searches in this table and in the registration cache (V).
    pub overhead_ns: f64,
}

impl Payback {
    /// The least number of uses after registration that pay; `None` if no number does, because a
    /// use saves nothing.
    pub fn least_reuse(&self) -> Option<u32> {
        let saved_ns = self.copy_ns - self.overhead_ns;
        let n = (self.register_ns / saved_ns).floor() + 1.0;
        (saved_ns > 0.0 && n < u32::MAX as f64).then_some(n as u32)
    }
}

/// The rules of the table.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Shortest message it is asked for: below, the adapter takes the payload from the processor's
    /// hands, and there is no copy to save.
    pub least_bytes: usize,
    /// Longest message that goes eagerly.
    pub most_bytes: usize,
    /// Part of the number that pays after which a buffer is taken for frequent.
    pub speculation: f64,
    /// Part of the buffers that must be frequent for the table to grow once it has chains.
    pub least_frequent: f64,
    /// Buffers behind others in their chains from which on it is said to have chains: a few there are
    /// by chance long before searches take longer.
    pub least_chained: usize,
    /// The table has two to this power buckets.
    pub bucket_bits: u32,
    /// Most buffers in the table.
    pub most_buffers: usize,
    /// Uses refused in a row after which it begins anew. To be empty costs as many chains as made it stop.
    pub most_refused: u64,
}

impl Default for Rules {
    /// The values of paper 000, sections 3.3, 3.4 and 5.1.1, as far as it has them; at most 52 MiB.
    fn default() -> Rules {
        Rules {
            least_bytes: 128,
            most_bytes: 16 * 1024,
            speculation: 0.25,
            least_frequent: 0.20,
            least_chained: 32,
            bucket_bits: 20,
            most_buffers: 1 << 21,
            most_refused: 1 << 20,
        }
    }
}

/// Lengths for which one threshold holds.
const STEP_BYTES: usize = 256;

/// By length: how often a buffer must have come again to be registered.
#[derive(Clone, Debug)]
pub struct Thresholds {
    least_bytes: usize,
    most_bytes: usize,
    /// For every step what its shortest message asks for, which is the most.
    steps: Vec<Option<u32>>,
}

impl Thresholds {
    /// From the costs by length, as measured.
    pub fn new(rules: &Rules, costs: impl Fn(usize) -> Payback) -> Thresholds {
        let (least_bytes, most_bytes) = (rules.least_bytes, rules.most_bytes);
        let threshold = |step: usize| {
            let n = costs((step * STEP_BYTES).max(least_bytes)).least_reuse()?;
            Some(((n as f64 * rules.speculation).ceil() as u32).max(1))
        };
        Thresholds { least_bytes, most_bytes, steps: (0..=most_bytes / STEP_BYTES).map(threshold).collect() }
    }

    /// For a message of `len` bytes; `None` if it is better copied however often it comes.
    #[inline]
    pub fn of(&self, len: usize) -> Option<u32> {
        if len < self.least_bytes || len > self.most_bytes {
            return None;
        }
        self.steps[len / STEP_BYTES]
    }
}

/// What the table knows of a buffer, and what finding out took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Whether it has come again often enough to be registered.
    pub frequent: bool,
    /// How often it has come again.
    pub again: u32,
    /// Bytes of it that were registered ([`Usage::registered`]).
    pub registered_bytes: u32,
    /// Entries that were compared.
    pub compared: u32,
}

#[derive(Clone, Copy)]
struct Buffer {
    addr: u64,
    /// How often it has come again; the highest bit says that it has been frequent.
    again: u32,
    /// The next one in the chain, by index from 1.
    next: u32,
    registered_bytes: u32,
}

const FREQUENT: u32 = 1 << 31;

/// How often each buffer was used for eager messages.
pub struct Usage {
    rules: Rules,
    /// By hash: first of the chain, by index from 1; made with the first buffer.
    buckets: Vec<u32>,
    buffers: Vec<Buffer>,
    frequent: usize,
    chained: usize,
    refused: u64,
    refused_in_a_row: u64,
}

impl Usage {
    /// An empty table, which takes no memory yet.
    pub fn new(rules: Rules) -> Usage {
        assert!((1..=32).contains(&rules.bucket_bits), "a table has 2 to 2^32 buckets");
        Usage {
            rules,
            buckets: Vec::new(),
            buffers: Vec::new(),
            frequent: 0,
            chained: 0,
            refused: 0,
            refused_in_a_row: 0,
        }
    }

    /// A message leaves from the buffer at `addr`: counts it. `threshold` is that of its length,
    /// so the same buffer can be frequent for long messages and not for short ones.
    pub fn used(&mut self, addr: usize, threshold: u32) -> Seen {
        if self.buckets.is_empty() {
            self.buckets = vec![0; 1 << self.rules.bucket_bits];
        }
        let (found, compared) = self.find(addr);
        let Some(buffer) = found.map(|at| &mut self.buffers[at]) else {
            self.insert(addr as u64);
            return Seen { frequent: false, again: 0, registered_bytes: 0, compared };
        };
        let again = (buffer.again & !FREQUENT).saturating_add(1).min(!FREQUENT);
        let frequent = again >= threshold;
        let marked = buffer.again & FREQUENT | if frequent { FREQUENT } else { 0 };
        self.frequent += (marked > buffer.again & FREQUENT) as usize;
        buffer.again = again | marked;
        Seen { frequent, again, registered_bytes: buffer.registered_bytes, compared }
    }

    /// The first `bytes` of this buffer are registered from here on.
    pub fn registered(&mut self, addr: usize, bytes: usize) {
        if let Some(at) = self.find(addr).0 {
            self.buffers[at].registered_bytes = bytes as u32;
        }
    }

    /// The registration of this buffer has gone, or could not be made: it begins anew.
    pub fn forget(&mut self, addr: usize) {
        if let Some(at) = self.find(addr).0 {
            let buffer = &mut self.buffers[at];
            self.frequent -= (buffer.again & FREQUENT != 0) as usize;
            (buffer.again, buffer.registered_bytes) = (0, 0);
        }
    }

    /// Whether a buffer that is not known would be taken in.
    pub fn grows(&self) -> bool {
        let few = (self.frequent as f64) < self.rules.least_frequent * self.buffers.len() as f64;
        self.buffers.len() < self.rules.most_buffers && !(few && self.chained >= self.rules.least_chained)
    }

    /// Number of buffers.
    pub fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Whether no buffer was seen.
    pub fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Buffers that have been frequent.
    pub fn frequent(&self) -> usize {
        self.frequent
    }

    /// Buffers that are not the first in their chain.
    pub fn chained(&self) -> usize {
        self.chained
    }

    /// Uses of buffers that were not taken in because the table had stopped to grow.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Where a buffer is, and how many were compared with it.
    fn find(&self, addr: usize) -> (Option<usize>, u32) {
        let (addr, mut compared) = (addr as u64, 0);
        let mut at = self.buckets.get(self.bucket(addr)).copied().unwrap_or(0);
        while at != 0 {
            let buffer = &self.buffers[at as usize - 1];
            compared += 1;
            if buffer.addr == addr {
                return (Some(at as usize - 1), compared);
            }
            at = buffer.next;
        }
        (None, compared)
    }

    fn insert(&mut self, addr: u64) {
        if !self.grows() {
            self.refused += 1;
            self.refused_in_a_row += 1;
            if self.refused_in_a_row >= self.rules.most_refused {
                *self = Usage { refused: self.refused, ..Usage::new(self.rules.clone()) };
            }
            return;
        }
        self.refused_in_a_row = 0;
        let bucket = self.bucket(addr);
        let next = std::mem::replace(&mut self.buckets[bucket], self.buffers.len() as u32 + 1);
        self.chained += (next != 0) as usize;
        self.buffers.push(Buffer { addr, again: 0, next, registered_bytes: 0 });
    }

    /// Multiplicative hashing: the high bits of the product with 2^64 divided by the golden ratio,
    /// which spreads also addresses with a constant stride.
    fn bucket(&self, addr: u64) -> usize {
        (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.rules.bucket_bits)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(register_ns: f64, copy_ns: f64, overhead_ns: f64) -> Payback {
        Payback { register_ns, copy_ns, overhead_ns }
    }

    fn rules(bucket_bits: u32) -> Rules {
        Rules { bucket_bits, least_chained: 1, ..Rules::default() }
    }

    #[test]
    fn reuse_pays_from_the_first_number_above_the_ratio() {
        assert_eq!(costs(600.0, 30.0, 20.0).least_reuse(), Some(61), "n > 60");
        assert_eq!(costs(599.0, 30.0, 20.0).least_reuse(), Some(60), "n > 59.9");
        assert_eq!(costs(0.0, 30.0, 20.0).least_reuse(), Some(1));
    }

    #[test]
    fn where_a_use_saves_nothing_no_number_pays() {
        assert_eq!(costs(600.0, 20.0, 20.0).least_reuse(), None);
        assert_eq!(costs(600.0, 10.0, 20.0).least_reuse(), None);
        assert_eq!(costs(1e30, 30.0, 29.0).least_reuse(), None, "nobody sends that often");
    }

    #[test]
    fn speculation_takes_a_part_of_the_number() {
        let of = |speculation| {
            let rules = Rules { speculation, ..Rules::default() };
            Thresholds::new(&rules, |_| costs(595.0, 30.0, 20.0)).of(4096)
        };
        assert_eq!([of(0.25), of(0.5), of(1.0), of(0.0)], [Some(15), Some(30), Some(60), Some(1)]);
    }

    #[test]
    fn each_length_has_its_threshold() {
        // A copy of a nanosecond per 2 bytes; a page costs 10 microseconds to register.
        let by_length = |len: usize| costs(10_000.0 * len.div_ceil(4096) as f64, len as f64 / 2.0, 100.0);
        let rules = Rules { speculation: 1.0, least_bytes: 128, most_bytes: 8192, ..Rules::default() };
        let thresholds = Thresholds::new(&rules, by_length);
        assert_eq!(thresholds.of(127), None, "the processor hands it over");
        assert_eq!(thresholds.of(200), None, "at 128 bytes the search costs more than the copy");
        assert_eq!(thresholds.of(1024), by_length(1024).least_reuse());
        assert_eq!(thresholds.of(1100), by_length(1024).least_reuse(), "a step has one threshold");
        assert_eq!(thresholds.of(8192), by_length(8192).least_reuse());
        assert_eq!(thresholds.of(8193), None, "not eager");
        assert!(thresholds.of(1024) > thresholds.of(4096));
    }

    #[test]
    fn a_buffer_is_frequent_once_it_came_again_often_enough() {
        let mut usage = Usage::new(rules(20));
        assert!(usage.is_empty());
        let seen: Vec<bool> = (0..6).map(|_| usage.used(0x1000, 4).frequent).collect();
        assert_eq!(seen, [false, false, false, false, true, true]);
        assert!(!usage.used(0x1000, 100).frequent, "not for a length that asks for more");
        assert!(!usage.used(0x2000, 4).frequent, "nor another buffer");
        assert_eq!((usage.len(), usage.frequent()), (2, 1));
    }

    #[test]
    fn a_search_says_what_it_compared() {
        let mut usage = Usage::new(Rules { least_frequent: 0.0, ..rules(1) });
        let all = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60];
        all.iter().for_each(|addr| assert!(!usage.used(*addr, 9).frequent));
        assert_eq!(usage.chained(), 4, "six buffers in two buckets");
        let compared: u32 = all.iter().map(|addr| usage.used(*addr, 9).compared).sum();
        let mut lengths = [0, 0];
        all.iter().for_each(|addr| lengths[usage.bucket(*addr as u64)] += 1u32);
        assert_eq!(compared, lengths.iter().map(|n| n * (n + 1) / 2).sum::<u32>());
    }

    #[test]
    fn some_chains_come_by_chance() {
        let mut usage = Usage::new(Rules { least_chained: 3, ..rules(2) });
        (0..7).for_each(|addr| _ = usage.used(addr * 64, 3));
        assert!(usage.chained() >= 3 && !usage.grows(), "{} buffers in 4 buckets", usage.len());
        assert_eq!(usage.chained(), 3);
    }

    #[test]
    fn without_chains_the_table_grows_however_few_are_frequent() {
        let mut usage = Usage::new(rules(20));
        let mut addr = 0x7f00_0000_0000;
        while usage.chained() == 0 {
            assert!(usage.grows());
            usage.used(addr, 15);
            addr += 4096;
        }
        assert_eq!(usage.frequent(), 0);
        assert!(usage.len() > 50, "the first chain after {} buffers", usage.len());
        assert!(!usage.grows(), "now it has chains and nothing is frequent");
    }

    #[test]
    fn with_chains_it_grows_only_while_enough_are_frequent() {
        let mut usage = Usage::new(rules(2));
        let use_again = |usage: &mut Usage, addr| (0..4).for_each(|_| _ = usage.used(addr, 3));
        for addr in 0..10 {
            use_again(&mut usage, addr * 64); // all of them become frequent
        }
        assert!(usage.chained() > 0 && usage.frequent() == 10);
        (100..).take(41).for_each(|addr| _ = usage.used(addr * 64, 3));
        assert_eq!(usage.len(), 51, "10 of 50 were a fifth, 10 of 51 are less");
        assert!(!usage.grows());
        usage.used(7777, 3);
        assert_eq!((usage.len(), usage.refused()), (51, 1));
        use_again(&mut usage, 100 * 64);
        assert_eq!(usage.frequent(), 11, "known buffers are still counted");
        assert!(usage.grows(), "11 of 51 are a fifth again");
    }

    #[test]
    fn the_number_of_buffers_is_limited() {
        let mut usage = Usage::new(Rules { most_buffers: 3, least_frequent: 0.0, ..rules(8) });
        (0..10).for_each(|addr| _ = usage.used(addr * 64, 1));
        assert_eq!((usage.len(), usage.refused()), (3, 7));
        assert!(usage.used(0, 1).frequent, "those that are known stay so");
    }

    #[test]
    fn a_buffer_whose_registration_has_gone_begins_anew() {
        let mut usage = Usage::new(rules(20));
        let use_once = |usage: &mut Usage| usage.used(0x1000, 2);
        (0..3).for_each(|_| _ = use_once(&mut usage));
        usage.registered(0x1000, 700);
        let seen = use_once(&mut usage);
        assert_eq!((seen.frequent, seen.again, seen.registered_bytes), (true, 3, 700));
        usage.forget(0x1000);
        usage.forget(0x2000); // which nobody knows
        assert_eq!((usage.len(), usage.frequent()), (1, 0));
        let seen = use_once(&mut usage);
        assert_eq!((seen.frequent, seen.again, seen.registered_bytes), (false, 1, 0));
        assert!(use_once(&mut usage).frequent);
        assert_eq!(usage.frequent(), 1);
    }

    #[test]
    fn a_table_that_only_refuses_begins_anew() {
        let mut usage = Usage::new(Rules { most_buffers: 2, most_refused: 5, ..rules(8) });
        (0..6).for_each(|addr| _ = usage.used(addr * 64, 3));
        usage.used(0, 3);
        assert_eq!((usage.len(), usage.refused()), (2, 4), "known buffers are not refused");
        usage.used(4096, 3);
        assert_eq!((usage.len(), usage.refused()), (0, 5));
        let seen: Vec<bool> = (0..5).map(|_| usage.used(4096, 3).frequent).collect();
        assert_eq!(seen, [false, false, false, true, true]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "many searches")]
    fn any_stride_spreads_over_the_buckets() {
        for stride in [8usize, 64, 1040, 4096, 8192, 1 << 16, 1 << 21] {
            let mut usage = Usage::new(Rules { least_frequent: 0.0, ..rules(12) });
            let addrs = || (0..4096).map(|k| 0x7f12_3456_7000 + k * stride);
            addrs().for_each(|addr| _ = usage.used(addr, 1));
            let compared: u32 = addrs().map(|addr| usage.used(addr, 1).compared).sum();
            // Thrown at random, as many buffers as buckets ask for one and a half.
            assert!(compared < 2 * 4096, "stride {stride}: {compared} compared in 4096 searches");
        }
    }
}
