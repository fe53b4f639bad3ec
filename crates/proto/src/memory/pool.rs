//! Registered memory of the library, cut into slots from which it sends.

use fabric::{Fault, Local, Rights, Verbs};

/// Slots from which frames and packets are sent: taken when one is posted, free when the work has ended.
pub(crate) struct Pool {
    rail: usize,
    slot_bytes: usize,
    limit: usize,
    /// First slot and key, once the memory is there: a rank that sends nothing needs none.
    memory: Option<Local>,
    /// A stack: the slot used last is the one whose pages and lines are at hand.
    free: Vec<u32>,
    /// The work of the engine that ends with that of a used slot.
    then: Vec<Option<u64>>,
}

impl Pool {
    pub fn new(rail: usize, slot_bytes: usize, limit: usize) -> Pool {
        let slot_bytes = slot_bytes.next_multiple_of(8);
        Pool { rail, slot_bytes, limit, memory: None, free: Vec::new(), then: Vec::new() }
    }

    /// A free slot: its index and its memory.
    pub fn take(&mut self, verbs: &mut impl Verbs) -> Result<Option<(u32, Local)>, Fault> {
        let memory = match self.memory {
            Some(memory) => memory,
            None => self.open(verbs)?,
        };
        let Some(index) = self.free.pop().or_else(|| self.unused()) else { return Ok(None) };
        let span = memory.span.part(index as usize * self.slot_bytes, self.slot_bytes);
        Ok(Some((index, Local { span, key: memory.key })))
    }

    #[cold]
    fn open(&mut self, verbs: &mut impl Verbs) -> Result<Local, Fault> {
        let span = verbs.allocate(self.slot_bytes * self.limit);
        let memory = verbs.register(self.rail, span, Rights::NONE)?.local(span);
        self.memory = Some(memory);
        Ok(memory)
    }

    fn unused(&mut self) -> Option<u32> {
        let index = self.then.len();
        (index < self.limit).then(|| {
            self.then.push(None);
            index as u32
        })
    }

    /// Says which work of the engine ends together with this slot's.
    pub fn and_then(&mut self, index: u32, work: Option<u64>) {
        self.then[index as usize] = work;
    }

    /// The slot is free again; the work of the engine that ends with it.
    pub fn give_back(&mut self, index: u32) -> Option<u64> {
        self.free.push(index);
        self.then[index as usize].take()
    }
}
