//! MPI 5.0, chapter 3 Status.

use crate::kind::handle::Datatype;
use crate::kind::output::{CodeOut, FlagOut, RankOut, TagOut};
use crate::kind::scalar::{AnyRank, AnyTag, Code, Count, Flag, LongCount};
use crate::kind::text::{StatusIn, StatusInOut};
use crate::table::rows;

rows! { "3 Status";
    MPI_Status_get_error(status: StatusIn, err: CodeOut) anytime => crate::status::get_error;
    MPI_Status_get_source(status: StatusIn, source: RankOut) anytime => crate::status::get_source;
    MPI_Status_get_tag(status: StatusIn, tag: TagOut) anytime => crate::status::get_tag;
    MPI_Status_set_cancelled(status: StatusInOut, flag: Flag) anytime => crate::status::set_cancelled;
    MPI_Status_set_elements(status: StatusInOut, datatype: Datatype, count: Count) large => crate::datatype::status_set_elements;
    MPI_Status_set_elements_x(status: StatusInOut, datatype: Datatype, count: LongCount) => crate::datatype::status_set_elements;
    MPI_Status_set_error(status: StatusInOut, err: Code) anytime => crate::status::set_error;
    MPI_Status_set_source(status: StatusInOut, source: AnyRank) anytime => crate::status::set_source;
    MPI_Status_set_tag(status: StatusInOut, tag: AnyTag) anytime => crate::status::set_tag;
    MPI_Test_cancelled(status: StatusIn, flag: FlagOut) anytime => crate::status::test_cancelled;
}
