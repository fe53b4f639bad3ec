//! What every rank says to all others.
use super::client::Client;
use crate::text::{escape_into, unescape};

impl Client {
    /// What each rank says, by rank. Collective; a key is used once.
    ///
    /// Rank 0 asks for all values and puts them as one: the launcher, which answers one question at a time, has a
    /// few for each rank and not one for each pair of ranks.
    pub fn share(&mut self, key: &str, value: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let (me, n) = (self.rank(), self.size());
        let all = format!("{key}.all");
        if me != 0 {
            self.put(&format!("{key}.{me}"), value)?;
        }
        self.barrier()?;
        if me == 0 {
            let mut values = vec![value.to_vec()];
            for rank in 1..n {
                values.push(self.get(&format!("{key}.{rank}"))?);
            }
            self.put(&all, join(&values).as_bytes())?;
        }
        self.barrier()?;
        split(&self.get(&all)?, n).ok_or_else(|| {
            format!(
                "what all ranks say of {key} was not written by this library, or for another number of ranks"
            )
        })
    }
}

/// A line for each run of one value: how often, and what.
pub fn join(values: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for run in values.chunk_by(|a, b| a == b) {
        text += &format!("{} ", run.len());
        escape_into(&mut text, &run[0]);
        text.push('\n');
    }
    text
}

/// The `n` values behind a text that [`join`] made.
pub fn split(text: &[u8], n: usize) -> Option<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    for line in std::str::from_utf8(text).ok()?.lines() {
        let (count, word) = line.split_once(' ')?;
        let count = count.parse::<usize>().ok().filter(|count| *count <= n - values.len())?;
        values.extend(std::iter::repeat_n(unescape(word)?, count));
    }
    (values.len() == n).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order() {
        let words = ["", "a", "a", "b c\n", "a", "%"];
        let values: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(split(join(&values).as_bytes(), 6), Some(values));
        assert_eq!(join(&vec![b"x".to_vec(); 1000]), "1000 x\n");
    }

    #[test]
    fn what_nobody_wrote_is_refused() {
        for text in [
            "x",
            "1",
            "1 %",
            "-1 a",
            "99999999999 a",
            "\u{fffd}",
            "1 a",
            "2 a\n1 b",
            "1 a\n18446744073709551615 b",
        ] {
            assert_eq!(split(text.as_bytes(), 2), None, "{text}");
        }
        assert_eq!(split(&[0xff], 2), None);
        assert_eq!(split(b"2 a", 2), Some(vec![b"a".to_vec(); 2]));
    }
}
