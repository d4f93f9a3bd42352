//! The member's page cache: immutable page images read without locks.
