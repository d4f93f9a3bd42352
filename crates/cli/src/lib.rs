//! The thorp command.
