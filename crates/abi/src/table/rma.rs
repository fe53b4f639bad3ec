//! MPI 5.0, chapter 12 One-sided communication.

use crate::kind::handle::{Comm, Datatype, Group, InfoOrNull, Op, Win, WinRef};
use crate::kind::output::{
    AintOut, DispUnitOut, FlagOut, GroupOut, InfoOut, IntOut, PtrOut, RequestOut, WinOut,
};
use crate::kind::scalar::{Addr, AddrIn, Aint, AintSize, BufIn, BufOut, Count, Dest, DispUnit, Int};
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "12 One-sided communication";
    MPI_Accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win) large
        => missing;
    MPI_Compare_and_swap(origin_addr: BufIn, compare_addr: AddrIn, result_addr: BufOut,
        datatype: Datatype, target_rank: Dest, target_disp: Aint, win: Win) => missing;
    MPI_Fetch_and_op(origin_addr: BufIn, result_addr: BufOut, datatype: Datatype, target_rank: Dest,
        target_disp: Aint, op: Op, win: Win) => missing;
    MPI_Get(origin_addr: BufOut, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) large => missing;
    MPI_Get_accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype,
        result_addr: BufOut, result_count: Count, result_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win) large
        => missing;
    MPI_Put(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) large => missing;
    MPI_Raccumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win,
        request: RequestOut) large => missing;
    MPI_Rget(origin_addr: BufOut, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: RequestOut) large
        => missing;
    MPI_Rget_accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype,
        result_addr: BufOut, result_count: Count, result_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win,
        request: RequestOut) large => missing;
    MPI_Rput(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: RequestOut) large
        => missing;
    MPI_Win_allocate(size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm, baseptr: PtrOut,
        win: WinOut) large => missing;
    MPI_Win_allocate_shared(size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm,
        baseptr: PtrOut, win: WinOut) large => missing;
    MPI_Win_attach(win: Win, base: Addr, size: AintSize) => missing;
    MPI_Win_complete(win: Win) => missing;
    MPI_Win_create(base: Addr, size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm,
        win: WinOut) large => missing;
    MPI_Win_create_dynamic(info: InfoOrNull, comm: Comm, win: WinOut) => missing;
    MPI_Win_detach(win: Win, base: AddrIn) => missing;
    MPI_Win_fence(assert: Int, win: Win) => missing;
    MPI_Win_flush(rank: Int, win: Win) => missing;
    MPI_Win_flush_all(win: Win) => missing;
    MPI_Win_flush_local(rank: Int, win: Win) => missing;
    MPI_Win_flush_local_all(win: Win) => missing;
    MPI_Win_free(win: WinRef) => missing;
    MPI_Win_get_group(win: Win, group: GroupOut) => missing;
    MPI_Win_get_info(win: Win, info_used: InfoOut) => missing;
    MPI_Win_get_name(win: Win, win_name: StrOut, resultlen: IntOut) => missing;
    MPI_Win_lock(lock_type: Int, rank: Int, assert: Int, win: Win) => missing;
    MPI_Win_lock_all(assert: Int, win: Win) => missing;
    MPI_Win_post(group: Group, assert: Int, win: Win) => missing;
    MPI_Win_set_info(win: Win, info: InfoOrNull) => missing;
    MPI_Win_set_name(win: Win, win_name: StrIn) => missing;
    MPI_Win_shared_query(win: Win, rank: Int, size: AintOut, disp_unit: DispUnitOut, baseptr: PtrOut) large
        => missing;
    MPI_Win_start(group: Group, assert: Int, win: Win) => missing;
    MPI_Win_sync(win: Win) => missing;
    MPI_Win_test(win: Win, flag: FlagOut) => missing;
    MPI_Win_unlock(rank: Int, win: Win) => missing;
    MPI_Win_unlock_all(win: Win) => missing;
    MPI_Win_wait(win: Win) => missing;
}
