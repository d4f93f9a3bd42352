//! What is asked.

use super::limits::{COUNT_MAX, VALUE_MAX};
use super::mix::{self, Alike, routed, unrouted};
use crate::command::given::{Given, Usual};
use crate::memory::{Cluster, Kind, Network, Solution, least_servers, slowdown};
use crate::report::Assumption;
use crate::{Invalid, at_least, fraction, positive};

/// A cluster, and what it has to be good for.
pub(super) struct Question {
    pub(super) cluster: Cluster,
    /// Nobody told which part of the requests goes to local servers: as many as to any other node.
    pub(super) is_local_even: bool,
    pub(super) disk_s: f64,
    pub(super) slowdown_max: f64,
    pub(super) local_busy_max: f64,
    /// None: machines are alike, and servers, but perhaps for one of them.
    pub(super) mix: Option<Mix>,
}

impl Mix {
    pub(super) fn network(&self, cluster: &Cluster) -> Result<Network, Invalid> {
        match &self.rows {
            Some(rows) => routed(cluster, &self.kinds, rows),
            None => unrouted(cluster, &self.kinds),
        }
    }

    pub(super) fn is_routed(&self) -> bool {
        self.rows.is_some()
    }
}

/// Machines that differ, or servers that are asked as a matrix says.
pub(super) struct Mix {
    pub(super) kinds: Vec<Alike>,
    /// None: servers are asked evenly, or as a cluster says.
    rows: Option<Vec<Vec<f64>>>,
}

impl Question {
    pub(super) fn of(given: &mut Given) -> Result<Self, Invalid> {
        let kinds = kinds(given)?;
        let machines = match &kinds {
            Some(kinds) => kinds.iter().map(|kind| kind.machines).sum(),
            None => count(given, &MACHINES, 1)?,
        };
        let rows = rows(given)?;
        let (servers, local_servers) = servers(given, rows.as_deref())?;
        let think_s = match &kinds {
            Some(_) => 0.0,
            None => think_s(given)?,
        };
        let getpage_s = time_s(given, &SERVICE)?;
        let putpage_s = time_s(
            given,
            &Usual {
                value: getpage_s * 1e6,
                ..PUTPAGE
            },
        )?;
        let putpages_per_getpage = at_least_nothing(given, &PUTPAGES)?;
        let hottest_share = match rows {
            Some(_) => None,
            None => hottest_share(given),
        };
        let local_servers = match rows {
            Some(_) => local_servers,
            None => count(given, &LOCAL_SERVERS, 0)?,
        };
        let is_local = local_servers > 0 || given.is_told(LOCAL_SHARE.key);
        let local_share = match is_local && rows.is_none() {
            true => local_share(given, servers, local_servers)?,
            false => 0.0,
        };
        let mix = (kinds.is_some() || rows.is_some()).then(|| Mix {
            kinds: kinds.unwrap_or_else(|| vec![Alike { machines, think_s }]),
            rows,
        });
        let local_busy_max = local_busy_max(given, local_servers, mix.is_some())?;
        Ok(Question {
            is_local_even: local_servers > 0 && !given.is_told(LOCAL_SHARE.key),
            cluster: Cluster {
                machines,
                think_s,
                putpages_per_getpage,
                servers,
                hottest_share,
                local_servers,
                local_share,
                getpage_s,
                putpage_s,
            },
            disk_s: time_s(given, &DISK)?,
            slowdown_max: slowdown_max(given)?,
            local_busy_max,
            mix,
        })
    }

    /// How much longer work takes than if no request had to wait.
    pub(super) fn slowdown(&self, cluster: &Cluster) -> Result<f64, Invalid> {
        let solution = cluster.solve()?;
        let Some(&class) = solution.classes.first() else {
            return Ok(0.0);
        };
        let unhindered = crate::memory::ClassSolution {
            response_s: cluster.getpage_s,
            ..class
        };
        Ok(slowdown(&class, &unhindered))
    }

    /// The time for a page at which work takes as much longer as it may.
    pub(super) fn response_max_s(&self) -> f64 {
        let Cluster {
            think_s, getpage_s, ..
        } = self.cluster;
        getpage_s + self.slowdown_max * (think_s + getpage_s)
    }

    /// The same with so many servers: the busiest is asked as was told, local ones as all others if nobody told.
    pub(super) fn with_servers(&self, servers: u32) -> Cluster {
        let told = self.cluster;
        let even = 1.0 / f64::from(servers.max(1));
        Cluster {
            servers,
            hottest_share: told.hottest_share.map(|share| share.max(even)),
            local_share: match self.is_local_even {
                true => even_share(servers, told.local_servers),
                false => told.local_share,
            },
            ..told
        }
    }

    /// The least number of servers that is enough for so many machines: requests wait no longer than they may, and local
    /// servers lose no more of their time. A cluster of one kind.
    pub(super) fn needed_for(&self, machines: u32) -> Result<Option<u32>, Invalid> {
        let Some(quick) = self.quick_enough(machines, self.response_max_s())? else {
            return Ok(None);
        };
        let spares = |servers: u32| Ok(self.local_busy(machines, servers)? <= self.local_busy_max);
        match self.is_local_even {
            true => least_servers(|servers| Ok(servers >= quick && spares(servers)?)),
            // More servers make machines quicker, which then ask the local ones more often.
            false => Ok(spares(quick)?.then_some(quick)),
        }
    }

    /// The least number of servers with which a page takes no longer than this.
    pub(super) fn quick_enough(
        &self,
        machines: u32,
        response_s: f64,
    ) -> Result<Option<u32>, Invalid> {
        least_servers(|servers| Ok(self.solved(machines, servers)?.response_s() <= response_s))
    }

    /// The part of its time that each local server loses.
    pub(super) fn local_busy(&self, machines: u32, servers: u32) -> Result<f64, Invalid> {
        Ok(self.solved(machines, servers)?.utilisation_max(Kind::Local))
    }

    fn solved(&self, machines: u32, servers: u32) -> Result<Solution, Invalid> {
        let cluster = self.with_servers(servers);
        Cluster {
            machines,
            ..cluster
        }
        .solve()
    }

    /// Whether a disk is as quick as memory servers that nobody waits for.
    pub(super) fn is_disk_as_quick(&self) -> bool {
        self.disk_s <= self.cluster.getpage_s
    }
}

/// The part of the requests that goes to local servers if every node is asked alike.
fn even_share(servers: u32, local_servers: u32) -> f64 {
    let all = f64::from(servers) + f64::from(local_servers);
    match all > 0.0 {
        true => f64::from(local_servers) / all,
        false => 0.0,
    }
}

/// What the model has for all parameters.
pub(super) fn fixed() -> Vec<Assumption> {
    let source = "the model: thesis, section 3.3.1";
    [
        (
            "requests are served",
            "in their order, before a server's own work",
        ),
        (
            "times of thinking (between a page's arrival and the next request) and of service",
            "exponentially distributed",
        ),
        (
            "putpages",
            "nobody waits for them; they come independently of getpages",
        ),
        (
            "the disk",
            "each machine has its own, and nobody queues for it",
        ),
    ]
    .map(|(name, value)| Assumption::new(name, value, source))
    .to_vec()
}

fn kinds(given: &mut Given) -> Result<Option<Vec<Alike>>, Invalid> {
    if !given.is_told(MIX.key) {
        return Ok(None);
    }
    for key in [MACHINES.key, THINK.key, REQUESTS.key] {
        if given.is_told(key) {
            let flag = key.replace('_', "-");
            let why = format!("says otherwise what --{flag} says: leave one of them out");
            return Err(Invalid::new(MIX.key, why));
        }
    }
    mix::kinds(&given.word(&MIX)).map(Some)
}

fn rows(given: &mut Given) -> Result<Option<Vec<Vec<f64>>>, Invalid> {
    if !given.is_told(ROUTING.key) {
        return Ok(None);
    }
    for key in [HOTTEST_SHARE.key, LOCAL_SHARE.key] {
        if given.is_told(key) {
            let flag = key.replace('_', "-");
            let why = format!("says otherwise what --{flag} says: leave one of them out");
            return Err(Invalid::new(ROUTING.key, why));
        }
    }
    mix::rows(&given.word(&ROUTING)).map(Some)
}

/// Memory servers, and local ones if a matrix tells how many there are of both.
fn servers(given: &mut Given, rows: Option<&[Vec<f64>]>) -> Result<(u32, u32), Invalid> {
    let Some(rows) = rows else {
        return Ok((count(given, &SERVERS, 0)?, 0));
    };
    let local = count(given, &LOCAL_SERVERS, 0)?;
    let usual = Usual {
        value: (rows[0].len() as f64 - f64::from(local)).max(0.0),
        why: "the others that requests go to",
        ..SERVERS
    };
    Ok((count(given, &usual, 0)?, local))
}

fn local_busy_max(given: &mut Given, local_servers: u32, is_mixed: bool) -> Result<f64, Invalid> {
    let is_told = given.is_told(LOCAL_BUSY_MAX.key);
    if local_servers > 0 && !is_mixed {
        return part(given, &LOCAL_BUSY_MAX);
    }
    if is_told {
        part(given, &LOCAL_BUSY_MAX)?;
        let why = match is_mixed {
            true => "is not heeded with --mix or --routing: leave it out",
            false => {
                "is for local servers, of which there are none: tell --local-servers, or leave it out"
            }
        };
        return Err(Invalid::new(LOCAL_BUSY_MAX.key, why));
    }
    Ok(LOCAL_BUSY_MAX.value)
}

fn think_s(given: &mut Given) -> Result<f64, Invalid> {
    if given.is_told(REQUESTS.key) {
        if given.is_told(THINK.key) {
            let why = "says otherwise what --think-ms says: leave one of them out";
            return Err(Invalid::new(REQUESTS.key, why));
        }
        let per_s = given.number(&REQUESTS);
        positive(REQUESTS.key, per_s)?;
        no_more(REQUESTS.key, per_s)?;
        return Ok(1.0 / per_s);
    }
    Ok(at_least_nothing(given, &THINK)? / 1e3)
}

/// Whoever tells 5 means 5 %.
fn slowdown_max(given: &mut Given) -> Result<f64, Invalid> {
    let value = at_least_nothing(given, &SLOWDOWN_MAX)?;
    if value <= 1.0 {
        return Ok(value);
    }
    let why = format!("must be between 0 and 1, not {value}: for 5 % write 0.05");
    Err(Invalid::new(SLOWDOWN_MAX.key, why))
}

fn hottest_share(given: &mut Given) -> Option<f64> {
    if given.is_told(HOTTEST_SHARE.key) {
        return Some(given.number(&HOTTEST_SHARE));
    }
    given.word(&Usual {
        key: HOTTEST_SHARE.key,
        words: HOTTEST_SHARE.words,
        unit: "",
        value: "an even part",
        why: "balanced",
    });
    None
}

/// If nobody tells, every node is asked alike.
fn local_share(given: &mut Given, servers: u32, local_servers: u32) -> Result<f64, Invalid> {
    let usual = Usual {
        value: even_share(servers, local_servers),
        ..LOCAL_SHARE
    };
    part(given, &usual)
}

fn count(given: &mut Given, usual: &Usual<'_, f64>, least: u32) -> Result<u32, Invalid> {
    let value = given.number(usual);
    if value.fract() == 0.0 && (f64::from(least)..=COUNT_MAX).contains(&value) {
        return Ok(value as u32);
    }
    let why = format!("must be a whole number from {least} to {COUNT_MAX}, not {value}");
    Err(Invalid::new(usual.key, why))
}

fn part(given: &mut Given, usual: &Usual<'_, f64>) -> Result<f64, Invalid> {
    let value = given.number(usual);
    fraction(usual.key, value)?;
    Ok(value)
}

fn at_least_nothing(given: &mut Given, usual: &Usual<'_, f64>) -> Result<f64, Invalid> {
    let value = given.number(usual);
    at_least(usual.key, value, 0.0)?;
    no_more(usual.key, value)?;
    Ok(value)
}

/// Refuses what nobody can mean.
fn no_more(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    if value <= VALUE_MAX {
        return Ok(());
    }
    let why = format!("must be a number not above {VALUE_MAX}, not {value:e}");
    Err(Invalid::new(parameter, why))
}

/// A time above 0, in seconds.
fn time_s(given: &mut Given, usual: &Usual<'_, f64>) -> Result<f64, Invalid> {
    let value = given.number(usual);
    positive(usual.key, value)?;
    no_more(usual.key, value)?;
    Ok(match usual.unit {
        "ms" => value / 1e3,
        _ => value / 1e6,
    })
}

type Number = Usual<'static, f64>;

const fn usual(
    key: &'static str,
    words: &'static str,
    unit: &'static str,
    value: f64,
    why: &'static str,
) -> Number {
    Usual {
        key,
        words,
        unit,
        value,
        why,
    }
}

const MACHINES: Number = usual(
    "machines",
    "active machines",
    "",
    24.0,
    "a floor of offices",
);

const MIX: Usual<'static, &str> = Usual {
    key: "mix",
    words: "active machines, and ms from a page to the next, by kind",
    unit: "",
    value: "",
    why: "",
};

const ROUTING: Usual<'static, &str> = Usual {
    key: "routing",
    words: "how likely a request goes to each server, by kind of machines",
    unit: "",
    value: "",
    why: "",
};

const SERVERS: Number = usual(
    "servers",
    "memory servers that do nothing else",
    "",
    3.0,
    "a few spare machines",
);

const THINK: Number = usual(
    "think_ms",
    "time from a page's arrival until a machine wants the next",
    "ms",
    5.0,
    "OO7: thesis, table 3.1",
);

const REQUESTS: Number = usual(
    "requests_per_second",
    "pages that a machine would want if it never waited",
    "a second",
    200.0,
    "OO7: thesis, table 3.1",
);

const SERVICE: Number = usual(
    "service_us",
    "time that a server takes to send a page",
    "µs",
    194.0,
    "measured in 1995: thesis, section 3.3.2",
);

const PUTPAGE: Number = usual(
    "putpage_us",
    "time that it takes to store one",
    "µs",
    194.0,
    "as to send one: thesis, section 3.3.2",
);

const PUTPAGES: Number = usual(
    "putpages_per_getpage",
    "pages sent to the servers (putpages) for each that is fetched (getpage)",
    "",
    1.0,
    "thesis, section 3.3.2",
);

const HOTTEST_SHARE: Number = usual(
    "hottest_share",
    "of what the servers are asked, the busiest one gets",
    "",
    1.0,
    "",
);

const LOCAL_SERVERS: Number = usual(
    "local_servers",
    "servers that have work of their own",
    "",
    0.0,
    "none",
);

const LOCAL_SHARE: Number = usual(
    "local_share",
    "the part of all requests that goes to these",
    "",
    0.0,
    "all nodes are asked alike",
);

const LOCAL_BUSY_MAX: Number = usual(
    "local_busy_max",
    "the part of its time that such a server may lose",
    "",
    0.1,
    "hardly noticed",
);

const DISK: Number = usual(
    "disk_ms",
    "time for a page from a machine's own disk",
    "ms",
    3.6,
    "the quickest of 1995: thesis, section 3.3.2",
);

const SLOWDOWN_MAX: Number = usual(
    "slowdown_max",
    "how much longer work may take because requests wait",
    "",
    0.05,
    "hardly noticed",
);
