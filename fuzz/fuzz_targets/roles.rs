//! As `machines`, after a good handshake: all streams have begun, and the member holds a page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thorp_fuzz::{Village, play};

fuzz_target!(|bytes: &[u8]| play(&mut Village::greeted(), bytes));
