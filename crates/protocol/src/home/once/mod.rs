//! Exactly once: no commit is executed twice, however often its request comes (rule 11).

pub(in crate::home) mod outcomes;
