//! How two sides come to the settings of a connection (RFC 5044 section 7.1, RFC 6581 sections 4 to 9).
//!
//! ```text
//! connects                                            listens
//!   Request: revision, M, C, IRD, ORD, RTR kinds ───▶ reads it, may look at the private data
//!                                                ◀─── Reply: what is left of it, or a refusal
//!   an empty Write or Read (RTR)                 ───▶ from here on either side sends
//! ```
//!
//! Without the peer-to-peer model of revision 2 there is no RTR: the side that listens waits for the first
//! message of the other.

use wire::iwarp::mpa::{Enhanced, Side, Start, UNLIMITED};
use wire::iwarp::rdmap::Cause;

use super::{SEGMENT_MAX, Settings};

/// The empty message that opens a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rtr {
    /// A Write of no bytes.
    Write,
    /// A Read of no bytes.
    Read,
}

/// What one side wants of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// MPA revision to ask for: 1 or 2.
    pub revision: u8,
    /// Wants CRCs; one side is enough.
    pub crc: bool,
    /// Wants to receive markers.
    pub markers: bool,
    /// Either side may send first; needs revision 2.
    pub peer_to_peer: bool,
    /// Requests of the peer that this side keeps.
    pub ird: u16,
    /// Requests that this side means to have under way.
    pub ord: u16,
    /// For the other side's eyes; at most 508 bytes, in revision 1 512.
    pub private: Vec<u8>,
}

impl Default for Proposal {
    fn default() -> Proposal {
        Proposal {
            revision: 2,
            crc: false,
            markers: false,
            peer_to_peer: true,
            ird: 16,
            ord: 16,
            private: Vec::new(),
        }
    }
}

/// What both sides have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// MPA revision.
    pub revision: u8,
    /// CRCs are sent and checked.
    pub crc: bool,
    /// The peer wants markers.
    pub send_markers: bool,
    /// The peer sends markers.
    pub expect_markers: bool,
    /// Requests of the peer at a time.
    pub ird: u16,
    /// Own requests at a time.
    pub ord: u16,
    /// This side may send at once.
    pub may_begin: bool,
    /// What it sends first.
    pub rtr: Option<Rtr>,
}

impl From<Agreed> for Settings {
    /// With the longest segments, in domain 0, of a depth of 128 and with turns taken.
    fn from(agreed: Agreed) -> Settings {
        Settings {
            segment_max: SEGMENT_MAX,
            crc: agreed.crc,
            send_markers: agreed.send_markers,
            expect_markers: agreed.expect_markers,
            ird: agreed.ird.into(),
            ord: agreed.ord.into(),
            depth: 128,
            domain: 0,
            may_begin: agreed.may_begin,
            rtr: agreed.rtr,
            interleave: true,
        }
    }
}

/// Why the side that connects has no connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The peer has refused, with these bytes for whoever asked.
    Rejected(Vec<u8>),
    /// The reply does not answer the request: what [`super::Connection::terminate`] can tell the peer.
    Unfit(Cause),
}

/// `ours`, not more than the peer takes.
fn at_most(ours: u16, theirs: u16) -> u16 {
    // RFC 6581 section 9.1: the greatest value says nothing.
    if theirs == UNLIMITED { ours } else { ours.min(theirs) }
}

impl Proposal {
    fn enhanced(&self) -> Option<Enhanced> {
        (self.revision == 2).then_some(Enhanced {
            peer_to_peer: self.peer_to_peer,
            rtr_empty: false,
            rtr_write: self.peer_to_peer,
            rtr_read: self.peer_to_peer && self.ord > 0,
            ird: self.ird,
            ord: self.ord,
        })
    }

    /// The request of the side that connects.
    pub fn request(&self) -> Vec<u8> {
        let start = Start {
            side: Side::Request,
            revision: self.revision,
            markers: self.markers,
            crc: self.crc,
            rejected: false,
            enhanced: self.enhanced(),
            private: self.private.clone(),
        };
        start.encode()
    }

    /// The reply of the side that listens and takes this request, with private data of its own, and what
    /// is agreed on by it.
    pub fn reply(&self, request: &Start, private: &[u8]) -> (Vec<u8>, Agreed) {
        let crc = self.crc || request.crc;
        let mut agreed = Agreed {
            revision: request.revision,
            crc,
            send_markers: request.markers,
            expect_markers: self.markers,
            ird: self.ird,
            ord: self.ord,
            may_begin: false,
            rtr: None,
        };
        let enhanced = request.enhanced.map(|theirs| {
            agreed.ord = at_most(self.ord, theirs.ird);
            // One kind of RTR, a Write if the peer can: it needs no answer.
            let rtr_write = theirs.peer_to_peer && (theirs.rtr_write || !theirs.rtr_read);
            Enhanced {
                peer_to_peer: theirs.peer_to_peer,
                rtr_empty: false,
                rtr_write,
                rtr_read: theirs.peer_to_peer && !rtr_write,
                ird: self.ird,
                ord: agreed.ord,
            }
        });
        let start = Start {
            side: Side::Reply,
            revision: request.revision,
            markers: self.markers,
            crc,
            rejected: false,
            enhanced,
            private: private.to_vec(),
        };
        (start.encode(), agreed)
    }

    /// The reply that refuses a request, with private data that says why.
    pub fn reject(request: &Start, private: &[u8]) -> Vec<u8> {
        let start = Start {
            side: Side::Reply,
            revision: request.revision,
            markers: false,
            crc: request.crc,
            rejected: true,
            enhanced: request.enhanced,
            private: private.to_vec(),
        };
        start.encode()
    }

    /// What the side that connects has agreed on with this reply.
    pub fn agree(&self, reply: &Start) -> Result<Agreed, Refusal> {
        if reply.rejected {
            return Err(Refusal::Rejected(reply.private.clone()));
        }
        let unfit = |cause| Err(Refusal::Unfit(cause));
        // RFC 5044 section 7.1.1: CRCs that one side wants are used.
        if reply.revision != self.revision || self.crc && !reply.crc {
            return unfit(Cause::MPA_START_UP);
        }
        let mut agreed = Agreed {
            revision: self.revision,
            crc: reply.crc,
            send_markers: reply.markers,
            expect_markers: self.markers,
            ird: self.ird,
            ord: self.ord,
            may_begin: true,
            rtr: None,
        };
        let Some(theirs) = reply.enhanced else {
            return if self.revision == 2 { unfit(Cause::MPA_START_UP) } else { Ok(agreed) };
        };
        agreed.ord = at_most(self.ord, theirs.ird);
        if theirs.ord != UNLIMITED && theirs.ord > self.ird {
            return unfit(Cause::MPA_IRD);
        }
        if self.peer_to_peer {
            agreed.rtr = match (theirs.peer_to_peer, theirs.rtr_write, theirs.rtr_read) {
                (true, true, _) => Some(Rtr::Write),
                (true, false, true) if agreed.ord > 0 => Some(Rtr::Read),
                _ => return unfit(Cause::MPA_RTR),
            };
        }
        Ok(agreed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(side: Side, bytes: &[u8]) -> Start {
        let (start, len) = Start::decode(side, bytes).unwrap().unwrap();
        assert_eq!(len, bytes.len());
        start
    }

    #[test]
    fn both_sides_come_to_the_same() {
        for bits in 0..64u16 {
            let bit = |n: u16| bits >> n & 1 != 0;
            let side = |crc, markers, ird, ord| Proposal {
                revision: if bit(4) { 2 } else { 1 },
                crc,
                markers,
                peer_to_peer: bit(5),
                ird,
                ord,
                private: vec![7; 3],
            };
            let (one, other) = (side(bit(0), bit(1), 4, 9), side(bit(2), bit(3), 5, 8));
            let request = decode(Side::Request, &one.request());
            assert_eq!(request.private, [7; 3]);
            let (reply, there) = other.reply(&request, b"hi");
            let reply = decode(Side::Reply, &reply);
            assert_eq!(reply.private, b"hi");
            let here = one.agree(&reply).unwrap();
            assert_eq!((here.crc, there.crc), (bit(0) || bit(2), bit(0) || bit(2)));
            assert_eq!((here.expect_markers, here.send_markers), (bit(1), bit(3)));
            assert_eq!((there.send_markers, there.expect_markers), (bit(1), bit(3)));
            assert_eq!((here.may_begin, there.may_begin), (true, false));
            let is_open = bit(4) && bit(5);
            assert_eq!((here.rtr, there.rtr), (is_open.then_some(Rtr::Write), None));
            if bit(4) {
                assert_eq!((here.ird, here.ord, there.ird, there.ord), (4, 5, 5, 4));
            }
        }
    }

    #[test]
    fn replies_that_do_not_fit_are_named() {
        let proposal = Proposal { crc: true, ird: 4, ord: 4, ..Proposal::default() };
        let request = decode(Side::Request, &proposal.request());
        let (reply, _) = proposal.reply(&request, &[]);
        let good = decode(Side::Reply, &reply);
        let agree = |change: fn(&mut Start, &mut Enhanced)| {
            let (mut reply, mut enhanced) = (good.clone(), good.enhanced.unwrap());
            change(&mut reply, &mut enhanced);
            reply.enhanced = reply.enhanced.map(|_| enhanced);
            proposal.agree(&reply)
        };
        let unfit = |cause| Err(Refusal::Unfit(cause));
        assert!(agree(|_, _| {}).is_ok());
        assert_eq!(agree(|r, _| r.crc = false), unfit(Cause::MPA_START_UP));
        assert_eq!(agree(|r, _| r.revision = 1), unfit(Cause::MPA_START_UP));
        assert_eq!(agree(|r, _| r.enhanced = None), unfit(Cause::MPA_START_UP));
        assert_eq!(agree(|_, e| e.ord = 5), unfit(Cause::MPA_IRD));
        assert!(agree(|_, e| e.ord = UNLIMITED).is_ok());
        assert_eq!(agree(|_, e| e.rtr_write = false), unfit(Cause::MPA_RTR));
        assert_eq!(agree(|_, e| e.peer_to_peer = false), unfit(Cause::MPA_RTR));
        assert_eq!(agree(|_, e| e.ird = 2).unwrap().ord, 2);
        let by_read = agree(|_, e| (e.rtr_write, e.rtr_read) = (false, true));
        assert_eq!(by_read.unwrap().rtr, Some(Rtr::Read));
        let rejected = decode(Side::Reply, &Proposal::reject(&request, b"no"));
        assert_eq!(proposal.agree(&rejected), Err(Refusal::Rejected(b"no".to_vec())));
    }
}
