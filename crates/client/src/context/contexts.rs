//! The contexts of a user, as files.

use super::ContextError;
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where to join a village, and as whom.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Context {
    /// What the user calls it.
    pub name: String,
    /// The addresses of a site, or of the sites that take each other's place, or of a home.
    pub join: Vec<String>,
    /// The village: 16 hexadecimal digits, which come from its authority's public key.
    pub village: String,
    /// The directory of certificate and key.
    pub identity: PathBuf,
    /// The directory of the village's authority, if it is on this machine.
    pub authority: Option<PathBuf>,
    /// Where nodes of the village serve their status: IP:PORT.
    pub status: Vec<String>,
}

/// A context as its file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextFile {
    join: Vec<String>,
    village: String,
    /// If it is not `identity` beside the file.
    identity: Option<PathBuf>,
    authority: Option<PathBuf>,
    #[serde(default)]
    status: Vec<String>,
}

/// The directory with the contexts of a user.
#[derive(Clone, Debug)]
pub struct Contexts {
    dir: PathBuf,
}

impl Contexts {
    /// Those in a directory, which need not be there.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Contexts { dir: dir.into() }
    }

    /// Those of whoever runs this process: in `$THORP_CONFIG`, or else in `thorp` in `$XDG_CONFIG_HOME` or
    /// `$HOME/.config`.
    ///
    /// # Errors
    ///
    /// [`ContextError::NoDirectory`].
    pub fn of_user() -> Result<Self, ContextError> {
        Self::by(&|name| env::var_os(name))
    }

    pub(super) fn by(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ContextError> {
        let set = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(value))
        };
        // As the XDG specification wants it, a path that is not absolute counts for nothing.
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        let own = set("THORP_CONFIG");
        let own = own.or_else(|| Some(absolute("XDG_CONFIG_HOME")?.join("thorp")));
        let own = own.or_else(|| Some(set("HOME")?.join(".config/thorp")));
        own.map(Self::at).ok_or(ContextError::NoDirectory)
    }

    /// Where the files of a context are: its own directory.
    ///
    /// # Errors
    ///
    /// [`ContextError::BadName`].
    pub fn dir_of(&self, name: &str) -> Result<PathBuf, ContextError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_good = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.starts_with(['.', '-'])
            && name.bytes().all(plain);
        match is_good {
            true => Ok(self.dir.join(CONTEXTS).join(name)),
            false => Err(ContextError::BadName {
                name: name.to_owned(),
            }),
        }
    }

    /// Where a context that has an identity of its own keeps it.
    ///
    /// # Errors
    ///
    /// [`ContextError::BadName`].
    pub fn identity_of(&self, name: &str) -> Result<PathBuf, ContextError> {
        Ok(self.dir_of(name)?.join(IDENTITY))
    }

    /// The names of all, sorted.
    ///
    /// # Errors
    ///
    /// [`ContextError::File`].
    pub fn names(&self) -> Result<Vec<String>, ContextError> {
        let dir = self.dir.join(CONTEXTS);
        let held = match dir.read_dir() {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            held => held.map_err(failed(&dir))?,
        };
        let mut names = Vec::new();
        for entry in held {
            let entry = entry.map_err(failed(&dir))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if self.dir_of(&name).is_ok() && entry.path().join(FILE).is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The context of this name.
    ///
    /// # Errors
    ///
    /// [`ContextError`]: it is not there, or its file is not as it should be.
    pub fn get(&self, name: &str) -> Result<Context, ContextError> {
        let dir = self.dir_of(name)?;
        let path = dir.join(FILE);
        let Some(text) = read(&path)? else {
            return Err(ContextError::NotThere {
                name: name.to_owned(),
                known: self.names()?,
            });
        };
        let file: ContextFile = toml::from_str(&text).map_err(|error| ContextError::Malformed {
            path: path.clone(),
            // With the line that is wrong, and a name that is unknown beside those that are known.
            why: error.to_string().trim_end().to_owned(),
        })?;
        if file.join.is_empty() {
            let why = "`join` names no address of a site or home".to_owned();
            return Err(ContextError::Malformed { path, why });
        }
        Ok(Context {
            name: name.to_owned(),
            join: file.join,
            village: file.village,
            identity: file.identity.unwrap_or_else(|| dir.join(IDENTITY)),
            authority: file.authority,
            status: file.status,
        })
    }

    /// Writes a context, or writes it anew.
    ///
    /// # Errors
    ///
    /// [`ContextError`].
    pub fn put(&self, context: &Context) -> Result<(), ContextError> {
        let dir = self.dir_of(&context.name)?;
        let own = dir.join(IDENTITY);
        let file = ContextFile {
            join: context.join.clone(),
            village: context.village.clone(),
            identity: (context.identity != own).then(|| context.identity.clone()),
            authority: context.authority.clone(),
            status: context.status.clone(),
        };
        let path = dir.join(FILE);
        let text = toml::to_string(&file).map_err(|error| ContextError::Malformed {
            path: path.clone(),
            why: error.to_string(),
        })?;
        make_dir(&dir)?;
        replace(&path, &text)
    }

    /// Removes a context, its own identity included. It is the current one no longer.
    ///
    /// # Errors
    ///
    /// [`ContextError`].
    pub fn remove(&self, name: &str) -> Result<(), ContextError> {
        let dir = self.dir_of(name)?;
        if !dir.join(FILE).exists() {
            return Err(ContextError::NotThere {
                name: name.to_owned(),
                known: self.names()?,
            });
        }
        if self.current()?.as_deref() == Some(name) {
            let current = self.dir.join(CURRENT);
            fs::remove_file(&current).map_err(failed(&current))?;
        }
        fs::remove_dir_all(&dir).map_err(failed(&dir))
    }

    /// The name of the current context, if one was chosen.
    ///
    /// # Errors
    ///
    /// [`ContextError::File`].
    pub fn current(&self) -> Result<Option<String>, ContextError> {
        let text = read(&self.dir.join(CURRENT))?;
        Ok(text
            .map(|text| text.trim().to_owned())
            .filter(|name| !name.is_empty()))
    }

    /// Chooses the current context.
    ///
    /// # Errors
    ///
    /// [`ContextError`]: it is not there, or not as it should be.
    pub fn set_current(&self, name: &str) -> Result<(), ContextError> {
        self.get(name)?;
        replace(&self.dir.join(CURRENT), &format!("{name}\n"))
    }
}

/// The text of a file, if it is there.
fn read(path: &Path) -> Result<Option<String>, ContextError> {
    let file = match File::open(path) {
        Err(error) if is_missing(&error) => return Ok(None),
        file => file.map_err(failed(path))?,
    };
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let count = read.map_err(failed(path))?;
    match count as u64 > FILE_BYTES_MAX {
        true => Err(ContextError::Malformed {
            path: path.to_owned(),
            why: format!("it has more than {FILE_BYTES_MAX} bytes"),
        }),
        false => Ok(Some(text)),
    }
}

fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn make_dir(dir: &Path) -> Result<(), ContextError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(dir).map_err(failed(dir))
}

/// A file is there whole, or as it was before.
fn replace(path: &Path, text: &str) -> Result<(), ContextError> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&draft)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ContextError {
    let path = path.to_owned();
    move |error| ContextError::File { path, error }
}

const CONTEXTS: &str = "contexts";
const CURRENT: &str = "current";
const FILE: &str = "context.toml";
const IDENTITY: &str = "identity";
const NAME_BYTES_MAX: usize = 64;
const FILE_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    fn context(name: &str, contexts: &Contexts) -> Context {
        Context {
            name: name.to_owned(),
            join: vec!["tcp://a:1".into(), "unix:/b \"c\".sock".into()],
            village: "0123456789abcdef".into(),
            identity: contexts.identity_of(name).unwrap(),
            authority: Some("/there".into()),
            status: vec!["127.0.0.1:7430".into()],
        }
    }

    #[test]
    fn what_is_put_is_got() {
        let dir = TempDir::new().unwrap();
        let contexts = Contexts::at(dir.path().join("thorp"));
        assert!(contexts.names().unwrap().is_empty());
        assert_eq!(contexts.current().unwrap(), None);
        let mut dev = context("dev", &contexts);
        contexts.put(&dev).unwrap();
        assert_eq!(contexts.get("dev").unwrap(), dev);
        dev.identity = "/elsewhere".into();
        contexts.put(&dev).unwrap();
        assert_eq!(contexts.get("dev").unwrap(), dev);
        assert_eq!(contexts.names().unwrap(), ["dev"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let own = contexts.dir_of("dev").unwrap();
        assert_eq!((mode(&own), mode(&own.join(FILE))), (0o700, 0o600));
    }

    #[test]
    fn a_removed_context_is_not_the_current_one() {
        let dir = TempDir::new().unwrap();
        let contexts = Contexts::at(dir.path());
        for name in ["a", "b"] {
            contexts.put(&context(name, &contexts)).unwrap();
        }
        contexts.set_current("a").unwrap();
        contexts.remove("b").unwrap();
        assert_eq!(contexts.current().unwrap().as_deref(), Some("a"));
        contexts.remove("a").unwrap();
        assert_eq!(contexts.current().unwrap(), None);
        let gone = contexts.remove("a").unwrap_err();
        assert!(matches!(gone, ContextError::NotThere { .. }), "{gone}");
    }

    #[test]
    fn a_context_that_is_not_there_is_not_chosen() {
        let dir = TempDir::new().unwrap();
        let contexts = Contexts::at(dir.path());
        contexts.put(&context("dev", &contexts)).unwrap();
        let error = contexts.set_current("bev").unwrap_err();
        assert_eq!(error.to_string(), "there is no context bev");
        assert_eq!(error.advice(), "there are: dev");
        assert_eq!(contexts.current().unwrap(), None);
    }

    #[test]
    fn names_lead_nowhere_else() {
        let contexts = Contexts::at("/thorp");
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "-x",
            "a b",
            "a\n",
            &"x".repeat(65),
        ] {
            let error = contexts.dir_of(bad).unwrap_err();
            assert!(matches!(error, ContextError::BadName { .. }), "{bad}");
        }
        assert!(contexts.dir_of("alps.north_1-b").is_ok());
    }

    #[test]
    fn an_unknown_key_is_named_beside_the_known_ones() {
        let dir = TempDir::new().unwrap();
        let contexts = Contexts::at(dir.path());
        contexts.put(&context("dev", &contexts)).unwrap();
        let path = contexts.dir_of("dev").unwrap().join(FILE);
        fs::write(&path, "joyn = []\nvillage = \"x\"").unwrap();
        let words = contexts.get("dev").unwrap_err().to_string();
        assert!(
            words.contains("joyn") && words.contains("`join`"),
            "{words}"
        );
        fs::write(&path, "x".repeat(70_000)).unwrap();
        assert!(
            contexts
                .get("dev")
                .unwrap_err()
                .to_string()
                .contains("more than")
        );
    }

    #[test]
    fn variables_say_where_they_are() {
        let by = |set: &'static [(&str, &str)]| {
            let found = Contexts::by(&|name| {
                let set = set.iter().find(|(known, _)| *known == name);
                set.map(|(_, value)| OsString::from(value))
            });
            found.map(|contexts| contexts.dir.display().to_string())
        };
        assert_eq!(by(&[("THORP_CONFIG", "/c"), ("HOME", "/h")]).unwrap(), "/c");
        assert_eq!(
            by(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]).unwrap(),
            "/x/thorp"
        );
        assert_eq!(
            by(&[("XDG_CONFIG_HOME", "x"), ("HOME", "/h")]).unwrap(),
            "/h/.config/thorp"
        );
        assert!(matches!(
            by(&[("HOME", "")]),
            Err(ContextError::NoDirectory)
        ));
    }
}
