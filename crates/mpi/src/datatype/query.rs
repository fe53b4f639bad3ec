//! What a number of received bytes means in items and elements (MPI 5.0 sections 3.2.5 and
//! 5.1.11), and how much room packing needs (section 5.2).

use super::Datatype;
use crate::error::{Class, Result, fail};

impl Datatype {
    /// The predefined datatypes it is made of, by their position in the table.
    pub fn kinds(&self) -> Vec<u8> {
        let mut kinds = Vec::new();
        self.body.signature.kinds(&mut kinds);
        kinds
    }

    /// Bytes of one item without gaps, if an element of a predefined datatype has `size` bytes.
    pub fn size_by(&self, size: &impl Fn(u8) -> u64) -> u64 {
        self.body.signature.size_by(size)
    }

    /// `MPI_Get_count`: how many whole items `bytes` bytes are, `None` for `MPI_UNDEFINED`.
    #[inline]
    pub fn items_in(&self, bytes: u64) -> Option<u64> {
        match self.size() {
            0 if bytes == 0 => Some(0),
            0 => None,
            size if bytes.is_multiple_of(size) => Some(bytes / size),
            _ => None,
        }
    }

    /// `MPI_Get_elements`: how many basic elements `bytes` bytes are, `None` for `MPI_UNDEFINED`.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        if self.size() == 0 {
            return (bytes == 0).then_some(0);
        }
        let (elements, exact) = self.body.signature.elements_in(bytes % self.size());
        let whole = (bytes / self.size()).checked_mul(self.elements())?;
        if exact { whole.checked_add(elements) } else { None }
    }

    /// `MPI_Status_set_elements`: the number of bytes of which [`Datatype::elements_in`] says
    /// `elements`.
    pub fn bytes_of(&self, elements: u64) -> Result<u64> {
        if elements == 0 {
            return Ok(0);
        }
        if self.elements() == 0 {
            return fail(
                Class::COUNT,
                format!("argument `count` is {elements}, but the datatype has no elements"),
            );
        }
        let whole = (elements / self.elements()).checked_mul(self.size());
        let rest = self.body.signature.bytes_of(elements % self.elements());
        match whole.and_then(|whole| whole.checked_add(rest)) {
            Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
            _ => fail(
                Class::COUNT,
                format!("argument `count` is {elements}: these elements exceed 2^63 bytes"),
            ),
        }
    }

    /// `MPI_Pack_size`: bytes that `count` items take when packed. Also the length of a message.
    pub fn packed_size(&self, count: u64) -> Result<u64> {
        bounded(self.size(), count)
    }

    /// `MPI_Pack_external_size` for external32.
    pub fn external_size(&self, count: u64) -> Result<u64> {
        bounded(self.body.signature.external_size, count)
    }
}

fn bounded(size: u64, count: u64) -> Result<u64> {
    match size.checked_mul(count) {
        Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => fail(Class::COUNT, format!("{count} items of {size} bytes exceed 2^63 bytes")),
    }
}
