//! Whether datagrams get from host to host, as every transport but rc needs: each host answers with the same bytes to who knows its word.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is asked for, and how it is written where hosts tell each other.
pub type Word = u128;

/// How long one answer is waited for before it is asked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// Who answers.
pub struct Echo {
    socket: UdpSocket,
    word: Word,
}

impl Echo {
    /// At this address, at a port that the system gives.
    pub fn new(at: IpAddr) -> io::Result<Echo> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_read_timeout(Some(AGAIN / 4))?;
        let mut word = [0; 16];
        launch::sys::random(&mut word)?;
        Ok(Echo { socket, word: Word::from_ne_bytes(word) })
    }

    /// Where it answers, and to what.
    pub fn place(&self) -> io::Result<(SocketAddr, Word)> {
        Ok((self.socket.local_addr()?, self.word))
    }

    /// Answers until that is `over`. To strangers it says nothing.
    pub fn answer(&self, over: &AtomicBool) {
        let mut asked = [0; 17];
        while !over.load(Ordering::Relaxed) {
            if let Ok((16, from)) = self.socket.recv_from(&mut asked)
                && asked[..16] == self.word.to_be_bytes()
            {
                let _ = self.socket.send_to(&asked[..16], from);
            }
        }
    }
}

/// Asks the echo of a host, for so long at most.
pub fn ask(at: SocketAddr, word: Word, longest: Duration) -> io::Result<()> {
    let any: IpAddr = if at.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(at)?;
    socket.set_read_timeout(Some(AGAIN))?;
    let (word, begun) = (word.to_be_bytes(), Instant::now());
    loop {
        // An error here is of the datagram before, which had no socket to go to, or of the way there.
        let sent = socket.send(&word);
        let mut answer = [0; 17];
        let got = sent.and_then(|_| socket.recv(&mut answer));
        match got {
            Ok(16) if answer[..16] == word => return Ok(()),
            _ if begun.elapsed() < longest => std::thread::sleep(AGAIN / 4),
            Err(why) if why.kind() != io::ErrorKind::WouldBlock => return Err(why),
            _ => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn who_knows_the_word_is_answered_and_nobody_else() {
        let (echo, over) = (Echo::new(HERE).unwrap(), AtomicBool::new(false));
        let (at, word) = echo.place().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| echo.answer(&over));
            let told = ask(at, word, Duration::from_secs(10));
            let stranger = ask(at, word ^ 1, AGAIN);
            over.store(true, Ordering::Relaxed);
            assert!(told.is_ok(), "{told:?}");
            assert_eq!(stranger.unwrap_err().to_string(), "no answer");
        });
    }

    #[test]
    fn where_nobody_listens_that_is_said() {
        let (at, word) = Echo::new(HERE).unwrap().place().unwrap();
        assert_eq!(ask(at, word, AGAIN / 2).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
