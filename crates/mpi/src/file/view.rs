//! File views (MPI 5.0 section 14.3): a displacement, and a filetype that tiles the file from there on. The bytes that
//! the filetype has are the only ones there are to the program, one behind the other: its *stream*.
//!
//! A view is a layout of the file as a datatype is one of memory, so positions are found by the same descent.

use std::sync::Arc;

use disk::Piece;

use super::datarep::{Datarep, Sizes};
use crate::datatype::{Datatype, basic};
use crate::error::{Class, Result, fail};

/// What a program sees of a file.
#[derive(Debug)]
pub struct View {
    /// Where the first tile begins, in bytes.
    pub disp: i64,
    /// The unit of offsets.
    pub etype: Arc<Datatype>,
    /// The tile as the program made it.
    pub filetype: Arc<Datatype>,
    /// How elements lie in the file.
    pub datarep: Datarep,
    /// The tile as it lies in the file.
    tile: Arc<Datatype>,
    /// Bytes of an etype in the file.
    unit: u64,
    /// Tiles begin before the one in front has ended, so the stream ends with the first: only that far do positions in the
    /// file rise. HDF5 makes such types of its chunks: where some are resized and others are not, the extent of their struct
    /// is less than what it spans (section 5.1.6).
    is_one_tile: bool,
}

impl View {
    /// A view, if its types can be those of one (MPI 5.0 section 14.3.1): displacements are not negative and do not
    /// fall, nor overlap if the file `writes`, and the filetype is made of etypes. `sizes` are of the elements in the file, none where they are as in memory.
    pub fn new(
        disp: i64,
        etype: Arc<Datatype>,
        filetype: Arc<Datatype>,
        datarep: Datarep,
        sizes: Sizes,
        writes: bool,
    ) -> Result<View> {
        if disp < 0 {
            return fail(Class::ARG, format!("argument `disp` is {disp}, must not be negative"));
        }
        if etype.size() == 0 {
            return fail(Class::TYPE, "argument `etype` is a datatype without data");
        }
        if !filetype.size().is_multiple_of(etype.size()) {
            let (tile, unit) = (filetype.size(), etype.size());
            let text = format!("argument `filetype` has {tile} bytes, no multiple of the {unit} of `etype`");
            return fail(Class::TYPE, text);
        }
        check_order(&etype, "etype", 1, writes)?;
        let tile = sizes.refit(&filetype)?;
        check_order(&tile, "filetype", 1, writes)?;
        let is_one_tile = check_order(&tile, "filetype", 2, false).is_err();
        let unit = sizes.item(&etype);
        Ok(View { disp, etype, filetype, datarep, tile, unit, is_one_tile })
    }

    /// That of a file just opened: bytes.
    pub fn bytes() -> View {
        let byte = Datatype::of(basic::BYTE).expect("MPI_BYTE is predefined").clone();
        View {
            disp: 0,
            etype: byte.clone(),
            filetype: byte.clone(),
            datarep: Datarep::Native,
            tile: byte,
            unit: 1,
            is_one_tile: false,
        }
    }

    /// Bytes of an etype in the file.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Where the first byte of a stretch of the stream begins, in bytes of the stream, if `len` bytes from there
    /// on are in the range of file offsets.
    pub fn stretch(&self, etypes: i64, len: u64) -> Result<u64> {
        if etypes < 0 {
            return fail(Class::ARG, format!("argument `offset` is {etypes}, must not be negative"));
        }
        let start = i128::from(etypes) * i128::from(self.unit());
        let tile = i128::from(self.tile.size());
        if tile == 0 {
            if len > 0 {
                return fail(Class::ARG, format!("the view has no data, {len} bytes of it are asked for"));
            }
            return Ok(0);
        }
        if self.is_one_tile && start + i128::from(len) > tile {
            let (apart, over) = (self.tile.extent(), self.tile.true_extent());
            let text = format!(
                "tiles of the view overlap, they begin {apart} bytes apart and span {over}: only the first can be accessed"
            );
            return fail(Class::TYPE, text);
        }
        let tiles = (start + i128::from(len)) / tile + 1;
        let reach = self.tile.extent().max(0);
        let end = i128::from(self.disp) + tiles * i128::from(reach) + i128::from(self.tile.true_extent());
        if end > i128::from(i64::MAX) {
            return fail(
                Class::ARG,
                format!("etype {etypes} of the view lies beyond the largest file offset"),
            );
        }
        Ok(start as u64)
    }

    /// The pieces of the file that `len` bytes of the stream from `start` on are, in order; both come from
    /// [`View::stretch`].
    pub fn pieces(&self, start: u64, len: u64) -> Pieces<'_> {
        Pieces { view: self, position: start, end: start + len }
    }

    /// The file offset of an etype.
    pub fn offset_of(&self, etypes: i64) -> Result<i64> {
        let start = self.stretch(etypes, 1)?;
        Ok(self.run_at(start).offset as i64)
    }

    /// The first etype of the stream of which nothing lies before file offset `size`.
    pub fn etypes_before(&self, size: u64) -> i64 {
        if self.tile.size() == 0 {
            return 0;
        }
        // Each byte of the stream lies behind the one before: in a view that may be written there are at most as
        // many before an offset as that says.
        let (mut low, mut high) = (0, size / self.unit() + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_behind = match self.stretch(middle as i64, self.unit()) {
                Ok(start) => self.run_at(start).offset >= size,
                Err(_) => true,
            };
            if is_behind { high = middle } else { low = middle + 1 }
        }
        low as i64
    }

    /// The extent of a type in a file of this representation (MPI 5.0 section 14.5.1).
    pub fn extent_of(&self, ty: &Arc<Datatype>, sizes: &Sizes) -> Result<i64> {
        if self.datarep.is_plain() {
            return Ok(ty.extent());
        }
        Ok(sizes.refit(ty)?.extent())
    }

    /// The rest of the run of the file that holds a byte of the stream.
    fn run_at(&self, position: u64) -> Piece {
        if self.tile.is_contiguous() {
            return Piece { offset: self.disp as u64 + position, len: u64::MAX - position };
        }
        let (at, len) = self.tile.run_at(0, position);
        Piece { offset: (self.disp + at as i64) as u64, len }
    }
}

/// Iterator over the pieces of a stretch; those that touch are one.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    view: &'a View,
    position: u64,
    end: u64,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.position >= self.end {
            return None;
        }
        let mut piece = self.view.run_at(self.position);
        piece.len = piece.len.min(self.end - self.position);
        self.position += piece.len;
        while self.position < self.end {
            let next = self.view.run_at(self.position);
            if next.offset != piece.end() {
                break;
            }
            let len = next.len.min(self.end - self.position);
            piece.len += len;
            self.position += len;
        }
        Some(piece)
    }
}

/// The displacements of `count` items one after the other are not negative and do not fall; where a file is written nothing overlaps
/// either (MPI 5.0 section 14.3). Of what touches only the beginning and the end are known, and who reads may begin within it again, as with ROMIO.
fn check_order(ty: &Datatype, arg: &str, count: u64, writes: bool) -> Result {
    let (mut last, mut end_of_last, mut position) = (0, 0, 0);
    let end = ty.size() * count;
    while position < end && !ty.is_contiguous() {
        let (at, len) = ty.run_at(0, position);
        let at = at as i64;
        if at < 0 {
            return fail(Class::TYPE, format!("argument `{arg}` has a negative displacement, {at}"));
        }
        if at < last {
            let text = format!("the displacements of argument `{arg}` fall, from {last} to {at}");
            return fail(Class::TYPE, text);
        }
        if writes && at < end_of_last {
            let text = format!(
                "argument `{arg}` has data twice at displacement {at}, which a file that is opened for writing forbids"
            );
            return fail(Class::TYPE, text);
        }
        end_of_last = at + len as i64;
        (last, position) = (at, position + len);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
