//! The answer in sentences.

use super::limits::COUNT_MAX;
use super::question::Question;
use crate::Invalid;
use crate::memory::{Cluster, Kind, Solution, local_share_max, machines_until, slowdown};
use crate::report::{Cell, long_time};

impl Question {
    pub(super) fn answer(&self) -> Result<String, Invalid> {
        if self.is_disk_as_quick() {
            return Ok(self.none());
        }
        let solution = self.cluster.solve()?;
        let needed = self.needed_for(self.cluster.machines)?;
        let mut sentences = Vec::new();
        // Local servers alone are as many as they are.
        if self.cluster.servers > 0 {
            sentences.push(self.need(needed)?);
        }
        sentences.push(self.verdict(&solution)?);
        let is_told = needed == Some(self.cluster.servers) && self.cluster.hottest_share.is_none();
        if !is_told || self.cluster.servers == 0 {
            let longer = capital(&longer(self.slowdown(&self.cluster)?));
            sentences.push(format!("{longer} because requests wait."));
        }
        if self.cluster.think_s == 0.0 {
            sentences.push(self.thoughtless());
        }
        if self.cluster.hottest_share.is_some() && self.cluster.servers > 1 {
            sentences.push(self.uneven(&solution)?);
        }
        if self.cluster.local_servers > 0 {
            sentences.push(self.lost(&solution)?);
        }
        Ok(sentences.join(" "))
    }

    fn verdict(&self, solution: &Solution) -> Result<String, Invalid> {
        let Cluster {
            machines,
            servers,
            local_servers,
            ..
        } = self.cluster;
        let response_s = solution.response_s();
        let is_carried = response_s < self.disk_s;
        let who = who(servers, local_servers);
        let carry = match (is_carried, servers + local_servers) {
            (true, 1) => "carries",
            (true, _) => "carry",
            (false, 1) => "does not carry",
            (false, _) => "do not carry",
        };
        let until = match machines_until(&self.cluster, self.disk_s)? {
            // Its own putpages keep a machine waiting.
            Some(1) => "even for one machine a disk would be as quick".to_owned(),
            Some(count) => format!("from {count} machines on a disk would be as quick"),
            None => format!(
                "more than {COUNT_MAX} machines would have to be there until a disk would be as quick"
            ),
        };
        let that_is = carrying(is_carried);
        Ok(format!(
            "{} {carry} {}{that_is}: a page takes {}, from a disk {}; {until}.",
            capital(&who),
            many(machines, "active machine"),
            time(response_s),
            time(self.disk_s),
        ))
    }

    /// What there is to say where nobody needs servers.
    pub(super) fn none(&self) -> String {
        format!(
            "No memory servers: a disk is at least as quick. A page takes {} from it, and from a memory server {} even if nobody waits.",
            time(self.disk_s),
            time(self.cluster.getpage_s)
        )
    }

    /// What it means that machines do not think.
    fn thoughtless(&self) -> String {
        format!(
            "Machines that do not think do nothing but fetch pages, so that work takes as many times as long as a page; from disks alone it would be {:.0} times.",
            self.disk_s / self.cluster.getpage_s
        )
    }

    fn need(&self, needed: Option<u32>) -> Result<String, Invalid> {
        let Some(count) = needed else {
            return self.not_enough();
        };
        let machines = many(self.cluster.machines, "machine");
        let s = if self.cluster.machines == 1 { "s" } else { "" };
        let most = percent(self.slowdown_max);
        let with = |servers| Ok::<_, Invalid>(longer(self.slowdown(&self.with_servers(servers))?));
        let fewer = match (
            count,
            self.quick_enough(self.cluster.machines, self.response_max_s())?,
        ) {
            (1, _) => String::new(),
            (_, Some(quick)) if quick < count => format!(
                "; {} would keep waiting short, but the local ones would lose {} of their time ({} is allowed)",
                word(quick),
                percent(self.local_busy(self.cluster.machines, quick)?),
                percent(self.local_busy_max)
            ),
            _ => format!("; with one server {}", with(1)?),
        };
        Ok(format!(
            "{} need{s} {}{}{}: with {}, {} because requests wait ({most} is allowed){fewer}.",
            capital(&machines),
            many(count, "memory server"),
            self.beside(),
            self.if_one_is_hot(count),
            if count == 1 { "it" } else { "them" },
            with(count)?,
        ))
    }

    fn beside(&self) -> String {
        match self.cluster.local_servers {
            0 => String::new(),
            local => format!(" beside {}", many(local, "local server")),
        }
    }

    fn if_one_is_hot(&self, servers: u32) -> String {
        match self.cluster.hottest_share.filter(|_| servers > 1) {
            Some(share) => format!(" if one of them gets {} of the requests", percent(share)),
            None => String::new(),
        }
    }

    /// Why no number of servers is enough, and what would do.
    fn not_enough(&self) -> Result<String, Invalid> {
        let machines = many(self.cluster.machines, "machine");
        let none = format!("No number of memory servers{} is enough", self.beside());
        let quick = self.quick_enough(self.cluster.machines, self.response_max_s())?;
        if let Some(count) = quick {
            return Ok(format!(
                "{none} for {machines}: {} would keep waiting short, but local servers would lose {} of their time, and {} is allowed. {}",
                many(count, "memory server"),
                percent(self.local_busy(self.cluster.machines, count)?),
                percent(self.local_busy_max),
                self.share_that_would_do(count)?
            ));
        }
        let longer = format!(
            "because requests wait, work would take more than {} longer",
            percent(self.slowdown_max)
        );
        let Some(share) = self.cluster.hottest_share else {
            return Ok(format!("{none} for {machines}: {longer}."));
        };
        let balanced = Question {
            cluster: self.balanced(),
            mix: None,
            ..*self
        };
        let evenly = match balanced.needed_for(self.cluster.machines)? {
            Some(count) => format!("; evenly asked, {} would be enough", word(count)),
            None => String::new(),
        };
        Ok(format!(
            "{none} for {machines} while one of them gets {} of the requests: {longer}, and more servers do not help the busiest one{evenly}.",
            percent(share)
        ))
    }

    /// The part of the requests that local servers could have beside so many others.
    fn share_that_would_do(&self, servers: u32) -> Result<String, Invalid> {
        let cluster = self.with_servers(servers);
        let share = local_share_max(&cluster, self.local_busy_max)?;
        Ok(format!(
            "With {} of the requests for local servers (--local-share), they would lose no more.",
            percent_within(share)
        ))
    }

    /// The same with all memory servers asked alike.
    pub(super) fn balanced(&self) -> Cluster {
        Cluster {
            hottest_share: None,
            ..self.cluster
        }
    }

    fn uneven(&self, solution: &Solution) -> Result<String, Invalid> {
        let balanced = self.balanced().solve()?;
        let longer = match (&*solution.classes, &*balanced.classes) {
            ([now], [balanced]) => slowdown(now, balanced),
            _ => 0.0,
        };
        Ok(match longer < SLIGHT {
            true => "The load is as good as even.".to_owned(),
            false => format!(
                "Because the load is uneven, work takes {} longer than with the same servers evenly asked.",
                percent(longer)
            ),
        })
    }

    fn lost(&self, solution: &Solution) -> Result<String, Invalid> {
        let most = self.local_busy_max;
        let busy = solution.utilisation_max(Kind::Local);
        let each = match self.cluster.local_servers {
            1 => "The local server".to_owned(),
            count => format!("Each of the {} local servers", word(count)),
        };
        let now = format!("{each} loses {} of its time", percent(busy));
        if self.cluster.servers == 0 {
            return Ok(format!("{now}."));
        }
        let share = local_share_max(&self.cluster, most)?;
        let within = percent(most);
        Ok(match share >= 1.0 {
            true => format!(
                "{now}; all requests could go there and it would lose no more than {within}."
            ),
            false => format!(
                "{now}; it would lose no more than {within} if {} of the requests went there.",
                percent_within(share)
            ),
        })
    }
}

/// What that word means.
pub(super) fn carrying(is_carried: bool) -> &'static str {
    match is_carried {
        true => " (a page comes sooner than from a disk)",
        false => " (a page comes no sooner than from a disk)",
    }
}

pub(super) fn who(servers: u32, local_servers: u32) -> String {
    match (servers, local_servers) {
        (servers, 0) => many(servers, "memory server"),
        (0, local) => many(local, "local server"),
        (servers, local) => format!(
            "{} and {} local",
            many(servers, "memory server"),
            word(local)
        ),
    }
}

/// What it makes of work that requests wait.
pub(super) fn longer(slowdown: f64) -> String {
    match slowdown {
        _ if slowdown < SLIGHT => "work takes hardly any longer".to_owned(),
        _ if slowdown < 10.0 => format!("work takes {} longer", percent(slowdown)),
        _ => format!("work takes {:.0} times as long", 1.0 + slowdown),
    }
}

/// Some of a thing.
pub(super) fn many(count: u32, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", word(count))
}

/// Small numbers are words.
pub(super) fn word(count: u32) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let word = WORDS.get(count as usize);
    word.map_or_else(|| count.to_string(), |&word| word.to_owned())
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Some part, as it is said.
pub(super) fn percent(part: f64) -> String {
    let tenths = (part * 1000.0).round() / 10.0;
    match tenths.abs() < 10.0 && tenths.fract() != 0.0 {
        true => format!("{tenths:.1} %"),
        // Nothing has no sign.
        false => format!("{:.0} %", tenths + 0.0),
    }
}

/// The same, of what may not be exceeded: who takes it at its word is within.
fn percent_within(part: f64) -> String {
    percent(match part < 0.1 {
        true => (part * 1000.0).floor() / 1000.0,
        false => (part * 100.0).floor() / 100.0,
    })
}

/// A time, as it is said.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 120.0 => long_time(s),
        s if s >= 10.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s if s >= 10e-3 => format!("{:.0} ms", s * 1e3),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s if s >= 10e-6 => format!("{:.0} µs", s * 1e6),
        s if s >= 0.1e-6 => format!("{:.1} µs", s * 1e6),
        0.0 => "no time".to_owned(),
        s => format!("{:.1e} µs", s * 1e6),
    }
}

/// A time, as a cell of a table.
pub(super) fn took(seconds: f64) -> Cell {
    Cell::time(time(seconds), seconds)
}

/// Some part, as a cell of a table.
pub(super) fn share(part: f64) -> Cell {
    Cell::part(percent(part), part)
}

/// Below this a part is not spoken of.
pub(super) const SLIGHT: f64 = 5e-4;
