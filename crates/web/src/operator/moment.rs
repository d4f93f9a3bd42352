//! Moments on the clock of beats, as people know them.

use crate::clock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment in milliseconds since the machine started: milliseconds since 1970.
pub(super) fn unix_ms(at_ms: u64) -> u64 {
    let ago = Duration::from_millis(clock::now_ms().saturating_sub(at_ms));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = now.unwrap_or_default().saturating_sub(ago);
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

/// A moment in milliseconds since 1970, as HTTP writes it (RFC 9110, section 5.6.7).
pub(super) fn words(unix_ms: u64) -> String {
    // What comes from a file may be any number.
    let seconds = (unix_ms / 1_000).min(LATEST_S);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The end of the year 9999: a later moment has no such form.
const LATEST_S: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_form_whatever_it_is() {
        assert_eq!(words(784_111_777_000), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(words(u64::MAX).contains("9999"));
        let now_ms = clock::now_ms();
        let ago = unix_ms(now_ms).abs_diff(unix_ms(now_ms - 1_000));
        assert!((500..60_000).contains(&ago), "{ago}");
    }
}
