//! The operations of one rank by handle.
use std::sync::Arc;

use super::{OP_NULL, Op, Predefined, User};
use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};
use crate::objects::unusable;

/// Operations the program has created.
#[derive(Debug, Default)]
pub struct Ops(Slab<Arc<User>>);

impl Ops {
    /// The operation of a handle.
    #[inline]
    pub fn get(&self, handle: Handle) -> Result<Op> {
        if let Some(op) = Predefined::from_handle(handle) {
            return Ok(Op::Predefined(op));
        }
        match self.0.get(handle) {
            Some(user) => Ok(Op::User(user.clone())),
            None => fail(Class::OP, unusable(handle, OP_NULL, "MPI_OP_NULL", "an operation")),
        }
    }

    /// Whether a handle that is not predefined names an operation.
    pub fn is_live(&self, handle: Handle) -> bool {
        self.0.get(handle).is_some()
    }

    /// `MPI_Op_create`.
    pub fn create(&mut self, user: User) -> Result<Handle> {
        if user.function == 0 {
            return fail(Class::ARG, "argument `user_fn` is NULL");
        }
        self.0.insert(Arc::new(user))
    }

    /// `MPI_Op_free`; collectives under way keep what they need of it.
    pub fn free(&mut self, handle: Handle) -> Result {
        if Predefined::from_handle(handle).is_some() {
            return fail(Class::OP, "is a predefined operation, which cannot be freed");
        }
        self.get(handle)?;
        self.0.remove(handle);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_live_until_freed_and_predefined_ones_longer() {
        let mut ops = Ops::default();
        let user = User { function: 0x1000, commutes: false, large: true };
        let handle = ops.create(user).unwrap();
        assert_eq!(ops.get(handle).unwrap(), Op::User(Arc::new(user)));
        assert!(!ops.get(handle).unwrap().commutes());
        let sum = Handle(Predefined::Sum as u32);
        assert!(ops.get(sum).unwrap().commutes());
        assert_eq!(ops.free(sum).unwrap_err().class, Class::OP);
        ops.free(handle).unwrap();
        assert!(ops.free(handle).unwrap_err().text.contains("freed"));
        assert_eq!(ops.get(OP_NULL).unwrap_err().text, "is MPI_OP_NULL");
        assert_eq!(ops.create(User { function: 0, ..user }).unwrap_err().class, Class::ARG);
    }
}
