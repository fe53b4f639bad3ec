//! Error classes, codes and strings a program adds (MPI 5.0 section 9.5).

use std::collections::BTreeMap;

use crate::error::{Class, Result, fail};

/// `MPI_MAX_ERROR_STRING`: the longest error string with its terminating zero in C.
pub const MAX_STRING: usize = 512;

/// Where classes of the tools interface lie (`MPI_T_ERR_INVALID` and following).
const TOOLS: std::ops::RangeInclusive<i32> = 1001..=1018;

/// One class or code a program added.
#[derive(Clone, Debug)]
struct Added {
    /// The class of a code; a class is its own.
    class: i32,
    text: Option<Box<[u8]>>,
}

/// The error classes and codes of one rank.
#[derive(Clone, Debug)]
pub struct ErrorCodes {
    added: BTreeMap<i32, Added>,
    last_used: i32,
}

impl Default for ErrorCodes {
    fn default() -> Self {
        ErrorCodes { added: BTreeMap::new(), last_used: Class::LAST.0 }
    }
}
