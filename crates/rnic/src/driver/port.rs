//! Ports at which processes of other jobs ask, and the names by which these know them.

use super::Card;

/// How a name begins.
const BEGIN: &str = "tern-port:";

/// What the name of a port says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The process that has opened it.
    pub card: Card,
    /// Which of its ports.
    pub number: u32,
}

impl Port {
    /// The name: the words of the card and the number, as hexadecimal digits.
    pub fn name(&self) -> String {
        let words: String = self.card.to_words().iter().map(|word| format!("{word:016x}")).collect();
        format!("{BEGIN}{words}{:08x}", self.number)
    }

    /// The port of this name.
    pub fn named(name: &str) -> Option<Port> {
        let digits = name.strip_prefix(BEGIN)?;
        if digits.len() != 16 * Card::WORDS + 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut words = [0; Card::WORDS];
        for (at, word) in words.iter_mut().enumerate() {
            *word = u64::from_str_radix(&digits[16 * at..16 * (at + 1)], 16).ok()?;
        }
        let number = u32::from_str_radix(&digits[16 * Card::WORDS..], 16).ok()?;
        Some(Port { card: Card::from_words(words), number })
    }

    /// The port without its secret.
    pub fn shown(&self) -> String {
        format!("{} of {}", self.number, self.card.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_all_of_a_port_and_others_are_refused() {
        let address = "10.1.2.3:4567".parse().unwrap();
        let port = Port { card: Card { job: [1; 16], rank: 3, address, key: [0xfe; 16] }, number: 77 };
        let name = port.name();
        assert_eq!(Port::named(&name), Some(port));
        assert!(!port.shown().contains("fefe"));
        for wrong in ["", "tern-port:", "x", &name[1..], &name[..name.len() - 1], &name.replace('f', "g")] {
            assert_eq!(Port::named(wrong), None, "{wrong}");
        }
    }
}
