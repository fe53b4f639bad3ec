//! Hints of files (MPI 5.0 section 14.2.8): those that the standard reserves and what is in force.

use disk::Style;

use crate::error::Result;
use crate::info::Info;

/// What the reserved hints say that mean something here; a value that makes no sense is as good as none, as for every hint.
/// What says how a file lies on devices (`striping_factor`, `striping_unit`, `num_io_nodes`, `io_node_list`), in parts of an array
/// (`chunked`, `chunked_item`, `chunked_size`) or how many processes will use it (`nb_proc`) means nothing to a file system
/// of the operating system, so it is not kept, and `MPI_File_get_info` does not tell it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hints {
    /// `cb_nodes`: ranks that access the file in collective operations; `None`: as many as pay.
    pub nodes: Option<u64>,
    /// `cb_buffer_size`: bytes each of them moves at once.
    pub buffer_bytes: u64,
    /// `cb_block_size`: bytes of the blocks that go to them in turn; 0: each has one stretch.
    pub block_bytes: u64,
    /// `collective_buffering`: whether it is used; `None`: where it is predicted to pay.
    pub buffering: Option<bool>,
    /// `file_perm`: permissions of a new file.
    pub permissions: u32,
    /// `access_style`: in which order it will be read.
    style: Option<Order>,
}

/// The words of `access_style` that are heeded: the others say nothing that a kernel could be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Sequential,
    ReverseSequential,
    Random,
}

impl Order {
    const NAMES: [(&str, Order); 3] = [
        ("random", Order::Random),
        ("reverse_sequential", Order::ReverseSequential),
        ("sequential", Order::Sequential),
    ];

    /// The first of the names that stands in the list.
    fn of(words: &str) -> Option<Order> {
        let has = |name: &str| words.split(',').any(|word| word.trim() == name);
        Order::NAMES.iter().find(|(name, _)| has(name)).map(|(_, order)| *order)
    }
}

/// Bytes moved at once if no hint says another number: large against what a call costs, small against memory.
const BUFFER_BYTES: u64 = 16 << 20;

impl Default for Hints {
    fn default() -> Hints {
        Hints {
            nodes: None,
            buffer_bytes: BUFFER_BYTES,
            block_bytes: 0,
            buffering: None,
            permissions: 0o666,
            style: None,
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
        if let Some(bytes) = number("cb_block_size").filter(|bytes| *bytes > 0) {
            self.block_bytes = bytes;
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
        if let Some(words) = info.hint("access_style") {
            self.style = Order::of(words);
        }
    }

    /// What is in force on `size` ranks for the file of this name, which has these permissions if they are known.
    pub fn to_info(&self, size: u64, name: &[u8], permissions: Option<u32>) -> Result<Info> {
        let mut info = Info::new();
        let mut set = |key: &str, value: &[u8]| info.set(key.as_bytes(), value);
        set("cb_nodes", self.owners(size).to_string().as_bytes())?;
        set("cb_buffer_size", self.buffer_bytes.to_string().as_bytes())?;
        if self.block_bytes > 0 {
            set("cb_block_size", self.block_bytes.to_string().as_bytes())?;
        }
        if let Some(buffering) = self.buffering {
            set("collective_buffering", if buffering { b"true" } else { b"false" })?;
        }
        if let Some((word, _)) = Order::NAMES.iter().find(|(_, order)| Some(*order) == self.style) {
            set("access_style", word.as_bytes())?;
        }
        if let Some(permissions) = permissions {
            set("file_perm", format!("{permissions:o}").as_bytes())?;
        }
        // Names may be longer than values of infos.
        let _ = set("filename", name);
        Ok(info)
    }

    /// What `access_style` says of the order of reading.
    pub fn style(&self) -> Style {
        match self.style {
            Some(Order::Random | Order::ReverseSequential) => Style::Random,
            Some(Order::Sequential) => Style::Sequential,
            None => Style::Any,
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

    fn info(pairs: &[(&str, &str)]) -> Info {
        let mut info = Info::new();
        pairs.iter().for_each(|(key, value)| info.set(key.as_bytes(), value.as_bytes()).unwrap());
        info
    }

    #[test]
    fn what_makes_sense_is_in_force_and_reported() {
        let mut hints = Hints::default();
        hints.update(&info(&[
            ("cb_nodes", "3"),
            ("cb_buffer_size", "many"),
            ("cb_block_size", "65536"),
            ("collective_buffering", "false"),
            ("file_perm", "640"),
            ("access_style", "read_once, sequential"),
            ("unknown", "x"),
        ]));
        hints.update(&Info::new());
        assert_eq!(
            (hints.permissions, hints.buffer_bytes, hints.buffering, hints.block_bytes),
            (0o640, BUFFER_BYTES, Some(false), 65536)
        );
        assert_eq!((hints.style(), Hints::default().style()), (Style::Sequential, Style::Any));
        let told = hints.to_info(2, b"/a/file", Some(0o600)).unwrap();
        let tells = |key: &str| told.hint(key).map(str::to_string);
        assert_eq!(tells("cb_nodes").as_deref(), Some("2"), "there are no more");
        assert_eq!(tells("cb_block_size").as_deref(), Some("65536"));
        assert_eq!(tells("access_style").as_deref(), Some("sequential"), "the word that is heeded");
        assert_eq!(tells("filename").as_deref(), Some("/a/file"));
        assert_eq!(tells("file_perm").as_deref(), Some("600"), "those that it has");
        assert_eq!(tells("unknown"), None);
        hints.update(&info(&[("access_style", "write_once")]));
        assert_eq!(hints.to_info(2, b"x", None).unwrap().hint("access_style"), None);
    }

    #[test]
    fn what_means_nothing_here_is_not_reported() {
        let nothing = [
            "chunked",
            "chunked_item",
            "chunked_size",
            "io_node_list",
            "nb_proc",
            "num_io_nodes",
            "striping_factor",
            "striping_unit",
        ];
        let mut hints = Hints::default();
        nothing.iter().for_each(|key| hints.update(&info(&[(key, "4")])));
        hints.update(&info(&[("filename", "another")]));
        assert_eq!(hints, Hints::default());
        let told = hints.to_info(2, b"file", None).unwrap();
        assert!(nothing.iter().all(|key| told.hint(key).is_none()));
        assert_eq!(told.hint("filename"), Some("file"), "whatever was said");
    }
}
