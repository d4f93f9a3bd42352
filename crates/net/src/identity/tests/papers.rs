//! What certificates say that no node could start with.

use super::*;
use crate::{Papers, Rotation};

#[test]
fn they_are_read_when_they_are_over_and_without_a_key() {
    let dir = Dir::new("papers-over");
    let day = |count: u64| Duration::from_secs(count * 24 * 60 * 60);
    let over = Validity {
        from: day(3),
        until: day(9),
    };
    identity_valid(&dir.0, "alps", over);
    fs::remove_file(dir.0.join(NODE_KEY)).unwrap();
    let papers = Papers::read(&dir.0).unwrap();
    assert_eq!(papers.certified.to_string(), "home alps");
    assert_eq!(papers.validity, over);
    let authority = CertificateAuthority::open(&dir.0).unwrap();
    assert_eq!(papers.village, authority.village());
    assert!(papers.authorities[0].until() > SystemTime::now() + day(9 * 365));
    assert_eq!((papers.authorities.len(), papers.signed_by), (1, 0));
}

#[test]
fn during_a_rotation_they_say_who_has_signed() {
    let (ca, anna) = (Dir::new("papers-ca"), Dir::new("papers-anna"));
    CertificateAuthority::init(&ca.0).unwrap();
    for step in [Rotation::Begin, Rotation::Switch] {
        CertificateAuthority::rotate(&ca.0, step).unwrap();
    }
    issue(&ca.0, &anna.0, NodeRole::Member, "anna").unwrap();
    let papers = Papers::read(&anna.0).unwrap();
    assert_eq!((papers.authorities.len(), papers.signed_by), (2, 1));
}

#[test]
fn those_of_two_villages_do_not_fit() {
    let authorities = [Dir::new("papers-here"), Dir::new("papers-there")];
    let anna = Dir::new("papers-both");
    for authority in &authorities {
        CertificateAuthority::init(&authority.0).unwrap();
    }
    issue(&authorities[0].0, &anna.0, NodeRole::Member, "anna").unwrap();
    let file = "authority.pem";
    fs::copy(authorities[1].0.join(file), anna.0.join(file)).unwrap();
    let error = Papers::read(&anna.0).unwrap_err();
    assert!(
        matches!(error, IdentityError::OtherVillage { .. }),
        "{error}"
    );
}
