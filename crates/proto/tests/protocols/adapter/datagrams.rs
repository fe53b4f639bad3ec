//! Datagrams on their way: lost, doubled and overtaken by chance.

use super::Net;
use fabric::Rank;

impl Net {
    pub(super) fn send_datagram(&mut self, from: Rank, to: Rank, data: Vec<u8>) {
        self.sent_datagrams += 1;
        if self.happens(self.loses_one_in) {
            return;
        }
        if self.happens(self.doubles_one_in) {
            self.datagrams.push_back((from, to, data.clone()));
        }
        let at = match self.happens(self.mixes_one_in) {
            true => self.dice() % (self.datagrams.len() + 1),
            false => self.datagrams.len(),
        };
        self.datagrams.insert(at, (from, to, data));
    }

    /// Lets the next datagram come. Without a buffer, or where messages will take all, it is lost.
    pub(super) fn deliver_datagram(&mut self) -> bool {
        let Some((from, to, data)) = self.datagrams.pop_front() else { return false };
        if self.hosts[to].buffers[0].len() > self.hosts[to].promised[0] {
            self.receive_over(0, from, to, &data, true);
        }
        true
    }
}
