//! Where to join and as whom, and what has said so.

use super::{Check, Checks};
use crate::connect::Via;
use crate::failure::Failure;
use std::path::PathBuf;
use thorp_client::{ChosenBy, Context, ContextError, Contexts, Given, Origin, Whereabouts};
use thorp_net::Address;

/// What commands would take, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// As they were given.
    pub(super) via: Vec<String>,
    /// Those of them that can be read.
    pub(super) addresses: Vec<Address>,
    /// The directory of certificate and key.
    pub(super) identity: Option<PathBuf>,
    /// The directory of the village's authority, if the context has it.
    pub(super) authority: Option<PathBuf>,
    /// Where nodes of the village serve their status.
    pub(super) status: Vec<String>,
}

impl Place {
    /// What is wrong with it becomes a check; what is known is used.
    pub(super) fn find(via: &Via, checks: &mut Checks) -> Result<Self, Failure> {
        let given = via.given();
        let mut place = match Whereabouts::find_with_origins(given.clone()) {
            Ok((found, origins)) => {
                checks.add(Check::ok(
                    CONFIGURATION,
                    told(&origins.via, &origins.identity),
                ))?;
                let context = context_of(&origins.via).or_else(|| context_of(&origins.identity));
                Place {
                    via: found.via,
                    identity: Some(found.identity),
                    ..Place::of_context(context)
                }
            }
            Err(error) => {
                checks.add(Check::problem(
                    CONFIGURATION,
                    error.to_string(),
                    error.advice(),
                ))?;
                Place::known_of(given, &error)
            }
        };
        place.read_addresses(checks)?;
        Ok(place)
    }

    fn of_context(context: Option<Context>) -> Self {
        let context = context.unwrap_or_default();
        Place {
            authority: context.authority,
            status: context.status,
            ..Place::default()
        }
    }

    /// Addresses may be known if the identity is not, and the other way round.
    fn known_of(given: Given, error: &ContextError) -> Self {
        // A directory that a flag gives is not looked at.
        let stand_in = match error {
            ContextError::Incomplete { missing, .. } => missing.clone(),
            _ => PathBuf::new(),
        };
        let with_identity = Given {
            identity: given.identity.clone().or(Some(stand_in)),
            ..given.clone()
        };
        let with_via = Given {
            via: vec![String::new()],
            ..given
        };
        let via = Whereabouts::find_with_origins(with_identity).ok();
        let context = via
            .as_ref()
            .and_then(|(_, origins)| context_of(&origins.via));
        Place {
            via: via.map_or_else(Vec::new, |(found, _)| found.via),
            identity: Whereabouts::find(with_via).ok().map(|found| found.identity),
            ..Place::of_context(context)
        }
    }

    fn read_addresses(&mut self, checks: &mut Checks) -> Result<(), Failure> {
        for text in &self.via {
            match text.parse() {
                Ok(address) => self.addresses.push(address),
                Err(error) => {
                    let error: thorp_net::AddressError = error;
                    let todo = "write it so, with --via, in THORP_VIA or in the context";
                    checks.add(Check::problem("address", error.to_string(), todo))?;
                }
            }
        }
        Ok(())
    }
}

fn context_of(origin: &Origin) -> Option<Context> {
    match origin {
        Origin::Context { name, .. } => Contexts::of_user().ok()?.get(name).ok(),
        Origin::Flag | Origin::Variable => None,
    }
}

fn told(via: &Origin, identity: &Origin) -> String {
    let place = says(via, "--via", "THORP_VIA");
    let is_one = via == identity && matches!(via, Origin::Context { .. });
    match is_one {
        true => format!("{place} where to join, and as whom"),
        false => {
            let identity = says(identity, "--identity", "THORP_IDENTITY");
            format!("{place} where to join, {identity} as whom")
        }
    }
}

fn says(origin: &Origin, flag: &str, variable: &str) -> String {
    match origin {
        Origin::Flag => format!("{flag} says"),
        Origin::Variable => format!("{variable} says"),
        Origin::Context { name, by } => {
            let by = match by {
                ChosenBy::Flag => "from --context",
                ChosenBy::Variable => "from THORP_CONTEXT",
                ChosenBy::Current => "the current one",
            };
            format!("context {name} ({by}) says")
        }
    }
}

const CONFIGURATION: &str = "configuration";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_said_it_is_told() {
        let dev = Origin::Context {
            name: "dev".to_owned(),
            by: ChosenBy::Current,
        };
        assert_eq!(
            told(&dev, &dev),
            "context dev (the current one) says where to join, and as whom"
        );
        assert_eq!(
            told(&Origin::Flag, &Origin::Variable),
            "--via says where to join, THORP_IDENTITY says as whom"
        );
        assert_eq!(
            told(&Origin::Variable, &Origin::Variable),
            "THORP_VIA says where to join, THORP_IDENTITY says as whom"
        );
    }
}
