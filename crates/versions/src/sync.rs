//! The atomics: the real ones, or those of the model checker.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::AtomicU64;

pub(crate) use std::sync::atomic::Ordering;
