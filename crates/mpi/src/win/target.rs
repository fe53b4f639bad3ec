//! What a target does with what its origins tell it: a message in, answers out; nothing is sent here.

use std::collections::VecDeque;

use super::active::Refused;
use super::message::{self, Record, Told};
use super::operation::{self, Area, Place, Verb};
use super::{Flavour, Window};
use crate::datatype::{Basic, Group};
use crate::error::{Class, Error, Result, fail};

/// An answer on its way to an origin.
#[derive(Debug, PartialEq)]
pub struct Letter {
    /// Rank in the window.
    pub to: u32,
    /// The tag under which it is awaited.
    pub tag: i32,
    /// What it says.
    pub bytes: Box<[u8]>,
}

/// The target is alone with its memory: it carries out one operation at a time, under its guard where origins change elements, too.
fn alone(f: &mut dyn FnMut()) -> Result {
    f();
    Ok(())
}

impl Window {
    /// Heeds a message of rank `from`, and what others have told behind locks that they get by it. An error says that it makes no sense; what
    /// is wrong with an operation its origin is told.
    pub fn heed(&mut self, from: u32, message: &[u8], letters: &mut Vec<Letter>) -> Result {
        let mut granted = VecDeque::new();
        self.heed_records(from, message, letters, &mut granted)?;
        self.heed_granted(granted, letters)
    }

    /// A rank has died: others get the lock that it holds.
    pub fn lose(&mut self, rank: u32, letters: &mut Vec<Letter>) -> Result {
        let active = self.own_state()?;
        active.dead.push(rank);
        active.behind_locks.remove(&rank);
        active.locks.lose(rank);
        let mut granted = VecDeque::new();
        self.grant(letters, &mut granted)?;
        self.heed_granted(granted, letters)
    }

    fn heed_granted(&mut self, mut granted: VecDeque<(u32, Vec<u8>)>, letters: &mut Vec<Letter>) -> Result {
        while let Some((from, rest)) = granted.pop_front() {
            self.heed_records(from, &rest, letters, &mut granted)?;
        }
        Ok(())
    }

    fn heed_records(
        &mut self,
        from: u32,
        mut message: &[u8],
        letters: &mut Vec<Letter>,
        granted: &mut VecDeque<(u32, Vec<u8>)>,
    ) -> Result {
        if let Some(behind) = self.own_state()?.behind_locks.get_mut(&from) {
            behind.extend_from_slice(message);
            return Ok(());
        }
        while !message.is_empty() {
            let (record, rest) = message::split(message)?;
            message = rest;
            match record {
                Record::Operate(told) => self.carry_out(from, &told, letters),
                Record::Flush(reply) => self.acknowledge(from, reply, letters)?,
                // Of one that has died nothing behind a lock is carried out any more, for it would have to be given back.
                Record::Lock(..) if self.own_state()?.dead.contains(&from) => {
                    self.own_state()?.behind_locks.insert(from, Vec::new());
                    return Ok(());
                }
                Record::Lock(kind, reply) => {
                    let active = self.own_state()?;
                    active.locks.claim((from, kind, reply));
                    if reply == 0 {
                        active.behind_locks.insert(from, Vec::new());
                    }
                    self.grant(letters, granted)?;
                    if let Some(behind) = self.own_state()?.behind_locks.get_mut(&from) {
                        behind.extend_from_slice(message);
                        return Ok(());
                    }
                    // It was granted at once: what is behind it is heeded here.
                    granted.retain(|(to, _)| *to != from);
                }
                Record::Unlock(reply) => {
                    let active = self.own_state()?;
                    if !active.locks.release(from) && !active.dead.contains(&from) {
                        return fail(
                            Class::INTERN,
                            format!("rank {from} gave back a lock that it did not hold"),
                        );
                    }
                    if reply != 0 {
                        self.acknowledge(from, reply, letters)?;
                    }
                    self.grant(letters, granted)?;
                }
                Record::Post => self.own_state()?.posts[from as usize] += 1,
                Record::Complete(mark) => {
                    self.own_state()?.completes[from as usize].push_back(mark);
                }
            }
        }
        Ok(())
    }

    fn own_state(&mut self) -> Result<&mut super::Active> {
        self.active().ok_or_else(|| Error::new(Class::INTERN, "a window of shared memory was sent a message"))
    }

    /// Gives the lock to who is next: an answer, or what it has told behind its claim is to be heeded.
    fn grant(&mut self, letters: &mut Vec<Letter>, granted: &mut VecDeque<(u32, Vec<u8>)>) -> Result {
        while let Some((to, _, reply)) = self.own_state()?.locks.grant() {
            match reply {
                0 => granted.extend(self.own_state()?.behind_locks.remove(&to).map(|behind| (to, behind))),
                reply => self.acknowledge(to, reply, letters)?,
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, to: u32, tag: i32, letters: &mut Vec<Letter>) -> Result {
        let refused = self.own_state()?.failed[to as usize].take();
        letters.push(Letter { to, tag, bytes: Refused::encode(refused).into() });
        Ok(())
    }

    /// An operation that is refused is answered with nothing, where an answer is due, and told with the next
    /// acknowledgement.
    fn carry_out(&mut self, from: u32, told: &Told, letters: &mut Vec<Letter>) {
        let bytes = match self.try_operation(from, told) {
            Ok(bytes) => bytes,
            Err(error) => {
                if let Some(active) = self.active() {
                    let refused = Refused { class: error.class, disp: told.disp };
                    active.failed[from as usize].get_or_insert(refused);
                }
                Vec::new()
            }
        };
        if told.verb.fetches() {
            letters.push(Letter { to: from, tag: told.reply, bytes: bytes.into() });
        }
    }

    fn try_operation(&mut self, from: u32, told: &Told) -> Result<Vec<u8>> {
        let Some(ty) = self.own_state()?.named(from, told.ty) else {
            return fail(Class::INTERN, format!("rank {from} names a datatype that it has not told"));
        };
        let area = Area { disp: told.disp, count: told.count, ty };
        let Some(len) = area.ty.size().checked_mul(area.count).filter(|len| *len <= isize::MAX as u64) else {
            return fail(Class::COUNT, "the elements do not fit the address space");
        };
        let len = len as usize;
        let addr = self.place_of(&area)?;
        // All changes are made here, one after the other, but those of adapters that need no processor: of integers of 8 bytes.
        let changes_elsewhere = self.own_state()?.far.as_ref().is_some_and(|far| far.words_change);
        let is_word = |basic: Basic| basic.size() == 8 && basic.group() == Group::Integer;
        let is_alone = !(changes_elsewhere && area.ty.basic().is_some_and(is_word));
        let at = Place { addr, alone: &alone, briefly: &alone, is_alone };
        let carried = match told.verb {
            Verb::Swap => 2 * len,
            verb if verb.carries() => len,
            _ => 0,
        };
        if told.data.len() != carried {
            return fail(Class::TYPE, format!("{} bytes came for elements of {len} bytes", told.data.len()));
        }
        let near = self.path.control();
        let me = self.place.rank;
        let change = |f: &mut dyn FnMut() -> Result| {
            let Some(control) = near else { return f() };
            let mut done = Ok(());
            control.alone(me, &mut || done = f())?;
            done
        };
        let mut old = if told.verb.fetches() { crate::mem::zeroed(len)?.into_vec() } else { Vec::new() };
        match told.verb {
            Verb::Put => _ = area.ty.unpack(addr, area.count, 0, told.data),
            Verb::Get => _ = area.ty.pack(addr, area.count, 0, &mut old),
            Verb::Accumulate(op) => change(&mut || operation::accumulate(op, &area, &at, told.data, None))?,
            Verb::Fetch(op) => {
                change(&mut || operation::accumulate(op, &area, &at, told.data, Some(&mut old)))?
            }
            Verb::Swap => {
                let (new, compare) = told.data.split_at(len);
                change(&mut || operation::swap(&area, &at, new, compare, &mut old))?;
            }
        }
        Ok(old)
    }

    /// The address that displacements of the elements of an area count from.
    fn place_of(&self, area: &Area) -> Result<usize> {
        let own = self.own();
        if self.flavour != Flavour::Dynamic {
            return area.locate(own.base, own.size, own.unit, self.place.rank);
        }
        let (lo, hi) = area.bounds(1);
        // Whoever names places far apart by one datatype has attached these, not what lies between them.
        let every_run = || {
            let mut runs = area.ty.runs(area.disp as usize, area.count, 0);
            lo >= 0 && runs.all(|(at, len)| self.is_attached(at as i128, at as i128 + i128::from(len)))
        };
        if area.is_empty() || self.is_attached(lo, hi) || every_run() {
            return Ok(area.disp as usize);
        }
        let text = format!(
            "addresses {lo:#x} to {hi:#x} are not in memory that target {} has attached",
            self.place.rank
        );
        fail(Class::RMA_RANGE, text)
    }
}
