//! The answer in sentences.

use super::question::Question;
use thorp_plan::Invalid;
use thorp_plan::memory::{
    Cluster, Kind, Solution, local_share_max, machines_until, servers_needed, slowdown,
};

impl Question {
    pub(super) fn answer(&self) -> Result<String, Invalid> {
        let solution = self.cluster.solve()?;
        let mut sentences = vec![self.verdict(&solution)?, self.needed()?];
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
        let who = match (servers, local_servers) {
            (servers, 0) => many(servers, "memory server"),
            (0, local) => many(local, "local server"),
            (servers, local) => format!(
                "{} and {} local",
                many(servers, "memory server"),
                word(local)
            ),
        };
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

    fn needed(&self) -> Result<String, Invalid> {
        let longer = self.slowdown(&self.cluster)?;
        let now = match longer {
            longer if longer < SLIGHT => "Waiting costs work next to nothing".to_owned(),
            longer if longer < 10.0 => format!(
                "Work takes {} longer than if no request had to wait",
                percent(longer)
            ),
            longer => format!(
                "Work takes {:.0} times as long as if no request had to wait",
                1.0 + longer
            ),
        };
        let is_within = longer <= self.slowdown_max;
        Ok(match (is_within, self.cluster.servers) {
            // Fewer than one there cannot be.
            (true, 1) => format!("{now}."),
            _ => format!("{now}; {}.", self.servers_for_it(is_within)?),
        })
    }

    /// How many servers keep that within what it may be.
    fn servers_for_it(&self, is_within: bool) -> Result<String, Invalid> {
        let evenly = match self.cluster.hottest_share {
            Some(_) => "evenly asked ",
            None => "",
        };
        let most = percent(self.slowdown_max);
        let needed = servers_needed(&self.cluster, self.response_max_s())?;
        Ok(match needed {
            Some(count) if is_within && count >= self.cluster.servers => {
                format!("fewer {evenly}servers would not keep that within {most}")
            }
            Some(1) => format!("one server would keep that within {most}"),
            Some(count) if is_within => {
                format!(
                    "{} {evenly}servers would keep that within {most}",
                    word(count)
                )
            }
            Some(count) => format!(
                "it takes {} {evenly}servers to keep that within {most}",
                word(count)
            ),
            None => format!("no number of {evenly}servers would keep that within {most}"),
        })
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

/// Some of a thing.
fn many(count: u32, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", word(count))
}

/// Small numbers are words.
fn word(count: u32) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let word = WORDS.get(count as usize);
    word.map_or_else(|| count.to_string(), |&word| word.to_owned())
}

fn capital(text: &str) -> String {
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
        s => format!("{:.1e} µs", s * 1e6),
    }
}

/// Below this a part is not spoken of.
const SLIGHT: f64 = 5e-4;
