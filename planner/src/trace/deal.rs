//! Who asks for what, where a trace does not tell.

use super::Trace;
use crate::{Invalid, positive};
use fastrand::Rng;
use std::fmt;
use std::str::FromStr;

/// A rule by which the requests of a trace are dealt to clients. What neighbours can do for each other depends on it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Dealing {
    /// As the trace tells.
    Named,
    /// Each file has what another client asked for.
    ByFile,
    /// In turn, a request each. Runs over neighbouring objects are torn apart, and everybody uses everything.
    RoundRobin,
    /// Each request to anybody, with the same chance.
    Random,
    /// All requests for an object to the same client: nothing is shared, and each client has its part of the objects.
    ByObject,
    /// Runs of requests that stay with one client, which is then drawn anew: of geometric length.
    Runs {
        /// Their mean length in requests.
        mean: f64,
    },
    /// Slices of time, in turn.
    Slices {
        /// The length of a slice.
        seconds: f64,
    },
}

impl fmt::Display for Dealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dealing::Named => f.write_str("as the trace names its clients"),
            Dealing::ByFile => f.write_str("each file as a member of its own"),
            Dealing::RoundRobin => f.write_str("one request each in turn"),
            Dealing::Random => f.write_str("each request to anybody"),
            Dealing::ByObject => f.write_str("all requests for an object to the same client"),
            Dealing::Runs { mean } => write!(f, "in runs of {mean} requests on average"),
            Dealing::Slices { seconds } => write!(f, "by slices of {seconds} s in turn"),
        }
    }
}

/// From `named`, `by-file`, `round-robin`, `random`, `by-object`, `runs=50` or `slices=60`.
impl FromStr for Dealing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text} is none of named, by-file, round-robin, random, by-object, runs=REQUESTS, slices=SECONDS"
            )
        };
        let (name, number) = text.split_once('=').unwrap_or((text, ""));
        let number = number.parse::<f64>();
        Ok(match (name, number) {
            ("named", Err(_)) if name == text => Dealing::Named,
            ("by-file", Err(_)) if name == text => Dealing::ByFile,
            ("round-robin", Err(_)) if name == text => Dealing::RoundRobin,
            ("random", Err(_)) if name == text => Dealing::Random,
            ("by-object", Err(_)) if name == text => Dealing::ByObject,
            ("runs", Ok(mean)) => Dealing::Runs { mean },
            ("slices", Ok(seconds)) => Dealing::Slices { seconds },
            _ => return Err(wrong()),
        })
    }
}

/// The client that makes each request of a trace.
///
/// # Errors
///
/// [`Invalid`] if there is no client, more than there are places for, or the trace does not tell what the rule needs.
pub fn dealt(trace: &Trace, rule: Dealing, clients: usize, seed: u64) -> Result<Vec<u16>, Invalid> {
    if clients == 0 || clients > usize::from(u16::MAX) {
        return Err(Invalid::new(
            "clients",
            format!("must be from 1 to {}, not {clients}", u16::MAX),
        ));
    }
    let mut random = Rng::with_seed(seed);
    let count = clients as u16;
    let requests = 0..trace.pages.len();
    Ok(match rule {
        Dealing::Named => named(trace, clients)?,
        Dealing::ByFile => by_file(trace, clients)?,
        Dealing::RoundRobin => requests.map(|at| (at % clients) as u16).collect(),
        Dealing::Random => requests.map(|_| random.u16(..count)).collect(),
        Dealing::ByObject => trace
            .pages
            .iter()
            .map(|&page| share(page, seed, clients) as u16)
            .collect(),
        Dealing::Runs { mean } => runs(requests.len(), mean, count, &mut random)?,
        Dealing::Slices { seconds } => slices(trace, seconds, clients)?,
    })
}

fn named(trace: &Trace, clients: usize) -> Result<Vec<u16>, Invalid> {
    match trace.client_count() {
        0 => Err(Invalid::new(
            "deal",
            "must be round-robin, random, by-object, runs=REQUESTS or slices=SECONDS: the trace names no clients",
        )),
        named if named > clients => {
            let why =
                format!("must be at least {named}, as many as the trace names, not {clients}");
            Err(Invalid::new("clients", why))
        }
        _ => Ok(trace.clients.iter().map(|&client| client as u16).collect()),
    }
}

fn by_file(trace: &Trace, clients: usize) -> Result<Vec<u16>, Invalid> {
    let files = trace.files.len().max(1);
    if files > clients {
        let why = format!("must be at least {files}, as many as there are files, not {clients}");
        return Err(Invalid::new("clients", why));
    }
    if trace.from.is_empty() {
        return Ok(vec![0; trace.pages.len()]);
    }
    Ok(trace.from.iter().map(|&file| file as u16).collect())
}

fn runs(requests: usize, mean: f64, clients: u16, random: &mut Rng) -> Result<Vec<u16>, Invalid> {
    crate::at_least("deal", mean, 1.0)?;
    let mut client = random.u16(..clients);
    let next = |_| {
        if random.f64() * mean < 1.0 {
            client = random.u16(..clients);
        }
        client
    };
    Ok((0..requests).map(next).collect())
}

fn slices(trace: &Trace, seconds: f64, clients: usize) -> Result<Vec<u16>, Invalid> {
    positive("deal", seconds)?;
    let Some(&first) = trace.times_us.first() else {
        return Err(Invalid::new(
            "deal",
            "must be round-robin, random, by-object or runs=REQUESTS: the trace does not tell when",
        ));
    };
    let slice = |time: &u64| (time.saturating_sub(first) as f64 / (seconds * 1e6)) as usize;
    Ok(trace
        .times_us
        .iter()
        .map(|time| (slice(time) % clients) as u16)
        .collect())
}

/// One of so many, always the same for a page, with the same chance for each.
pub(crate) fn share(page: u32, seed: u64, of: usize) -> usize {
    let mut random = Rng::with_seed(seed ^ u64::from(page).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.usize(..of)
}
