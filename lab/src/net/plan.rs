//! Who is on the network, and how they are joined.

use super::link::Link;
use super::tuning::Tuning;
use crate::Outcome;
use crate::quantity;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Everybody's network: 10.77.0.0/24, in namespaces of their own, so that it is in nobody's way.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const PREFIX: u8 = 24;
/// As many as the network has addresses for, and some air.
const SPOKES_MAX: usize = 200;
/// A name is a part of a namespace's, which is a file's.
const NAME_MAX: usize = 32;

/// A star: spokes, each with its link to the middle; what two of them have between them, both links give together, or the
/// pair's own settings.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Who is on the network.
    pub spokes: Vec<Spoke>,
    /// What is asked of pairs, in both directions.
    pub pairs: Vec<Pair>,
    /// How the TCP of the spokes is set.
    pub tuning: Tuning,
    /// How long a packet may wait for a line before the line's queue is full and drops it.
    #[serde(serialize_with = "as_text")]
    pub queue: Duration,
    /// The largest packet.
    pub mtu: u16,
    /// Repeats what is lost and what jitters; not the timing of what is sent.
    pub seed: u64,
    /// The carrying thread goes before everything else on the machine. Without it a loaded machine adds milliseconds.
    pub realtime: bool,
}

/// One place on the network.
#[derive(Clone, Debug, Serialize)]
pub struct Spoke {
    /// In the lab's messages and the namespace's name.
    pub name: String,
    /// Its own.
    pub address: Ipv4Addr,
    /// To the middle.
    pub link: Link,
}

/// What is asked of a pair of spokes.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Their names.
    pub ends: (String, String),
    /// Overrides what the spokes' links say.
    pub link: Link,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            spokes: Vec::new(),
            pairs: Vec::new(),
            tuning: Tuning::default(),
            queue: Duration::from_millis(100),
            mtu: 1500,
            seed: 1,
            realtime: true,
        }
    }
}

impl Plan {
    /// Two spokes, the first with this link to the middle and the second right there.
    pub fn two(a: &str, b: &str, link: Link) -> Outcome<Self> {
        let mut plan = Plan::default();
        plan.add(a, link)?;
        plan.add(b, Link::default())?;
        Ok(plan)
    }

    /// Adds a spoke at the next free address.
    pub fn add(&mut self, name: &str, link: Link) -> Outcome<()> {
        let mut address = FIRST;
        while self.spokes.iter().any(|spoke| spoke.address == address) {
            address = Ipv4Addr::from_bits(address.to_bits() + 1);
        }
        self.add_at(name, address, link)
    }

    /// Adds a spoke at this address.
    pub fn add_at(&mut self, name: &str, address: Ipv4Addr, link: Link) -> Outcome<()> {
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if name.is_empty() || name.len() > NAME_MAX || !plain {
            return Err(format!("{name:?} is no name of a spoke: letters, digits, '-', '_' and '.', at most {NAME_MAX}").into());
        }
        if !on_network(address) {
            return Err(format!("{name}: {address} is not an address of {FIRST}/{PREFIX}").into());
        }
        if let Some(other) = self
            .spokes
            .iter()
            .find(|spoke| spoke.name == name || spoke.address == address)
        {
            return Err(format!(
                "{name} at {address}: there is {} at {} already",
                other.name, other.address
            )
            .into());
        }
        if self.spokes.len() == SPOKES_MAX {
            return Err(format!("more than {SPOKES_MAX} spokes are not carried").into());
        }
        self.spokes.push(Spoke {
            name: name.to_owned(),
            address,
            link,
        });
        Ok(())
    }

    /// Adds a spoke as a command line tells it: `home:20ms,loss=1%` or `home:10.77.0.5:20ms`.
    pub fn add_told(&mut self, text: &str) -> Outcome<()> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let (address, link) = match rest.split_once(':') {
            Some((address, link)) => (Some(address), link),
            None if rest.parse::<Ipv4Addr>().is_ok() => (Some(rest), ""),
            None => (None, rest),
        };
        let link = link.parse().map_err(|why| format!("{text}: {why}"))?;
        match address {
            Some(address) => {
                let no_address =
                    |_| format!("{text}: {address:?} is no address: write it like {FIRST}");
                self.add_at(name, address.parse().map_err(no_address)?, link)
            }
            None => self.add(name, link),
        }
    }

    /// Adds what is asked of a pair, as a command line tells it: `home,site:rtt=80ms,loss=1%`.
    pub fn ask_told(&mut self, text: &str) -> Outcome<()> {
        let told = text
            .split_once(':')
            .and_then(|(ends, link)| Some((ends.split_once(',')?, link)));
        let ((a, b), link) =
            told.ok_or_else(|| format!("{text:?} is no pair: write it like home,site:rtt=80ms"))?;
        let link = link.parse().map_err(|why| format!("{text}: {why}"))?;
        self.pairs.push(Pair {
            ends: (a.to_owned(), b.to_owned()),
            link,
        });
        Ok(())
    }

    /// Whether it can be made.
    pub(super) fn check(&self) -> Outcome<()> {
        if self.spokes.len() < 2 {
            return Err("a network has at least two spokes".into());
        }
        if !(576..=9000).contains(&self.mtu) {
            return Err(format!("an MTU of {}: 576 to 9000 can be carried", self.mtu).into());
        }
        for Pair { ends: (a, b), .. } in &self.pairs {
            let known = |name: &String| self.spokes.iter().any(|spoke| spoke.name == *name);
            if a == b || !known(a) || !known(b) {
                return Err(format!("{a},{b} is no pair of spokes of this plan").into());
            }
        }
        Ok(())
    }
}

/// Not the network itself, nor everybody's address.
fn on_network(address: Ipv4Addr) -> bool {
    let hosts = 32 - u32::from(PREFIX);
    let host = address.to_bits() & ((1 << hosts) - 1);
    address.to_bits() >> hosts == FIRST.to_bits() >> hosts && host != 0 && host != (1 << hosts) - 1
}

fn as_text<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&quantity::show_duration(*time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(spokes: &[&str], pairs: &[&str]) -> Outcome<Plan> {
        let mut plan = Plan::default();
        spokes.iter().try_for_each(|spoke| plan.add_told(spoke))?;
        pairs.iter().try_for_each(|pair| plan.ask_told(pair))?;
        plan.check()?;
        Ok(plan)
    }

    #[test]
    fn a_star_is_read() {
        let plan = told(
            &[
                "home:20ms,loss=1%",
                "site:10.77.0.9",
                "far:10.77.0.7:5ms",
                "near",
            ],
            &["site,far:rtt=80ms"],
        );
        let plan = plan.expect("a plan");
        let addresses: Vec<_> = plan
            .spokes
            .iter()
            .map(|spoke| spoke.address.octets()[3])
            .collect();
        assert_eq!(addresses, [1, 9, 7, 2]);
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_the_reason() {
        let refused = [
            (vec!["home"], vec![], "at least two"),
            (vec!["home", "home"], vec![], "already"),
            (
                vec!["home:10.77.0.1:", "site:10.77.0.1:"],
                vec![],
                "already",
            ),
            (vec!["home", "si te"], vec![], "no name"),
            (vec!["home", "../x"], vec![], "no name"),
            (vec!["home", "site:10.78.0.1:"], vec![], "not an address"),
            (vec!["home", "site:10.77.0.255:"], vec![], "not an address"),
            (vec!["home", "site:1.2:20ms"], vec![], "no address"),
            (vec!["home", "site:quick"], vec![], "no time"),
            (
                vec!["home", "site"],
                vec!["home,ship:rtt=1ms"],
                "no pair of spokes",
            ),
            (
                vec!["home", "site"],
                vec!["home,home:rtt=1ms"],
                "no pair of spokes",
            ),
            (vec!["home", "site"], vec!["home:rtt=1ms"], "no pair"),
        ];
        for (spokes, pairs, reason) in refused {
            let why = told(&spokes, &pairs).expect_err(reason).to_string();
            assert!(why.contains(reason), "{why:?} does not say {reason:?}");
        }
    }
}
