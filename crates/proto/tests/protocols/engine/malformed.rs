//! What a wrong process may say of long messages: it is refused with its name, or does no harm. No field
//! of any message makes this side panic, wait for what cannot come, or touch what is not its own.

use crate::fake::{Fake, Net};
use fabric::{Device, Fault, Span};
use proto::{Engine, Limits, Mode, OpId, Protocol, Tuning, Want};
use std::cell::RefCell;
use std::rc::Rc;
use wire::head::{FrameType, Head};
use wire::long::{Fragment, LongRts};

const CONTEXT: u64 = 1;
const LEN: usize = 30_000;

/// A rank that keeps to the rules, and one that says what the test likes.
struct Pair {
    net: Rc<RefCell<Net>>,
    engine: Engine<Fake>,
    wrong: Fake,
    /// Memory that the wrong one may name.
    memory: Vec<u8>,
    buffer: Vec<u8>,
}

impl Pair {
    fn new(protocol: Protocol) -> Pair {
        let net = Net::new(2, 64);
        let limits = Limits {
            eager_bytes: 8,
            unexpected_bytes: 1 << 20,
            adapt: false,
            rtr: false,
            force: Some(protocol),
            ..Limits::default()
        };
        let mut engine = Engine::new(Fake::new(1, &net), limits);
        let tuning =
            Tuning { head_bytes: 8, rdma_offset_bytes: 2000, block_bytes: 4096, depth: 2, ..staged() };
        engine.tune(tuning);
        let wrong = Fake::new(0, &net);
        Pair { net, engine, wrong, memory: vec![1; 1 << 20], buffer: vec![0; LEN] }
    }

    fn span(&self) -> Span {
        Span { addr: self.buffer.as_ptr() as usize, len: LEN }
    }

    fn receive(&mut self) -> OpId {
        let want = Want { source: Some(0), context: CONTEXT, tag: Some(3) };
        self.engine.receive(want, self.span()).expect("there is room")
    }

    fn send(&mut self) -> OpId {
        self.engine.send(0, CONTEXT, 3, self.span(), Mode::Standard).unwrap().expect("it is long")
    }

    /// Says something, and has it heard. Frames of the other direction are dropped.
    fn say(&mut self, kind: FrameType, tag: i32, context: u64, body: &[u8]) -> Result<(), Fault> {
        let head = Head::new(kind, tag, context).encode();
        assert!(self.wrong.try_send(1, head, Span { addr: body.as_ptr() as usize, len: body.len() }));
        self.net.borrow_mut().arrive(0, 1);
        for _ in 0..3 {
            self.engine.progress()?;
            while self.net.borrow_mut().under_way(1, 0) {
                self.net.borrow_mut().arrive(1, 0);
            }
            while self.wrong.peek(1).is_some() {
                self.wrong.pop(1);
            }
        }
        Ok(())
    }
}

fn staged() -> Tuning {
    Tuning { staging_bytes: 16 * 1024, first_chunk_bytes: 8192, ..Tuning::default() }
}

fn assert_named(heard: &Result<(), Fault>, about: &str) {
    match heard {
        Err(Fault::Device(text)) => assert!(text.contains("rank 0"), "{about}: {text}"),
        other => panic!("{about}: {other:?}"),
    }
}

#[test]
fn no_message_is_longer_than_memory() {
    for (protocol, name) in Protocol::ALL {
        for is_posted in [true, false] {
            for (len, addr) in [(u64::MAX, 0), (1 << 63, 0), (LEN as u64, u64::MAX - 5)] {
                let mut pair = Pair::new(protocol);
                if is_posted {
                    pair.receive();
                }
                let rts = LongRts { len, addr, op: 7, protocol: protocol as u16, ..LongRts::default() };
                let heard = pair.say(FrameType::LongRts, 3, CONTEXT, &rts.encode());
                assert_named(&heard, &format!("{name}, {len} bytes at {addr:#x}"));
                let heard = pair.say(FrameType::LongRtr, 3, CONTEXT, &rts.encode());
                assert_named(&heard, &format!("{name}, RTR of {len} bytes at {addr:#x}"));
            }
        }
    }
}

/// Frames are for those who were asked for them: a sender that is at work is not to be told to begin again.
#[test]
fn who_has_answered_cannot_ask_for_frames() {
    let mut pair = Pair::new(Protocol::Rput);
    let op = pair.send().0 as i32;
    let len = LEN as u64;
    pair.say(FrameType::Ack, op, 9, &Fragment { len, ..Fragment::default() }.encode()).unwrap();
    assert_named(&pair.say(FrameType::Cts, op, 9, &len.to_le_bytes()), "CTS");
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn number(&mut self) -> u64 {
        let small = self.below(2 * LEN) as u64;
        let len = LEN as u64;
        self.of(&[
            0,
            0,
            1,
            2,
            3,
            8,
            2000,
            4096,
            len - 1,
            len,
            len,
            len + 1,
            small,
            1 << 40,
            1 << 63,
            u64::MAX,
        ])
    }

    fn half(&mut self) -> u32 {
        let any = self.0 as u32;
        self.of(&[0, 0, 1, 16, 4096, 8192, 16 * 1024, 1 << 31, u32::MAX, any])
    }
}

/// Any numbers in the fields of any message, on both sides of every protocol.
#[test]
fn any_numbers_do_no_harm() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 1..4000u64 {
        let (protocol, name) = Protocol::ALL[seed as usize % Protocol::ALL.len()];
        let _seed = OnPanic(seed, name);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut pair = Pair::new(protocol);
        let op = if seed % 2 == 0 { pair.send() } else { pair.receive() };
        for _ in 0..12 {
            let heard = utter(&mut pair, &mut random, protocol, op);
            if heard.is_err() {
                assert_named(&heard, name);
                refused += 1;
                break;
            }
            taken += 1;
        }
    }
    assert!(taken > 1000 && refused > 1000, "{taken} taken, {refused} refused");
}

/// The address of memory that may be touched, or none that there can be.
fn address(pair: &Pair, random: &mut Random) -> u64 {
    let memory = pair.memory.as_ptr() as u64;
    random.of(&[memory, memory, memory + 4096, u64::MAX])
}

fn utter(pair: &mut Pair, random: &mut Random, protocol: Protocol, op: OpId) -> Result<(), Fault> {
    let keys = if random.below(2) == 0 {
        [8192, 256 | 3 << 16, 4096, 16 * 1024]
    } else {
        [0; 4].map(|_| random.half())
    };
    let rts = LongRts {
        len: random.number(),
        addr: address(pair, random),
        op: random.half(),
        protocol: if random.below(8) == 0 { random.half() as u16 } else { protocol as u16 },
        flags: random.of(&[0, 0, 1, 2, 3, u16::MAX]),
        keys,
        ..LongRts::default()
    };
    let fragment = Fragment {
        offset: random.number(),
        len: random.number(),
        addr: address(pair, random),
        key: random.half(),
        rail: random.of(&[0, 0, 0, 1, 4, 31, u16::MAX]),
        flags: random.of(&[0, 0, 0, 1, 2, 4, 8, 9, u16::MAX]),
    };
    let tag = if random.below(8) == 0 { random.half() as i32 } else { op.0 as i32 };
    let data = [5u8; 64];
    match random.below(10) {
        0..3 => pair.say(FrameType::LongRts, 3, CONTEXT, &rts.encode()),
        3 => pair.say(
            random.of(&[FrameType::LongRtr, FrameType::RtrAck, FrameType::RtrCancel]),
            3,
            CONTEXT,
            &rts.encode(),
        ),
        4..6 => pair.say(FrameType::Ack, tag, 9, &fragment.encode()),
        6 => pair.say(FrameType::Ready, tag, 9, &fragment.encode()),
        7..9 => pair.say(FrameType::Fin, tag, 9, &fragment.encode()),
        _ => pair.say(FrameType::Data, tag, random.number(), &data[..random.below(65)]),
    }
}

struct OnPanic(u64, &'static str);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, {}", self.0, self.1);
        }
    }
}
