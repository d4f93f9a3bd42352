//! The homes behind what was joined, and their clocks.

use super::clock;
use super::configuration::Place;
use super::{Check, Checks};
use crate::connect::Via;
use crate::failure::Failure;
use std::time::{Instant, SystemTime};
use thorp_client::{HomeStatus, Member, Whereabouts};

/// Joins as every command does, and leaves again.
pub(super) fn check(
    via: &Via,
    place: &Place,
    deadline: Instant,
    checks: &mut Checks,
) -> Result<(), Failure> {
    let Some(identity) = &place.identity else {
        return Ok(());
    };
    let found = Whereabouts {
        via: place.addresses.iter().map(ToString::to_string).collect(),
        identity: identity.clone(),
    };
    let member = match via.join_at(found, deadline) {
        Ok(member) => member,
        Err(failure) => {
            let check = Check::problem("joining", failure.what(), "");
            return checks.add(failure.advice().fold(check, Check::or));
        }
    };
    checks.add(joined(&member))?;
    let names = member.home_names();
    let known = member.homes();
    let now = SystemTime::now();
    match names {
        Ok(told) if told.names.is_empty() => checks.add(Check::problem(
            "homes",
            "nobody has said which homes there are",
            "`thorp status` on the machine of the site tells which homes it is to reach, and why it does not",
        ))?,
        Ok(told) => {
            for name in &told.names {
                let home = known.iter().find(|home| home.name == *name);
                checks.add(reach(name, home))?;
            }
        }
        Err(error) => checks.add(Check::problem("homes", error.to_string(), error.advice()))?,
    }
    for home in known.iter().filter(|home| home.reachable) {
        if let Some(at) = home.clock {
            checks.add(clock::check(&home.name, at + home.silent, now))?;
        }
    }
    member.close();
    Ok(())
}

fn joined(member: &Member) -> Check {
    let site = member.site();
    let name = site.name.unwrap_or_else(|| "a node".to_owned());
    let found = match site.address {
        Some(address) => format!("commands join {name} at {address}"),
        None => format!("commands join {name}"),
    };
    Check::ok("joining", found)
}

fn reach(name: &str, home: Option<&HomeStatus>) -> Check {
    match home {
        Some(home) if home.reachable => Check::ok(
            "home",
            format!("home {name} is reached, at position {}", home.position.0),
        ),
        _ => Check::problem(
            "home",
            format!("home {name} is out of reach"),
            "start it, if it is stopped",
        )
        .or("`thorp status` on the machine of the site tells why the site does not reach it"),
    }
}
