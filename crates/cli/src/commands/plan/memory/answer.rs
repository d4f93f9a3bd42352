//! The answer in sentences.

use super::question::Question;
use thorp_plan::Invalid;
use thorp_plan::memory::{
    Cluster, Kind, Solution, local_share_max, machines_until, servers_needed, slowdown,
};

impl Question {
    pub(super) fn answer(&self) -> Result<String, Invalid> {
        let solution = self.cluster.solve()?;
        let needed = self.needed()?;
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
            Some(1) => "even for one machine a disk would be as quick".to_owned(),
            Some(count) => format!("from {count} machines on a disk would be as quick"),
            None => "no number of machines would make a disk as quick".to_owned(),
        };
        Ok(format!(
            "{} {carry} {}: a page takes {}, from a disk {}; {until}.",
            capital(&who),
            many(machines, "active machine"),
            time(response_s),
            time(self.disk_s),
        ))
    }

    /// How many servers keep waiting within what it may be.
    fn needed(&self) -> Result<Option<u32>, Invalid> {
        servers_needed(&self.cluster, self.response_max_s())
    }

    fn need(&self, needed: Option<u32>) -> Result<String, Invalid> {
        let machines = many(self.cluster.machines, "machine");
        let s = if self.cluster.machines == 1 { "s" } else { "" };
        let beside = match self.cluster.local_servers {
            0 => String::new(),
            local => format!(" beside {}", many(local, "local server")),
        };
        let evenly = match self.cluster.hottest_share {
            Some(_) => ", evenly asked",
            None => "",
        };
        let most = percent(self.slowdown_max);
        let Some(count) = needed else {
            return Ok(format!(
                "No number of memory servers{beside} is enough for {machines}: because requests wait, work would take more than {most} longer."
            ));
        };
        let with = |servers| Ok::<_, Invalid>(longer(self.slowdown(&self.with_servers(servers))?));
        let fewer = match count {
            1 => String::new(),
            _ => format!("; with one server {}", with(1)?),
        };
        Ok(format!(
            "{} need{s} {}{beside}{evenly}: with {}, {} because requests wait ({most} is allowed){fewer}.",
            capital(&machines),
            many(count, "memory server"),
            if count == 1 { "it" } else { "them" },
            with(count)?,
        ))
    }

    fn uneven(&self, solution: &Solution) -> Result<String, Invalid> {
        let balanced = self.with_servers(self.cluster.servers).solve()?;
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
                percent(share)
            ),
        })
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

/// A time, as it is said.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1e6 => format!("{s:.1e} s"),
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

/// Below this a part is not spoken of.
pub(super) const SLIGHT: f64 = 5e-4;
