//! Random nested datatypes against the definitions of the standard, taken literally.

mod oracle;
mod properties;
mod refusals;
