//! The answer for machines of several kinds, and for servers that are asked as a matrix says.

use super::answer::{
    SLIGHT, capital, carrying, longer, many, percent, share, time, took, who, word,
};
use super::mix::{Alike, unrouted};
use super::question::Question;
use super::tables::{TRUSTED, rate};
use crate::Invalid;
use crate::memory::{ClassSolution, Cluster, Kind, Network, Solution, least_servers, slowdown};
use crate::report::{Axis, Chart, Report, Section, Series, Style, Table};

/// What is solved if machines or servers differ.
pub(super) struct Kinds<'a> {
    pub(super) question: &'a Question,
    pub(super) network: &'a Network,
    pub(super) kinds: &'a [Alike],
    /// Servers are asked as they were told, and not evenly.
    pub(super) is_routed: bool,
}

impl Kinds<'_> {
    pub(super) fn report(&self) -> Result<Report, Invalid> {
        let solution = self.network.solve_quickly()?;
        let mut sections = vec![self.now(&solution)];
        if self.can_have_more() {
            sections.push(self.by_servers()?);
        }
        sections.push(self.by_machines()?);
        Ok(Report {
            answer: self.answer(&solution)?,
            sections,
            assumptions: Vec::new(),
        })
    }

    /// How many servers there should be is a question only if they are asked evenly.
    fn can_have_more(&self) -> bool {
        !self.is_routed && self.question.cluster.servers > 0
    }

    fn answer(&self, solution: &Solution) -> Result<String, Invalid> {
        if self.question.is_disk_as_quick() {
            return Ok(self.question.none());
        }
        let mut sentences = Vec::new();
        if self.can_have_more() {
            sentences.push(self.need()?);
        }
        sentences.push(self.verdict(solution));
        sentences.push(self.waits(solution));
        if self.is_routed && self.network.groups.len() > 1 {
            sentences.push(self.uneven(solution)?);
        }
        if self.question.cluster.local_servers > 0 {
            sentences.push(format!(
                "The busiest local server loses {} of its time.",
                percent(solution.utilisation_max(Kind::Local))
            ));
        }
        Ok(sentences.join(" "))
    }

    /// How much longer work takes of those who wait most, if so many servers are evenly asked.
    fn worst(&self, servers: u32) -> Result<f64, Invalid> {
        let network = self.with_servers(servers)?;
        let solution = network.solve_quickly()?;
        Ok(slowdowns(&network, &solution).fold(0.0, f64::max))
    }

    fn needed(&self) -> Result<Option<u32>, Invalid> {
        let most = self.question.slowdown_max;
        least_servers(|servers| Ok(self.worst(servers)? <= most))
    }

    fn need(&self) -> Result<String, Invalid> {
        let machines = self.machines();
        let s = if self.network.machines() == 1 {
            "s"
        } else {
            ""
        };
        let allowed = percent(self.question.slowdown_max);
        Ok(match self.needed()? {
            None => format!(
                "No number of memory servers is enough for {machines}: because requests wait, work would take more than {allowed} longer."
            ),
            Some(count) => format!(
                "{} need{s} {}: with {}, {} at most because requests wait ({allowed} is allowed).",
                capital(&machines),
                many(count, "memory server"),
                if count == 1 { "it" } else { "them" },
                longer(self.worst(count)?),
            ),
        })
    }

    fn verdict(&self, solution: &Solution) -> String {
        let Cluster {
            servers,
            local_servers,
            ..
        } = self.question.cluster;
        let disk_s = self.question.disk_s;
        let is_carried = solution
            .classes
            .iter()
            .all(|class| class.response_s < disk_s);
        let carry = match (is_carried, servers + local_servers) {
            (true, 1) => "carries",
            (true, _) => "carry",
            (false, 1) => "does not carry",
            (false, _) => "do not carry",
        };
        let on_average = match self.kinds.len() {
            1 => "",
            _ => " on average",
        };
        format!(
            "{} {carry} {}{}: a page takes {}{on_average}, from a disk {}.",
            capital(&who(servers, local_servers)),
            self.machines(),
            carrying(is_carried),
            time(solution.response_s()),
            time(disk_s),
        )
    }

    fn machines(&self) -> String {
        let machines = many(self.network.machines(), "active machine");
        match self.kinds.len() {
            1 => machines,
            kinds => format!("{machines} of {} kinds", word(kinds as u32)),
        }
    }

    /// Who loses most, and who least.
    fn waits(&self, solution: &Solution) -> String {
        let slowdowns: Vec<f64> = slowdowns(self.network, solution).collect();
        let by_loss = |a: &usize, b: &usize| slowdowns[*a].total_cmp(&slowdowns[*b]);
        let of = |kind: usize| longer(slowdowns[kind]);
        let (Some(most), Some(least)) = (
            (0..slowdowns.len()).max_by(by_loss),
            (0..slowdowns.len()).min_by(by_loss),
        ) else {
            return String::new();
        };
        if slowdowns[most] - slowdowns[least] < SLIGHT {
            return format!("{} because requests wait.", capital(&of(most)));
        }
        format!(
            "Because requests wait, for {} {}, for {} {}.",
            name(&self.kinds[most]),
            of(most),
            name(&self.kinds[least]),
            of(least)
        )
    }

    fn uneven(&self, solution: &Solution) -> Result<String, Invalid> {
        let balanced = self.network.balanced().solve_quickly()?;
        let pairs = solution.classes.iter().zip(&balanced.classes);
        let changes: Vec<f64> = pairs.map(|(now, even)| slowdown(now, even)).collect();
        let (most, least) = (
            changes.iter().copied().fold(f64::MIN, f64::max),
            changes.iter().copied().fold(f64::MAX, f64::min),
        );
        Ok(match (most < SLIGHT, least > -SLIGHT) {
            (true, true) => "The servers are as good as evenly asked.".to_owned(),
            (false, true) => format!(
                "Because they are not evenly asked, work takes up to {} longer.",
                percent(most)
            ),
            (true, false) => format!(
                "Were they evenly asked, work would take up to {} longer.",
                percent(-least)
            ),
            (false, false) => format!(
                "Because they are not evenly asked, for some work takes up to {} longer, for others up to {} less.",
                percent(most),
                percent(-least)
            ),
        })
    }

    fn with_servers(&self, servers: u32) -> Result<Network, Invalid> {
        unrouted(&self.question.with_servers(servers), self.kinds)
    }

    fn now(&self, solution: &Solution) -> Section {
        let mut kinds = Table::new(
            "By kind of machines",
            &[
                "machines",
                "from a page to the next",
                "a page takes",
                "if nobody waited",
                "work takes longer",
                "pages a second, all of them",
            ],
        );
        let classes = self.network.classes.iter().zip(&solution.classes);
        for ((class, solved), slowdown) in classes.zip(slowdowns(self.network, solution)) {
            kinds.cells(vec![
                class.machines.to_string().into(),
                took(class.think_s),
                took(solved.response_s),
                took(class.demand_s(&self.network.groups)),
                share(slowdown),
                rate(solved.getpages_per_s),
            ]);
        }
        let words = match solution.residual > TRUSTED {
            true => vec![format!(
                "The iteration ended {:.0e} off: take all figures with that much salt.",
                solution.residual
            )],
            false => Vec::new(),
        };
        Section {
            words,
            tables: vec![kinds, self.servers(solution)],
            ..Section::default()
        }
    }

    fn servers(&self, solution: &Solution) -> Table {
        let mut table = Table::new(
            "By server",
            &[
                "server",
                "is busy",
                "of its time with putpages",
                "a page takes there",
            ],
        );
        let mut counts = [0, 0];
        for group in &solution.groups {
            let (count, name) = match group.kind {
                Kind::Idle => (&mut counts[0], "memory server"),
                Kind::Local => (&mut counts[1], "local server"),
            };
            let first = *count + 1;
            *count += group.nodes;
            let numbers = match group.nodes {
                1 => first.to_string(),
                _ => format!("{first} to {count}"),
            };
            table.cells(vec![
                format!("{name} {numbers}").into(),
                share(group.utilisation),
                share(group.putpage_utilisation),
                took(group.getpage_s),
            ]);
        }
        table
    }

    fn by_servers(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            &format!("By memory servers{}", self.question.asked()),
            &[
                "servers",
                "a page takes",
                "work takes longer, at most",
                "each is busy",
            ],
        );
        let here = self.question.cluster.servers;
        let mut counts = vec![1, 2, 3, 4, 6, 8, 12, 16, here, here.saturating_mul(2)];
        counts.retain(|&count| count <= here.saturating_mul(2).max(8));
        counts.extend(self.needed()?);
        counts.sort_unstable();
        counts.dedup();
        for servers in counts {
            let network = self.with_servers(servers)?;
            let solution = network.solve_quickly()?;
            table.cells(vec![
                servers.to_string().into(),
                took(solution.response_s()),
                share(slowdowns(&network, &solution).fold(0.0, f64::max)),
                share(solution.utilisation_max(Kind::Idle)),
            ]);
        }
        Ok(Section {
            tables: vec![table],
            ..Section::default()
        })
    }

    /// More and fewer machines, as many of each kind.
    fn by_machines(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            "By active machines, as many of each kind",
            &[
                "machines",
                "a page takes",
                "work takes longer, at most",
                "the busiest server is busy",
            ],
        );
        let mut curves: Vec<Series> = self
            .kinds
            .iter()
            .map(|kind| Series::line(&name(kind), Vec::new()))
            .collect();
        for factor in FACTORS {
            let Some(network) = self.times(factor) else {
                continue;
            };
            let solution = network.solve_quickly()?;
            let machines = network.machines();
            let busy = [Kind::Idle, Kind::Local].map(|kind| solution.utilisation_max(kind));
            table.cells(vec![
                machines.to_string().into(),
                took(solution.response_s()),
                share(slowdowns(&network, &solution).fold(0.0, f64::max)),
                share(busy[0].max(busy[1])),
            ]);
            for (curve, class) in curves.iter_mut().zip(&solution.classes) {
                let point = (f64::from(machines), class.response_s * 1e3);
                curve.points.push(point);
            }
        }
        let ends = curves[0].points.iter().map(|point| point.0);
        let disk = ends.map(|machines| (machines, self.question.disk_s * 1e3));
        let disk = Series::line("a disk", disk.collect()).drawn(Style::Thin);
        curves.push(disk);
        let chart = Chart {
            name: "memory-by-kind".into(),
            title: "Time for a page, by active machines of each kind".into(),
            x: Axis::linear("active machines"),
            y: Axis::linear("time for a page, ms"),
            series: curves,
        };
        Ok(Section {
            tables: vec![table],
            charts: vec![chart],
            ..Section::default()
        })
    }

    /// So many times as many machines of each kind, if that comes to whole ones.
    fn times(&self, factor: f64) -> Option<Network> {
        let mut network = self.network.clone();
        for class in &mut network.classes {
            let machines = f64::from(class.machines) * factor;
            if machines.fract() != 0.0 || !(1.0..=MACHINES_MAX).contains(&machines) {
                return None;
            }
            class.machines = machines as u32;
        }
        Some(network)
    }
}

/// How much longer the work of each kind takes than if no request had to wait.
fn slowdowns<'a>(
    network: &'a Network,
    solution: &'a Solution,
) -> impl Iterator<Item = f64> + use<'a> {
    let classes = network.classes.iter().zip(&solution.classes);
    classes.map(|(class, solved)| {
        let unhindered = ClassSolution {
            response_s: class.demand_s(&network.groups),
            ..*solved
        };
        slowdown(solved, &unhindered)
    })
}

pub(super) fn name(kind: &Alike) -> String {
    let s = if kind.machines == 1 { "s" } else { "" };
    let machines = many(kind.machines, "machine");
    format!("{machines} that think{s} {}", time(kind.think_s))
}

const FACTORS: [f64; 7] = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0];

const MACHINES_MAX: f64 = 1e6;
