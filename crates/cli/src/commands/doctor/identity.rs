//! The certificate, its key, and the files of both.

use super::directory::keep_others_out;
use super::{Check, Checks};
use crate::failure::Failure;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thorp_client::Identity;
use thorp_net::{CertificateAuthority, IdentityError, NodeRole, Papers, Utc};

/// Looks at a directory. Gives an identity with which a program can join, if it is one.
pub(super) fn check(
    dir: &Path,
    authority: Option<&Path>,
    checks: &mut Checks,
) -> Result<Option<Identity>, Failure> {
    checks.add_all(modes(dir))?;
    let papers = match Papers::read(dir) {
        Ok(papers) => papers,
        Err(error) => {
            checks.add(Check::problem("certificate", error.to_string(), OTHER_DIR))?;
            return Ok(None);
        }
    };
    let Papers {
        certified, village, ..
    } = &papers;
    let is_program = matches!(certified.role(), NodeRole::Member | NodeRole::Operator);
    let told = format!("{certified} of village {village}");
    checks.add(match is_program {
        true => Check::ok("certificate", told),
        false => Check::problem(
            "certificate",
            format!("{told}, and a program needs a member's"),
            "give its directory with --identity (or THORP_IDENTITY); `thorp invite NAME --out DIR` makes one",
        ),
    })?;
    checks.add(life(&papers, SystemTime::now()))?;
    checks.add_all(authorities(&papers, authority, SystemTime::now()))?;
    match Identity::load(dir) {
        Ok(identity) => Ok(Some(identity).filter(|_| is_program)),
        // That was told.
        Err(IdentityError::OutOfTime { .. }) => Ok(None),
        Err(error) => {
            checks.add(Check::problem("key", error.to_string(), NEW_KEY))?;
            Ok(None)
        }
    }
}

/// Who else may read the files. A file that is missing is found by whoever reads it.
fn modes(dir: &Path) -> Vec<Check> {
    let mode = |path: &Path| path.metadata().ok().map(|found| found.mode() & 0o777);
    let key = dir.join("node.key");
    let (of_dir, of_key) = (mode(dir), mode(&key));
    let (shown_dir, shown_key) = (dir.display(), key.display());
    let mut checks = Vec::new();
    if let Some(mode) = of_dir {
        checks.push(match mode & OTHERS {
            0 => Check::ok("files", format!("{shown_dir} is for its owner only")),
            _ => Check::warning(
                "files",
                format!("others may use {shown_dir}: its mode is {mode:04o}"),
                keep_others_out(dir),
            ),
        });
    }
    if let Some(mode) = of_key.filter(|mode| mode & OTHERS != 0) {
        let found = format!("others may use the key {shown_key}: its mode is {mode:04o}");
        let check = Check::problem("key", found, format!("chmod 600 {shown_key}"));
        checks.push(check.or(
            "if others could log in here meanwhile, revoke it with `thorp ca revoke`, and join again with a new key",
        ));
    }
    checks
}

/// Whether the certificate is good now, and for how long.
fn life(papers: &Papers, now: SystemTime) -> Check {
    let (from, until) = (papers.validity.from(), papers.validity.until());
    let left = until.duration_since(now);
    let days = match &left {
        Ok(left) => left.as_secs_f64() / DAY,
        Err(over) => -(over.duration().as_secs_f64() / DAY),
    };
    let clock = Utc(since_1970(now));
    let (begin, end) = (Utc(since_1970(from)), papers.validity);
    let check = match left {
        _ if now < from => Check::problem(
            "life",
            format!("the certificate is good from {begin} on, and the clock says {clock}"),
            "set the clock of this machine, or of the one that has issued the certificate",
        ),
        Err(_) => Check::problem(
            "life",
            format!("the certificate was good until {end}, and the clock says {clock}"),
            RENEW,
        )
        .or("if it should be good, set the clock of this machine"),
        Ok(left) if left < SOON => Check::warning(
            "life",
            format!("the certificate is good until {end}: {}", in_days(days)),
            RENEW,
        ),
        Ok(_) => Check::ok(
            "life",
            format!("the certificate is good until {end}: {}", in_days(days)),
        ),
    };
    check.with("days_left", (days * 100.).round() / 100.)
}

/// The authority's own certificates. Nodes do not look at their times, so an end is no problem.
fn authorities(papers: &Papers, dir: Option<&Path>, now: SystemTime) -> Vec<Check> {
    let mut checks = Vec::new();
    for validity in &papers.authorities {
        let left = validity.until().duration_since(now).unwrap_or_default();
        let days = left.as_secs_f64() / DAY;
        let found = format!("the authority's certificate names its end: {validity}");
        let check = match left > ROTATE_BEFORE {
            true => Check::ok("authority", found),
            false => Check::warning(
                "authority",
                found,
                "whoever has the authority makes a new key with `thorp ca rotate`; nodes let each other in until then",
            ),
        };
        checks.push(check.with("days_left", (days * 100.).round() / 100.));
    }
    checks.extend(rotation(papers, dir));
    checks
}

/// A new key of the authority takes over.
fn rotation(papers: &Papers, dir: Option<&Path>) -> Option<Check> {
    let behind = dir.and_then(|dir| {
        let authority = CertificateAuthority::open(dir).ok()?;
        authority.of_earlier_key().ok()
    });
    let is_behind = behind.is_some_and(|nodes| nodes.contains(&papers.certified));
    match (papers.authorities.len(), papers.signed_by) {
        (..=1, _) => None,
        (_, 0) if is_behind => Some(Check::warning(
            "rotation",
            "the authority has a new key, and the old one has signed this certificate",
            RENEW,
        )),
        (_, 0) => Some(Check::warning(
            "rotation",
            "a new key of the authority is to come, and the old one has signed this certificate",
            "once `thorp ca rotate --switch` was run, renew it with the same `thorp invite` as at first",
        )),
        _ => Some(Check::ok(
            "rotation",
            "the authority has a new key, which has signed this certificate",
        )),
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn in_days(days: f64) -> String {
    match days {
        ..1. => format!("{:.0} hours are left", days * 24.),
        _ => format!("{days:.0} days are left"),
    }
}

/// Permissions of others than the owner.
const OTHERS: u32 = 0o077;
/// In seconds.
const DAY: f64 = 24. * 60. * 60.;
/// A certificate that ends within this time should be renewed.
const SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A rotation takes a while: every node has to renew its certificate.
const ROTATE_BEFORE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

const OTHER_DIR: &str =
    "give a directory that `thorp invite` or `thorp join` made with --identity (or THORP_IDENTITY)";
const NEW_KEY: &str = "bring back key and certificate from where they were made, or join again with a new `thorp invite`";
const RENEW: &str = "renew it where the authority is, with the same `thorp invite NAME --role ROLE --out DIR` as at first, and bring \
     node.pem from there; a node that joined with a token does so by itself while it runs and `thorp ca serve` does";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    /// The papers of a member, issued now.
    fn papers(dir: &TempDir) -> Papers {
        let (ca, anna) = (dir.path().join("ca"), dir.path().join("anna"));
        CertificateAuthority::init(&ca).unwrap();
        thorp_net::issue(&ca, &anna, NodeRole::Member, "anna").unwrap();
        Papers::read(anna).unwrap()
    }

    fn days(count: u64) -> Duration {
        Duration::from_secs(count * 24 * 60 * 60)
    }

    #[test]
    fn the_life_of_a_certificate_has_four_parts() {
        let dir = TempDir::new().unwrap();
        let papers = papers(&dir);
        let now = SystemTime::now();
        let word = |at: SystemTime| life(&papers, at).first_word();
        assert_eq!(word(now - days(3)), "problem");
        assert_eq!(word(now), "ok");
        assert_eq!(word(now + days(24)), "warning");
        assert_eq!(word(now + days(31)), "problem");
    }

    #[test]
    fn an_authority_is_to_get_a_new_key_in_its_last_months() {
        let dir = TempDir::new().unwrap();
        let papers = papers(&dir);
        let words = |at| {
            let all = authorities(&papers, None, at);
            all.iter().map(Check::first_word).collect::<Vec<_>>()
        };
        assert_eq!(words(SystemTime::now()), ["ok"]);
        assert_eq!(words(SystemTime::now() + days(3600)), ["warning"]);
        let two = Papers {
            authorities: vec![papers.validity; 2],
            ..papers.clone()
        };
        let signed_by = |at| {
            rotation(
                &Papers {
                    signed_by: at,
                    ..two.clone()
                },
                None,
            )
        };
        assert_eq!(signed_by(0).unwrap().first_word(), "warning");
        assert_eq!(signed_by(1).unwrap().first_word(), "ok");
        assert!(rotation(&papers, None).is_none());
    }

    #[test]
    fn files_that_others_may_read_are_named() {
        let dir = TempDir::new().unwrap();
        papers(&dir);
        let anna = dir.path().join("anna");
        let words = || {
            let all = modes(&anna);
            all.iter().map(Check::first_word).collect::<Vec<_>>()
        };
        assert_eq!(words(), ["ok"]);
        fs::set_permissions(&anna, Permissions::from_mode(0o750)).unwrap();
        fs::set_permissions(anna.join("node.key"), Permissions::from_mode(0o640)).unwrap();
        assert_eq!(words(), ["warning", "problem"]);
        let advice = || modes(&anna)[0].lines()[1].clone();
        assert!(advice().contains("chmod 700"), "{}", advice());
        // As /tmp is.
        fs::set_permissions(&anna, Permissions::from_mode(0o1777)).unwrap();
        assert!(advice().contains("move its files"), "{}", advice());
        assert!(modes(Path::new("/nowhere")).is_empty());
    }
}
