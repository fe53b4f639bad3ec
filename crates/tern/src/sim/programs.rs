//! Programs for `tern sim run`.

use sim::Rank;
use sim::rank::{INT64, SUM};

use super::lab::Ran;

/// What a rank of a program reports: what it measured, in nanoseconds each.
type Measured = Vec<(String, f64)>;

/// A program: its name, what it does, and its body; the number is the length of its messages.
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Its messages if not said otherwise, in bytes.
    pub len: usize,
    /// What a rank does.
    pub body: fn(&mut Rank<'_>, usize) -> Ran<Measured>,
}

/// All programs.
pub const PROGRAMS: &[Program] = &[
    Program { name: "allreduce", about: "sums of 64-bit integers over all ranks", len: 8, body: allreduce },
    Program { name: "alltoall", about: "every rank sends to every other", len: 1024, body: alltoall },
    Program { name: "barrier", about: "barriers", len: 0, body: barrier },
    Program { name: "bcast", about: "rank 0 sends to all", len: 4096, body: bcast },
    Program {
        name: "halo",
        about: "exchange with four neighbours of a torus, then a sum",
        len: 8192,
        body: halo,
    },
    Program { name: "pingpong", about: "rank 0 and the last rank in turn", len: 8, body: pingpong },
    Program { name: "ring", about: "every rank sends to the next, all at once", len: 65536, body: ring },
    Program { name: "spectrum", about: "buffer i is used i times", len: 8192, body: spectrum },
    Program {
        name: "stream",
        about: "windows of 64 messages from rank 0 to the last rank",
        len: 8,
        body: stream,
    },
];

const ROUNDS: usize = 20;

/// Calls before measuring: so many that ranks write into the slots of each other.
const WARM: usize = 12;

/// Average of `ROUNDS` calls, after those that do not count.
fn repeated(
    rank: &mut Rank<'_>,
    name: &str,
    mut what: impl FnMut(&mut Rank<'_>) -> Ran<()>,
) -> Ran<Measured> {
    for _ in 0..WARM {
        what(rank)?;
    }
    rank.barrier()?;
    let start = rank.now_ns();
    for _ in 0..ROUNDS {
        what(rank)?;
    }
    Ok(vec![(name.to_string(), (rank.now_ns() - start) as f64 / ROUNDS as f64)])
}

fn pingpong(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (me, last) = (rank.rank(), rank.size() - 1);
    let (out, into) = (rank.buffer(len), rank.buffer(len));
    let rounds = |rank: &mut Rank<'_>, count: usize| -> Ran<()> {
        for _ in 0..count {
            if me == 0 && last > 0 {
                rank.send(out, last, 0)?;
                rank.recv(into, last as i32, 0)?;
            } else if me == last && last > 0 {
                rank.recv(into, 0, 0)?;
                rank.send(out, 0, 0)?;
            }
        }
        Ok(())
    };
    rounds(rank, 20)?;
    let start = rank.now_ns();
    rounds(rank, 100)?;
    let time = (rank.now_ns() - start) as f64 / 200.0;
    Ok(if me == 0 { vec![("latency".into(), time)] } else { Vec::new() })
}

fn stream(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (me, last) = (rank.rank(), rank.size() - 1);
    let buffer = rank.buffer(len);
    let mut start = 0;
    for round in 0..30 {
        if round == 10 {
            start = rank.now_ns();
        }
        let requests = (0..64).map(|_| match me {
            0 if last > 0 => rank.isend(buffer, last, 0).map(Some),
            me if me == last && last > 0 => rank.irecv(buffer, 0, 0).map(Some),
            _ => Ok(None),
        });
        let requests = requests.collect::<Ran<Vec<_>>>()?;
        rank.waitall(requests.into_iter().flatten())?;
        match me {
            0 if last > 0 => drop(rank.recv(buffer.part(0, 0), last as i32, 1)?),
            me if me == last && last > 0 => rank.send(buffer.part(0, 0), 0, 1)?,
            _ => {}
        }
    }
    let time = (rank.now_ns() - start) as f64 / (20.0 * 64.0);
    Ok(if me == 0 { vec![("per message".into(), time)] } else { Vec::new() })
}

fn ring(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (me, n) = (rank.rank(), rank.size());
    let (out, into) = (rank.buffer(len), rank.buffer(len));
    repeated(rank, "exchange", |rank| {
        rank.sendrecv(out, (me + 1) % n, into, ((me + n - 1) % n) as i32, 0).map(drop)
    })
}

fn halo(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (me, n) = (rank.rank(), rank.size());
    let width = (1..=n).filter(|width| n.is_multiple_of(*width) && width * width <= n).max().unwrap_or(1);
    let (height, x, y) = (n / width, me % width, me / width);
    let at = |x: usize, y: usize| y % height * width + x % width;
    let neighbours = [at(x + 1, y), at(x + width - 1, y), at(x, y + 1), at(x, y + height - 1)];
    let buffers: Vec<_> = neighbours.iter().map(|_| (rank.buffer(len), rank.buffer(len))).collect();
    let (sum, total) = (rank.buffer(8), rank.buffer(8));
    repeated(rank, "step", |rank| {
        let mut requests = Vec::with_capacity(8);
        for (side, (_, into)) in buffers.iter().enumerate() {
            // What comes from the right was sent to the left.
            requests.push(rank.irecv(*into, neighbours[side] as i32, (side ^ 1) as i32)?);
        }
        for (side, (out, _)) in buffers.iter().enumerate() {
            requests.push(rank.isend(*out, neighbours[side], side as i32)?);
        }
        rank.compute(20_000);
        rank.waitall(requests)?;
        rank.allreduce(sum, total, INT64, SUM)
    })
}

fn allreduce(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let len = len.next_multiple_of(8);
    let (out, into) = (rank.buffer(len), rank.buffer(len));
    repeated(rank, "allreduce", |rank| rank.allreduce(out, into, INT64, SUM))
}

fn alltoall(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (out, into) = (rank.buffer(len * rank.size()), rank.buffer(len * rank.size()));
    repeated(rank, "alltoall", |rank| rank.alltoall(out, into))
}

fn barrier(rank: &mut Rank<'_>, _len: usize) -> Ran<Measured> {
    repeated(rank, "barrier", |rank| rank.barrier())
}

fn bcast(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let buffer = rank.buffer(len);
    repeated(rank, "bcast", |rank| rank.bcast(buffer, 0))
}

/// «000», section 5.1.1: the i-th buffer of a set is used i times.
fn spectrum(rank: &mut Rank<'_>, len: usize) -> Ran<Measured> {
    let (me, last) = (rank.rank(), rank.size() - 1);
    let buffers: Vec<_> = (0..100).map(|_| (rank.buffer(len), rank.buffer(len))).collect();
    let (start, mut count) = (rank.now_ns(), 0);
    for (at, (out, into)) in buffers.into_iter().enumerate() {
        for _ in 0..=at {
            if me == 0 && last > 0 {
                rank.send(out, last, 0)?;
                rank.recv(into, last as i32, 0)?;
            } else if me == last && last > 0 {
                rank.recv(into, 0, 0)?;
                rank.send(out, 0, 0)?;
            }
            count += 2;
        }
    }
    let time = (rank.now_ns() - start) as f64 / f64::from(count);
    Ok(if me == 0 { vec![("latency".into(), time)] } else { Vec::new() })
}
