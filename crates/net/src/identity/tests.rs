use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use super::certificates::Authority;
use super::files::REGISTER;
use super::register::Register;
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
    let home = subject(NodeRole::Home, name).unwrap();
    let home = home.with_home(Some(HomeId(7)));
    identity_with(dir, &home, |authority, key| {
        let issued = authority.sign_node(key, (&home, false), validity);
        issued.unwrap().pem
    })
}

/// An identity with a certificate that names a node as Thorp did before roles.
fn identity_without_role(dir: &Path, name: &str) -> Identity {
    let claimed = subject(NodeRole::Member, name).unwrap();
    identity_with(dir, &claimed, |authority, key| {
        authority.sign_without_role(key, name)
    })
}

fn identity_with(
    dir: &Path,
    claimed: &CertifiedName,
    sign: impl FnOnce(&Authority, &rcgen::KeyPair) -> String,
) -> Identity {
    files::make_dir(dir).unwrap();
    let authority = Authority::open_or_create(dir).unwrap();
    let key = files::open_or_create_key(&dir.join(NODE_KEY)).unwrap();
    let pem = sign(&authority, &key);
    files::publish_or_keep(&dir.join(NODE_CERTIFICATE), pem.as_bytes(), files::PUBLIC).unwrap();
    Identity::new(
        dir,
        Credentials::load_as(dir, claimed.clone()),
        Revoked::load(dir).unwrap(),
    )
}

/// As early homes did: the authority lies beside the home's identity.
fn open_or_create(dir: impl AsRef<Path>, name: &str) -> Result<Identity, IdentityError> {
    Identity::open_or_create(dir.as_ref(), dir.as_ref(), (name, HomeId(7)))
}

fn member(home: &Dir, out: &Dir, name: &str) -> Result<Identity, IdentityError> {
    issue(&home.0, &out.0, NodeRole::Member, name)
}

fn long_ago() -> Validity {
    Validity {
        from: Duration::from_secs(86_400),
        until: Duration::from_secs(10 * 86_400),
    }
}

#[test]
fn the_first_start_makes_everything_and_the_second_finds_it() {
    let dir = Dir::new("first");
    let first = open_or_create(&dir.0, "Alps.home").unwrap();
    assert_eq!(first.name(), "alps.home");
    assert_eq!(first.village().len(), 16);
    assert_eq!(mode(dir.0.join("node.key")), 0o600);
    assert_eq!(mode(dir.0.join("authority.key")), 0o600);
    let before = fs::read(dir.0.join("node.pem")).unwrap();
    let second = open_or_create(&dir.0, "alps.home").unwrap();
    assert_eq!(
        (second.name(), second.village()),
        (first.name(), first.village())
    );
    assert_eq!(fs::read(dir.0.join("node.pem")).unwrap(), before);
    assert_eq!(
        fs::read_dir(&dir.0).unwrap().count(),
        5,
        "no drafts are left"
    );
    let error = open_or_create(&dir.0, "jura").unwrap_err();
    assert!(matches!(error, IdentityError::OtherNode { .. }), "{error}");
}

#[test]
fn the_authority_moves_out_of_a_home_and_a_crash_on_the_way_loses_nothing() {
    let (home, moved) = (Dir::new("moves"), Dir::new("moves-to"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    let key = fs::read(home.0.join("authority.key")).unwrap();
    let register = fs::read(home.0.join(REGISTER)).unwrap();
    let out = Dir::new("moves-anna");
    for crash in [false, true] {
        if crash {
            // It came as far as the new place; then somebody was let in here.
            fs::write(home.0.join("authority.key"), &key).unwrap();
            fs::write(home.0.join(REGISTER), &register).unwrap();
            member(&home, &out, "anna").unwrap();
        }
        for _ in 0..2 {
            let authority = CertificateAuthority::take_over(&moved.0, &home.0).unwrap();
            assert_eq!(authority.village(), alps.village());
            assert!(!CertificateAuthority::is_in(&home.0) && !home.0.join(REGISTER).exists());
        }
    }
    assert_eq!(fs::read(moved.0.join("authority.key")).unwrap(), key);
    assert_eq!(mode(moved.0.join("authority.key")), 0o600);
    let text = fs::read_to_string(moved.0.join(REGISTER)).unwrap();
    let names: Vec<_> = text.lines().map(|line| line.split(' ').next()).collect();
    assert_eq!(names, [Some("alps"), Some("anna")]);
    // The home goes on without it, and its name stays its own.
    open_or_create(&home.0, "alps").unwrap();
    let other = Dir::new("moves-other");
    let error = issue(&moved.0, &other.0, NodeRole::Home, "alps").unwrap_err();
    assert!(matches!(error, IdentityError::OwnHome { .. }), "{error}");
    assert!(!other.0.exists(), "nothing was made");
    // Onto itself it does not move.
    CertificateAuthority::take_over(&moved.0, &moved.0).unwrap();
    assert!(CertificateAuthority::is_in(&moved.0));

    let stranger = Dir::new("moves-stranger");
    open_or_create(&stranger.0, "alps").unwrap();
    let error = CertificateAuthority::take_over(&moved.0, &stranger.0).unwrap_err();
    assert!(
        matches!(error, IdentityError::OtherVillage { .. }),
        "{error}"
    );
    assert!(CertificateAuthority::is_in(&stranger.0));
}

#[test]
fn a_start_cut_short_is_completed() {
    let dir = Dir::new("short");
    let village = open_or_create(&dir.0, "alps").unwrap().village().to_owned();
    fs::remove_file(dir.0.join("node.pem")).unwrap();
    fs::remove_file(dir.0.join("authority.pem")).unwrap();
    assert_eq!(open_or_create(&dir.0, "alps").unwrap().village(), village);
}

#[test]
fn two_first_starts_at_once_agree() {
    let dir = Dir::new("twice");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let dir = dir.0.clone();
            std::thread::spawn(move || open_or_create(dir, "alps").unwrap().village().to_owned())
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
    let alps = open_or_create(&home.0, "alps").unwrap();
    let jura = member(&home, &out, "jura").unwrap();
    assert_eq!(jura.village(), alps.village());
    assert!(!out.0.join("authority.key").exists());
    member(&home, &out, "jura").unwrap();
    let loaded = Identity::load(&out.0).unwrap();
    assert_eq!((loaded.name(), loaded.role()), ("jura", NodeRole::Member));
    assert!(matches!(
        member(&home, &out, "ural"),
        Err(IdentityError::OtherNode { .. })
    ));
    // It cannot let in others: the file that is missing is named.
    let third = Dir::new("issue-third");
    let error = member(&out, &third, "ural").unwrap_err();
    assert!(error.to_string().contains("authority.key"), "{error}");
}

#[test]
fn parts_that_do_not_belong_together_are_named() {
    let (one, two) = (Dir::new("parts-1"), Dir::new("parts-2"));
    open_or_create(&one.0, "alps").unwrap();
    open_or_create(&two.0, "alps").unwrap();
    let error = member(&one, &two, "anna").unwrap_err();
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
        member(&one, &third, "jura"),
        Err(IdentityError::KeyMismatch { .. })
    ));
}

#[test]
fn files_that_are_missing_or_garbage_are_named() {
    let dir = Dir::new("garbage");
    let error = Identity::load(&dir.0).unwrap_err();
    assert!(matches!(error, IdentityError::File { .. }), "{error}");
    open_or_create(&dir.0, "alps").unwrap();
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
    let error = open_or_create(&dir.0, "alps").unwrap_err();
    assert!(error.to_string().contains("authority.key"), "{error}");
}

#[test]
fn names_are_checked() {
    let dir = Dir::new("names");
    let long = "a".repeat(64);
    for name in [
        "", ".", "a..b", "a b", "a/b", "-a", "a-", "ä", "*", "a_b", &long,
    ] {
        let error = open_or_create(&dir.0, name).unwrap_err();
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
        Err(IdentityError::OutOfTime { .. })
    ));
}

/// Both directories can issue for the one village.
fn share_authority(from: &Dir, to: &Dir) {
    files::make_dir(&to.0).unwrap();
    for file in ["authority.key", "authority.pem"] {
        fs::copy(from.0.join(file), to.0.join(file)).unwrap();
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused_by_either_side() {
    let (home, member) = (Dir::new("late-home"), Dir::new("late-member"));
    let fresh = open_or_create(&home.0, "alps").unwrap();
    share_authority(&home, &member);
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
    let told = "its certificate was good until 1970-01-11 00:00:00 UTC, and the clock says 20";
    assert!(
        matches!(&error, Error::Rejected { reason } if reason.contains(told)),
        "{error}"
    );
    assert!(error.to_string().contains("`thorp invite NAME"), "{error}");
    let error = accepted.unwrap_err().error;
    let is_theirs = |error: &Error| {
        let whose = Side::Theirs;
        matches!(error, Error::Expired { whose: of, times: Some(_) } if *of == whose)
    };
    assert!(is_theirs(&error), "{error}");

    let mut listener = Listener::bind(&any, &stale, config.clone()).await.unwrap();
    let address = [listener.address().clone()];
    let (dialed, accepted) = tokio::join!(
        dial(&address, &fresh, None, b"", &config),
        listener.accept()
    );
    let error = dialed.unwrap_err().attempts.pop().unwrap().1;
    assert!(is_theirs(&error), "{error}");
    // It has sent nothing that could be trusted.
    assert!(accepted.is_err());
}

/// A clock that is wrong by more than the tolerance: the error names both times.
#[tokio::test]
async fn a_certificate_that_is_not_good_yet_is_refused_with_both_times() {
    let (home, member) = (Dir::new("early-home"), Dir::new("early-member"));
    let fresh = open_or_create(&home.0, "alps").unwrap();
    share_authority(&home, &member);
    let now = validity::now();
    let tomorrow = Validity {
        from: now + Duration::from_secs(3_600),
        until: now + Duration::from_secs(86_400),
    };
    let early = identity_valid(&member.0, "early", tomorrow);
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let config = Config::new(Role::HOME);
    let mut listener = Listener::bind(&any, &fresh, config.clone()).await.unwrap();
    let address = [listener.address().clone()];
    let (dialed, accepted) = tokio::join!(
        dial(&address, &early, None, b"", &config),
        listener.accept()
    );
    let error = dialed.unwrap_err().to_string();
    assert!(error.contains("its certificate is good from 20"), "{error}");
    assert!(error.contains("and the clock says 20"), "{error}");
    let error = accepted.unwrap_err().error;
    assert!(matches!(error, Error::NotYetValid { .. }), "{error}");
}

/// Threat 8: TLS verifies nothing where it resumes a session, and a ticket lives for half a day.
#[tokio::test]
async fn a_certificate_that_has_expired_is_refused_also_when_tls_resumes() {
    let (home, member) = (Dir::new("resumes-home"), Dir::new("resumes-member"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    let grant = Grant {
        life: Some(Duration::from_secs(3)),
        ..Grant::new(NodeRole::Member, "anna")
    };
    let authority = CertificateAuthority::open(&home.0).unwrap();
    let anna = authority.issue(&grant, &member.0).unwrap();
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let config = Config::new(Role::MEMBER);
    let mut listener = Listener::bind(&any, &alps, config.clone()).await.unwrap();
    let address = [listener.address().clone()];
    for is_good in [true, false] {
        let calling = dial(&address, &anna, Some("alps"), b"", &config);
        let (dialed, accepted) = tokio::join!(calling, async {
            listener
                .accept()
                .await
                .map(|incoming| incoming.accept(b"").unwrap())
        });
        match (dialed, accepted) {
            (Ok(dialed), Ok(accepted)) if is_good => {
                // The ticket comes with the first frame.
                let (_sender, mut receiver) = dialed.split();
                accepted.split().0.try_send(vec![1]).unwrap();
                assert_eq!(receiver.recv().await.unwrap().unwrap(), [1]);
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            (Err(dialed), Err(accepted)) if !is_good => {
                let words = dialed.to_string();
                assert!(words.contains("its certificate was good until"), "{words}");
                let error = accepted.error;
                assert!(matches!(error, Error::Expired { .. }), "{error}");
            }
            (dialed, accepted) => panic!("{is_good}: {dialed:?}, {accepted:?}"),
        }
    }
}

#[test]
fn a_certificate_in_its_last_third_is_renewed_for_the_same_key() {
    let (home, out) = (Dir::new("renews"), Dir::new("renews-anna"));
    open_or_create(&home.0, "alps").unwrap();
    let authority = CertificateAuthority::open(&home.0).unwrap();
    let of_life = |life: u64| Grant {
        life: Some(Duration::from_secs(life)),
        ..Grant::new(NodeRole::Member, "anna")
    };
    let short = authority.issue(&of_life(1), &out.0).unwrap();
    let key = fs::read(out.0.join("node.key")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let renewed = authority
        .issue(&Grant::new(NodeRole::Member, "anna"), &out.0)
        .unwrap();
    assert!(renewed.validity().until() > short.validity().until());
    assert!(short.is_aging() && !renewed.is_aging());
    assert_eq!(fs::read(out.0.join("node.key")).unwrap(), key);
    let days: Vec<_> = authority
        .issued()
        .unwrap()
        .iter()
        .map(|one| one.days)
        .collect();
    assert_eq!(days, [Some(365), Some(0), Some(30)]);
}

#[test]
fn a_certificate_without_a_role_is_not_loaded_and_what_to_do_is_said() {
    let dir = Dir::new("roleless");
    identity_without_role(&dir.0, "alps");
    let error = Identity::load(&dir.0).unwrap_err().to_string();
    assert!(
        error.contains("names no role") && error.contains("thorp invite NAME --role ROLE"),
        "{error}"
    );
    // The home that made the village follows the advice.
    fs::remove_file(dir.0.join("node.pem")).unwrap();
    let alps = open_or_create(&dir.0, "alps").unwrap();
    assert_eq!(alps.role(), NodeRole::Home);
}

#[tokio::test]
async fn a_certificate_without_a_role_is_refused_by_either_side() {
    let (home, old) = (Dir::new("roleless-home"), Dir::new("roleless-old"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    share_authority(&home, &old);
    let old = identity_without_role(&old.0, "anna");
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let config = Config::new(Role::HOME);
    for (listens, calls) in [(&alps, &old), (&old, &alps)] {
        let mut listener = Listener::bind(&any, listens, config.clone()).await.unwrap();
        let address = [listener.address().clone()];
        let (dialed, heard) = tokio::join!(
            dial(&address, calls, None, b"", &config),
            tokio::time::timeout(Duration::from_secs(5), listener.accept())
        );
        let error = dialed.unwrap_err().to_string();
        assert!(
            error.contains("names no role") && error.contains("thorp invite NAME --role ROLE"),
            "{error}"
        );
        let heard = heard.unwrap().unwrap_err().error;
        let is_told = matches!(heard, Error::NoRole);
        assert_eq!(is_told, std::ptr::eq(calls, &old), "{heard}");
    }
}

#[test]
fn a_name_has_one_role() {
    let (home, one, two) = (
        Dir::new("one-role"),
        Dir::new("one-role-1"),
        Dir::new("one-role-2"),
    );
    open_or_create(&home.0, "alps").unwrap();
    issue(&home.0, &one.0, NodeRole::Site, "Office").unwrap();
    for role in [NodeRole::Home, NodeRole::Member, NodeRole::Operator] {
        let error = issue(&home.0, &two.0, role, "office").unwrap_err();
        assert!(matches!(error, IdentityError::NameTaken { .. }), "{error}");
        assert!(error.to_string().contains("belongs to site office"));
    }
    let error = issue_with_site(&home.0, &two.0, "office").unwrap_err();
    assert!(matches!(error, IdentityError::NameTaken { .. }), "{error}");
    for role in [NodeRole::Home, NodeRole::Member] {
        let error = issue(&home.0, &two.0, role, "alps").unwrap_err();
        assert!(matches!(error, IdentityError::OwnHome { .. }), "{error}");
    }
    assert!(!two.0.exists(), "nothing was made");
    // A further certificate of the same node is none of another.
    issue(&home.0, &two.0, NodeRole::Site, "office").unwrap();
    let error = issue(&home.0, &two.0, NodeRole::Site, "alps").unwrap_err();
    assert!(matches!(error, IdentityError::OwnHome { .. }), "{error}");
}

#[test]
fn a_member_that_carries_a_site_has_two_identities() {
    let (home, one, two) = (
        Dir::new("carrier"),
        Dir::new("carrier-1"),
        Dir::new("carrier-2"),
    );
    open_or_create(&home.0, "alps").unwrap();
    for _ in 0..2 {
        let (member, site) = issue_with_site(&home.0, &one.0, "anna").unwrap();
        assert_eq!((member.name(), site.name()), ("anna", "anna"));
        assert_eq!(
            (member.role(), site.role()),
            (NodeRole::Member, NodeRole::Site)
        );
        assert_eq!(
            Identity::load(site_dir(&one.0)).unwrap().role(),
            site.role()
        );
    }
    let register = Register::open(&home.0).unwrap();
    assert_eq!(register.entries().len(), 3);
    drop(register);
    // Either of them again, and both again; no third role.
    issue(&home.0, &two.0, NodeRole::Site, "anna").unwrap();
    fs::remove_dir_all(&two.0).unwrap();
    issue_with_site(&home.0, &two.0, "anna").unwrap();
    let third = Dir::new("carrier-3");
    let error = issue(&home.0, &third.0, NodeRole::Operator, "anna").unwrap_err();
    assert!(matches!(error, IdentityError::NameTaken { .. }), "{error}");
    // A member that was issued alone stays alone.
    member(&home, &third, "bert").unwrap();
    let fourth = Dir::new("carrier-4");
    let error = issue_with_site(&home.0, &fourth.0, "bert").unwrap_err();
    assert!(matches!(error, IdentityError::NameTaken { .. }), "{error}");
}

#[test]
fn the_register_has_a_line_for_each_certificate() {
    let (home, out) = (Dir::new("register"), Dir::new("register-out"));
    open_or_create(&home.0, "alps").unwrap();
    member(&home, &out, "anna").unwrap();
    member(&home, &out, "anna").unwrap();
    let path = home.0.join(REGISTER);
    assert_eq!(mode(path.clone()), 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("alps home ") && lines[1].starts_with("anna member "));
    let pem = files::read_certificate(&out.0.join(NODE_CERTIFICATE)).unwrap();
    let parsed = webpki::EndEntityCert::try_from(&pem).unwrap();
    let serial: String = parsed
        .serial()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(lines[1].split(' ').nth(2), Some(&*serial));

    // A line that a crash cut short goes with the next one.
    fs::write(&path, format!("{text}bert mem")).unwrap();
    let bert = Dir::new("register-bert");
    issue(&home.0, &bert.0, NodeRole::Site, "bert").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
    // Any other line that is none stops the authority.
    fs::write(&path, "rubbish\n").unwrap();
    let error = member(&home, &Dir::new("register-carl"), "carl").unwrap_err();
    assert!(
        error.to_string().contains("line 1 names no certificate"),
        "{error}"
    );
}

#[test]
fn names_issued_at_once_are_all_in_the_register() {
    let home = Dir::new("at-once");
    open_or_create(&home.0, "alps").unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let home = &home;
            scope.spawn(move || {
                let out = Dir::new(&format!("at-once-{number}"));
                // All but one of the roles are refused.
                let role = [NodeRole::Member, NodeRole::Site][number % 2];
                let _ = issue(&home.0, &out.0, role, "anna");
            });
        }
    });
    let register = Register::open(&home.0).unwrap();
    let roles = register.entries()[1..].iter();
    let mut roles: Vec<_> = roles.map(|entry| entry.subject.role()).collect();
    assert_eq!(roles.len(), 4);
    roles.dedup();
    assert_eq!(roles.len(), 1);
}

mod authority;
mod papers;
