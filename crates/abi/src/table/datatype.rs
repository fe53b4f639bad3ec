//! MPI 5.0, chapter 5 Datatypes.

use crate::kind::array::{
    AintsOrCounts, AintsOut, Counts, CountsOut, Datatypes, DatatypesOut, Ints, IntsOut,
};
use crate::kind::handle::{Comm, Datatype, DatatypeOrNull, DatatypeRef};
use crate::kind::output::{
    AintOrCountInOut, AintOrCountOut, AintOut, CombinerOut, CountInOut, CountOut, DatatypeOut, IntOut,
    LongCountOut,
};
use crate::kind::scalar::{
    AddrIn, Aint, AintCount, AintOrCount, ArrayOrder, BufIn, BufOut, Count, Int, Length, LongCount, Stride,
};
use crate::kind::text::{StatusIn, StrIn, StrOut};
use crate::table::{plain_rows, rows};

rows! { "5 Datatypes";
    MPI_Get_address(location: AddrIn, address: AintOut) anytime => crate::env::get_address;
    MPI_Get_count(status: StatusIn, datatype: Datatype, count: CountOut) large => crate::datatype::get_count;
    MPI_Get_elements(status: StatusIn, datatype: Datatype, count: CountOut) large => crate::datatype::get_elements;
    MPI_Get_elements_x(status: StatusIn, datatype: Datatype, count: LongCountOut) => crate::datatype::get_elements_x;
    MPI_Pack(inbuf: BufIn, incount: Count, datatype: Datatype, outbuf: BufOut, outsize: Count,
        position: CountInOut, comm: Comm) large => crate::datatype::pack::pack;
    MPI_Pack_external(datarep: StrIn, inbuf: BufIn, incount: Count, datatype: Datatype, outbuf: BufOut,
        outsize: AintCount, position: AintOrCountInOut) large => crate::datatype::pack::pack_external;
    MPI_Pack_external_size(datarep: StrIn, incount: Count, datatype: Datatype, size: AintOrCountOut) large
        => crate::datatype::pack::pack_external_size;
    MPI_Pack_size(incount: Count, datatype: Datatype, comm: Comm, size: CountOut) large => crate::datatype::pack::pack_size;
    MPI_Type_commit(datatype: DatatypeRef) => crate::datatype::commit;
    MPI_Type_contiguous(count: Count, oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::contiguous;
    MPI_Type_create_darray(size: Int, rank: Int, ndims: Length, array_of_gsizes: Counts,
        array_of_distribs: Ints, array_of_dargs: Ints, array_of_psizes: Ints, order: ArrayOrder,
        oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::darray;
    MPI_Type_create_hindexed(count: Count, array_of_blocklengths: Counts,
        array_of_displacements: AintsOrCounts, oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::hindexed;
    MPI_Type_create_hindexed_block(count: Count, blocklength: Count,
        array_of_displacements: AintsOrCounts, oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::hindexed_block;
    MPI_Type_create_hvector(count: Count, blocklength: Count, stride: AintOrCount, oldtype: Datatype,
        newtype: DatatypeOut) large => crate::datatype::create::hvector;
    MPI_Type_create_indexed_block(count: Count, blocklength: Count, array_of_displacements: Counts,
        oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::indexed_block;
    MPI_Type_create_resized(oldtype: Datatype, lb: AintOrCount, extent: AintOrCount, newtype: DatatypeOut) large
        => crate::datatype::create::resized;
    MPI_Type_create_struct(count: Count, array_of_blocklengths: Counts,
        array_of_displacements: AintsOrCounts, array_of_types: Datatypes, newtype: DatatypeOut) large
        => crate::datatype::create::structure;
    MPI_Type_create_subarray(ndims: Length, array_of_sizes: Counts, array_of_subsizes: Counts,
        array_of_starts: Counts, order: ArrayOrder, oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::subarray;
    MPI_Type_dup(oldtype: Datatype, newtype: DatatypeOut) => crate::datatype::dup;
    MPI_Type_free(datatype: DatatypeRef) => crate::datatype::free;
    MPI_Type_get_contents(datatype: Datatype, max_integers: Length, max_addresses: Length,
        max_datatypes: Length, array_of_integers: IntsOut, array_of_addresses: AintsOut,
        array_of_datatypes: DatatypesOut) => crate::datatype::get_contents;
    MPI_Type_get_contents_c(datatype: Datatype, max_integers: LongCount, max_addresses: LongCount,
        max_large_counts: LongCount, max_datatypes: LongCount, array_of_integers: IntsOut,
        array_of_addresses: AintsOut, array_of_large_counts: CountsOut, array_of_datatypes: DatatypesOut)
        => crate::datatype::get_contents_large;
    MPI_Type_get_envelope(datatype: Datatype, num_integers: IntOut, num_addresses: IntOut,
        num_datatypes: IntOut, combiner: CombinerOut) => crate::datatype::get_envelope;
    MPI_Type_get_envelope_c(datatype: Datatype, num_integers: LongCountOut, num_addresses: LongCountOut,
        num_large_counts: LongCountOut, num_datatypes: LongCountOut, combiner: CombinerOut) => crate::datatype::get_envelope_large;
    MPI_Type_get_extent(datatype: Datatype, lb: AintOrCountOut, extent: AintOrCountOut) large => crate::datatype::get_extent;
    MPI_Type_get_extent_x(datatype: Datatype, lb: LongCountOut, extent: LongCountOut) => crate::datatype::get_extent;
    MPI_Type_get_name(datatype: DatatypeOrNull, type_name: StrOut, resultlen: IntOut) => crate::datatype::get_name;
    MPI_Type_get_true_extent(datatype: Datatype, true_lb: AintOrCountOut, true_extent: AintOrCountOut) large
        => crate::datatype::get_true_extent;
    MPI_Type_get_true_extent_x(datatype: Datatype, true_lb: LongCountOut, true_extent: LongCountOut)
        => crate::datatype::get_true_extent;
    MPI_Type_get_value_index(value_type: Datatype, index_type: Datatype, pair_type: DatatypeOut) => crate::datatype::get_value_index;
    MPI_Type_indexed(count: Count, array_of_blocklengths: Counts, array_of_displacements: Counts,
        oldtype: Datatype, newtype: DatatypeOut) large => crate::datatype::create::indexed;
    MPI_Type_set_name(datatype: Datatype, type_name: StrIn) => crate::datatype::set_name;
    MPI_Type_size(datatype: Datatype, size: CountOut) large => crate::datatype::size;
    MPI_Type_size_x(datatype: Datatype, size: LongCountOut) => crate::datatype::size_x;
    MPI_Type_vector(count: Count, blocklength: Count, stride: Stride, oldtype: Datatype,
        newtype: DatatypeOut) large => crate::datatype::create::vector;
    MPI_Unpack(inbuf: BufIn, insize: Count, position: CountInOut, outbuf: BufOut, outcount: Count,
        datatype: Datatype, comm: Comm) large => crate::datatype::pack::unpack;
    MPI_Unpack_external(datarep: StrIn, inbuf: BufIn, insize: AintCount, position: AintOrCountInOut,
        outbuf: BufOut, outcount: Count, datatype: Datatype) large => crate::datatype::pack::unpack_external;
}

plain_rows! { "5 Datatypes";
    MPI_Aint_add(base: Aint, disp: Aint) -> "MPI_Aint" as i64 => crate::env::aint_add;
    MPI_Aint_diff(addr1: Aint, addr2: Aint) -> "MPI_Aint" as i64 => crate::env::aint_diff;
}
