//! How a frame that may leave is handed to the adapter.

use super::peer::FramePath;
use super::slots::RAIL;
use super::{Channel, RETRY_NS, Work};
use crate::event::Event;
use fabric::{Fault, Local, Remote, Span, Verbs};

impl<V: Verbs> Channel<V> {
    /// Posts a frame: from the processor's hands, taken at once, gathered, or copied into a slot.
    pub(super) fn post(
        &mut self,
        p: usize,
        path: FramePath,
        data: Local,
        trailer: &[u8],
        gathered: Option<u64>,
    ) -> Result<bool, Fault> {
        let (len, caps) = (data.span.len + trailer.len(), self.verbs.caps());
        let (gathers, inline) = (caps.gather >= 2, len <= caps.inline_bytes);
        if gathers && (inline || len <= caps.at_once_bytes) {
            let end = Span { addr: trailer.as_ptr() as usize, len: trailer.len() };
            let parts = [data, Local { span: end, key: 0 }];
            let posted = if inline {
                self.launch(p, path, &parts, Work::Inline)?
            } else {
                let place = self.place(p, path, len);
                self.verbs.post_at_once(self.peers[p].rank, &parts, place, Work::Inline.encode())?
            };
            self.end(gathered.filter(|_| posted), Ok(()));
            if posted || inline {
                return Ok(posted);
            }
        }
        match gathered {
            Some(work) if gathers => self.post_gathered(p, path, data, trailer, work),
            _ if data.span.len > self.settings.staged_bytes => Ok(false),
            _ => {
                let posted = self.post_copied(p, path, data.span, trailer)?;
                self.end(gathered.filter(|_| posted), Ok(()));
                Ok(posted)
            }
        }
    }

    fn post_gathered(
        &mut self,
        p: usize,
        path: FramePath,
        data: Local,
        trailer: &[u8],
        work: u64,
    ) -> Result<bool, Fault> {
        let Some((index, note)) = self.take_note(RAIL)? else { return Ok(false) };
        self.verbs.poke_bytes(note.span.addr, trailer);
        let note = Local { span: note.span.part(0, trailer.len()), key: note.key };
        if !self.launch(p, path, &[data, note], Work::Note(RAIL, index))? {
            self.notes[RAIL].give_back(index);
            return Ok(false);
        }
        self.notes[RAIL].and_then(index, Some(work));
        self.counters.count(Event::ZeroCopy);
        Ok(true)
    }

    fn post_copied(&mut self, p: usize, path: FramePath, data: Span, trailer: &[u8]) -> Result<bool, Fault> {
        let mut slot = self.stage.take(&mut self.verbs)?;
        if slot.is_none() {
            self.pump();
            slot = self.stage.take(&mut self.verbs)?;
        }
        let Some((index, slot)) = slot else { return Ok(false) };
        self.verbs.copy(slot.span.addr, data.addr, data.len);
        self.verbs.poke_bytes(slot.span.addr + data.len, trailer);
        let frame = Local { span: slot.span.part(0, data.len + trailer.len()), key: slot.key };
        let posted = self.launch(p, path, &[frame], Work::Stage(index))?;
        if !posted {
            self.stage.give_back(index);
        }
        Ok(posted)
    }

    /// Hands a frame to the adapter.
    pub(super) fn launch(
        &mut self,
        p: usize,
        path: FramePath,
        parts: &[Local],
        work: Work,
    ) -> Result<bool, Fault> {
        if path == FramePath::Fast && self.peers[p].slots().is_none() {
            self.try_later(); // the connection has ended while there was a look for room
            return Ok(false);
        }
        let (to, work) = (self.peers[p].rank, work.encode());
        let parts = if parts[0].span.len == 0 { &parts[1..] } else { parts };
        let posted = match self.place(p, path, parts.iter().map(|part| part.span.len).sum()) {
            Some(place) => self.verbs.post_write(to, RAIL, parts, place, work)?,
            None => self.verbs.post_send(to, RAIL, parts, work)?,
        };
        if !posted {
            self.try_later();
        }
        Ok(posted)
    }

    /// Where a frame of this length is written to, if it is not sent.
    fn place(&self, p: usize, path: FramePath, len: usize) -> Option<Remote> {
        let ring = self.peers[p].ring_out.as_ref().filter(|_| path == FramePath::Fast)?;
        Some(ring.place(len))
    }

    pub(super) fn try_later(&mut self) {
        self.counters.count(Event::PostRefused);
        let now = self.verbs.now_ns();
        self.verbs.alarm(now + RETRY_NS);
    }
}
