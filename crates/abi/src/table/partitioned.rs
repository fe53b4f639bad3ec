//! MPI 5.0, chapter 4 Partitioned communication.

use crate::kind::array::Ints;
use crate::kind::handle::{Comm, Datatype, InfoOrNull, Request, RequestOrNull};
use crate::kind::output::{FlagOut, RequestOut};
use crate::kind::scalar::{BufIn, BufOut, Dest, Int, Length, LongCount, Tag};
use crate::table::rows;

rows! { "4 Partitioned communication";
    MPI_Parrived(request: RequestOrNull, partition: Int, flag: FlagOut) => crate::partitioned::arrived;
    MPI_Pready(partition: Int, request: Request) quick => crate::partitioned::ready;
    MPI_Pready_list(length: Length, array_of_partitions: Ints, request: Request) => crate::partitioned::ready_list;
    MPI_Pready_range(partition_low: Int, partition_high: Int, request: Request) => crate::partitioned::ready_range;
    MPI_Precv_init(buf: BufOut, partitions: Length, count: LongCount, datatype: Datatype, source: Dest,
        tag: Tag, comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::partitioned::receive_init;
    MPI_Psend_init(buf: BufIn, partitions: Length, count: LongCount, datatype: Datatype, dest: Dest,
        tag: Tag, comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::partitioned::send_init;
}
