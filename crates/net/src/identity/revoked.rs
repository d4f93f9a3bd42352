//! Certificates that are no longer accepted (rule R1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::IdentityError;
use super::files;
use super::validity;

/// The serial numbers of revoked certificates that a node knows, in a file beside its identity. The authority announces
/// them. They stay until their certificates have expired.
///
/// The set is behind these few methods so that the committed list of a village can take the place of the file.
#[derive(Debug)]
pub(crate) struct Revoked {
    path: PathBuf,
    known: Mutex<BTreeMap<String, Duration>>,
}

/// A revoked certificate, as it is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revocation {
    /// In hexadecimal digits.
    pub(crate) serial: String,
    /// When the certificate expires: then nobody need remember.
    pub(crate) until: Duration,
}

impl Revoked {
    /// Those in the directory of an identity.
    pub(crate) fn load(dir: &Path) -> Result<Self, IdentityError> {
        let path = dir.join(FILE);
        let known = Mutex::new(read(&path)?);
        Ok(Self { path, known })
    }

    /// Whether a certificate with this serial number is revoked.
    pub(crate) fn has(&self, serial: &str) -> bool {
        self.known().contains_key(serial)
    }

    /// Takes what the file has, too. Whether that is anything new.
    pub(crate) fn reload(&self) -> Result<bool, IdentityError> {
        let read = read(&self.path)?;
        let mut known = self.known();
        let before = known.len();
        known.extend(read);
        Ok(known.len() > before)
    }

    /// Adds some, durably. Whether any of them is new.
    pub(crate) fn add(&self, revoked: Vec<Revocation>) -> Result<bool, IdentityError> {
        let mut known = self.known();
        let is_new = revoked.iter().any(|one| !known.contains_key(&one.serial));
        if !is_new {
            return Ok(false);
        }
        let now = validity::now();
        let mut all = known.clone();
        all.retain(|_, until| *until >= now);
        all.extend(revoked.into_iter().map(|one| (one.serial, one.until)));
        if all.len() > REVOKED_MAX {
            return Err(IdentityError::Malformed {
                path: self.path.clone(),
                why: format!("more than {REVOKED_MAX} certificates would be revoked"),
            });
        }
        files::replace(&self.path, lines(&all).as_bytes(), files::SECRET)?;
        *known = all;
        Ok(true)
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Duration>> {
        // Nothing panics half-way through a change of it.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Revocation {
    /// As a line of the file, and of an announcement.
    pub(crate) fn line(&self) -> String {
        format!("{} {}\n", self.serial, self.until.as_secs())
    }

    /// Reads lines; none if one of them is none.
    pub(crate) fn parse_all(text: &str) -> Option<Vec<Self>> {
        let parse = |line: &str| {
            let (serial, until) = line.split_once(' ')?;
            let is_serial = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let is_good =
                (1..=SERIAL_DIGITS_MAX).contains(&serial.len()) && serial.bytes().all(is_serial);
            is_good.then_some(())?;
            Some(Self {
                serial: serial.to_owned(),
                until: Duration::from_secs(until.parse().ok()?),
            })
        };
        text.lines().map(parse).collect()
    }
}

fn read(path: &Path) -> Result<BTreeMap<String, Duration>, IdentityError> {
    if !files::exists(path)? {
        return Ok(BTreeMap::new());
    }
    let bytes = files::read_up_to(path, BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let all = Revocation::parse_all(&text).ok_or_else(|| IdentityError::Malformed {
        path: path.to_owned(),
        why: "it is no list of serial numbers: bring the file back, or remove it and run `thorp ca revoke NAME --dir AUTHORITY --at ADDR` again"
            .to_owned(),
    })?;
    Ok(all.into_iter().map(|one| (one.serial, one.until)).collect())
}

fn lines(all: &BTreeMap<String, Duration>) -> String {
    let line = |(serial, until): (&String, &Duration)| {
        let (serial, until) = (serial.clone(), *until);
        Revocation { serial, until }.line()
    };
    all.iter().map(line).collect()
}

/// Beside a node's certificate.
pub(crate) const FILE: &str = "revoked";
/// Certificates that live longer than they are good would fill the file.
const REVOKED_MAX: usize = 65_536;
const BYTES_MAX: u64 = 8 << 20;
const SERIAL_DIGITS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn revocation(serial: &str, until: Duration) -> Revocation {
        let serial = serial.to_owned();
        Revocation { serial, until }
    }

    #[test]
    fn what_was_announced_is_known_after_a_start_until_it_expires() {
        let dir = std::env::temp_dir().join(format!("thorp-net-revoked-{}", std::process::id()));
        files::make_dir(&dir).unwrap();
        let (later, past) = (validity::now() + validity::DAY, Duration::from_secs(5));
        let revoked = Revoked::load(&dir).unwrap();
        assert!(
            revoked
                .add(vec![revocation("aa", later), revocation("bb", past)])
                .unwrap()
        );
        assert!(!revoked.add(vec![revocation("aa", later)]).unwrap());
        assert!(Revoked::load(&dir).unwrap().has("aa"));
        // The next announcement makes room.
        assert!(revoked.add(vec![revocation("cc", later)]).unwrap());
        let again = Revoked::load(&dir).unwrap();
        assert!(again.has("aa") && again.has("cc") && !again.has("bb"));
        std::fs::write(dir.join(FILE), "rubbish").unwrap();
        assert!(
            Revoked::load(&dir)
                .unwrap_err()
                .to_string()
                .contains("revoked")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn an_announcement_is_lines_of_serial_numbers() {
        let one = revocation("0af", Duration::from_secs(7));
        assert_eq!(Revocation::parse_all(&one.line()), Some(vec![one]));
        for bad in ["", "0af", "0AF 7", "0af x", " 7", "0af 7 8"] {
            let all = Revocation::parse_all(&format!("{bad}\n"));
            assert_eq!(all, None, "{bad:?}");
        }
    }
}
