//! Packing in external32 (MPI 5.0 section 5.3): the native stream, converted run by run of equal
//! elements.

use super::Datatype;
use super::basic::PREDEFINED;
use super::convert::{decode, encode};
use crate::error::{Class, Result, fail};

/// Bytes converted at once.
const STAGING_BYTES: u64 = 4 << 10;

/// Both positions in step, one run of equal elements at a time.
struct Cursor {
    native: u64,
    external: usize,
    staging: Vec<u8>,
}

/// One piece of a run that fits the staging area.
struct Piece {
    native: usize,
    external: usize,
}

impl Cursor {
    fn new() -> Cursor {
        Cursor { native: 0, external: 0, staging: vec![0; STAGING_BYTES as usize] }
    }

    /// The pieces of `count` elements of the predefined datatype at position `kind`.
    fn pieces(kind: u8, count: u64) -> impl Iterator<Item = Piece> {
        let row = &PREDEFINED[kind as usize];
        let (size, external) = (row.basic.size() as usize, row.external_size as usize);
        let most = STAGING_BYTES / size as u64;
        (0..count).step_by(most as usize).map(move |done| {
            let n = (count - done).min(most) as usize;
            Piece { native: n * size, external: n * external }
        })
    }
}

impl Datatype {
    /// Packs `count` items at address `base` as external32 at the beginning of `out`; returns the
    /// number of bytes. Fails with `MPI_ERR_TRUNCATE` when `out` is too short and with
    /// `MPI_ERR_CONVERSION` when a value does not fit.
    pub fn pack_external(&self, base: usize, count: u64, out: &mut [u8]) -> Result<usize> {
        self.check_room(count, out.len())?;
        let mut cursor = Cursor::new();
        self.body.signature.repeat(count)?.visit(&mut |kind, n| {
            for piece in Cursor::pieces(kind, n) {
                let staged = &mut cursor.staging[..piece.native];
                self.pack(base, count, cursor.native, staged);
                encode(kind, staged, &mut out[cursor.external..][..piece.external])?;
                cursor.native += piece.native as u64;
                cursor.external += piece.external;
            }
            Ok(())
        })?;
        Ok(cursor.external)
    }

    /// Unpacks `count` items from external32 at the beginning of `input` to address `base`;
    /// returns the number of bytes taken. Fails with `MPI_ERR_TRUNCATE` when `input` is too short.
    pub fn unpack_external(&self, base: usize, count: u64, input: &[u8]) -> Result<usize> {
        self.check_room(count, input.len())?;
        self.unpack_external_part(base, count, input)?;
        Ok(self.external_size(count)? as usize)
    }

    /// As [`Datatype::unpack_external`] with as many elements as `input` has of these items; returns the number of
    /// bytes they have in memory.
    pub fn unpack_external_part(&self, base: usize, count: u64, input: &[u8]) -> Result<u64> {
        let mut cursor = Cursor::new();
        let mut is_short = false;
        self.body.signature.repeat(count)?.visit(&mut |kind, n| {
            let element = u64::from(PREDEFINED[kind as usize].external_size);
            let there = ((input.len() - cursor.external) as u64).checked_div(element).unwrap_or(n);
            let n = if is_short { 0 } else { n };
            is_short |= there < n;
            for piece in Cursor::pieces(kind, n.min(there)) {
                let staged = &mut cursor.staging[..piece.native];
                decode(kind, &input[cursor.external..][..piece.external], staged);
                self.unpack(base, count, cursor.native, staged);
                cursor.native += piece.native as u64;
                cursor.external += piece.external;
            }
            Ok(())
        })?;
        Ok(cursor.native)
    }

    fn check_room(&self, count: u64, room: usize) -> Result {
        self.packed_size(count)?;
        let need = self.external_size(count)?;
        if need > room as u64 {
            return fail(
                Class::TRUNCATE,
                format!("{count} items need {need} bytes, the pack buffer has {room} left"),
            );
        }
        Ok(())
    }
}
