//! The checked settings of a member that joins.

use crate::addresses::check_addresses;
use crate::embedded_site::{Edges, EmbeddedSite};
use crate::trace::Recorder;
use crate::{JoinConfig, JoinError, SiteOfMembers};
use std::path::Path;
use std::time::Duration;
use thorp_net::driver::{CALLED_WITHIN, PARENTS_MAX, ParentConfig};
use thorp_net::{Address, Identity, Limits, LinkDelay, NodeRole, issue, site_dir};
use thorp_protocol::{AliveLimits, AliveLimitsError};

/// The recorder of a trace, if the configuration names a file.
pub(super) fn recorder(config: &JoinConfig) -> Result<Option<Recorder>, JoinError> {
    let Some(path) = &config.record_trace else {
        return Ok(None);
    };
    let recorder = Recorder::open(path, &config.name);
    recorder.map(Some).map_err(|error| JoinError::Trace {
        file: path.clone(),
        error,
    })
}

/// The identity of a program: a member's or an operator's (rule R1).
pub(super) fn identity(config: &JoinConfig) -> Result<Identity, JoinError> {
    let identity = match (&config.ready_identity, &config.identity) {
        (Some(identity), _) => identity.clone(),
        (None, Some(dir)) => identity_in(dir, &config.name)?,
        (None, None) => {
            return Err(JoinError::Address(
                "no identity was given: JoinConfig::identity names its directory".to_owned(),
            ));
        }
    };
    match identity.role() {
        NodeRole::Member | NodeRole::Operator => Ok(identity),
        NodeRole::Home | NodeRole::Site | NodeRole::Authority => {
            Err(JoinError::NoMember(identity.certified().clone()))
        }
    }
}

fn identity_in(dir: &Path, name: &str) -> Result<Identity, JoinError> {
    // Several programs may share a directory: the node's certificate counts, whatever they call themselves.
    let holds = |file: &str| dir.join(file).exists();
    // A misspelt directory gets no authority: that would be a village of its own, without other nodes.
    let identity = match !holds("node.pem") && holds("authority.key") {
        true => issue(dir, dir, NodeRole::Member, name),
        false => Identity::load(dir),
    };
    identity.map_err(JoinError::Identity)
}

/// The second identity of a member that carries a redirector: of role site, under the member's own name (rules R1 and R4).
pub(super) fn site_identity(
    config: &JoinConfig,
    site: &SiteOfMembers,
    of_member: &Identity,
) -> Result<Identity, JoinError> {
    let beside = config.identity.as_ref().map(site_dir);
    let identity = match (
        &site.ready_identity,
        site.identity.as_ref().or(beside.as_ref()),
    ) {
        (Some(identity), _) => identity.clone(),
        (None, Some(dir)) if dir.is_dir() => Identity::load(dir).map_err(JoinError::Identity)?,
        (None, dir) => {
            return Err(JoinError::NoSite {
                name: of_member.name().to_owned(),
                found: dir.map_or_else(String::new, |dir| {
                    format!(", and {} is no directory", dir.display())
                }),
            });
        }
    };
    let (name, certified) = (of_member.name(), identity.certified());
    match certified.role() == NodeRole::Site && certified.name() == name {
        true => Ok(identity),
        false => Err(JoinError::NoSite {
            name: name.to_owned(),
            found: format!(", and the one that was given is that of {certified}"),
        }),
    }
}

fn alive(config: &JoinConfig) -> Result<AliveLimits, JoinError> {
    let Err(error) = config.alive.check() else {
        return Ok(config.alive);
    };
    let what = match error {
        AliveLimitsError::Period => "the period in milliseconds",
        AliveLimitsError::Missed => "the number of periods",
    };
    Err(JoinError::Limit(format!(
        "JoinConfig::alive: {what} has to be {error}"
    )))
}

pub(super) fn edges(config: &JoinConfig) -> Result<Edges, JoinError> {
    let congestion = &config.congestion;
    congestion.check().map_err(|error| {
        JoinError::Limit(format!(
            "JoinConfig::congestion: the system does not let this program use {congestion}: {error}"
        ))
    })?;
    Ok(Edges {
        delay: LinkDelay::new(config.link_delay),
        alive: alive(config)?,
        limits: Limits {
            congestion: congestion.clone(),
            ..Limits::default()
        },
    })
}

pub(super) fn parents(
    config: &JoinConfig,
    carrier: Option<&EmbeddedSite>,
) -> Result<Vec<ParentConfig>, JoinError> {
    check_lists(&config.parents).map_err(JoinError::Address)?;
    let parents = config.parents.iter().map(|addresses| {
        let parsed: Result<Vec<Address>, _> = addresses.iter().map(|text| text.parse()).collect();
        parsed.map_err(|error| JoinError::Address(error.to_string()))
    });
    let mut parents: Vec<Vec<Address>> = parents.collect::<Result<_, _>>()?;
    let Some(carrier) = carrier else {
        let parents = parents.into_iter().map(ParentConfig::new);
        return Ok(parents
            .map(|parent| parent.delayed(config.link_delay))
            .map(|parent| parent.called_within(called_within(config)))
            .collect());
    };
    if parents.len() > 1 {
        return Err(JoinError::Address(
            "a member of a site has no homes of its own: name all homes with SiteOfMembers::home, none with and_home"
                .to_owned(),
        ));
    }
    let parent = carrier.parent(parents.pop().unwrap_or_default());
    Ok(vec![parent.called_within(called_within(config))])
}

/// All addresses are called within this time. The last one then has as long to answer.
fn called_within(config: &JoinConfig) -> Duration {
    CALLED_WITHIN.min(config.join_timeout / 2)
}

fn check_lists(parents: &[Vec<String>]) -> Result<(), String> {
    if parents.len() > PARENTS_MAX {
        return Err(format!(
            "{} homes are too many for one member: {PARENTS_MAX} are the most",
            parents.len()
        ));
    }
    parents
        .iter()
        .try_for_each(|addresses| check_addresses(addresses))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_net::ADDRESSES_MAX;

    #[test]
    fn all_of_a_list_are_called_before_joining_is_given_up() {
        let called_within = |join_timeout| {
            let config = JoinConfig::new("a:1").or_at("b:1");
            parents(&config.join_timeout(join_timeout), None).unwrap()[0].called_within
        };
        for seconds in [1, 10, 100] {
            let timeout = Duration::from_secs(seconds);
            assert!(called_within(timeout) <= timeout / 2);
        }
    }

    #[test]
    fn lists_are_bounded() {
        let at = |count: usize| {
            let others = (1..count).map(|n| format!("b:{n}"));
            others.fold(JoinConfig::new("a:1"), JoinConfig::or_at)
        };
        let homes = |count: usize| {
            let others = (1..count).map(|n| format!("b:{n}"));
            others.fold(JoinConfig::new("a:1"), JoinConfig::and_home)
        };
        let parents = |config: JoinConfig| parents(&config, None);
        assert_eq!(
            parents(at(ADDRESSES_MAX)).unwrap()[0].addresses.len(),
            ADDRESSES_MAX
        );
        assert_eq!(parents(homes(PARENTS_MAX)).unwrap().len(), PARENTS_MAX);
        for many in [at(ADDRESSES_MAX + 1), homes(PARENTS_MAX + 1)] {
            let error = parents(many).unwrap_err().to_string();
            assert!(error.contains("too many"), "{error}");
        }
    }

    #[test]
    fn limits_with_which_every_parent_would_be_silent_are_refused() {
        let wrong = |every_ms, missed| {
            let config = JoinConfig::new("a:1").alive(Duration::from_millis(every_ms), missed);
            edges(&config).err().map(|error| error.to_string())
        };
        assert_eq!(wrong(10, 2), None);
        assert!(wrong(0, 15).unwrap().contains("the period in milliseconds"));
        assert!(wrong(1000, 0).unwrap().contains("the number of periods"));
    }
}
