//! A step that combines what comes where it lies.

use super::{Buf, Io, Message, OpId, PATIENCE, Read, Schedule};
use crate::error::Result;
use crate::mem;
use crate::op::{self, Op};

/// How far a step is that combines what comes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Combining {
    /// It was looked for so often.
    Looks(u32),
    /// It is being received, as the message with this number.
    Receives(usize),
}

impl Schedule {
    /// Combines what comes from `peer` where it lies. One that does not come soon is received, so that it is known who is waited
    /// for, as is one that cannot be read. False while it has not come.
    pub(super) fn combine(
        &mut self,
        peer: u32,
        landing: &Buf,
        inout: &Buf,
        io: &mut impl Io,
    ) -> Result<bool> {
        let message = match self.combining {
            Combining::Receives(message) => message,
            Combining::Looks(looks) => {
                let (bytes, mut combined) = (self.bytes(inout), Ok(()));
                let mut with = |from: &[u8]| combined = self.apply(from, inout);
                match io.read(peer as usize, self.tag, bytes, looks == 0, &mut with)? {
                    Read::Done => {
                        combined?;
                        self.combining = Combining::Looks(0);
                        self.messages.push(Message { id: OpId::DONE, peer, expect: None });
                        return Ok(true);
                    }
                    Read::NotYet if looks < PATIENCE && !io.is_asleep() => {
                        self.combining = Combining::Looks(looks + 1);
                        return Ok(false);
                    }
                    _ => {
                        let id = io.irecv(peer as usize, self.tag, self.data(landing))?;
                        self.messages.push(Message { id, peer, expect: Some(bytes) });
                        self.messages.len() - 1
                    }
                }
            }
        };
        self.combining = Combining::Receives(message);
        if !self.settle(message, io)? {
            return Ok(false);
        }
        self.combining = Combining::Looks(0);
        let called = self.reduce(landing, inout)?;
        debug_assert!(called.is_none(), "only predefined operations combine in place");
        Ok(true)
    }

    /// `inout = from op inout` by the program's operation, a predefined one.
    fn apply(&self, from: &[u8], inout: &Buf) -> Result {
        let ty = &self.program.types[inout.ty as usize];
        let Some(Op::Predefined(op)) = self.program.op else { unreachable!("checked when it was written") };
        let basic = op::element(op, ty.basic, ty.handle)?;
        mem::with_mut(self.address(inout), from.len(), |to| op::apply(op, basic, from, to));
        Ok(())
    }
}
