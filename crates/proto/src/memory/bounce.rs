//! Memory through which short one-sided operations go: slots, registered once, used for ever.

use fabric::{Device, Fault, Local, Rights};

/// Slots of one rank: operations under way whose memory was copied. More wait for a slot.
const SLOTS: usize = 64;
/// The adapter that carries them.
const RAIL: usize = 0;

/// A slot in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its number.
    pub index: u32,
    /// The memory and its key.
    pub local: Local,
}

/// The slots of one rank.
#[derive(Debug, Default)]
pub struct Bounce {
    slot_bytes: usize,
    memory: Option<Local>,
    free: Vec<u32>,
}

impl Bounce {
    /// Slots of this length. Their memory is not there before the first is taken.
    pub fn new(slot_bytes: usize) -> Bounce {
        Bounce { slot_bytes, ..Bounce::default() }
    }

    /// Longest operation that fits.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// A slot for `len` bytes, `None` if all are in use. Fails if the memory cannot be registered.
    pub fn take(&mut self, dev: &mut impl Device, len: usize) -> Result<Option<Slot>, Fault> {
        assert!(len <= self.slot_bytes, "{len} bytes do not fit a slot of {}", self.slot_bytes);
        let memory = match self.memory {
            Some(memory) => memory,
            None => self.register(dev)?,
        };
        let Some(index) = self.free.pop() else { return Ok(None) };
        let span = memory.span.part(index as usize * self.stride(), len);
        Ok(Some(Slot { index, local: Local { span, key: memory.key } }))
    }

    /// A slot is free again.
    pub fn give(&mut self, slot: Slot) {
        debug_assert!(!self.free.contains(&slot.index), "slot {} was free", slot.index);
        self.free.push(slot.index);
    }

    fn stride(&self) -> usize {
        self.slot_bytes.next_multiple_of(64)
    }

    fn register(&mut self, dev: &mut impl Device) -> Result<Local, Fault> {
        let span = dev.allocate(SLOTS * self.stride());
        let memory = dev.register(RAIL, span, Rights::LOCAL_WRITE)?.local(span);
        self.free = (0..SLOTS as u32).rev().collect();
        Ok(*self.memory.insert(memory))
    }
}
