//! Hints of files (MPI 5.0 section 14.2.8): those that the standard reserves and what is in force.

use disk::Style;

use crate::error::Result;
use crate::info::Info;

/// What the reserved hints say; a value that makes no sense is as good as none, as for every hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hints {
    /// `cb_nodes`: ranks that access the file in collective operations; `None`: as many as pay.
    pub nodes: Option<u64>,
    /// `cb_buffer_size`: bytes each of them moves at once.
    pub buffer_bytes: u64,
    /// `collective_buffering`: whether it is used; `None`: where it is predicted to pay.
    pub buffering: Option<bool>,
    /// `file_perm`: permissions of a new file.
    pub permissions: u32,
    /// The rest, kept as it was given: what depends on a file system that has no such thing here.
    others: Vec<(&'static str, String)>,
}

/// Reserved hints that are kept as they were given; all but `access_style` change nothing.
const KEPT: [&str; 11] = [
    "access_style",
    "cb_block_size",
    "chunked",
    "chunked_item",
    "chunked_size",
    "filename",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "striping_factor",
    "striping_unit",
];

/// Bytes moved at once if no hint says another number: large against what a call costs, small against memory.
const BUFFER_BYTES: u64 = 16 << 20;

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            nodes: None,
            buffer_bytes: BUFFER_BYTES,
            buffering: None,
            permissions: 0o666,
            others: Vec::new(),
        }
    }
}

impl Hints {
    /// Takes over what an info object says.
    pub fn update(&mut self, info: &Info) {
        let number = |key: &str| info.hint(key).and_then(|value| value.trim().parse::<u64>().ok());
        if let Some(nodes) = number("cb_nodes").filter(|nodes| *nodes > 0) {
            self.nodes = Some(nodes);
        }
        if let Some(bytes) = number("cb_buffer_size").filter(|bytes| *bytes > 0) {
            self.buffer_bytes = bytes;
        }
        match info.hint("collective_buffering").map(str::trim) {
            Some("true") => self.buffering = Some(true),
            Some("false") => self.buffering = Some(false),
            _ => {}
        }
        let permissions = info.hint("file_perm").and_then(|value| u32::from_str_radix(value.trim(), 8).ok());
        if let Some(permissions) = permissions.filter(|bits| *bits <= 0o7777) {
            self.permissions = permissions;
        }
        for key in KEPT {
            let Some(value) = info.hint(key) else { continue };
            match self.others.iter_mut().find(|other| other.0 == key) {
                Some(other) => other.1 = value.to_string(),
                None => self.others.push((key, value.to_string())),
            }
        }
    }

    /// What is in force on `size` ranks.
    pub fn to_info(&self, size: u64) -> Result<Info> {
        let mut info = Info::new();
        let nodes = self.owners(size);
        let mut set = |key: &str, value: &str| info.set(key.as_bytes(), value.as_bytes());
        set("cb_nodes", &nodes.to_string())?;
        set("cb_buffer_size", &self.buffer_bytes.to_string())?;
        if let Some(buffering) = self.buffering {
            set("collective_buffering", if buffering { "true" } else { "false" })?;
        }
        set("file_perm", &format!("{:o}", self.permissions))?;
        self.others.iter().try_for_each(|(key, value)| set(key, value))?;
        Ok(info)
    }

    /// What `access_style`, a list of words, says of the order of reading.
    pub fn style(&self) -> Style {
        let given = self.others.iter().find(|(key, _)| *key == "access_style");
        let has = |word: &str| given.is_some_and(|(_, words)| words.split(',').any(|one| one.trim() == word));
        match (has("random") || has("reverse_sequential"), has("sequential")) {
            (true, _) => Style::Random,
            (false, true) => Style::Sequential,
            (false, false) => Style::Any,
        }
    }

    /// How many of `size` ranks access the file in collective operations.
    pub fn owners(&self, size: u64) -> u64 {
        self.nodes.unwrap_or(size).min(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense_is_in_force_and_reported() {
        let mut info = Info::new();
        for (key, value) in [
            ("cb_nodes", "3"),
            ("cb_buffer_size", "many"),
            ("collective_buffering", "false"),
            ("file_perm", "640"),
            ("striping_unit", "65536"),
            ("access_style", "read_once, sequential"),
            ("unknown", "x"),
        ] {
            info.set(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let mut hints = Hints::default();
        hints.update(&info);
        hints.update(&Info::new());
        assert_eq!(
            (hints.permissions, hints.buffer_bytes, hints.buffering),
            (0o640, BUFFER_BYTES, Some(false))
        );
        assert_eq!((hints.style(), Hints::default().style()), (Style::Sequential, Style::Any));
        let told = hints.to_info(2).unwrap();
        assert_eq!((told.hint("cb_nodes"), told.hint("striping_unit")), (Some("2"), Some("65536")));
        assert_eq!((told.hint("unknown"), told.hint("file_perm")), (None, Some("640")));
    }
}
