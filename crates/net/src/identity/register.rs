//! What an authority has issued: one line for each certificate, in its directory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::{self, REGISTER};
use super::{CertifiedName, IdentityError, NodeRole};
use thorp_model::HomeId;

/// The register of an authority, held by one process at a time.
///
/// A certificate is in the register before it is published. A name has one role; only a member that carries a
/// redirector holds the role site, too, and both lines say so (rule R1).
#[derive(Debug)]
pub(crate) struct Register {
    path: PathBuf,
    /// Locked until it is dropped.
    file: File,
    entries: Vec<Entry>,
    /// Serial numbers, and when they were revoked, from the Unix epoch.
    revoked: BTreeMap<String, Duration>,
    /// How many of the entries an earlier key has signed.
    of_earlier_key: usize,
}

/// One certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) subject: CertifiedName,
    /// In hexadecimal digits.
    pub(crate) serial: String,
    /// From the Unix epoch, in whole seconds.
    pub(crate) not_after: Duration,
    /// It is one of the two certificates of a member that carries a redirector.
    pub(crate) is_of_carrier: bool,
    /// Digest of the node's public key. Early lines have none.
    pub(crate) key: Option<String>,
    /// The life that was asked for. Early lines have none.
    pub(crate) days: Option<u32>,
}

impl Register {
    /// Opens the register in the authority's directory, and waits while another process has it.
    pub(crate) fn open(authority_dir: &Path) -> Result<Self, IdentityError> {
        let path = authority_dir.join(REGISTER);
        let is_new = !files::exists(&path)?;
        let opened = fs::OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(files::SECRET)
            .open(&path)
            .and_then(|file| file.lock().map(|()| file));
        let mut file = opened.map_err(IdentityError::file(&path))?;
        if is_new {
            files::sync_dir(&path)?;
        }
        let Lines {
            entries,
            revoked,
            of_earlier_key,
        } = read(&path, &mut file)?;
        Ok(Self {
            path,
            file,
            entries,
            revoked,
            of_earlier_key,
        })
    }

    /// From here on another key signs.
    pub(crate) fn switch(&mut self) -> Result<(), IdentityError> {
        self.append(&format!("{SWITCHED}\n"))?;
        self.of_earlier_key = self.entries.len();
        Ok(())
    }

    /// The nodes that are let in by certificates of an earlier key only.
    pub(crate) fn of_earlier_key(&self, now: Duration) -> Vec<CertifiedName> {
        let (earlier, later) = self.entries.split_at(self.of_earlier_key);
        let is_good =
            |entry: &&Entry| entry.not_after >= now && !self.revoked.contains_key(&entry.serial);
        let has_newer = |entry: &Entry| {
            let mut later = later.iter();
            later.any(|newer| newer.subject.is_same_node(&entry.subject))
        };
        let mut nodes: Vec<CertifiedName> = Vec::new();
        for entry in earlier.iter().filter(is_good) {
            if !has_newer(entry) && !nodes.iter().any(|node| node.is_same_node(&entry.subject)) {
                nodes.push(entry.subject.clone());
            }
        }
        nodes
    }

    /// Whether the name was issued to a member that carries a redirector.
    pub(crate) fn is_of_carrier(&self, name: &str) -> bool {
        self.of(name).any(|entry| entry.is_of_carrier)
    }

    /// Whether this certificate may be issued; `is_of_carrier`: together with the one of the carrier's other role. The
    /// node has a key with this digest, or none yet: a home is one node, so its name is issued for one key (rule R1).
    pub(crate) fn check(
        &self,
        subject: &CertifiedName,
        is_of_carrier: bool,
        key: Option<&str>,
    ) -> Result<(), IdentityError> {
        let is_other = |entry: &Entry| {
            let theirs = entry.key.as_deref();
            entry.subject.role() == NodeRole::Home
                && theirs.is_some()
                && theirs != key
                && !self.revoked.contains_key(&entry.serial)
        };
        if subject.role() == NodeRole::Home && self.of(subject.name()).any(is_other) {
            return Err(IdentityError::OwnHome {
                name: subject.name().to_owned(),
            });
        }
        let fits = |entry: &&Entry| match is_of_carrier {
            true => entry.is_of_carrier,
            false => entry.subject.role() == subject.role() || entry.is_for_carrier(subject.role()),
        };
        match self.of(subject.name()).find(|entry| !fits(entry)) {
            None => Ok(()),
            Some(entry) => Err(IdentityError::NameTaken {
                held: entry.subject.clone(),
                wanted: subject.clone(),
            }),
        }
    }

    /// The id that a home's name is bound to: that of its latest certificate.
    pub(crate) fn home_of(&self, name: &str) -> Option<HomeId> {
        self.of(name)
            .filter_map(|entry| entry.subject.home())
            .last()
    }

    /// Who has had a certificate with this id.
    pub(crate) fn node_of(&self, home: HomeId) -> Option<&CertifiedName> {
        let mut entries = self.entries.iter().map(|entry| &entry.subject);
        entries.find(|subject| subject.home() == Some(home))
    }

    fn of(&self, name: &str) -> impl Iterator<Item = &Entry> {
        let entries = self.entries.iter();
        entries.filter(move |entry| entry.subject.name() == name)
    }

    /// Adds certificates, all of them in one write, and makes that durable.
    pub(crate) fn add(&mut self, entries: Vec<Entry>) -> Result<(), IdentityError> {
        let mut lines = String::new();
        for entry in &entries {
            entry.write(&mut lines);
        }
        self.append(&lines)?;
        self.entries.extend(entries);
        Ok(())
    }

    /// The certificate with this serial number.
    pub(crate) fn entry_of(&self, serial: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.serial == serial)
    }

    /// How many certificates of a key are good.
    pub(crate) fn good_of_key(&self, key: &str, now: Duration) -> usize {
        let of_key = |entry: &&Entry| entry.key.as_deref() == Some(key) && entry.not_after >= now;
        self.entries.iter().filter(of_key).count()
    }

    /// When a certificate was revoked, if it was.
    pub(crate) fn revoked_at(&self, serial: &str) -> Option<Duration> {
        self.revoked.get(serial).copied()
    }

    /// Revokes all certificates of a name that have not expired. How many these are.
    pub(crate) fn revoke(&mut self, name: &str, now: Duration) -> Result<usize, IdentityError> {
        let of_name = self.of(name).filter(|entry| entry.not_after >= now);
        let serials: Vec<String> = of_name.map(|entry| entry.serial.clone()).collect();
        let new = serials
            .iter()
            .filter(|serial| !self.revoked.contains_key(*serial));
        let new: Vec<String> = new.cloned().collect();
        let line = |serial: &String| format!("{REVOKED_MARK}{serial} {}\n", now.as_secs());
        self.append(&new.iter().map(line).collect::<String>())?;
        self.revoked
            .extend(new.into_iter().map(|serial| (serial, now)));
        Ok(serials.len())
    }

    fn append(&mut self, lines: &str) -> Result<(), IdentityError> {
        let failed = IdentityError::file(&self.path);
        let bytes = self.file.seek(SeekFrom::End(0)).map_err(&failed)? + lines.len() as u64;
        if bytes > BYTES_MAX {
            return Err(malformed(
                &self.path,
                format!("it is full: its limit is {BYTES_MAX} bytes"),
            ));
        }
        let written = self.file.write_all(lines.as_bytes());
        written.and_then(|()| self.file.sync_all()).map_err(&failed)
    }

    /// Adds what another register has and this one has not.
    pub(crate) fn merge(&mut self, other: &Register) -> Result<(), IdentityError> {
        let (earlier, later) = other.entries.split_at(other.of_earlier_key);
        self.add_missing(earlier)?;
        if other.of_earlier_key > self.of_earlier_key {
            self.switch()?;
        }
        self.add_missing(later)?;
        let revoked = other
            .revoked
            .iter()
            .filter(|(serial, _)| !self.revoked.contains_key(*serial));
        let line = |(serial, at): (&String, &Duration)| {
            format!("{REVOKED_MARK}{serial} {}\n", at.as_secs())
        };
        let lines: String = revoked.map(line).collect();
        self.append(&lines)?;
        let theirs = other.revoked.iter();
        self.revoked
            .extend(theirs.map(|(serial, at)| (serial.clone(), *at)));
        Ok(())
    }

    fn add_missing(&mut self, entries: &[Entry]) -> Result<(), IdentityError> {
        let is_new = |entry: &&Entry| self.entry_of(&entry.serial).is_none();
        let new: Vec<Entry> = entries.iter().filter(is_new).cloned().collect();
        self.add(new)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl Entry {
    /// It allows its name the other role of a carrier.
    fn is_for_carrier(&self, role: NodeRole) -> bool {
        self.is_of_carrier && matches!(role, NodeRole::Member | NodeRole::Site)
    }

    fn write(&self, lines: &mut String) {
        let (name, role) = (self.subject.name(), self.subject.role());
        let not_after = self.not_after.as_secs();
        let mark = if self.is_of_carrier { CARRIER_MARK } else { "" };
        // Writing into a text does not fail.
        let _ = write!(lines, "{name} {role} {} {not_after}", self.serial);
        if let Some(key) = &self.key {
            let _ = write!(lines, " {KEY_MARK}{key}");
        }
        if let Some(days) = self.days {
            let _ = write!(lines, " {DAYS_MARK}{days}");
        }
        if let Some(HomeId(home)) = self.subject.home() {
            let _ = write!(lines, " {HOME_MARK}{home:08x}");
        }
        let _ = writeln!(lines, "{mark}");
    }

    fn parse(line: &str) -> Option<Self> {
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        let (line, is_of_carrier) = match line.strip_suffix(CARRIER_MARK) {
            Some(line) => (line, true),
            None => (line, false),
        };
        let mut words = line.split(' ');
        let (name, role) = (words.next()?, words.next()?.parse().ok()?);
        let (serial, not_after) = (words.next()?, words.next()?.parse().ok()?);
        let subject = CertifiedName::new(role, name).ok()?;
        let subject = subject.with_carried(is_of_carrier);
        let is_hexadecimal = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut entry = Entry {
            subject,
            serial: serial.to_owned(),
            not_after: Duration::from_secs(not_after),
            is_of_carrier,
            key: None,
            days: None,
        };
        for word in words {
            if let Some(key) = word.strip_prefix(KEY_MARK) {
                entry.key = Some(key.to_owned()).filter(|key| is_hexadecimal(key));
            } else if let Some(days) = word.strip_prefix(DAYS_MARK) {
                entry.days = Some(days.parse().ok()?);
            } else {
                let home = u32::from_str_radix(word.strip_prefix(HOME_MARK)?, 16).ok()?;
                entry.subject = entry.subject.with_home(Some(HomeId(home)));
            }
        }
        is_hexadecimal(serial).then_some(entry)
    }
}

/// Reads all lines. A line without its end was cut short by a crash before its certificate was published, so it goes.
fn read(path: &Path, file: &mut File) -> Result<Lines, IdentityError> {
    let failed = IdentityError::file(path);
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    if read.map_err(&failed)? as u64 > BYTES_MAX {
        return Err(malformed(path, format!("more than {BYTES_MAX} bytes")));
    }
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        file.set_len(whole as u64).map_err(&failed)?;
    }
    let mut found = Lines::default();
    for (line, number) in text[..whole].lines().zip(1..) {
        let wrong = || malformed(path, format!("line {number} names no certificate"));
        if line == SWITCHED {
            found.of_earlier_key = found.entries.len();
            continue;
        }
        match line.strip_prefix(REVOKED_MARK) {
            None => found.entries.push(Entry::parse(line).ok_or_else(wrong)?),
            Some(line) => {
                let (serial, at) = line.split_once(' ').ok_or_else(wrong)?;
                let at = at.parse().map_err(|_| wrong())?;
                let at = Duration::from_secs(at);
                found.revoked.insert(serial.to_owned(), at);
            }
        }
    }
    Ok(found)
}

/// What the file says.
#[derive(Default)]
struct Lines {
    entries: Vec<Entry>,
    revoked: BTreeMap<String, Duration>,
    of_earlier_key: usize,
}

fn malformed(path: &Path, why: String) -> IdentityError {
    IdentityError::Malformed {
        path: path.to_owned(),
        why,
    }
}

/// Begins a line about a certificate that is revoked. No name begins so.
const REVOKED_MARK: &str = "! revoked ";
/// The line at which another key began to sign.
const SWITCHED: &str = "! switched";
/// Ends the lines of a member that carries a redirector.
const CARRIER_MARK: &str = " with-site";
/// Begins the digest of a public key.
const KEY_MARK: &str = "key=";
/// Begins the days that a certificate was to live.
const DAYS_MARK: &str = "days=";
/// Begins the id of a home.
const HOME_MARK: &str = "home=";
/// A name of 200 bytes, a role, a serial number of 32 digits, a time, the digest of a key, days, an id.
const LINE_BYTES_MAX: usize = 512;
/// Some hundred thousand certificates with names of usual length.
const BYTES_MAX: u64 = 16 << 20;
