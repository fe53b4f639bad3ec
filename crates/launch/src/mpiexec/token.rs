//! What a descriptor in the epoll set belongs to.

/// The owner of a descriptor; the number says which rank of this host, or which agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Signals,
    /// The standard input of the launcher.
    Input,
    /// The standard input of a rank.
    Stdin,
    Out,
    Err,
    Stdout(usize),
    Stderr(usize),
    Pmi(usize),
    Control(usize),
    /// The connection to an agent, or that of an agent to its launcher.
    Link(usize),
    /// Where agents connect.
    Listener(usize),
    /// Somebody who has connected and has not proven yet to be an agent.
    Caller(usize),
}

impl Token {
    /// The number under which the descriptor is in the set: the kind in the upper half.
    pub(super) fn pack(self) -> u64 {
        let (kind, which) = match self {
            Token::Signals => (0, 0),
            Token::Input => (1, 0),
            Token::Stdin => (2, 0),
            Token::Out => (3, 0),
            Token::Err => (4, 0),
            Token::Stdout(rank) => (5, rank),
            Token::Stderr(rank) => (6, rank),
            Token::Pmi(rank) => (7, rank),
            Token::Control(rank) => (8, rank),
            Token::Link(agent) => (9, agent),
            Token::Listener(which) => (10, which),
            Token::Caller(which) => (11, which),
        };
        kind << 32 | which as u64
    }

    pub(super) fn unpack(token: u64) -> Token {
        let which = token as u32 as usize;
        match token >> 32 {
            0 => Token::Signals,
            1 => Token::Input,
            2 => Token::Stdin,
            3 => Token::Out,
            4 => Token::Err,
            5 => Token::Stdout(which),
            6 => Token::Stderr(which),
            7 => Token::Pmi(which),
            8 => Token::Control(which),
            9 => Token::Link(which),
            10 => Token::Listener(which),
            11 => Token::Caller(which),
            kind => unreachable!("token of kind {kind}"),
        }
    }
}
