//! Numbers that nobody else has.

/// A random number. Never 0: that is the generation of no table.
pub fn number() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes).max(1),
        // Nobody had this one, as time goes on.
        Err(_) => crate::clock::now_ms(),
    }
}
