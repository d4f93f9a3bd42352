use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::{Address, Config, Error, Listener, Role, Side, dial};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("thorp-net-identity-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: PathBuf) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// An identity with the certificate of a given time, past the check that loading would make.
fn identity_valid(dir: &Path, name: &str, validity: Validity) -> Identity {
    files::make_dir(dir).unwrap();
    let authority = Authority::open_or_create(dir).unwrap();
    let key = files::open_or_create_key(&dir.join(NODE_KEY)).unwrap();
    let pem = authority.sign_node(&key, name, validity).unwrap();
    files::publish_or_keep(&dir.join(NODE_CERTIFICATE), pem.as_bytes(), files::PUBLIC).unwrap();
    let roots =
        tls::roots(&files::read_certificate(&dir.join(AUTHORITY_CERTIFICATE)).unwrap()).unwrap();
    let certificate = files::read_certificate(&dir.join(NODE_CERTIFICATE)).unwrap();
    Identity::join(name.to_owned(), roots, certificate, dir).unwrap()
}

fn long_ago() -> Validity {
    Validity {
        from: Duration::from_secs(86_400),
        to: Duration::from_secs(10 * 86_400),
    }
}

#[test]
fn the_first_start_makes_everything_and_the_second_finds_it() {
    let dir = Dir::new("first");
    let first = Identity::open_or_create(&dir.0, "Alps.home").unwrap();
    assert_eq!(first.name(), "alps.home");
    assert_eq!(first.village().len(), 16);
    assert_eq!(mode(dir.0.join("node.key")), 0o600);
    assert_eq!(mode(dir.0.join("authority.key")), 0o600);
    let before = fs::read(dir.0.join("node.pem")).unwrap();
    let second = Identity::open_or_create(&dir.0, "alps.home").unwrap();
    assert_eq!(
        (second.name(), second.village()),
        (first.name(), first.village())
    );
    assert_eq!(fs::read(dir.0.join("node.pem")).unwrap(), before);
    assert_eq!(
        fs::read_dir(&dir.0).unwrap().count(),
        4,
        "no drafts are left"
    );
    let error = Identity::open_or_create(&dir.0, "jura").unwrap_err();
    assert!(matches!(error, IdentityError::OtherName { .. }), "{error}");
}

#[test]
fn a_start_cut_short_is_completed() {
    let dir = Dir::new("short");
    let village = Identity::open_or_create(&dir.0, "alps")
        .unwrap()
        .village()
        .to_owned();
    fs::remove_file(dir.0.join("node.pem")).unwrap();
    fs::remove_file(dir.0.join("authority.pem")).unwrap();
    assert_eq!(
        Identity::open_or_create(&dir.0, "alps").unwrap().village(),
        village
    );
}

#[test]
fn two_first_starts_at_once_agree() {
    let dir = Dir::new("twice");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let dir = dir.0.clone();
            std::thread::spawn(move || {
                Identity::open_or_create(dir, "alps")
                    .unwrap()
                    .village()
                    .to_owned()
            })
        })
        .collect();
    let mut villages: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    villages.dedup();
    assert_eq!(villages.len(), 1);
}

#[test]
fn an_issued_identity_works_without_the_authoritys_key() {
    let (home, out) = (Dir::new("issue"), Dir::new("issue-out"));
    let alps = Identity::open_or_create(&home.0, "alps").unwrap();
    let jura = issue(&home.0, &out.0, "jura").unwrap();
    assert_eq!(jura.village(), alps.village());
    assert!(!out.0.join("authority.key").exists());
    issue(&home.0, &out.0, "jura").unwrap();
    assert_eq!(
        Identity::open_or_create(&out.0, "jura").unwrap().name(),
        "jura"
    );
    assert!(matches!(
        issue(&home.0, &out.0, "ural"),
        Err(IdentityError::OtherName { .. })
    ));
    // It cannot let in others: the file that is missing is named.
    let third = Dir::new("issue-third");
    let error = issue(&out.0, &third.0, "ural").unwrap_err();
    assert!(error.to_string().contains("authority.key"), "{error}");
}

#[test]
fn parts_that_do_not_belong_together_are_named() {
    let (one, two) = (Dir::new("parts-1"), Dir::new("parts-2"));
    Identity::open_or_create(&one.0, "alps").unwrap();
    Identity::open_or_create(&two.0, "alps").unwrap();
    let error = issue(&one.0, &two.0, "alps").unwrap_err();
    assert!(
        matches!(error, IdentityError::OtherVillage { .. }),
        "{error}"
    );

    fs::copy(two.0.join("node.key"), one.0.join("node.key")).unwrap();
    assert!(matches!(
        Identity::load(&one.0),
        Err(IdentityError::KeyMismatch { .. })
    ));
    fs::copy(two.0.join("node.pem"), one.0.join("node.pem")).unwrap();
    assert!(matches!(
        Identity::load(&one.0),
        Err(IdentityError::OtherVillage { .. })
    ));
    fs::copy(two.0.join("authority.pem"), one.0.join("authority.pem")).unwrap();
    Identity::load(&one.0).unwrap();
    let third = Dir::new("parts-3");
    assert!(matches!(
        issue(&one.0, &third.0, "jura"),
        Err(IdentityError::KeyMismatch { .. })
    ));
}

#[test]
fn files_that_are_missing_or_garbage_are_named() {
    let dir = Dir::new("garbage");
    let error = Identity::load(&dir.0).unwrap_err();
    assert!(matches!(error, IdentityError::File { .. }), "{error}");
    Identity::open_or_create(&dir.0, "alps").unwrap();
    for file in ["node.pem", "node.key", "authority.pem"] {
        let path = dir.0.join(file);
        let good = fs::read(&path).unwrap();
        for bad in [
            &b"rubbish"[..],
            b"",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &good[..60],
        ] {
            fs::write(&path, bad).unwrap();
            let error = Identity::load(&dir.0).unwrap_err();
            assert!(error.to_string().contains(file), "{file}: {error}");
        }
        fs::write(&path, good).unwrap();
    }
    fs::remove_file(dir.0.join("node.pem")).unwrap();
    fs::remove_file(dir.0.join("authority.key")).unwrap();
    let error = Identity::open_or_create(&dir.0, "alps").unwrap_err();
    assert!(error.to_string().contains("authority.key"), "{error}");
}

#[test]
fn names_are_checked() {
    let dir = Dir::new("names");
    let long = "a".repeat(64);
    for name in [
        "", ".", "a..b", "a b", "a/b", "-a", "a-", "ä", "*", "a_b", &long,
    ] {
        let error = Identity::open_or_create(&dir.0, name).unwrap_err();
        assert!(
            matches!(error, IdentityError::BadName { .. }),
            "{name}: {error}"
        );
    }
    assert!(!dir.0.exists(), "nothing was made");
}

#[test]
fn an_expired_certificate_is_not_loaded() {
    let dir = Dir::new("expired");
    identity_valid(&dir.0, "alps", long_ago());
    assert!(matches!(
        Identity::load(&dir.0),
        Err(IdentityError::Expired { .. })
    ));
}

#[tokio::test]
async fn an_expired_certificate_is_refused_by_either_side() {
    let (home, member) = (Dir::new("late-home"), Dir::new("late-member"));
    let fresh = Identity::open_or_create(&home.0, "alps").unwrap();
    issue(&home.0, &member.0, "old").unwrap();
    fs::remove_file(member.0.join("node.pem")).unwrap();
    fs::copy(home.0.join("authority.key"), member.0.join("authority.key")).unwrap();
    let stale = identity_valid(&member.0, "old", long_ago());
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let config = Config::new(Role::HOME);

    let mut listener = Listener::bind(&any, &fresh, config.clone()).await.unwrap();
    let address = [listener.address().clone()];
    let (dialed, accepted) = tokio::join!(
        dial(&address, &stale, None, b"", &config),
        listener.accept()
    );
    let error = dialed.unwrap_err().attempts.pop().unwrap().1;
    assert!(
        matches!(error, Error::Expired { whose: Side::Ours }),
        "{error}"
    );
    let error = accepted.unwrap_err().error;
    assert!(
        matches!(
            error,
            Error::Expired {
                whose: Side::Theirs
            }
        ),
        "{error}"
    );

    let mut listener = Listener::bind(&any, &stale, config.clone()).await.unwrap();
    let address = [listener.address().clone()];
    let (dialed, accepted) = tokio::join!(
        dial(&address, &fresh, None, b"", &config),
        listener.accept()
    );
    let error = dialed.unwrap_err().attempts.pop().unwrap().1;
    assert!(
        matches!(
            error,
            Error::Expired {
                whose: Side::Theirs
            }
        ),
        "{error}"
    );
    let error = accepted.unwrap_err().error;
    assert!(
        matches!(error, Error::Expired { whose: Side::Ours }),
        "{error}"
    );
}
