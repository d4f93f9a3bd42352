//! The check that every room imports only from floors below it.
