//! Memory of the library through which long messages are copied: registered once, used for ever.
//!
//! It is cut into slabs, one per message under way and side. Receivers and senders have slabs of
//! their own, and so have senders whose message is not matched yet. So whoever holds one waits
//! only for slabs of the other kinds, and never in a circle: a sender that copies ahead waits for
//! its receiver's slab, a receiver for one of the matched senders', and those wait for nobody.
//!
//! Peers may write to the receivers' part alone, so the two are registered apart, each when it is first used.

use fabric::{Device, Fault, Region, Rights, Span};
use wire::long::RAILS;

/// What a slab is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// By a sender before the receiver has answered.
    Early,
    /// By a sender whose receiver has a slab.
    Granted,
    /// By a receiver.
    Receive,
}

/// Buffers of a slab: two are on their way, a third is being filled.
pub const BUFFERS: usize = 3;
/// Slabs begin at multiples of this.
const ALIGN: usize = 4096;

/// Staging memory of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slab {
    /// The memory.
    pub span: Span,
    /// How it is registered, by adapter.
    pub regions: [Region; RAILS],
    /// For what it was taken.
    pub wanted: Use,
    /// A number that no other use of the last two thousand million has.
    pub number: u32,
}

/// The staging memory of one rank.
#[derive(Debug, Default)]
pub struct Staging {
    /// Messages staged at a time, for each of the uses, and bytes of a buffer.
    messages: usize,
    buffer_bytes: usize,
    memory: Option<Span>,
    /// Whether the senders' part is registered, and the receivers'.
    is_registered: [bool; 2],
    free: [Vec<Slab>; 3],
    number: u32,
}

impl Staging {
    /// Memory for so many messages at a time, for each of the uses, with buffers of this length. It is not
    /// there before the first one takes some.
    pub fn new(messages: usize, buffer_bytes: usize) -> Staging {
        Staging { messages, buffer_bytes, ..Staging::default() }
    }

    /// A slab, `None` if all are in use. Fails if staging memory cannot be had at all.
    pub fn take(&mut self, dev: &mut impl Device, wanted: Use) -> Result<Option<Slab>, Fault> {
        if !self.is_registered[usize::from(wanted == Use::Receive)] {
            self.register(dev, wanted == Use::Receive)?;
        }
        let Some(slab) = self.free[wanted as usize].pop() else { return Ok(None) };
        self.number = self.number.wrapping_add(1);
        Ok(Some(Slab { number: self.number, ..slab }))
    }

    /// Nobody uses it any more, nor writes to it.
    pub fn give(&mut self, slab: Slab) {
        self.free[slab.wanted as usize].push(slab);
    }

    /// The first use of a part: registered with all adapters as one piece.
    #[cold]
    fn register(&mut self, dev: &mut impl Device, receives: bool) -> Result<(), Fault> {
        let count = self.messages.max(1);
        let each = BUFFERS * self.buffer_bytes.next_multiple_of(ALIGN);
        let memory = *self.memory.get_or_insert_with(|| dev.allocate(3 * count * each + ALIGN));
        let skip = memory.addr.next_multiple_of(ALIGN) - memory.addr;
        let (uses, first, rights) = match receives {
            false => (&[Use::Early, Use::Granted][..], 0, Rights::NONE),
            true => (&[Use::Receive][..], 2 * count, Rights::REMOTE_WRITE),
        };
        let span = memory.part(skip + first * each, uses.len() * count * each);
        let mut regions = [Region::default(); RAILS];
        for rail in 0..dev.rails().min(RAILS) {
            match dev.register(rail, span, rights) {
                Ok(region) => regions[rail] = region,
                Err(fault) => {
                    (0..rail).for_each(|rail| dev.deregister(rail, regions[rail]));
                    return Err(fault);
                }
            }
        }
        for (at, &wanted) in uses.iter().enumerate() {
            let slabs = (at * count..(at + 1) * count).rev();
            let slab = |k: usize| Slab { span: span.part(k * each, each), regions, wanted, number: 0 };
            self.free[wanted as usize] = slabs.map(slab).collect();
        }
        self.is_registered[usize::from(receives)] = true;
        Ok(())
    }
}
