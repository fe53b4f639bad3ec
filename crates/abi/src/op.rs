//! MPI 5.0 section 6.9: reduction operations, and the only calls of the application's functions
//! for them.

use mpi::coll::{UserReduce, args};
use mpi::datatype::basic::Basic;
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::mem;
use mpi::op::{self, OP_NULL, Op, Predefined, User};

use crate::coll;
use crate::cx::Cx;
use crate::kind::function::SizedFunction;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::layout;

/// `MPI_User_function`; the datatype is a handle of the standard ABI.
type SmallFunction = unsafe extern "C" fn(usize, usize, *const i32, *const usize);
/// `MPI_User_function_c`.
type LargeFunction = unsafe extern "C" fn(usize, usize, *const i64, *const usize);

/// `MPI_Op_create`.
pub fn create(cx: &Cx, user_fn: SizedFunction, commute: bool, op: Out<Handle>) -> Result {
    let user = User { function: user_fn.address, commutes: commute, large: user_fn.large };
    op.set(cx.objects().ops.create(user)?);
    Ok(())
}

/// `MPI_Op_free`.
pub fn free(cx: &Cx, op: HandleRef) -> Result {
    cx.objects().ops.free(op.handle)?;
    op.set(OP_NULL);
    Ok(())
}

/// `MPI_Op_commutative`.
pub fn commutative(cx: &Cx, op: Handle, commute: Out<bool>) -> Result {
    commute.set(cx.objects().ops.get(op)?.commutes());
    Ok(())
}

/// `MPI_Reduce_local`.
pub fn reduce_local(
    cx: &Cx,
    inbuf: usize,
    inoutbuf: usize,
    count: u64,
    datatype: Handle,
    op: Handle,
) -> Result {
    let ty = coll::committed(cx, datatype)?;
    let op = cx.objects().ops.get(op)?;
    op.check(ty.basic, datatype)?;
    for (arg, addr) in [("inbuf", inbuf), ("inoutbuf", inoutbuf)] {
        if addr == args::IN_PLACE {
            return fail(
                Class::BUFFER,
                format!("argument `{arg}` is MPI_IN_PLACE, which has no meaning here"),
            );
        }
        if addr == 0 && count > 0 && ty.dense && ty.size > 0 {
            return fail(Class::BUFFER, format!("argument `{arg}` is NULL with {count} elements"));
        }
    }
    if count == 0 {
        return Ok(());
    }
    if inbuf == inoutbuf && ty.size > 0 {
        return fail(Class::BUFFER, "arguments `inbuf` and `inoutbuf` are the same buffer");
    }
    match op {
        Op::Predefined(op) => combine(op, op::element(op, ty.basic, datatype)?, inbuf, inoutbuf, count),
        Op::User(user) => {
            call(&UserReduce {
                function: user.function,
                large: user.large,
                in_addr: inbuf,
                inout_addr: inoutbuf,
                count,
                datatype,
                extent: ty.extent,
            });
            Ok(())
        }
    }
}

/// Two vectors of one type, neither of which is NULL unless they have no elements.
#[inline]
pub fn combine(op: Predefined, basic: Basic, inbuf: usize, inoutbuf: usize, count: u64) -> Result {
    let len = count.checked_mul(u64::from(basic.extent())).and_then(|len| isize::try_from(len).ok());
    let Some(len) = len else {
        return fail(Class::COUNT, format!("argument `count` is {count}, too many for any memory"));
    };
    let len = len as usize;
    mem::with(inbuf, len, |a| mem::with_mut(inoutbuf, len, |b| op::apply(op, basic, a, b)));
    Ok(())
}

/// Calls a function of the application. No guard of the rank may be alive: it may call MPI.
pub fn call(reduce: &UserReduce) {
    let (function, datatype) = layout::handed(reduce.function, reduce.datatype);
    if reduce.large {
        let len = reduce.count as i64;
        // SAFETY: the application registered the address as a function of this type
        // (MPI_Op_create_c), and both vectors hold `len` elements of the datatype.
        unsafe {
            let function = std::mem::transmute::<usize, LargeFunction>(function);
            function(reduce.in_addr, reduce.inout_addr, &len, &datatype);
        }
        return;
    }
    // A length beyond `int` is passed in pieces: operations work element by element.
    let mut done = 0;
    while done < reduce.count {
        let len = (reduce.count - done).min(i32::MAX as u64) as i32;
        let at = (done as i64 * reduce.extent) as isize;
        // SAFETY: as above, for MPI_Op_create; the piece lies inside the vectors.
        unsafe {
            let function = std::mem::transmute::<usize, SmallFunction>(function);
            function(
                reduce.in_addr.wrapping_add_signed(at),
                reduce.inout_addr.wrapping_add_signed(at),
                &len,
                &datatype,
            );
        }
        done += len as u64;
    }
}
