//! Journals of decisions, which people may write and change: what is read of messages and of epochs.

use proto::choice::journal::{self, Decision};
use proto::epoch::journal as planned;

/// The input as a journal, and as the lines of one.
pub fn decode(input: &[u8]) {
    match journal::read("name", input) {
        Ok(text) => assert_eq!(text.as_bytes(), input),
        Err(why) => assert!(why.starts_with("name:"), "{why}"),
    }
    let text = String::from_utf8_lossy(input);
    read(&text);
    read(&format!("{}\n{text}", journal::HEADER));
}

fn read(text: &str) {
    match planned::parse("name", text) {
        Ok(decisions) => {
            let last = journal::last(decisions.clone());
            assert!(last.len() <= decisions.len() && last.is_empty() == decisions.is_empty());
        }
        Err(why) => assert!(why.starts_with("name:"), "{why}"),
    }
    match journal::parse("name", text) {
        Ok(decisions) => {
            let lines: String = decisions.iter().map(line).collect();
            let again = format!("{}\n{lines}", journal::HEADER);
            assert_eq!(journal::parse("name", &again), Ok(decisions), "{again}");
        }
        Err(why) => assert!(why.starts_with("name:"), "{why}"),
    }
}

fn line(decision: &Decision) -> String {
    let Decision { rank, at, key, way } = decision;
    let rank = rank.map_or("*".into(), |rank| rank.to_string());
    format!("rank={rank} at={at} {} way={} # why\n", key.text(), way.name())
}
