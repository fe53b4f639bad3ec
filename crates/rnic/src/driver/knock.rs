//! Asking the system of a silent peer whether the peer is there.
//!
//! A *knock* opens a connection over TCP to where the peer listens. The system of the peer accepts it while the peer computes,
//! and from there on says whether it is there when it is asked (keep-alive). Nothing is ever sent over it.
//!
//! | the knock | means |
//! |---|---|
//! | stays open | the peer computes |
//! | is closed by the peer | it looks around: it is there |
//! | is refused | the process of the peer has ended |
//! | is not answered for [`LOST`], or there is no way | the peer is lost: a cable is cut, a host is off |
//! | is not answered, but another port of the same host is, if only by a refusal | the peer computes, and strangers fill the queue of those it has not let in |

use super::connect;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a knock may stay without an answer.
pub const LOST: Duration = Duration::from_secs(15);

/// See the [module](self).
pub struct Knock {
    /// `None` if the last one came to nothing: another one is tried at the next look.
    socket: Option<TcpStream>,
    /// When it began, or the host was last known to be there.
    since: Instant,
    /// Beside a knock without an answer: one at another port of the host.
    beside: Option<TcpStream>,
    /// How many of those there were.
    tries: u16,
}

impl Default for Knock {
    /// One that begins now.
    fn default() -> Knock {
        Knock { socket: None, since: Instant::now(), beside: None, tries: 0 }
    }
}

/// What a knock says.
pub enum Answer {
    /// Nothing yet: the peer computes, or not even its system has answered.
    Waits,
    /// The peer looks around.
    There,
    /// It does not answer, for this reason.
    Lost(String),
}

impl Knock {
    /// Whether not even the system of the peer has answered.
    pub fn is_unanswered(&self) -> bool {
        self.socket.as_ref().is_none_or(|socket| socket.peer_addr().is_err())
    }

    /// Knocks if that is due, and looks what has come of it.
    pub fn answer(&mut self, at: SocketAddr) -> Answer {
        self.answer_by(at, Instant::now())
    }

    fn answer_by(&mut self, at: SocketAddr, now: Instant) -> Answer {
        let Some(socket) = &mut self.socket else {
            return match connect(at) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    Answer::Waits
                }
                Err(error) => self.refusal(&error, now),
            };
        };
        if let Some(error) = socket.take_error().unwrap_or_else(Some) {
            return self.refusal(&error, now);
        }
        if socket.peer_addr().is_err() {
            if self.host_answers(at) {
                self.since = now;
            }
            let waited = now - self.since;
            let is_late = waited > LOST;
            let late = || Answer::Lost(format!("no answer in {} s", waited.as_secs()));
            return if is_late { late() } else { Answer::Waits };
        }
        match socket.read(&mut [0; 16]) {
            Ok(_) => Answer::There,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Answer::Waits
            }
            Err(error) => self.refusal(&error, now),
        }
    }

    /// Whether the system of the host says anything at a port near this one, to which the same rules of firewalls are likely to apply;
    /// another one each time, for that may be the door of a rank as well.
    fn host_answers(&mut self, mut at: SocketAddr) -> bool {
        if let Some(beside) = self.beside.take() {
            return match beside.take_error().unwrap_or_else(Some) {
                Some(error) => is_closed(&error),
                None => beside.peer_addr().is_ok(),
            };
        }
        self.tries = self.tries % 255 + 1;
        at.set_port(at.port() ^ self.tries);
        match connect(at) {
            Ok(beside) => self.beside = Some(beside),
            Err(error) => return is_closed(&error),
        }
        false
    }

    /// A cable that is cut for a moment makes the system say that there is no way: only if that lasts is it so. A
    /// listener that closes with connections in its queue resets them.
    fn refusal(&mut self, error: &std::io::Error, now: Instant) -> Answer {
        if is_closed(error) {
            return Answer::Lost(format!("its process has ended: {error}"));
        }
        self.socket = None;
        if now - self.since > LOST { Answer::Lost(error.to_string()) } else { Answer::Waits }
    }
}

/// Whether a system has said that nobody listens there.
fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Closes what peers have opened to see whether this rank is there: so they know.
pub fn answer_knocks(door: &TcpListener) {
    while let Ok((socket, _)) = door.accept() {
        drop(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doors whose queues are full, at these ports: each holds one connection more than it is asked for.
    fn full_doors(ports: &[u16]) -> std::io::Result<Vec<(TcpListener, Vec<TcpStream>)>> {
        let full = |port| {
            let door = TcpListener::bind(("127.0.0.1", port))?;
            rustix::net::listen(&door, 0)?;
            let strangers = (0..4).map(|_| connect(door.local_addr()?)).collect::<std::io::Result<_>>()?;
            Ok((door, strangers))
        };
        ports.iter().map(|port| full(*port)).collect()
    }

    /// Knocks again and again over so much time of its own; what the last one said.
    fn knock_for(knock: &mut Knock, at: SocketAddr, time: Duration) -> Answer {
        let begun = knock.since;
        let mut said = Answer::Waits;
        for second in 0..=time.as_secs() {
            said = knock.answer_by(at, begun + Duration::from_secs(second));
            if matches!(said, Answer::Lost(_)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        said
    }

    #[test]
    fn who_computes_behind_a_full_queue_is_waited_for() {
        let doors = full_doors(&[0]).unwrap();
        let at = doors[0].0.local_addr().unwrap();
        let mut knock = Knock::default();
        assert!(matches!(knock_for(&mut knock, at, 20 * LOST), Answer::Waits));
        assert!(knock.is_unanswered(), "the queue is full");
        drop(doors);
        let nobody = knock_for(&mut Knock::default(), at, LOST);
        assert!(matches!(nobody, Answer::Lost(_)), "nobody listens there");
    }

    /// As far as it is asked: a port in two looks, a second apart.
    #[test]
    fn a_host_that_says_nothing_is_lost() {
        let looks = LOST.as_secs() as u16 + 4;
        let some =
            |base: u16| full_doors(&(0..=looks / 2).map(|beside| base ^ beside).collect::<Vec<_>>()).ok();
        let doors = (20_000..32_000).step_by(64).find_map(some).expect("ports that nobody has");
        let at = doors[0].0.local_addr().unwrap();
        assert!(matches!(knock_for(&mut Knock::default(), at, 2 * LOST), Answer::Lost(_)));
    }
}
