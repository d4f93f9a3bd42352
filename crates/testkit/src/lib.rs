//! Villages in one process, for tests.
//!
//! Its own tests drive the state machines of `thorp-protocol` with the loop of `thorp-net`.
