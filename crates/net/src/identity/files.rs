//! The files of an identity: read whole, written once, never overwritten.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::IdentityError;
use crate::{Address, AddressError};

pub(crate) const AUTHORITY_CERTIFICATE: &str = "authority.pem";
pub(crate) const AUTHORITY_KEY: &str = "authority.key";
pub(crate) const NODE_CERTIFICATE: &str = "node.pem";
pub(crate) const NODE_KEY: &str = "node.key";
/// In a member's directory: the identity of the redirector that it carries.
pub(crate) const SITE_DIR: &str = "site";
/// In the directory of the home that made the village, beside its identity.
pub(crate) const AUTHORITY_DIR: &str = "authority";
/// In the directory of a node that has joined: the digest of the token's secret.
pub(crate) const JOINED_WITH: &str = "joined-with";
/// What a join makes before anything else, in the order in which it does.
pub(crate) const OF_JOIN: [&str; 4] = [NODE_KEY, SITE_DIR, ADDRESS, JOINED_WITH];
/// In a home's directory, beside its store.
pub(crate) const IDENTITY_DIR: &str = "identity";
/// Where the authority's process is: in its own directory, and in that of a node that renews its certificate there.
const ADDRESS: &str = "authority.address";
/// Beside the authority's key, while a rotation has begun: the key that will sign.
pub(crate) const NEXT_KEY: &str = "next.key";
/// Beside the authority's key.
pub(crate) const REGISTER: &str = "issued";

/// Permissions of certificates.
pub(crate) const PUBLIC: u32 = 0o644;
/// Permissions of keys, and of the register.
pub(crate) const SECRET: u32 = 0o600;
/// A certificate or key has some hundred bytes; a file above this is something else.
const FILE_BYTES_MAX: u64 = 64 << 10;

pub(crate) fn make_dir(dir: &Path) -> Result<(), IdentityError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(IdentityError::file(dir))
}

pub(crate) fn exists(path: &Path) -> Result<bool, IdentityError> {
    path.try_exists().map_err(IdentityError::file(path))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    read_up_to(path, FILE_BYTES_MAX)
}

pub(crate) fn read_up_to(path: &Path, bytes_max: u64) -> Result<Vec<u8>, IdentityError> {
    let bytes = fs::metadata(path).map_err(IdentityError::file(path))?.len();
    if bytes > bytes_max {
        return Err(IdentityError::Malformed {
            path: path.to_owned(),
            why: format!("{bytes} bytes are too many"),
        });
    }
    fs::read(path).map_err(IdentityError::file(path))
}

pub(crate) fn read_certificate(path: &Path) -> Result<CertificateDer<'static>, IdentityError> {
    CertificateDer::from_pem_slice(&read(path)?).map_err(|error| IdentityError::Malformed {
        path: path.to_owned(),
        why: pem_text("certificate", &error),
    })
}

/// All certificates in the file: at least one.
pub(crate) fn read_certificates(
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let malformed = |why| IdentityError::Malformed {
        path: path.to_owned(),
        why,
    };
    let bytes = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let all = all.map_err(|error| malformed(pem_text("certificate", &error)))?;
    match all.is_empty() {
        true => Err(malformed("it holds no certificate in PEM form".to_owned())),
        false => Ok(all),
    }
}

/// The address of the authority's process, if the directory has one.
pub(crate) fn read_address(dir: &Path) -> Result<Option<Address>, IdentityError> {
    let path = dir.join(ADDRESS);
    if !exists(&path)? {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&read(&path)?).into_owned();
    let address = text.trim().parse();
    address
        .map(Some)
        .map_err(|error: AddressError| IdentityError::Malformed {
            path,
            why: error.to_string(),
        })
}

pub(crate) fn write_address(dir: &Path, address: &Address) -> Result<(), IdentityError> {
    replace(
        &dir.join(ADDRESS),
        format!("{address}\n").as_bytes(),
        PUBLIC,
    )
}

pub(crate) fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| IdentityError::Malformed {
        path: path.to_owned(),
        why: pem_text("private key", &error),
    })
}

fn pem_text(what: &str, error: &rustls::pki_types::pem::Error) -> String {
    format!("it holds no {what} in PEM form ({error})")
}

/// The key in the file, as something that signs.
pub(crate) fn read_key(path: &Path) -> Result<KeyPair, IdentityError> {
    let malformed = |why: String| IdentityError::Malformed {
        path: path.to_owned(),
        why,
    };
    let pem =
        String::from_utf8(read(path)?).map_err(|_| malformed("it is not a text".to_owned()))?;
    KeyPair::from_pem(&pem).map_err(|error| malformed(format!("it holds no usable key ({error})")))
}

/// The key in the file; a new one is put there first if there is none.
pub(crate) fn open_or_create_key(path: &Path) -> Result<KeyPair, IdentityError> {
    if !exists(path)? {
        let key = KeyPair::generate().map_err(IdentityError::crypto)?;
        publish_or_keep(path, key.serialize_pem().as_bytes(), SECRET)?;
    }
    // Read back even what was just made: another process may have been quicker, and then its key counts.
    read_key(path)
}

/// Makes the file appear whole and durable, or leaves the one that is there.
pub(crate) fn publish_or_keep(path: &Path, bytes: &[u8], mode: u32) -> Result<(), IdentityError> {
    let draft = draft_path(path);
    let published = write_draft(&draft, bytes, mode).and_then(|()| fs::hard_link(&draft, path));
    // The draft has done its work or failed; a leftover would only be untidy.
    let _ = fs::remove_file(&draft);
    match published {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.exists() => Ok(()),
        Err(error) => Err(IdentityError::file(path)(error)),
        Ok(()) => sync_dir(path),
    }
}

/// Makes the file hold this, whole and durable, whatever it held before.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), IdentityError> {
    let draft = draft_path(path);
    let replaced = write_draft(&draft, bytes, mode).and_then(|()| fs::rename(&draft, path));
    if let Err(error) = replaced {
        // A leftover would only be untidy.
        let _ = fs::remove_file(&draft);
        return Err(IdentityError::file(path)(error));
    }
    sync_dir(path)
}

/// Removes a file for good; one that is not there is removed already.
pub(crate) fn remove(path: &Path) -> Result<(), IdentityError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(IdentityError::file(path)(error))
        }
        _ => sync_dir(path),
    }
}

fn write_draft(draft: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(draft)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name nobody else uses: other processes have other numbers, other threads other counts.
fn draft_path(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let count = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".draft-{}-{count}", std::process::id()));
    name.into()
}

pub(crate) fn sync_dir(path: &Path) -> Result<(), IdentityError> {
    let dir = path
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(IdentityError::file(dir))
}
