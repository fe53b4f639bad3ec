//! MPI 5.0, chapter 14 Files.

use crate::kind::function::{DatarepConversionFn, DatarepExtentFn};
use crate::kind::handle::{Comm, Datatype, File, FileRef, InfoOrNull};
use crate::kind::output::{
    AintOrCountOut, DatatypeOut, FileOut, FlagOut, GroupOut, InfoOut, IntOut, OffsetOut, RequestOut,
};
use crate::kind::scalar::{Addr, BufIn, BufOut, Count, Flag, Int, Offset};
use crate::kind::text::{StatusOut, StrIn, StrOut};
use crate::table::rows;

rows! { "14 Files";
    MPI_File_close(fh: FileRef) => missing;
    MPI_File_delete(filename: StrIn, info: InfoOrNull) => missing;
    MPI_File_get_amode(fh: File, amode: IntOut) => missing;
    MPI_File_get_atomicity(fh: File, flag: FlagOut) => missing;
    MPI_File_get_byte_offset(fh: File, offset: Offset, disp: OffsetOut) => missing;
    MPI_File_get_group(fh: File, group: GroupOut) => missing;
    MPI_File_get_info(fh: File, info_used: InfoOut) => missing;
    MPI_File_get_position(fh: File, offset: OffsetOut) => missing;
    MPI_File_get_position_shared(fh: File, offset: OffsetOut) => missing;
    MPI_File_get_size(fh: File, size: OffsetOut) => missing;
    MPI_File_get_type_extent(fh: File, datatype: Datatype, extent: AintOrCountOut) large => missing;
    MPI_File_get_view(fh: File, disp: OffsetOut, etype: DatatypeOut, filetype: DatatypeOut,
        datarep: StrOut) => missing;
    MPI_File_iread(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_iread_all(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_iread_at(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        request: RequestOut) large => missing;
    MPI_File_iread_at_all(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        request: RequestOut) large => missing;
    MPI_File_iread_shared(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_iwrite(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_iwrite_all(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_iwrite_at(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        request: RequestOut) large => missing;
    MPI_File_iwrite_at_all(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        request: RequestOut) large => missing;
    MPI_File_iwrite_shared(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => missing;
    MPI_File_open(comm: Comm, filename: StrIn, amode: Int, info: InfoOrNull, fh: FileOut) => missing;
    MPI_File_preallocate(fh: File, size: Offset) => missing;
    MPI_File_read(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_read_all(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_read_all_begin(fh: File, buf: BufOut, count: Count, datatype: Datatype) large => missing;
    MPI_File_read_all_end(fh: File, buf: BufOut, status: StatusOut) => missing;
    MPI_File_read_at(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        status: StatusOut) large => missing;
    MPI_File_read_at_all(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        status: StatusOut) large => missing;
    MPI_File_read_at_all_begin(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype) large
        => missing;
    MPI_File_read_at_all_end(fh: File, buf: BufOut, status: StatusOut) => missing;
    MPI_File_read_ordered(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_read_ordered_begin(fh: File, buf: BufOut, count: Count, datatype: Datatype) large => missing;
    MPI_File_read_ordered_end(fh: File, buf: BufOut, status: StatusOut) => missing;
    MPI_File_read_shared(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_seek(fh: File, offset: Offset, whence: Int) => missing;
    MPI_File_seek_shared(fh: File, offset: Offset, whence: Int) => missing;
    MPI_File_set_atomicity(fh: File, flag: Flag) => missing;
    MPI_File_set_info(fh: File, info: InfoOrNull) => missing;
    MPI_File_set_size(fh: File, size: Offset) => missing;
    MPI_File_set_view(fh: File, disp: Offset, etype: Datatype, filetype: Datatype, datarep: StrIn,
        info: InfoOrNull) => missing;
    MPI_File_sync(fh: File) => missing;
    MPI_File_write(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_write_all(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_write_all_begin(fh: File, buf: BufIn, count: Count, datatype: Datatype) large => missing;
    MPI_File_write_all_end(fh: File, buf: BufIn, status: StatusOut) => missing;
    MPI_File_write_at(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        status: StatusOut) large => missing;
    MPI_File_write_at_all(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        status: StatusOut) large => missing;
    MPI_File_write_at_all_begin(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype) large
        => missing;
    MPI_File_write_at_all_end(fh: File, buf: BufIn, status: StatusOut) => missing;
    MPI_File_write_ordered(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_File_write_ordered_begin(fh: File, buf: BufIn, count: Count, datatype: Datatype) large => missing;
    MPI_File_write_ordered_end(fh: File, buf: BufIn, status: StatusOut) => missing;
    MPI_File_write_shared(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => missing;
    MPI_Register_datarep(datarep: StrIn, read_conversion_fn: DatarepConversionFn,
        write_conversion_fn: DatarepConversionFn, dtype_file_extent_fn: DatarepExtentFn, extra_state: Addr) large
        => missing;
}
