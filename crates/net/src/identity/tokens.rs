//! Tokens with which a node joins, once.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::IdentityError;
use super::certified::{CertifiedName, NodeRole, hexadecimal};
use super::files;
use super::validity;
use crate::{ADDRESSES_MAX, Address, crypto};

/// What somebody gives to a node that is to join: where the authority's process is, how to know it, a secret that works
/// once, until it expires, and where the village can be joined then.
///
/// As text it is one word, `thorp2-SECRET-FINGERPRINT-EXPIRES-CHECK-HOME@AUTHORITY,JOIN,JOIN`. CHECK is the beginning of a
/// digest of all else: a token that was cut short or misspelt is none.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    pub(crate) address: Address,
    /// SHA-256 of the authority's public key, in hexadecimal digits.
    pub(crate) fingerprint: String,
    pub(crate) secret: String,
    /// From the Unix epoch.
    pub(crate) expires: Duration,
    /// The first home of the village; empty if there is none yet.
    home: String,
    /// A site, or sites that take each other's place, or a home.
    join: Vec<Address>,
}

/// A text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAToken {
    /// It is something else.
    Other,
    /// It began as one: it was cut short or changed.
    Incomplete,
}

/// The tokens that an authority has given out, as its directory has them: no secret is among them. Used under the
/// register's lock.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    all: Vec<Given>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// SHA-256 of the secret, in hexadecimal digits.
    pub(crate) digest: String,
    pub(crate) expires: Duration,
    pub(crate) subject: CertifiedName,
    /// It is good for the certificate of a redirector, too.
    pub(crate) with_site: bool,
    pub(crate) life: Option<Duration>,
    /// Digests of the keys that have used it: of the node, and of the redirector that it carries.
    pub(crate) used: [Option<String>; 2],
}

impl JoinToken {
    pub(crate) fn new(
        (address, fingerprint): (Address, String),
        life: Duration,
        (home, join): (String, Vec<Address>),
    ) -> Result<Self, IdentityError> {
        let splits = |address: &Address| {
            let is_split_at = |c: char| c == ',' || c.is_whitespace() || c.is_control();
            address.to_string().contains(is_split_at)
        };
        if splits(&address) || join.iter().any(splits) {
            return Err(IdentityError::Token {
                why: "no address with a comma or a blank fits into a token",
            });
        }
        let mut secret = [0; SECRET_BYTES];
        crypto::random(&mut secret).map_err(IdentityError::crypto)?;
        Ok(Self {
            address,
            fingerprint,
            secret: hexadecimal(&secret),
            expires: Duration::from_secs((validity::now() + life).as_secs()),
            home,
            join,
        })
    }

    /// The name of the village's first home, if there was one when the token was made.
    pub fn home(&self) -> Option<&str> {
        Some(&*self.home).filter(|home| !home.is_empty())
    }

    /// Where the village can be joined: the addresses of a site or home. Whoever made the token may have named none.
    pub fn join(&self) -> &[Address] {
        &self.join
    }

    /// Whether it works no longer, by this machine's clock.
    pub fn has_expired(&self) -> bool {
        self.expires < validity::now()
    }

    /// Its parts but the check, in order: what comes before it, and what comes after.
    fn parts(&self) -> (String, String) {
        let expires = self.expires.as_secs();
        let before = format!("{}-{}-{expires}", self.secret, self.fingerprint);
        let addresses = std::iter::once(&self.address).chain(&self.join);
        let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
        (before, format!("{}@{}", self.home, addresses.join(",")))
    }

    fn check(before: &str, after: &str) -> Option<String> {
        let digest = crypto::digest(format!("{before}-{after}").as_bytes())?;
        hexadecimal(&digest).get(..CHECK_DIGITS).map(str::to_owned)
    }

    fn read(text: &str) -> Option<Self> {
        let (secrets, addresses) = text.split_once('@')?;
        let mut parts = secrets.splitn(5, '-');
        let mut next = || parts.next();
        let (secret, fingerprint, expires, check, home) =
            (next()?, next()?, next()?, next()?, next()?);
        let is_good = |part: &str| part.len() >= 32 && part.bytes().all(|b| b.is_ascii_hexdigit());
        let before = format!("{secret}-{fingerprint}-{expires}");
        let is_whole = Self::check(&before, &format!("{home}@{addresses}"))? == check;
        (is_whole && is_good(secret) && is_good(fingerprint)).then_some(())?;
        let addresses: Result<Vec<Address>, _> = addresses.split(',').map(str::parse).collect();
        let mut addresses = addresses.ok()?.into_iter();
        Some(Self {
            address: addresses.next()?,
            fingerprint: fingerprint.to_owned(),
            secret: secret.to_owned(),
            expires: Duration::from_secs(expires.parse().ok()?),
            home: home.to_owned(),
            join: addresses.take(ADDRESSES_MAX).collect(),
        })
    }
}

impl FromStr for JoinToken {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(NotAToken::Other)?;
        Self::read(rest).ok_or(NotAToken::Incomplete)
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = self.parts();
        let check = Self::check(&before, &after).ok_or(fmt::Error)?;
        write!(f, "{PREFIX}{before}-{check}-{after}")
    }
}

impl fmt::Debug for JoinToken {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinToken")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for NotAToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Other => {
                "that is no token: give what `thorp invite NAME` has printed, in one word"
            }
            Self::Incomplete => {
                "the token is not whole: it was cut short or changed; give all of what `thorp invite NAME` has printed, in one word"
            }
        })
    }
}

impl std::error::Error for NotAToken {}

impl Tokens {
    pub(crate) fn load(authority_dir: &Path) -> Result<Self, IdentityError> {
        let path = authority_dir.join(FILE);
        let text = match files::exists(&path)? {
            true => String::from_utf8_lossy(&files::read_up_to(&path, BYTES_MAX)?).into_owned(),
            false => String::new(),
        };
        let all: Option<Vec<Given>> = text.lines().map(Given::parse).collect();
        let all = all.ok_or_else(|| IdentityError::Malformed {
            path: path.clone(),
            why: "it is no list of tokens: remove it, and invite again whoever has not joined"
                .to_owned(),
        })?;
        Ok(Self { path, all })
    }

    /// Adds one, durably. Those that have expired go.
    pub(crate) fn add(&mut self, given: Given) -> Result<(), IdentityError> {
        let now = validity::now();
        self.all.retain(|given| given.expires >= now);
        if self.all.len() >= TOKENS_MAX {
            return Err(IdentityError::Token {
                why: "too many tokens wait to be used: let some of them expire",
            });
        }
        self.all.push(given);
        self.write()
    }

    /// The token with this secret, if a key may use it: it has not expired, and no other key has used it. A node whose answer
    /// was lost tries again with the same key.
    pub(crate) fn find(
        &mut self,
        secret: &str,
        place: usize,
        key: &str,
    ) -> Result<Given, IdentityError> {
        let refused = |why| Err(IdentityError::Token { why });
        let digest = digest(secret)?;
        let Some(given) = self.all.iter().find(|given| given.digest == digest) else {
            return refused("the authority does not know it: ask for a new one");
        };
        if given.expires < validity::now() {
            return refused("it has expired: ask for a new one");
        }
        match given.used.get(place) {
            Some(None) if place == 0 || given.with_site => Ok(given.clone()),
            Some(Some(used)) if used == key => Ok(given.clone()),
            _ => refused("it has been used: ask for a new one"),
        }
    }

    /// Marks it used by this key, durably.
    pub(crate) fn set_used(
        &mut self,
        given: &Given,
        place: usize,
        key: &str,
    ) -> Result<(), IdentityError> {
        let mut all = self.all.iter_mut();
        if let Some(used) = all
            .find(|one| one.digest == given.digest)
            .and_then(|one| one.used.get_mut(place))
        {
            *used = Some(key.to_owned());
        }
        self.write()
    }

    fn write(&self) -> Result<(), IdentityError> {
        let text: String = self.all.iter().map(Given::line).collect();
        files::replace(&self.path, text.as_bytes(), files::SECRET)
    }
}

impl Given {
    fn line(&self) -> String {
        let used = |place: usize| self.used.get(place).and_then(|used| used.as_deref());
        let life = self
            .life
            .map_or_else(|| NONE.to_owned(), |life| life.as_secs().to_string());
        format!(
            "{} {} {} {} {} {life} {} {}\n",
            self.digest,
            self.expires.as_secs(),
            self.subject.role(),
            self.subject.name(),
            u8::from(self.with_site),
            used(0).unwrap_or(NONE),
            used(1).unwrap_or(NONE),
        )
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let [digest, expires, role, name, with_site, life, first, second] = words[..] else {
            return None;
        };
        let role: NodeRole = role.parse().ok()?;
        let some = |word: &str| (word != NONE).then(|| word.to_owned());
        Some(Self {
            digest: digest.to_owned(),
            expires: Duration::from_secs(expires.parse().ok()?),
            subject: CertifiedName::new(role, name).ok()?,
            with_site: with_site == "1",
            life: match some(life) {
                Some(life) => Some(Duration::from_secs(life.parse().ok()?)),
                None => None,
            },
            used: [some(first), some(second)],
        })
    }
}

/// By what the authority knows a secret.
pub(crate) fn digest(secret: &str) -> Result<String, IdentityError> {
    let digest = crypto::digest(secret.as_bytes());
    let digest = digest.ok_or_else(|| IdentityError::crypto("no digest is available"))?;
    Ok(hexadecimal(&digest))
}

const PREFIX: &str = "thorp2-";
/// Hexadecimal digits.
const CHECK_DIGITS: usize = 8;
const SECRET_BYTES: usize = 16;
/// In the authority's directory.
const FILE: &str = "tokens";
const NONE: &str = "-";
/// Tokens that have not expired.
const TOKENS_MAX: usize = 4_096;
const BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word() {
        let address: Address = "tcp://alps.example.org:7440".parse().unwrap();
        let join = vec![address.clone(), "unix:/s-1.sock".parse().unwrap()];
        let of = |join| {
            let place = (address.clone(), "ab".repeat(32));
            JoinToken::new(place, validity::DAY, ("alps-1".to_owned(), join))
        };
        let token = of(join).unwrap();
        let text = token.to_string();
        assert!(
            !text.contains(char::is_whitespace) && !format!("{token:?}").contains(&token.secret)
        );
        let read: JoinToken = text.parse().unwrap();
        assert_eq!(read, token);
        assert_eq!((read.home(), read.join().len()), (Some("alps-1"), 2));
        assert!(!read.has_expired());
        for other in ["", "thorp1-00", &format!("x{text}")] {
            assert_eq!(other.parse::<JoinToken>(), Err(NotAToken::Other), "{other}");
        }
        for end in PREFIX.len()..text.len() {
            let cut = &text[..end];
            assert_eq!(
                cut.parse::<JoinToken>(),
                Err(NotAToken::Incomplete),
                "{cut}"
            );
        }
        let misspelt = text.replace("7440", "7441");
        assert_eq!(misspelt.parse::<JoinToken>(), Err(NotAToken::Incomplete));
        for bad in ["unix:/a,b.sock", "unix:/a b.sock"] {
            assert!(of(vec![bad.parse().unwrap()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_key_uses_a_token_and_may_try_again() {
        let dir = std::env::temp_dir().join(format!("thorp-net-tokens-{}", std::process::id()));
        files::make_dir(&dir).unwrap();
        let given = |secret, expires| Given {
            digest: digest(secret).unwrap(),
            expires,
            subject: CertifiedName::new(NodeRole::Member, "anna").unwrap(),
            with_site: secret == "both",
            life: None,
            used: [None, None],
        };
        let later = validity::now() + validity::DAY;
        let mut tokens = Tokens::load(&dir).unwrap();
        tokens.add(given("late", Duration::from_secs(5))).unwrap();
        let words = |tried: Result<Given, IdentityError>| tried.unwrap_err().to_string();
        assert!(words(tokens.find("late", 0, "k")).contains("expired"));
        for secret in ["one", "both"] {
            tokens.add(given(secret, later)).unwrap();
        }
        assert!(words(tokens.find("late", 0, "k")).contains("does not know"));
        let one = tokens.find("one", 0, "k1").unwrap();
        tokens.set_used(&one, 0, "k1").unwrap();
        let mut tokens = Tokens::load(&dir).unwrap();
        assert!(tokens.find("one", 0, "k1").is_ok());
        assert!(words(tokens.find("one", 0, "k2")).contains("used"));
        assert!(words(tokens.find("one", 1, "k2")).contains("used"));
        assert!(tokens.find("both", 1, "k2").is_ok());
        assert!(words(tokens.find("both", 2, "k2")).contains("used"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
