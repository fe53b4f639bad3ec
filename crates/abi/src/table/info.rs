//! MPI 5.0, chapter 10 Info.

use crate::kind::handle::{Info, InfoRef};
use crate::kind::output::{FlagOut, InfoOut, IntInOut, IntOut};
use crate::kind::scalar::{Int, Length};
use crate::kind::text::{MaybeStrOut, StrIn, StrOut, Strings};
use crate::table::rows;

rows! { "10 Info";
    MPI_Info_create(info: InfoOut) anytime => crate::info::create;
    MPI_Info_create_env(argc: Int, argv: Strings, info: InfoOut) anytime => crate::info::create_env;
    MPI_Info_delete(info: Info, key: StrIn) anytime => crate::info::delete;
    MPI_Info_dup(info: Info, newinfo: InfoOut) anytime => crate::info::dup;
    MPI_Info_free(info: InfoRef) anytime => crate::info::free;
    MPI_Info_get(info: Info, key: StrIn, valuelen: Length, value: StrOut, flag: FlagOut) anytime
        => crate::info::get;
    MPI_Info_get_nkeys(info: Info, nkeys: IntOut) anytime => crate::info::get_nkeys;
    MPI_Info_get_nthkey(info: Info, n: Length, key: StrOut) anytime => crate::info::get_nthkey;
    MPI_Info_get_string(info: Info, key: StrIn, buflen: IntInOut, value: MaybeStrOut, flag: FlagOut) anytime
        => crate::info::get_string;
    MPI_Info_get_valuelen(info: Info, key: StrIn, valuelen: IntOut, flag: FlagOut) anytime
        => crate::info::get_valuelen;
    MPI_Info_set(info: Info, key: StrIn, value: StrIn) anytime => crate::info::set;
}
