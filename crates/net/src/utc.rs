//! Times as people read them.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;

/// A time since 1970, as `2026-11-24 13:05:09 UTC`; the number of seconds if no calendar has it.
#[derive(Clone, Copy, Debug)]
pub struct Utc(pub Duration);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0.as_secs()).ok();
        match seconds.and_then(|of| OffsetDateTime::from_unix_timestamp(of).ok()) {
            Some(time) => write!(
                f,
                "{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC",
                time.year(),
                u8::from(time.month()),
                time.day(),
                time.hour(),
                time.minute(),
                time.second()
            ),
            None => write!(f, "{} s after 1970", self.0.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_or_a_number() {
        let text = |seconds| Utc(Duration::from_secs(seconds)).to_string();
        assert_eq!(text(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(text(1_795_525_509), "2026-11-24 13:05:09 UTC");
        assert_eq!(text(u64::MAX), format!("{} s after 1970", u64::MAX));
    }
}
