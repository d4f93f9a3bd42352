//! A home, a redirector and a member are sent whatever decodes, by children and
//! parents that keep to no rule at all: none of them may panic, and what they
//! send can be encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use thorp_fuzz::{Village, play};

fuzz_target!(|bytes: &[u8]| play(&mut Village::new(), bytes));
