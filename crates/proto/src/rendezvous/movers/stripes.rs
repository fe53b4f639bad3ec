//! A buffer cut into one stripe per adapter, each registered with its adapter alone.

use super::port::Port;
use crate::memory::rcache::Held;
use fabric::{Fault, Local, Rights, Span};
use wire::long::{Fragment, RAILS};

/// Below this length of a stripe another adapter costs more than it carries.
const STRIPE_MIN: usize = 64 * 1024;
/// Stripes begin at multiples of this, so that two of them never share a page.
const ALIGN: usize = 4096;

/// One stripe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripe {
    pub offset: usize,
    pub len: usize,
    pub held: Held,
}

impl Stripe {
    /// Its memory, being a part of `buffer`.
    pub fn local(&self, buffer: Span) -> Local {
        self.held.region.local(buffer.part(self.offset, self.len))
    }

    /// What the other side has to know to write it.
    pub fn fragment(&self, buffer: Span) -> Fragment {
        Fragment {
            offset: self.offset as u64,
            len: self.len as u64,
            addr: (buffer.addr + self.offset) as u64,
            key: self.held.region.remote,
            rail: self.held.rail as u16,
            flags: 0,
        }
    }
}

/// The registered stripes of one buffer.
#[derive(Clone, Debug)]
pub(crate) struct Stripes {
    stripes: [Option<Stripe>; RAILS],
}

impl Stripes {
    /// Registers a buffer for these uses.
    pub fn hold(port: &mut impl Port, buffer: Span, rights: Rights) -> Result<Stripes, Fault> {
        Stripes::hold_as(port, buffer, buffer.len as u64, rights)
    }

    /// Registers a buffer cut as one of `len` bytes would be; all or nothing.
    pub fn hold_as(port: &mut impl Port, buffer: Span, len: u64, rights: Rights) -> Result<Stripes, Fault> {
        let mut all = Stripes { stripes: [None; RAILS] };
        for (rail, (offset, len)) in cut(len as usize, port.rails()).enumerate() {
            let part = buffer.part(offset, len);
            if part.len == 0 {
                break;
            }
            match port.hold(rail, part, rights, true) {
                Ok(held) => all.stripes[rail] = Some(Stripe { offset, len: part.len, held }),
                Err(fault) => {
                    all.release(port);
                    return Err(fault);
                }
            }
        }
        Ok(all)
    }

    /// Gives all of it back.
    pub fn release(self, port: &mut impl Port) {
        self.iter().for_each(|stripe| port.release(stripe.held));
    }

    /// The stripes in order.
    pub fn iter(&self) -> impl Iterator<Item = &Stripe> {
        self.stripes.iter().flatten()
    }

    /// The adapters of the stripes that the first `len` bytes of the buffer lie in, a bit each.
    pub fn rails(&self, len: u64) -> u32 {
        let used = self.iter().filter(|stripe| (stripe.offset as u64) < len);
        used.fold(0, |rails, stripe| rails | 1 << stripe.held.rail)
    }

    /// Keys for the other side, by adapter.
    pub fn keys(&self) -> [u32; RAILS] {
        self.stripes.map(|stripe| stripe.map_or(0, |s| s.held.region.remote))
    }
}

/// Whether a FIN ends the stripe of one of these adapters.
pub(crate) fn ends_stripe(fin: &Fragment, rails: u32) -> bool {
    (fin.rail as usize) < RAILS && rails >> fin.rail & 1 != 0
}

/// Offsets and lengths of the stripes of `len` bytes over `rails` adapters.
fn cut(len: usize, rails: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = (len / STRIPE_MIN).clamp(1, rails.clamp(1, RAILS));
    let each = len.div_ceil(count).next_multiple_of(ALIGN);
    (0..count).map(move |at| (at * each, each.min(len.saturating_sub(at * each))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_cover_the_message_without_overlap() {
        for len in [1, 4096, 65536, 131071, 131072, 1 << 20, (1 << 20) + 1] {
            for rails in 1..6 {
                let parts: Vec<_> = cut(len, rails).collect();
                assert!(parts.len() <= rails.min(RAILS));
                assert_eq!(parts.iter().map(|p| p.1).sum::<usize>(), len);
                assert!(parts.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0));
            }
        }
        assert_eq!(cut(256 * 1024, 2).count(), 2);
    }
}
