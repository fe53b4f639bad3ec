//! MPI 5.0, chapter 14 Files.

use crate::kind::function::{DatarepConversionFn, DatarepExtentFn};
use crate::kind::handle::{Comm, Datatype, File, FileRef, InfoOrNull};
use crate::kind::output::{
    AintOrCountOut, AmodeOut, DatatypeOut, FileOut, FlagOut, GroupOut, InfoOut, OffsetOut, RequestOut,
};
use crate::kind::scalar::{Addr, Amode, BufIn, BufOut, Count, Flag, Offset, ViewStart, Whence};
use crate::kind::text::{StatusOut, StrIn, StrOut};
use crate::table::rows;

rows! { "14 Files";
    MPI_File_close(fh: FileRef) => crate::file::close;
    MPI_File_delete(filename: StrIn, info: InfoOrNull) => crate::file::delete;
    MPI_File_get_amode(fh: File, amode: AmodeOut) => crate::file::get_amode;
    MPI_File_get_atomicity(fh: File, flag: FlagOut) => crate::file::get_atomicity;
    MPI_File_get_byte_offset(fh: File, offset: Offset, disp: OffsetOut) => crate::file::pointer::get_byte_offset;
    MPI_File_get_group(fh: File, group: GroupOut) => crate::file::get_group;
    MPI_File_get_info(fh: File, info_used: InfoOut) => crate::file::get_info;
    MPI_File_get_position(fh: File, offset: OffsetOut) => crate::file::pointer::get_position;
    MPI_File_get_position_shared(fh: File, offset: OffsetOut) => crate::file::pointer::get_position_shared;
    MPI_File_get_size(fh: File, size: OffsetOut) => crate::file::get_size;
    MPI_File_get_type_extent(fh: File, datatype: Datatype, extent: AintOrCountOut) large => crate::file::view::get_type_extent;
    MPI_File_get_view(fh: File, disp: OffsetOut, etype: DatatypeOut, filetype: DatatypeOut,
        datarep: StrOut) => crate::file::view::get_view;
    MPI_File_iread(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iread;
    MPI_File_iread_all(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iread_all;
    MPI_File_iread_at(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        request: RequestOut) large => crate::file::access::iread_at;
    MPI_File_iread_at_all(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        request: RequestOut) large => crate::file::access::iread_at_all;
    MPI_File_iread_shared(fh: File, buf: BufOut, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iread_shared;
    MPI_File_iwrite(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iwrite;
    MPI_File_iwrite_all(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iwrite_all;
    MPI_File_iwrite_at(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        request: RequestOut) large => crate::file::access::iwrite_at;
    MPI_File_iwrite_at_all(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        request: RequestOut) large => crate::file::access::iwrite_at_all;
    MPI_File_iwrite_shared(fh: File, buf: BufIn, count: Count, datatype: Datatype, request: RequestOut) large
        => crate::file::access::iwrite_shared;
    MPI_File_open(comm: Comm, filename: StrIn, amode: Amode, info: InfoOrNull, fh: FileOut) => crate::file::open;
    MPI_File_preallocate(fh: File, size: Offset) => crate::file::preallocate;
    MPI_File_read(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::read;
    MPI_File_read_all(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::read_all;
    MPI_File_read_all_begin(fh: File, buf: BufOut, count: Count, datatype: Datatype) large => crate::file::split::read_all_begin;
    MPI_File_read_all_end(fh: File, buf: BufOut, status: StatusOut) => crate::file::split::read_all_end;
    MPI_File_read_at(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        status: StatusOut) large => crate::file::access::read_at;
    MPI_File_read_at_all(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype,
        status: StatusOut) large => crate::file::access::read_at_all;
    MPI_File_read_at_all_begin(fh: File, offset: Offset, buf: BufOut, count: Count, datatype: Datatype) large
        => crate::file::split::read_at_all_begin;
    MPI_File_read_at_all_end(fh: File, buf: BufOut, status: StatusOut) => crate::file::split::read_at_all_end;
    MPI_File_read_ordered(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::read_ordered;
    MPI_File_read_ordered_begin(fh: File, buf: BufOut, count: Count, datatype: Datatype) large => crate::file::split::read_ordered_begin;
    MPI_File_read_ordered_end(fh: File, buf: BufOut, status: StatusOut) => crate::file::split::read_ordered_end;
    MPI_File_read_shared(fh: File, buf: BufOut, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::read_shared;
    MPI_File_seek(fh: File, offset: Offset, whence: Whence) => crate::file::pointer::seek;
    MPI_File_seek_shared(fh: File, offset: Offset, whence: Whence) => crate::file::pointer::seek_shared;
    MPI_File_set_atomicity(fh: File, flag: Flag) => crate::file::set_atomicity;
    MPI_File_set_info(fh: File, info: InfoOrNull) => crate::file::set_info;
    MPI_File_set_size(fh: File, size: Offset) => crate::file::set_size;
    MPI_File_set_view(fh: File, disp: ViewStart, etype: Datatype, filetype: Datatype, datarep: StrIn,
        info: InfoOrNull) => crate::file::view::set_view;
    MPI_File_sync(fh: File) => crate::file::sync;
    MPI_File_write(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::write;
    MPI_File_write_all(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::write_all;
    MPI_File_write_all_begin(fh: File, buf: BufIn, count: Count, datatype: Datatype) large => crate::file::split::write_all_begin;
    MPI_File_write_all_end(fh: File, buf: BufIn, status: StatusOut) => crate::file::split::write_all_end;
    MPI_File_write_at(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        status: StatusOut) large => crate::file::access::write_at;
    MPI_File_write_at_all(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype,
        status: StatusOut) large => crate::file::access::write_at_all;
    MPI_File_write_at_all_begin(fh: File, offset: Offset, buf: BufIn, count: Count, datatype: Datatype) large
        => crate::file::split::write_at_all_begin;
    MPI_File_write_at_all_end(fh: File, buf: BufIn, status: StatusOut) => crate::file::split::write_at_all_end;
    MPI_File_write_ordered(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::write_ordered;
    MPI_File_write_ordered_begin(fh: File, buf: BufIn, count: Count, datatype: Datatype) large => crate::file::split::write_ordered_begin;
    MPI_File_write_ordered_end(fh: File, buf: BufIn, status: StatusOut) => crate::file::split::write_ordered_end;
    MPI_File_write_shared(fh: File, buf: BufIn, count: Count, datatype: Datatype, status: StatusOut) large
        => crate::file::access::write_shared;
    MPI_Register_datarep(datarep: StrIn, read_conversion_fn: DatarepConversionFn,
        write_conversion_fn: DatarepConversionFn, dtype_file_extent_fn: DatarepExtentFn, extra_state: Addr) large
        => crate::file::view::register_datarep;
}
