//! What a rank goes on with when it has learnt lengths from others.
//!
//! A program is written before anything is received. Where a leader has to know how much its host sends, its program ends
//! with the receipt of these numbers, and the rest is written then: a program like any other, whose scratch memory lies
//! behind that of the first, so it finds there what has come.
use super::build::Builder;
use super::schedule::{Buf, Program};
use crate::error::{Class, Result, fail};

/// Adds to a program what numbers of other ranks ask for; fails where they contradict the call.
pub type Write = dyn Fn(&[u64], &mut Builder) -> Result + Send + Sync;

/// See the [head of this module](self).
pub struct Sequel {
    /// Where the numbers are, in scratch memory.
    pub words: Buf,
    /// None of them is above.
    pub most: u64,
    /// Writes the rest.
    pub write: Box<Write>,
}

impl std::fmt::Debug for Sequel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequel").field("words", &self.words).field("most", &self.most).finish_non_exhaustive()
    }
}

impl Sequel {
    /// The program that follows `first`, which has brought these numbers.
    pub fn follow(&self, first: &Program, bytes: &[u8]) -> Result<Program> {
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        if let Some(word) = words.iter().find(|word| **word > self.most) {
            let (kind, most) = (first.kind.name(), self.most);
            let text =
                format!("a rank has told a length of {word} bytes in this {kind}, where {most} are the most");
            return fail(Class::OTHER, text);
        }
        let mut b = Builder::after(first);
        (self.write)(&words, &mut b)?;
        Ok(b.finish(first.kind, first.algorithm, first.root, None))
    }
}
