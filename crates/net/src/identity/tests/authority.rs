//! What the authority does for nodes that have been let in.

use super::*;

#[test]
fn a_homes_name_is_bound_to_one_id_and_no_id_to_two_names() {
    let (home, out, other) = (Dir::new("ids"), Dir::new("ids-dale"), Dir::new("ids-jura"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    assert_eq!(alps.certified().home(), Some(HomeId(7)));
    let authority = CertificateAuthority::open(&home.0).unwrap();
    let dale = issue(&home.0, &out.0, NodeRole::Home, "dale").unwrap();
    let id = dale.certified().home().unwrap();
    assert!(id != HomeId(0) && id != HomeId(7));
    let grant = |name, home_id| Grant {
        home_id,
        ..Grant::new(NodeRole::Home, name)
    };
    let error = authority
        .issue(&grant("jura", HomeIdOf::Store(id)), &other.0)
        .unwrap_err();
    assert!(
        matches!(error, IdentityError::HomeIdTaken { .. }),
        "{error}"
    );
    assert!(!other.0.exists(), "nothing was made");
    // Another node does not get the name, with whatever id.
    for home_id in [HomeIdOf::Name, HomeIdOf::Store(id), HomeIdOf::Nobody] {
        let error = authority
            .issue(&grant("dale", home_id), &other.0)
            .unwrap_err();
        assert!(matches!(error, IdentityError::OwnHome { .. }), "{error}");
    }
    // The node itself keeps its id, until somebody says that it has another.
    let key = fs::read(out.0.join("node.key")).unwrap();
    let again = |home_id| {
        let issued = authority.issue(&grant("dale", home_id), &out.0);
        issued.unwrap().certified().home().unwrap()
    };
    assert_eq!(again(HomeIdOf::Name), id);
    assert_eq!(again(HomeIdOf::Store(HomeId(9))), HomeId(9));
    assert_eq!(again(HomeIdOf::Name), HomeId(9));
    let new = again(HomeIdOf::Nobody);
    assert!(new != HomeId(9) && new != id);
    assert_eq!(fs::read(out.0.join("node.key")).unwrap(), key);
    let issued = authority.issued().unwrap();
    let ids: Vec<_> = issued.iter().map(|one| one.subject.home()).collect();
    assert_eq!(ids, [HomeId(7), id, HomeId(9), new].map(Some));
    assert!(issued.iter().all(|one| one.days == Some(365)));
}

#[test]
fn a_homes_certificate_without_an_id_is_not_loaded_and_is_replaced() {
    let dir = Dir::new("no-id");
    let alps = subject(NodeRole::Home, "alps").unwrap();
    identity_with(&dir.0, &alps, |authority, key| {
        authority.sign_without_home(key, "alps")
    });
    let error = Identity::load(&dir.0).unwrap_err();
    assert!(matches!(error, IdentityError::NoHomeId { .. }), "{error}");
    assert!(error.to_string().contains("thorp ca init DIR --from"));
    let grant = Grant {
        home_id: HomeIdOf::Store(HomeId(7)),
        ..Grant::new(NodeRole::Home, "alps")
    };
    let authority = CertificateAuthority::open(&dir.0).unwrap();
    let alps = authority.issue(&grant, &dir.0).unwrap();
    assert_eq!(alps.certified().home(), Some(HomeId(7)));
}

#[tokio::test]
async fn a_homes_certificate_without_an_id_is_refused_by_either_side() {
    let (home, old) = (Dir::new("no-id-new"), Dir::new("no-id-old"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    share_authority(&home, &old);
    let dale = subject(NodeRole::Home, "dale").unwrap();
    let old = identity_with(&old.0, &dale, |authority, key| {
        authority.sign_without_home(key, "dale")
    });
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
        assert!(error.contains("names no id of the home"), "{error}");
        let heard = heard.unwrap().unwrap_err().error;
        let is_told = matches!(heard, Error::NoHomeId);
        assert_eq!(is_told, std::ptr::eq(calls, &old), "{heard}");
    }
}

/// An ordinary certificate revokes nobody: only one that names the authority does.
#[tokio::test]
async fn only_the_authority_announces_who_is_revoked() {
    let (home, member) = (Dir::new("announces-home"), Dir::new("announces-member"));
    let alps = open_or_create(&home.0, "alps").unwrap();
    let anna = issue(&home.0, &member.0, NodeRole::Operator, "anna").unwrap();
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let mut listener = Listener::bind(&any, &alps, Config::new(Role::HOME))
        .await
        .unwrap();
    let address = listener.address().clone();
    let line = Revocation {
        serial: alps.credentials().own.serial.clone(),
        until: validity::now() + validity::DAY,
    };
    let hello = line.line().into_bytes();
    let (dialed, ()) = tokio::join!(
        crate::dialer::greet_as_authority(&address, &anna, &hello),
        async { listener.accept().await.unwrap().reject("no") }
    );
    assert!(dialed.is_err());
    assert!(!home.0.join("revoked").exists());
    // The authority does, and nothing arrives at the owner of the listener.
    let authority = CertificateAuthority::open(&home.0).unwrap();
    assert_eq!(authority.revoke("Anna").unwrap(), 1);
    crate::announce_revoked(&authority, &address).await.unwrap();
    let text = fs::read_to_string(home.0.join("revoked")).unwrap();
    assert!(text.starts_with(&anna.credentials().own.serial), "{text}");
    let (address, config) = ([address], Config::new(Role::MEMBER));
    let (dialed, accepted) =
        tokio::join!(dial(&address, &anna, None, b"", &config), listener.accept());
    assert!(dialed.unwrap_err().to_string().contains("is revoked"));
    assert!(matches!(accepted.unwrap_err().error, Error::Revoked));
}

/// Both ends, and whether they let each other in.
async fn meet(listens: &Identity, calls: &Identity) -> bool {
    let any: Address = "127.0.0.1:0".parse().unwrap();
    let mut listener = Listener::bind(&any, listens, Config::new(Role::HOME))
        .await
        .unwrap();
    let (address, config) = ([listener.address().clone()], Config::new(Role::MEMBER));
    let (dialed, accepted) = tokio::join!(dial(&address, calls, None, b"", &config), async {
        listener
            .accept()
            .await
            .map(|incoming| incoming.accept(b"").map(drop))
    });
    assert!(dialed.is_err() || accepted.is_ok());
    dialed.is_ok()
}

/// Two authorities are trusted during a rotation, and every node that keeps up meets every other at each step.
#[tokio::test]
async fn an_authority_gets_a_new_key_while_nodes_of_both_meet() {
    let (ca, home) = (Dir::new("rotates-ca"), Dir::new("rotates-home"));
    let (anna_dir, bert_dir) = (Dir::new("rotates-anna"), Dir::new("rotates-bert"));
    let alps = Identity::open_or_create(&home.0, &ca.0, ("alps", HomeId(7))).unwrap();
    let anna = issue(&ca.0, &anna_dir.0, NodeRole::Member, "anna").unwrap();
    let village = alps.village().to_owned();
    let rotate = |step| CertificateAuthority::rotate(&ca.0, step);
    for too_early in [Rotation::Switch, Rotation::Finish] {
        assert!(rotate(too_early).is_err());
    }
    assert_eq!(rotate(Rotation::Begin).unwrap().village(), village);
    assert!(rotate(Rotation::Begin).is_err() && rotate(Rotation::Finish).is_err());
    assert_eq!(mode(ca.0.join("next.key")), 0o600);
    // All of them get both authorities, and keep the certificates that they have.
    let again = |role, name, dir: &Dir| issue(&ca.0, &dir.0, role, name).map(drop);
    let serial = |of: &Identity| of.credentials().own.serial.clone();
    let first = (serial(&alps), serial(&anna));
    again(NodeRole::Home, "alps", &home).unwrap();
    again(NodeRole::Member, "anna", &anna_dir).unwrap();
    assert!(alps.reload().unwrap() && anna.reload().unwrap());
    assert_eq!((serial(&alps), serial(&anna)), first);

    assert_eq!(rotate(Rotation::Switch).unwrap().village(), village);
    assert!(!ca.0.join("next.key").exists());
    let bert = issue(&ca.0, &bert_dir.0, NodeRole::Member, "bert").unwrap();
    assert_eq!(bert.village(), village);
    assert!(meet(&alps, &bert).await && meet(&alps, &anna).await && meet(&bert, &anna).await);
    // The home gets a certificate of the new one, and anna does not keep up.
    again(NodeRole::Home, "alps", &home).unwrap();
    assert!(alps.reload().unwrap());
    assert_ne!(serial(&alps), first.0);
    assert!(meet(&alps, &anna).await);
    let left = CertificateAuthority::open(&ca.0).unwrap().of_earlier_key();
    assert_eq!(left.unwrap(), [anna.certified().clone()]);

    assert_eq!(rotate(Rotation::Finish).unwrap().village(), village);
    again(NodeRole::Home, "alps", &home).unwrap();
    assert!(alps.reload().unwrap());
    assert!(meet(&alps, &bert).await && !meet(&alps, &anna).await);
    // The old certificate is renewed under the new authority, for the same key. The village has the name that it had.
    let key = anna.credentials().own.public_key.clone();
    again(NodeRole::Member, "anna", &anna_dir).unwrap();
    assert_eq!(
        Identity::load(&anna_dir.0)
            .unwrap()
            .credentials()
            .own
            .public_key,
        key
    );
    assert!(anna.reload().unwrap() && meet(&alps, &anna).await);
    assert_eq!((anna.village(), alps.village()), (&*village, &*village));
}

/// All files of a directory, with what they hold.
fn held(dir: &Dir) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(&dir.0).unwrap().map(Result::unwrap);
    let mut held: Vec<_> = files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, fs::read(file.path()).unwrap())
        })
        .collect();
    held.sort();
    held
}

/// A certificate that may not be renewed stays as it is, and so does all that lies beside it.
#[test]
fn what_is_not_issued_again_changes_nothing() {
    let (ca, own) = (Dir::new("not-again-ca"), Dir::new("not-again-anna"));
    let (elsewhere, theirs) = (Dir::new("not-again-other"), Dir::new("not-again-bert"));
    CertificateAuthority::init(&ca.0).unwrap();
    CertificateAuthority::init(&elsewhere.0).unwrap();
    issue(&ca.0, &own.0, NodeRole::Member, "anna").unwrap();
    issue(&elsewhere.0, &theirs.0, NodeRole::Member, "bert").unwrap();
    // The authority of this village lies beside a certificate of another one.
    let authority = fs::read(ca.0.join(AUTHORITY_CERTIFICATE)).unwrap();
    fs::write(theirs.0.join(AUTHORITY_CERTIFICATE), authority).unwrap();
    // Both authorities are to be trusted from here on: a node that is issued again gets them.
    let ca_now = CertificateAuthority::rotate(&ca.0, Rotation::Begin).unwrap();
    let refused = |dir: &Dir, name: &str| {
        let before = held(dir);
        let error = issue(&ca.0, &dir.0, NodeRole::Member, name).unwrap_err();
        assert_eq!(held(dir), before, "{error}");
        error
    };
    let error = refused(&own, "carl");
    assert!(matches!(error, IdentityError::OtherNode { .. }), "{error}");
    let error = refused(&theirs, "bert");
    assert!(
        matches!(error, IdentityError::OtherVillage { .. }),
        "{error}"
    );
    assert_eq!(ca_now.revoke("anna").unwrap(), 1);
    let error = refused(&own, "anna");
    assert!(matches!(error, IdentityError::Revoked { .. }), "{error}");
    // It is let in again with another key.
    let again = Dir::new("not-again-anna-2");
    issue(&ca.0, &again.0, NodeRole::Member, "anna").unwrap();
}

#[test]
fn a_renewal_is_for_the_same_node_and_key_and_not_for_a_revoked_one() {
    let (home, member, other) = (
        Dir::new("again"),
        Dir::new("again-anna"),
        Dir::new("again-other"),
    );
    let alps = open_or_create(&home.0, "alps").unwrap();
    let anna = issue(&home.0, &member.0, NodeRole::Member, "anna").unwrap();
    let authority = CertificateAuthority::open(&home.0).unwrap();
    let standing = anna.credentials().own.clone();
    let answer = authority.renew(&standing).unwrap();
    assert_eq!(answer.subject, standing.certified);
    take_renewed(&anna, answer.text.split_once('\n').unwrap().1).unwrap();
    assert!(anna.reload().unwrap());
    let renewed = anna.credentials().own.clone();
    assert!(renewed.serial != standing.serial && renewed.public_key == standing.public_key);
    // What is meant for another node, or signed by somebody else, is not taken.
    let of_alps = authority.renew(&alps.credentials().own).unwrap();
    assert_eq!(of_alps.subject.home(), Some(HomeId(7)));
    let stranger = open_or_create(&other.0, "alps").unwrap();
    let elsewhere = CertificateAuthority::open(&other.0).unwrap();
    let theirs = elsewhere.renew(&stranger.credentials().own).unwrap();
    for wrong in [of_alps.text, theirs.text, String::new()] {
        let text = wrong.split_once('\n').unwrap_or_default().1;
        assert!(take_renewed(&anna, text).is_err());
    }
    // Nor does an authority renew what it has not issued, or what is revoked: also with a certificate from before.
    assert!(elsewhere.renew(&renewed).is_err());
    authority.revoke("anna").unwrap();
    for standing in [standing, renewed] {
        let error = authority.renew(&standing).err().unwrap().to_string();
        assert!(error.contains("revoked"), "{error}");
    }
}

/// An ordinary member renewed without end until the register was full, and nobody else got in.
#[test]
fn a_node_that_renews_without_end_is_refused_and_others_are_not() {
    let (ca, dir, other) = (
        Dir::new("endless-ca"),
        Dir::new("endless"),
        Dir::new("endless-bert"),
    );
    let authority = CertificateAuthority::init(&ca.0).unwrap();
    let anna = issue(&ca.0, &dir.0, NodeRole::Member, "anna").unwrap();
    let mut renewed = 0;
    let error = loop {
        match authority.renew(&anna.credentials().own) {
            Ok(_) => renewed += 1,
            Err(error) => break error.to_string(),
        }
        assert!(renewed < 100, "it is never refused");
    };
    assert!(error.contains("use the newest"), "{error}");
    // The first one was issued.
    assert_eq!((renewed, authority.issued().unwrap().len()), (7, 8));
    let bert = issue(&ca.0, &other.0, NodeRole::Member, "bert").unwrap();
    authority.renew(&bert.credentials().own).unwrap();
    // A token works for its key as often as that asks, and to the same limit.
    authority
        .set_address(&"127.0.0.1:7440".parse().unwrap())
        .unwrap();
    let grant = Grant::new(NodeRole::Member, "carl");
    let token = authority
        .invite(&grant, Duration::from_secs(60), &[])
        .unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let key = rcgen::PublicKeyData::subject_public_key_info(&key);
    let joined = (0..20).filter(|_| authority.join(&token.secret, 0, &key).is_ok());
    assert_eq!(joined.count(), 8);
}

#[test]
fn the_certificate_of_a_carried_site_says_so_and_an_older_one_is_replaced() {
    let (home, out) = (Dir::new("carried"), Dir::new("carried-anna"));
    open_or_create(&home.0, "alps").unwrap();
    let carried = |identity: &Identity| identity.certified().is_carried();
    let (member, site) = issue_with_site(&home.0, &out.0, "anna").unwrap();
    assert_eq!((carried(&member), carried(&site)), (false, true));
    assert_eq!(site.certified().to_uri(), "thorp:site/anna?carried");
    // Also one that is issued alone, and one that is renewed. A dedicated site's does not.
    let (alone, office) = (Dir::new("carried-alone"), Dir::new("carried-office"));
    assert!(carried(
        &issue(&home.0, &alone.0, NodeRole::Site, "anna").unwrap()
    ));
    assert!(!carried(
        &issue(&home.0, &office.0, NodeRole::Site, "office").unwrap()
    ));

    // One from before certificates said so, with its line in the register.
    let authority = Authority::open_or_create(&home.0).unwrap();
    let key = files::open_or_create_key(&site_dir(&out.0).join(NODE_KEY)).unwrap();
    let unmarked = subject(NodeRole::Site, "anna").unwrap();
    let life = super::super::validity::Validity::of_life(Duration::from_secs(300 * 86_400));
    let mut old = authority.sign_node(&key, (&unmarked, false), life).unwrap();
    old.entry.is_of_carrier = true;
    Register::open(&home.0)
        .unwrap()
        .add(vec![old.entry])
        .unwrap();
    let path = site_dir(&out.0).join(NODE_CERTIFICATE);
    files::replace(&path, old.pem.as_bytes(), files::PUBLIC).unwrap();
    let running = Identity::load(site_dir(&out.0)).unwrap();
    assert!(!carried(&running), "it counts as a dedicated site's");
    // The site renews it itself.
    let authority = CertificateAuthority::open(&home.0).unwrap();
    let answer = authority.renew(&running.credentials().own).unwrap();
    take_renewed(&running, answer.text.split_once('\n').unwrap().1).unwrap();
    assert!(carried(&Identity::load(site_dir(&out.0)).unwrap()));
    // Or it is issued again.
    files::replace(&path, old.pem.as_bytes(), files::PUBLIC).unwrap();
    let (_, site) = issue_with_site(&home.0, &out.0, "anna").unwrap();
    assert!(carried(&site));
}
