//! The homes behind what was joined, and their clocks.

use super::clock;
use super::configuration::Place;
use super::{Check, Checks};
use crate::connect::Via;
use crate::failure::Failure;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
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
    for (name, there, here) in clocks(&member, deadline) {
        checks.add(clock::check(&name, there, here))?;
    }
    member.close();
    Ok(())
}

/// What the homes promise, and the time here at that moment. A home that was alone promises nothing new before its
/// first heartbeats, so a large difference is looked at again for a while.
fn clocks(member: &Member, deadline: Instant) -> Vec<(String, SystemTime, SystemTime)> {
    let due = deadline.min(Instant::now() + HEARTBEATS);
    loop {
        let here = SystemTime::now();
        let homes = member.homes().into_iter().filter(|home| home.reachable);
        let found: Vec<_> = homes
            .map(|home| (home.name, home.clock.map(|at| at + home.silent)))
            .collect();
        let is_near = |(_, there): &(String, Option<SystemTime>)| {
            there.is_some_and(|there| clock::is_near(there, here))
        };
        if found.iter().all(is_near) || Instant::now() >= due {
            let known = found.into_iter();
            return known
                .filter_map(|(name, there)| Some((name, there?, here)))
                .collect();
        }
        thread::sleep(AGAIN);
    }
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
        Some(home) if home.reachable => Check::ok("home", format!("home {name} is reached")),
        _ => Check::problem(
            "home",
            format!("home {name} is out of reach"),
            "start it, if it is stopped",
        )
        .or("`thorp status` on the machine of the site tells why the site does not reach it"),
    }
}

/// Time for some heartbeats of a home, of half a second each, and for its disk.
const HEARTBEATS: Duration = Duration::from_secs(3);
/// Between two looks.
const AGAIN: Duration = Duration::from_millis(50);
