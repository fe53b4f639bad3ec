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
    since: Instant,
}

impl Default for Knock {
    /// One that begins now.
    fn default() -> Knock {
        Knock { socket: None, since: Instant::now() }
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
    /// How long ago it began.
    pub fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether not even the system of the peer has answered.
    pub fn is_unanswered(&self) -> bool {
        self.socket.as_ref().is_none_or(|socket| socket.peer_addr().is_err())
    }

    /// Knocks if that is due, and looks what has come of it.
    pub fn answer(&mut self, at: SocketAddr) -> Answer {
        let Some(socket) = &mut self.socket else {
            return match connect(at) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    Answer::Waits
                }
                Err(error) => self.refusal(&error),
            };
        };
        if let Some(error) = socket.take_error().unwrap_or_else(Some) {
            return self.refusal(&error);
        }
        if socket.peer_addr().is_err() {
            let waited = self.since.elapsed();
            let is_late = waited > LOST;
            let late = || Answer::Lost(format!("no answer in {} s", waited.as_secs()));
            return if is_late { late() } else { Answer::Waits };
        }
        match socket.read(&mut [0; 16]) {
            Ok(_) => Answer::There,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Answer::Waits
            }
            Err(error) => self.refusal(&error),
        }
    }

    /// A cable that is cut for a moment makes the system say that there is no way: only if that lasts is it so. A
    /// listener that closes with connections in its queue resets them.
    fn refusal(&mut self, error: &std::io::Error) -> Answer {
        if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset) {
            return Answer::Lost(format!("its process has ended: {error}"));
        }
        self.socket = None;
        if self.since.elapsed() > LOST { Answer::Lost(error.to_string()) } else { Answer::Waits }
    }
}

/// Closes what peers have opened to see whether this rank is there: so they know.
pub fn answer_knocks(door: &TcpListener) {
    while let Ok((socket, _)) = door.accept() {
        drop(socket);
    }
}
