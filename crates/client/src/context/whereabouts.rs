//! Where to join and as whom, from flags, variables and contexts.

use super::{Context, ContextError, Contexts};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// What flags have said. A program without flags has said nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Given {
    /// Addresses to join.
    pub via: Vec<String>,
    /// The directory of certificate and key.
    pub identity: Option<PathBuf>,
    /// The name of a context.
    pub context: Option<String>,
}

/// Where to join, and as whom.
///
/// A flag goes before a variable, and a variable goes before the current context. Of the variables, `THORP_VIA` and
/// `THORP_IDENTITY` go before `THORP_CONTEXT`, which names another context than the current one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whereabouts {
    /// The addresses of a site, or of the sites that take each other's place, or of a home.
    pub via: Vec<String>,
    /// The directory of certificate and key.
    pub identity: PathBuf,
}

/// What has said each part of [`Whereabouts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origins {
    /// Where to join.
    pub via: Origin,
    /// Where certificate and key are.
    pub identity: Origin,
}

/// What has said a part of [`Whereabouts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Its own flag.
    Flag,
    /// Its own variable.
    Variable,
    /// A context.
    Context {
        /// The name of the context.
        name: String,
        /// What has chosen it.
        by: ChosenBy,
    },
}

/// What has chosen a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChosenBy {
    /// A flag.
    Flag,
    /// The variable `THORP_CONTEXT`.
    Variable,
    /// Nothing: it is the current one.
    Current,
}

impl Whereabouts {
    /// What counts for whoever runs this process.
    ///
    /// # Errors
    ///
    /// [`ContextError`].
    pub fn find(given: Given) -> Result<Self, ContextError> {
        Ok(Self::find_with_origins(given)?.0)
    }

    /// As [`Whereabouts::find`], and what has said it.
    ///
    /// # Errors
    ///
    /// [`ContextError`].
    pub fn find_with_origins(given: Given) -> Result<(Self, Origins), ContextError> {
        Self::by(given, &|name| env::var_os(name))
    }

    pub(super) fn by(
        given: Given,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<(Self, Origins), ContextError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let chosen = match &given.context {
            Some(name) => Some(Contexts::by(variable)?.get(name)?),
            None => None,
        };
        let mut fallback = Fallback {
            variable,
            found: None,
        };
        let (via, via_from) = match (given.via.is_empty(), &chosen, set(VIA)) {
            (false, ..) => (given.via, Origin::Flag),
            (true, Some(context), _) => (context.join.clone(), context_of(context, ChosenBy::Flag)),
            (true, None, Some(list)) => (addresses(&list.to_string_lossy()), Origin::Variable),
            (true, None, None) => {
                let (context, by) = fallback.context(&NO_VIA)?;
                let from = context_of(&context, by);
                (context.join, from)
            }
        };
        let (identity, identity_from) = match (given.identity, chosen, set(IDENTITY)) {
            (Some(dir), ..) => (dir, Origin::Flag),
            (None, Some(context), _) => {
                let from = context_of(&context, ChosenBy::Flag);
                (identity_in(context)?, from)
            }
            (None, None, Some(dir)) => (dir.into(), Origin::Variable),
            (None, None, None) => {
                let (context, by) = fallback.context(&NO_IDENTITY)?;
                let from = context_of(&context, by);
                (identity_in(context)?, from)
            }
        };
        let origins = Origins {
            via: via_from,
            identity: identity_from,
        };
        Ok((Whereabouts { via, identity }, origins))
    }
}

fn context_of(context: &Context, by: ChosenBy) -> Origin {
    Origin::Context {
        name: context.name.clone(),
        by,
    }
}

/// The context that a variable names, or the current one.
struct Fallback<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    found: Option<(Context, ChosenBy)>,
}

/// What is missing if there is none.
struct Missing {
    what: &'static str,
    flag: &'static str,
    variable: &'static str,
}

impl Fallback<'_> {
    fn context(&mut self, missing: &Missing) -> Result<(Context, ChosenBy), ContextError> {
        if let Some(found) = &self.found {
            return Ok(found.clone());
        }
        let contexts = match Contexts::by(self.variable) {
            Ok(contexts) => contexts,
            Err(ContextError::NoDirectory) => return Err(missing.error(Vec::new())),
            Err(error) => return Err(error),
        };
        let named = (self.variable)(CONTEXT).filter(|name| !name.is_empty());
        let (name, by) = match named {
            Some(name) => (
                Some(name.to_string_lossy().into_owned()),
                ChosenBy::Variable,
            ),
            None => (contexts.current()?, ChosenBy::Current),
        };
        let Some(name) = name else {
            return Err(missing.error(contexts.names()?));
        };
        Ok(self.found.insert((contexts.get(&name)?, by)).clone())
    }
}

impl Missing {
    fn error(&self, known: Vec<String>) -> ContextError {
        ContextError::NotSaid {
            what: self.what,
            flag: self.flag,
            variable: self.variable,
            known,
        }
    }
}

fn addresses(list: &str) -> Vec<String> {
    list.split(',').map(|one| one.trim().to_owned()).collect()
}

/// A context without its files says so; whatever else is wrong with an identity, loading it says.
fn identity_in(context: Context) -> Result<PathBuf, ContextError> {
    match context.identity.is_dir() {
        true => Ok(context.identity),
        false => Err(ContextError::Incomplete {
            name: context.name,
            missing: context.identity,
        }),
    }
}

const VIA: &str = "THORP_VIA";
const IDENTITY: &str = "THORP_IDENTITY";
const CONTEXT: &str = "THORP_CONTEXT";

const NO_VIA: Missing = Missing {
    what: "no site or home was named",
    flag: "--via",
    variable: VIA,
};
const NO_IDENTITY: Missing = Missing {
    what: "no identity was given",
    flag: "--identity",
    variable: IDENTITY,
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// Contexts `dev` and `far`, of which `dev` is the current one.
    fn two() -> TempDir {
        let dir = TempDir::new().unwrap();
        let contexts = Contexts::at(dir.path());
        for name in ["dev", "far"] {
            let identity = contexts.identity_of(name).unwrap();
            fs::create_dir_all(&identity).unwrap();
            let join = vec![format!("{name}:1")];
            let context = Context {
                name: name.to_owned(),
                join,
                identity,
                ..Context::default()
            };
            contexts.put(&context).unwrap();
        }
        contexts.set_current("dev").unwrap();
        dir
    }

    fn find(dir: &TempDir, given: Given, set: &[(&str, &str)]) -> Result<(String, String), String> {
        let found = Whereabouts::by(given, &|name| {
            if name == "THORP_CONFIG" {
                return Some(dir.path().into());
            }
            let set = set.iter().find(|(known, _)| *known == name);
            set.map(|(_, value)| OsString::from(value))
        });
        let (found, _) = found.map_err(|error| format!("{error} -> {}", error.advice()))?;
        let identity = found.identity.strip_prefix(dir.path().join("contexts"));
        let identity = identity.unwrap_or(&found.identity).display().to_string();
        Ok((found.via.join(","), identity))
    }

    fn given(via: &str, identity: &str, context: &str) -> Given {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Given {
            via: some(via).into_iter().collect(),
            identity: some(identity).map(PathBuf::from),
            context: some(context),
        }
    }

    #[test]
    fn a_flag_goes_before_a_variable_and_that_before_the_current_context() {
        let dir = two();
        let found = |given, set: &[(&str, &str)]| find(&dir, given, set).unwrap();
        let both = |via: &str, identity: &str| (via.to_owned(), identity.to_owned());
        let dev = both("dev:1", "dev/identity");
        let far = both("far:1", "far/identity");
        assert_eq!(found(Given::default(), &[]), dev);
        assert_eq!(found(Given::default(), &[(CONTEXT, "far")]), far);
        assert_eq!(found(given("", "", "far"), &[]), far);
        assert_eq!(found(given("", "", "dev"), &[(CONTEXT, "far")]), dev);
        let variables = [(VIA, "v:1, w:1"), (IDENTITY, "/v"), (CONTEXT, "far")];
        assert_eq!(found(Given::default(), &variables), both("v:1,w:1", "/v"));
        assert_eq!(found(given("", "", "dev"), &variables), dev);
        assert_eq!(
            found(given("f:1", "/f", "dev"), &variables),
            both("f:1", "/f")
        );
        assert_eq!(
            found(given("f:1", "", ""), &[]),
            both("f:1", "dev/identity")
        );
        assert_eq!(found(Given::default(), &[(VIA, "")]), dev);
    }

    #[test]
    fn what_has_said_it_is_known() {
        let dir = two();
        let origins = |given, set: &[(&str, &str)]| {
            let found = Whereabouts::by(given, &|name| match name {
                "THORP_CONFIG" => Some(dir.path().into()),
                _ => {
                    let set = set.iter().find(|(known, _)| *known == name);
                    set.map(|(_, value)| OsString::from(value))
                }
            });
            let (_, origins) = found.unwrap();
            (origins.via, origins.identity)
        };
        let context = |name: &str, by| Origin::Context {
            name: name.to_owned(),
            by,
        };
        let both = |origin: Origin| (origin.clone(), origin);
        let none = Given::default;
        assert_eq!(
            origins(none(), &[]),
            both(context("dev", ChosenBy::Current))
        );
        assert_eq!(
            origins(none(), &[(CONTEXT, "far")]),
            both(context("far", ChosenBy::Variable))
        );
        let variables = [(VIA, "v:1"), (IDENTITY, "/v")];
        assert_eq!(origins(none(), &variables), both(Origin::Variable));
        assert_eq!(
            origins(given("", "", "far"), &variables),
            both(context("far", ChosenBy::Flag))
        );
        assert_eq!(
            origins(given("f:1", "", ""), &variables),
            (Origin::Flag, Origin::Variable)
        );
        assert_eq!(origins(given("f:1", "/f", "far"), &[]), both(Origin::Flag));
    }

    #[test]
    fn what_is_missing_is_named_with_what_could_say_it() {
        let dir = two();
        let contexts = Contexts::at(dir.path());
        fs::remove_dir_all(contexts.identity_of("dev").unwrap()).unwrap();
        let gone = find(&dir, Given::default(), &[]).unwrap_err();
        assert!(
            gone.contains("context dev needs") && gone.contains("context rm dev"),
            "{gone}"
        );
        contexts.remove("dev").unwrap();
        let unsaid = find(&dir, Given::default(), &[]).unwrap_err();
        assert!(
            unsaid.contains("--via") && unsaid.contains("use NAME`: far"),
            "{unsaid}"
        );
        contexts.remove("far").unwrap();
        let none = find(&dir, given("a:1", "", ""), &[]).unwrap_err();
        assert!(
            none.contains("THORP_IDENTITY") && none.contains("thorp dev"),
            "{none}"
        );
        let wrong = find(&dir, given("", "", "far"), &[]).unwrap_err();
        assert!(wrong.contains("there is no context far"), "{wrong}");
    }
}
