//! Letting nodes into a village: their certificates, made from the authority's key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use thorp_model::HomeId;

use super::certificates::{Authority, NodeKey};
use super::credentials::Credentials;
use super::files::{
    self, AUTHORITY_CERTIFICATE, AUTHORITY_DIR, AUTHORITY_KEY, IDENTITY_DIR, NODE_CERTIFICATE,
    NODE_KEY, SITE_DIR,
};
use super::grant::{Grant, HomeIdOf, IssuedCertificate};
use super::register::{Entry, Register};
use super::revoked::Revocation;
use super::rotation::{self, Rotation};
use super::tokens::{self, Given, JoinToken, Tokens};
use super::trust::{Standing, Trust, fingerprint_of, serial_of};
use super::validity::{self, DAY, Validity, usual_life};
use super::{CertifiedName, Identity, IdentityError, NodeRole, certificates, moving};
use crate::{Address, crypto};

/// Makes an identity for another node of the village: `out_dir` gets `authority.pem`, `node.pem` and `node.key`, to be
/// carried to the node's machine and opened there with [`Identity::load`]. `authority_dir` must hold the authority's
/// certificate and key. Doing it again for the same node changes nothing, until less than a third of the certificate's life is
/// left: then it renews it.
///
/// # Errors
///
/// [`IdentityError`]; among others if the name belongs to another role ([`IdentityError::NameTaken`]), or `out_dir` to
/// another node or village.
pub fn issue(
    authority_dir: impl AsRef<Path>,
    out_dir: impl AsRef<Path>,
    role: NodeRole,
    name: &str,
) -> Result<Identity, IdentityError> {
    let grant = Grant::new(role, name);
    CertificateAuthority::open(authority_dir)?.issue(&grant, out_dir)
}

/// Makes both identities of a member that carries a redirector (rule R4): `out_dir` gets that of the member, and
/// [`site_dir`] of it that of the redirector. Both have the same name; no other name may hold two roles.
///
/// # Errors
///
/// As [`issue`]; the name must not have been issued before, except by this function.
pub fn issue_with_site(
    authority_dir: impl AsRef<Path>,
    out_dir: impl AsRef<Path>,
    name: &str,
) -> Result<(Identity, Identity), IdentityError> {
    let grant = Grant {
        with_site: true,
        ..Grant::new(NodeRole::Member, name)
    };
    let member = CertificateAuthority::open(authority_dir)?.issue(&grant, &out_dir)?;
    let site = Identity::load_of(site_dir(out_dir), NodeRole::Site, name)?;
    Ok((member, site))
}

/// Where a member that carries a redirector has its second identity, if its first one is in `dir`.
pub fn site_dir(dir: impl AsRef<Path>) -> std::path::PathBuf {
    dir.as_ref().join(SITE_DIR)
}

/// Whether an identity may be put into a directory by hand: it is empty, not there yet, or somebody has begun to make one there.
/// A key among other files would be carried to wherever these go.
pub fn may_hold_identity(dir: impl AsRef<Path>) -> bool {
    let held = dir.as_ref().read_dir();
    let names = held.into_iter().flatten().flatten();
    let names: Vec<String> = names
        .map(|held| held.file_name().to_string_lossy().into_owned())
        .collect();
    let has_authority = names
        .iter()
        .any(|name| name.starts_with(AUTHORITY_CERTIFICATE));
    let is_of_join = |name: &String| {
        let file = name.split(".draft-").next().unwrap_or_default();
        files::OF_JOIN.contains(&file)
    };
    has_authority || names.iter().all(is_of_join)
}

/// The digest of the key that a node has in its directory.
fn key_at(dir: &Path) -> Result<Option<String>, IdentityError> {
    let path = dir.join(NODE_KEY);
    match files::exists(&path)? {
        true => Ok(Some(certificates::key_digest(&files::read_key(&path)?)?)),
        false => Ok(None),
    }
}

/// The node that a certificate is to name.
pub(crate) fn subject(role: NodeRole, name: &str) -> Result<CertifiedName, IdentityError> {
    CertifiedName::new(role, name).map_err(|_| IdentityError::BadName {
        name: name.to_owned(),
    })
}

/// What the authority's process sends to a node.
pub(crate) struct Answer {
    pub(crate) subject: CertifiedName,
    /// A line that says whether there is a second certificate; then the certificate and the authorities.
    pub(crate) text: String,
}

/// The authority of a village, in its directory: a certificate, a key, and the register of what it issued. Whoever can read
/// the directory lets nodes into the village.
pub struct CertificateAuthority {
    authority: Authority,
    dir: PathBuf,
}

impl CertificateAuthority {
    /// Opens the authority in `dir`. It is made, and the directory with it, if there is neither certificate nor key.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if there is a certificate without its key.
    pub fn init(dir: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        files::make_dir(dir)?;
        let authority = Authority::open_or_create(dir)?;
        Ok(Self {
            authority,
            dir: dir.to_owned(),
        })
    }

    /// Opens the authority in `dir`.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: certificate or key are not there, or not those of one authority.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        let authority = Authority::load(dir)?;
        Ok(Self {
            authority,
            dir: dir.to_owned(),
        })
    }

    /// Moves an authority into a directory of its own, out of one that has it beside a node's identity, or from
    /// elsewhere. A crash on the way leaves the key in at least one of them, and doing it again completes it.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if `dir` has another village's authority.
    pub fn take_over(dir: impl AsRef<Path>, from: impl AsRef<Path>) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        moving::move_authority(from.as_ref(), dir)?;
        Self::open(dir)
    }

    /// The directory with the authority's key: `dir`, or the one in it where a home has put the authority that it made.
    pub fn find(dir: impl AsRef<Path>) -> PathBuf {
        let dir = dir.as_ref();
        let inner = [AUTHORITY_DIR, IDENTITY_DIR].map(|inner| dir.join(inner));
        let found = inner.into_iter().find(|inner| Self::is_in(inner));
        found.unwrap_or_else(|| dir.to_owned())
    }

    /// Whether a directory has the key of an authority.
    pub fn is_in(dir: impl AsRef<Path>) -> bool {
        dir.as_ref().join(AUTHORITY_KEY).exists()
    }

    /// Its directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The village, as 16 hexadecimal digits that come from its authority's public key.
    pub fn village(&self) -> &str {
        self.authority.village()
    }

    /// Makes the identity of a node in `out_dir`, as [`issue`] says. A certificate that is there stays, unless less than a
    /// third of its life is left, or it has not the home's id that is wanted.
    ///
    /// # Errors
    ///
    /// As [`issue`]; [`IdentityError::HomeIdTaken`].
    pub fn issue(
        &self,
        grant: &Grant,
        out_dir: impl AsRef<Path>,
    ) -> Result<Identity, IdentityError> {
        let out_dir = out_dir.as_ref();
        let subject = subject(grant.role, &grant.name)?;
        self.check_own_home(&subject, out_dir)?;
        let mut wanted = vec![(out_dir.to_owned(), subject.clone())];
        if grant.with_site {
            wanted.push((
                site_dir(out_dir),
                self::subject(NodeRole::Site, &grant.name)?.with_carried(true),
            ));
        }
        let home = match grant.home_id {
            HomeIdOf::Name => None,
            HomeIdOf::Store(id) => Some(id),
            HomeIdOf::Nobody => Some(self.fresh_home_id()?),
        };
        let with_id =
            |(dir, of): &(PathBuf, CertifiedName)| (dir.clone(), of.clone().with_home(home));
        let wanted: Vec<_> = wanted.iter().map(with_id).collect();
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(dir, of)| (&**dir, of.clone()))
            .collect();
        self.put(&wanted, (grant.with_site, grant.life))?;
        Identity::load_as(out_dir, subject)
    }

    /// All certificates that it has issued, the latest last.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: the register cannot be read.
    pub fn issued(&self) -> Result<Vec<IssuedCertificate>, IdentityError> {
        let register = Register::open(&self.dir)?;
        let entries = register.entries().iter();
        let issued = entries.map(|entry| IssuedCertificate {
            subject: entry.subject.clone(),
            serial: entry.serial.clone(),
            not_after: UNIX_EPOCH + entry.not_after,
            days: entry.days,
            revoked: register.revoked_at(&entry.serial).map(|at| UNIX_EPOCH + at),
        });
        Ok(issued.collect())
    }

    /// Revokes all certificates of a name that are good, for ever. How many these are. Homes and sites go on accepting them
    /// until they [hear](crate::announce_revoked) of it.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: the register cannot be read or written.
    pub fn revoke(&self, name: &str) -> Result<usize, IdentityError> {
        let name = name.to_ascii_lowercase();
        Register::open(&self.dir)?.revoke(&name, validity::now())
    }

    /// All that are revoked and have not expired.
    pub(crate) fn revoked(&self) -> Result<Vec<Revocation>, IdentityError> {
        let (register, now) = (Register::open(&self.dir)?, validity::now());
        let entries = register.entries().iter();
        let revoked = entries
            .filter(|entry| entry.not_after >= now && register.revoked_at(&entry.serial).is_some());
        let revocation = |entry: &Entry| Revocation {
            serial: entry.serial.clone(),
            until: entry.not_after,
        };
        Ok(revoked.map(revocation).collect())
    }

    /// What the authority shows when it calls a node: a certificate of its own for a short time.
    pub(super) fn credentials(&self) -> Result<Credentials, IdentityError> {
        self.credentials_for(CALL_LIFE, false)
    }

    /// What the authority's process shows.
    pub(super) fn serving_credentials(&self) -> Result<Credentials, IdentityError> {
        self.credentials_for(DAY * 365, true)
    }

    fn credentials_for(&self, life: Duration, hears: bool) -> Result<Credentials, IdentityError> {
        let key = rcgen::KeyPair::generate().map_err(IdentityError::crypto)?;
        let subject = CertifiedName::authority();
        let validity = Validity::of_life(life);
        let signed = self
            .authority
            .sign_node(&key, (&subject, false), validity)?;
        let authorities = files::read_certificates(&self.dir.join(AUTHORITY_CERTIFICATE))?;
        Credentials::of_authority(&authorities, &signed.pem, (&key.serialize_der(), hears))
    }

    /// Where others reach the authority's process, if there is one.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: the file that says so cannot be read.
    pub fn address(&self) -> Result<Option<Address>, IdentityError> {
        files::read_address(&self.dir)
    }

    pub(crate) fn set_address(&self, address: &Address) -> Result<(), IdentityError> {
        files::write_address(&self.dir, address)
    }

    /// The name of the home that is in the register first: the one that made the village, or was let in first.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: the register cannot be read.
    pub fn first_home(&self) -> Result<Option<String>, IdentityError> {
        let register = Register::open(&self.dir)?;
        let mut entries = register.entries().iter().map(|entry| &entry.subject);
        let first = entries.find(|subject| subject.role() == NodeRole::Home);
        Ok(first.map(|subject| subject.name().to_owned()))
    }

    /// Whether a node may be invited with this name and role: nobody else has such a certificate that is good. `out` is
    /// where the node already has one, if it has.
    ///
    /// # Errors
    ///
    /// [`IdentityError::NameHeld`], and the register or the key in `out` cannot be read.
    pub fn check_free(&self, grant: &Grant, out: Option<&Path>) -> Result<(), IdentityError> {
        // The name of a home belongs to its key, whoever asks: issuing looks at that.
        if grant.role == NodeRole::Home {
            return Ok(());
        }
        let own = match out {
            Some(out) => key_at(out)?,
            None => None,
        };
        let (register, now) = (Register::open(&self.dir)?, validity::now());
        let name = grant.name.to_ascii_lowercase();
        let is_other = |entry: &&Entry| {
            let is_good = entry.not_after >= now && register.revoked_at(&entry.serial).is_none();
            let is_same = entry.subject.name() == name
                && entry.subject.role() == grant.role
                && entry.is_of_carrier == grant.with_site;
            // Early lines do not say whose they are.
            is_good && is_same && entry.key.is_some() && entry.key != own
        };
        match register.entries().iter().find(is_other) {
            None => Ok(()),
            Some(held) => Err(IdentityError::NameHeld {
                held: held.subject.clone(),
            }),
        }
    }

    /// A token with which a node joins, once, at the [address](CertificateAuthority::address) of the authority's process. It
    /// also says at which addresses the village can be joined then.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if the name belongs to another role, or if nobody knows where the process is.
    pub fn invite(
        &self,
        grant: &Grant,
        life: Duration,
        join: &[Address],
    ) -> Result<JoinToken, IdentityError> {
        let address = self.address()?.ok_or(IdentityError::Token {
            why: "the authority's process has not run here: start `thorp ca serve`",
        })?;
        let subject = subject(grant.role, &grant.name)?;
        let home = self.first_home()?.unwrap_or_default();
        let register = Register::open(&self.dir)?;
        self.check_is_here()?;
        register.check(&subject, grant.with_site, None)?;
        let fingerprint = fingerprint_of(&self.authority.certificate());
        let fingerprint = fingerprint.map_err(IdentityError::crypto)?;
        let token = JoinToken::new((address, fingerprint), life, (home, join.to_vec()))?;
        Tokens::load(&self.dir)?.add(Given {
            digest: tokens::digest(&token.secret)?,
            expires: token.expires,
            subject,
            with_site: grant.with_site,
            life: grant.life,
            used: [None, None],
        })?;
        Ok(token)
    }

    /// The first certificate of a node with this public key. `place` 1 is that of the redirector that a member carries.
    pub(crate) fn join(
        &self,
        secret: &str,
        place: usize,
        public_key: &[u8],
    ) -> Result<Answer, IdentityError> {
        let key = NodeKey::new(public_key)?;
        let digest = certificates::key_digest(&key)?;
        let mut register = Register::open(&self.dir)?;
        self.check_is_here()?;
        let mut tokens = Tokens::load(&self.dir)?;
        let given = tokens.find(secret, place, &digest)?;
        let subject = match place {
            0 => given.subject.clone(),
            _ => subject(NodeRole::Site, given.subject.name())?,
        };
        register.check(&subject, given.with_site, Some(&digest))?;
        let subject = bound(&subject, &register)?;
        // From here on no other key gets anything for it.
        tokens.set_used(&given, place, &digest)?;
        let has_more = given.with_site && place == 0;
        self.sign(
            &mut register,
            &key,
            (subject, given.with_site),
            (given.life, has_more),
        )
    }

    /// A new certificate for a node that has shown a good one. It says the same, for the same key.
    pub(crate) fn renew(&self, standing: &Standing) -> Result<Answer, IdentityError> {
        let refused = |why| Err(IdentityError::Token { why });
        let subject = standing.certified.clone();
        if subject.name().is_empty() {
            return refused("its certificate is not of this village: join with a token");
        }
        let key = NodeKey::new(&standing.public_key)?;
        let mut register = Register::open(&self.dir)?;
        self.check_is_here()?;
        if register.revoked_at(&standing.serial).is_some() {
            return refused(
                "its certificate is revoked: ask whoever has the authority to let it in again",
            );
        }
        let Some(entry) = register.entry_of(&standing.serial) else {
            return refused("the authority has not issued its certificate: ask for a token");
        };
        let (is_of_carrier, days) = (entry.is_of_carrier, entry.days);
        if subject.home() != register.home_of(subject.name()) && subject.home().is_some() {
            return refused("the home has another id now: it has a newer certificate");
        }
        // One of less than a day was not issued by days.
        let life = days.filter(|days| *days > 0).map(|days| DAY * days);
        let life = life.or(Some(standing.validity.life()).filter(|life| *life < DAY));
        self.sign(&mut register, &key, (subject, is_of_carrier), (life, false))
    }

    /// Registers a certificate, and gives it with the authorities.
    fn sign(
        &self,
        register: &mut Register,
        key: &NodeKey,
        (subject, is_of_carrier): (CertifiedName, bool),
        (life, has_more): (Option<Duration>, bool),
    ) -> Result<Answer, IdentityError> {
        let digest = certificates::key_digest(key)?;
        if register.good_of_key(&digest, validity::now()) >= GOOD_OF_KEY_MAX {
            return Err(IdentityError::Token {
                why: "it has many certificates that are good: use the newest one of them",
            });
        }
        let life = life.unwrap_or_else(|| usual_life(subject.role()));
        let of = (&subject, is_of_carrier);
        let signed = self.authority.sign_node(key, of, Validity::of_life(life))?;
        register.add(vec![signed.entry])?;
        let first = if has_more { "more" } else { "all" };
        let text = format!("{first}\n{}{}", signed.pem, self.authority.pem());
        Ok(Answer { subject, text })
    }

    fn fresh_home_id(&self) -> Result<HomeId, IdentityError> {
        fresh_home_id(&Register::open(&self.dir)?)
    }

    /// Puts identities where they are missing: each key, then the register's lines, then the certificates. So a crash
    /// leaves a key without a certificate, or a line without one, and the next try completes that. What may not be issued
    /// leaves nothing behind.
    pub(crate) fn put(
        &self,
        wanted: &[(&Path, CertifiedName)],
        (is_of_carrier, life): (bool, Option<Duration>),
    ) -> Result<(), IdentityError> {
        let mut register = Register::open(&self.dir)?;
        // It may have been moved since its key was read.
        self.check_is_here()?;
        let mut missing = Vec::new();
        for (dir, subject) in wanted {
            self.check_village(dir)?;
            // Only one process at a time comes here.
            if self.is_wanted(dir, subject, &register)? {
                let key = key_at(dir)?;
                register.check(subject, is_of_carrier, key.as_deref())?;
                missing.push((*dir, bound(subject, &register)?));
            }
        }
        for (dir, _) in wanted {
            self.prepare(dir)?;
        }
        let mut issued = Vec::new();
        for (dir, subject) in &missing {
            let is_of_carrier = is_of_carrier || register.is_of_carrier(subject.name());
            let key = files::open_or_create_key(&dir.join(NODE_KEY))?;
            let life = life.unwrap_or_else(|| usual_life(subject.role()));
            let subject = (subject, is_of_carrier);
            let signed = self
                .authority
                .sign_node(&key, subject, Validity::of_life(life))?;
            issued.push((dir.join(NODE_CERTIFICATE), signed));
        }
        if issued.is_empty() {
            return Ok(());
        }
        register.add(issued.iter().map(|(_, one)| one.entry.clone()).collect())?;
        for (path, one) in &issued {
            files::replace(path, one.pem.as_bytes(), files::PUBLIC)?;
        }
        Ok(())
    }

    /// Nothing of this village lands next to what is another village's.
    fn check_village(&self, dir: &Path) -> Result<(), IdentityError> {
        let path = dir.join(AUTHORITY_CERTIFICATE);
        match !files::exists(&path)? || super::village_at(&path)? == self.authority.village() {
            true => Ok(()),
            false => Err(IdentityError::OtherVillage {
                certificate: path,
                authority: self.dir.join(AUTHORITY_CERTIFICATE),
            }),
        }
    }

    /// Makes a directory into one of this village.
    fn prepare(&self, dir: &Path) -> Result<(), IdentityError> {
        files::make_dir(dir)?;
        let path = dir.join(AUTHORITY_CERTIFICATE);
        files::publish_or_keep(&path, self.authority.pem().as_bytes(), files::PUBLIC)?;
        // Somebody else may have been quicker.
        self.check_village(dir)?;
        if files::read(&path)? != self.authority.pem().as_bytes() {
            // Another authority has come or gone: the node trusts the same ones.
            files::replace(&path, self.authority.pem().as_bytes(), files::PUBLIC)?;
        }
        match self.address()? {
            // It renews its certificate there.
            Some(address) if files::read_address(dir)?.as_ref() != Some(&address) => {
                files::write_address(dir, &address)
            }
            _ => Ok(()),
        }
    }

    /// Whether a node needs a certificate in this directory. What is wrong with the one that is there is said before anything
    /// is written.
    fn is_wanted(
        &self,
        dir: &Path,
        subject: &CertifiedName,
        register: &Register,
    ) -> Result<bool, IdentityError> {
        let path = dir.join(NODE_CERTIFICATE);
        if !files::exists(&path)? {
            return Ok(true);
        }
        match super::certified_at(&path) {
            Ok(held) if held.is_same_node(subject) => {
                let is_other_home = subject.home().is_some() && held.home() != subject.home();
                let certificate = files::read_certificate(&path)?;
                let is_aging = Validity::of(&certificate)
                    .is_ok_and(|validity| validity.is_aging(validity::now()));
                // It is from before certificates said who carries a site.
                let is_unmarked = subject.is_carried() && !held.is_carried();
                self.check_good(&path, &certificate, register)?;
                let is_old = is_aging || is_unmarked || !self.has_signed(&certificate);
                Ok(is_other_home || is_old)
            }
            Ok(held) => Err(IdentityError::OtherNode {
                dir: dir.to_owned(),
                wanted: subject.clone(),
                found: held,
            }),
            Err(IdentityError::NoHomeId { .. }) => Ok(subject.role() == NodeRole::Home),
            Err(error) => Err(error),
        }
    }

    /// Whether a certificate may be replaced by a newer one: this authority has issued it, with whatever key, and has not
    /// revoked it.
    fn check_good(
        &self,
        path: &Path,
        certificate: &CertificateDer<'_>,
        register: &Register,
    ) -> Result<(), IdentityError> {
        let serial = serial_of(certificate).map_err(IdentityError::crypto)?;
        if register.revoked_at(&serial).is_some() {
            return Err(IdentityError::Revoked {
                certificate: path.to_owned(),
            });
        }
        match register.entry_of(&serial).is_some() || self.has_signed(certificate) {
            true => Ok(()),
            false => Err(IdentityError::OtherVillage {
                certificate: path.to_owned(),
                authority: self.dir.join(AUTHORITY_CERTIFICATE),
            }),
        }
    }

    /// Whether the key that signs now has signed it.
    fn has_signed(&self, certificate: &CertificateDer<'_>) -> bool {
        let own = Trust::new(&[self.authority.certificate()]);
        own.is_ok_and(|trust| trust.check_signed(certificate, &[]).is_ok())
    }

    /// The nodes whose good certificates are all signed with a key from before the last [`Rotation::Switch`]: after
    /// [`Rotation::Finish`] nobody lets them in.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]: the register cannot be read.
    pub fn of_earlier_key(&self) -> Result<Vec<CertifiedName>, IdentityError> {
        Ok(Register::open(&self.dir)?.of_earlier_key(validity::now()))
    }

    /// Goes one step further with a new key for the authority. Between the steps, all nodes have to get what the step
    /// before has changed: by a renewal, or by issuing again into their directories.
    ///
    /// # Errors
    ///
    /// [`IdentityError`]; among others if another step comes first.
    pub fn rotate(dir: impl AsRef<Path>, step: Rotation) -> Result<Self, IdentityError> {
        let dir = dir.as_ref();
        // Nobody issues anything meanwhile.
        let mut register = Register::open(dir)?;
        rotation::rotate(dir, step, &mut register)?;
        drop(register);
        Self::open(dir)
    }

    fn check_is_here(&self) -> Result<(), IdentityError> {
        let key = self.dir.join(AUTHORITY_KEY);
        std::fs::metadata(&key)
            .map(drop)
            .map_err(IdentityError::file(&key))
    }

    /// The home that made the village may have its certificate beside the authority's key, as all did once. No other
    /// node gets its name.
    fn check_own_home(&self, subject: &CertifiedName, out: &Path) -> Result<(), IdentityError> {
        let path = self.dir.join(NODE_CERTIFICATE);
        if out == self.dir || !files::exists(&path)? {
            return Ok(());
        }
        let own = match super::certified_at(&path) {
            // It is named only once it has its id.
            Err(IdentityError::NoHomeId { .. }) => return Ok(()),
            own => own?,
        };
        match own.role() == NodeRole::Home && own.name() == subject.name() {
            true => Err(IdentityError::OwnHome {
                name: subject.name().to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// Good certificates of one key, above which it gets no more from the authority's process. A node that renews in time has
/// two, or three where an answer was lost. Whoever asked without end would fill the register, and nobody else got in.
const GOOD_OF_KEY_MAX: usize = 8;
/// How long the authority may take to call a node.
const CALL_LIFE: Duration = Duration::from_secs(600);

/// A home with its id: the one that is wanted, or that of its name, or one that no home has. No other name may have it.
fn bound(subject: &CertifiedName, register: &Register) -> Result<CertifiedName, IdentityError> {
    if subject.role() != NodeRole::Home {
        return Ok(subject.clone());
    }
    let known = subject.home().or_else(|| register.home_of(subject.name()));
    let home = match known {
        Some(home) => home,
        None => fresh_home_id(register)?,
    };
    match register.node_of(home) {
        Some(held) if held.name() != subject.name() => {
            let held = held.clone();
            Err(IdentityError::HomeIdTaken { held })
        }
        _ => Ok(subject.clone().with_home(Some(home))),
    }
}

/// An id that no home has had. Zero is left for *none*.
fn fresh_home_id(register: &Register) -> Result<HomeId, IdentityError> {
    loop {
        let mut bytes = [0; 4];
        crypto::random(&mut bytes).map_err(IdentityError::crypto)?;
        let home = HomeId(u32::from_le_bytes(bytes));
        if home != HomeId(0) && register.node_of(home).is_none() {
            return Ok(home);
        }
    }
}

impl fmt::Debug for CertificateAuthority {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority")
            .field("village", &self.village())
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
