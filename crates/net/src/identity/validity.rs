//! The time in which a certificate is good (rule R1).

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::CertificateParams;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::NodeRole;
use crate::utc::Utc;

/// The time in which a certificate is good, in whole seconds from the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

/// A certificate is not good now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfTime {
    /// When it is good.
    pub validity: Validity,
    /// What the clock says, from the Unix epoch.
    pub now: Duration,
}

impl Validity {
    /// From now on for so long; and before, by as much as clocks may differ.
    pub(crate) fn of_life(life: Duration) -> Self {
        let now = now();
        Self {
            from: now.saturating_sub(BACKDATED),
            until: now + life,
        }
    }

    /// Of a certificate, whoever has signed it.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = webpki::EndEntityCert::try_from(certificate).map_err(unreadable)?;
        // The library does not tell the times, but for what is wrong with them: and that it looks at first of all.
        let at = |time| {
            let algorithms = rustls::crypto::ring::default_provider()
                .signature_verification_algorithms
                .all;
            let usage = webpki::KeyUsage::client_auth();
            parsed.verify_for_usage(algorithms, &[], &[], time, usage, None, None)
        };
        let until = match at(UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX))) {
            Err(webpki::Error::CertExpired { not_after, .. }) => not_after,
            other => return Err(unreadable(other.err().unwrap_or(webpki::Error::BadDer))),
        };
        let from = match at(UnixTime::since_unix_epoch(Duration::ZERO)) {
            Err(webpki::Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
            _ => 0,
        };
        Ok(Self {
            from: Duration::from_secs(from),
            until: Duration::from_secs(until.as_secs()),
        })
    }

    /// Whether it is good at a time.
    pub(crate) fn check(self, now: Duration) -> Result<(), OutOfTime> {
        match (self.from..=self.until).contains(&Duration::from_secs(now.as_secs())) {
            true => Ok(()),
            false => Err(OutOfTime {
                validity: self,
                now,
            }),
        }
    }

    /// Whether less than a third of the life is left: then it is time for a new certificate.
    pub(crate) fn is_aging(self, now: Duration) -> bool {
        self.until.saturating_sub(now) <= self.life() / 3
    }

    /// How long it was to be good.
    pub(crate) fn life(self) -> Duration {
        let backdated = BACKDATED.min(self.from);
        self.until.saturating_sub(self.from + backdated)
    }

    /// From when on it is good.
    pub fn from(self) -> SystemTime {
        UNIX_EPOCH + self.from
    }

    /// Until when it is good.
    pub fn until(self) -> SystemTime {
        UNIX_EPOCH + self.until
    }

    pub(crate) fn put_into(self, params: &mut CertificateParams) {
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + self.from;
        params.not_after = epoch + self.until;
    }
}

impl OutOfTime {
    /// It was good once.
    pub(crate) fn is_over(&self) -> bool {
        self.now >= self.validity.from
    }
}

/// The time, from the Unix epoch.
pub(crate) fn now() -> Duration {
    // A clock before 1970 makes certificates that are refused as expired, which is clear enough.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// How long the certificate of a node is good, if nobody says otherwise.
pub(crate) fn usual_life(role: NodeRole) -> Duration {
    match role {
        NodeRole::Member | NodeRole::Operator | NodeRole::Authority => DAY * 30,
        NodeRole::Home | NodeRole::Site => DAY * 365,
    }
}

fn unreadable(error: webpki::Error) -> rustls::Error {
    rustls::Error::General(format!("not a certificate: {error}"))
}

impl fmt::Display for Validity {
    /// Until when.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Utc(self.until).fmt(f)
    }
}

impl fmt::Display for OutOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = Utc(self.now);
        match self.is_over() {
            true => write!(
                f,
                "was good until {}, and the clock says {clock}",
                Utc(self.validity.until)
            ),
            false => write!(
                f,
                "is good from {} on, and the clock says {clock}",
                Utc(self.validity.from)
            ),
        }
    }
}

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Clocks of a village may differ by this much on the day a node is let in.
const BACKDATED: Duration = DAY;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_good_and_the_words_name_both_times() {
        let validity = Validity {
            from: DAY * 3,
            until: DAY * 9,
        };
        assert!(validity.check(DAY * 3).is_ok() && validity.check(DAY * 9).is_ok());
        let over = validity
            .check(DAY * 9 + Duration::from_secs(1))
            .unwrap_err();
        assert_eq!(
            over.to_string(),
            "was good until 1970-01-10 00:00:00 UTC, and the clock says 1970-01-10 00:00:01 UTC"
        );
        let early = validity.check(DAY * 2).unwrap_err();
        assert!(!early.is_over());
        assert_eq!(
            early.to_string(),
            "is good from 1970-01-04 00:00:00 UTC on, and the clock says 1970-01-03 00:00:00 UTC"
        );
    }

    #[test]
    fn it_is_aging_in_its_last_third() {
        let validity = Validity {
            from: DAY,
            until: DAY * 32,
        };
        assert_eq!(validity.life(), DAY * 30);
        assert!(!validity.is_aging(DAY * 2) && !validity.is_aging(DAY * 21));
        assert!(validity.is_aging(DAY * 22) && validity.is_aging(DAY * 40));
    }
}
