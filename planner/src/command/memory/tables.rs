//! The tables and charts.

use super::answer::{percent, share, took};
use super::question::Question;
use crate::Invalid;
use crate::memory::{Cluster, Kind, Limits, machines_until};
use crate::report::{Axis, Cell, Chart, Section, Series, Style, Table};

impl Question {
    pub(super) fn now(&self) -> Result<Section, Invalid> {
        let solution = self.cluster.solve()?;
        let network = self.cluster.network()?;
        let limits = network
            .classes
            .first()
            .map(|class| Limits::of(class, &network.groups));
        let mut table = Table::new("", &["as it is", ""]);
        let mut row = |what: &str, value: Cell| table.cells(vec![what.into(), value]);
        row("a page takes", took(solution.response_s()));
        row("if nobody waited", took(self.cluster.getpage_s));
        row(
            "pages a second, all machines",
            rate(solution.getpages_per_s()),
        );
        if let Some(limits) = limits {
            row("the servers' limit", rate(limits.capacity_per_s));
            row(
                "active machines that fill them",
                format!("{:.0}", limits.machines_at_knee.ceil()).into(),
            );
        }
        for (kind, busiest) in [(Kind::Idle, "memory"), (Kind::Local, "local")] {
            if solution.groups.iter().any(|group| group.kind == kind) {
                row(
                    &format!("the busiest {busiest} server is busy"),
                    share(solution.utilisation_max(kind)),
                );
            }
        }
        let words = match solution.residual > TRUSTED {
            true => vec![format!(
                "The iteration ended {:.0e} off: take all figures with that much salt.",
                solution.residual
            )],
            false => Vec::new(),
        };
        Ok(Section {
            words,
            tables: vec![table],
            ..Section::default()
        })
    }

    pub(super) fn by_servers(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            &format!("By memory servers{}", self.asked()),
            &[
                "servers",
                "a page takes",
                "work takes longer",
                "each is busy",
                "machines until a disk is as quick",
            ],
        );
        for servers in self.server_counts()? {
            let cluster = self.with_servers(servers);
            let solution = cluster.solve()?;
            let until = machines_until(&cluster, self.disk_s)?;
            let until = until.map_or(format!("more than {MACHINES_MAX}"), |count| {
                count.to_string()
            });
            table.cells(vec![
                servers.to_string().into(),
                took(solution.response_s()),
                share(self.slowdown(&cluster)?),
                share(solution.utilisation_max(Kind::Idle)),
                until.into(),
            ]);
        }
        Ok(Section {
            tables: vec![table],
            ..Section::default()
        })
    }

    /// How they are asked, behind a noun.
    pub(super) fn asked(&self) -> String {
        let memory = match self.cluster.hottest_share {
            Some(share) => format!(", one of them asked for {} or more", percent(share)),
            None => ", evenly asked".to_owned(),
        };
        match (self.cluster.local_servers, self.is_local_even) {
            (0, _) => memory,
            (_, true) => format!("{memory}; local servers are asked as often as an even part"),
            (_, false) => format!(
                "{memory}; {} of the requests go to local servers",
                percent(self.cluster.local_share)
            ),
        }
    }

    /// Some that show how it goes, those that are there, and those that are needed.
    fn server_counts(&self) -> Result<Vec<u32>, Invalid> {
        let here = self.cluster.servers;
        if here == 0 {
            return Ok(Vec::new());
        }
        let machines = self.cluster.machines;
        let needed = self.needed_for(machines)?.unwrap_or(here);
        let quicker = self.quick_enough(machines, self.disk_s)?;
        let most = here.max(needed).saturating_mul(2);
        let mut counts: Vec<u32> = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000]
            .into_iter()
            .filter(|&count| count <= most)
            .collect();
        counts.extend([here, needed, quicker.unwrap_or(here)]);
        counts.sort_unstable();
        counts.dedup();
        Ok(counts)
    }

    pub(super) fn by_machines(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            "By active machines",
            &[
                "machines",
                "a page takes",
                "work takes longer",
                "the busiest server is busy",
                "servers needed",
            ],
        );
        for machines in self.machine_counts()? {
            let cluster = self.with_machines(machines);
            let solution = cluster.solve()?;
            let busy = [Kind::Idle, Kind::Local].map(|kind| solution.utilisation_max(kind));
            let needed = self.needed_for(machines)?;
            table.cells(vec![
                machines.to_string().into(),
                took(solution.response_s()),
                share(self.slowdown(&cluster)?),
                share(busy[0].max(busy[1])),
                needed.map_or("none helps".into(), |count| count.to_string().into()),
            ]);
        }
        Ok(Section {
            tables: vec![table],
            charts: vec![self.chart()?],
            ..Section::default()
        })
    }

    fn machine_counts(&self) -> Result<Vec<u32>, Invalid> {
        let here = self.cluster.machines;
        let mut counts = vec![1, here / 4, here / 2, here, here.saturating_mul(2)];
        counts.extend([here + here / 2, here.saturating_mul(4)]);
        counts.extend(machines_until(&self.cluster, self.disk_s)?);
        counts.retain(|count| (1..=MACHINES_MAX).contains(count));
        counts.sort_unstable();
        counts.dedup();
        Ok(counts)
    }

    fn with_machines(&self, machines: u32) -> Cluster {
        Cluster {
            machines,
            ..self.cluster
        }
    }

    fn chart(&self) -> Result<Chart, Invalid> {
        let here = self.cluster.machines;
        let until = machines_until(&self.cluster, self.disk_s)?.unwrap_or(here);
        let most = here.max(until.min(here.saturating_mul(8)));
        let most = most.saturating_add(most / 4).clamp(10, MACHINES_MAX);
        let mut curves = Vec::new();
        if self.cluster.hottest_share.is_some() {
            curves.push(self.curve("evenly asked", self.balanced(), most)?);
        }
        let mut counts = vec![
            self.cluster.servers.div_ceil(2),
            self.cluster.servers,
            self.cluster.servers.saturating_mul(2),
        ];
        counts.dedup();
        for servers in counts {
            let name = match servers {
                1 => "1 server".to_owned(),
                count => format!("{count} servers"),
            };
            curves.push(self.curve(&name, self.with_servers(servers), most)?);
        }
        let disk_ms = self.disk_s * 1e3;
        let disk = vec![(1.0, disk_ms), (f64::from(most), disk_ms)];
        curves.push(Series::line("a disk", disk).drawn(Style::Thin));
        Ok(Chart {
            name: "memory-by-machines".into(),
            title: "Time for a page, by active machines".into(),
            x: Axis::linear("active machines"),
            y: Axis::linear("time for a page, ms"),
            series: curves,
        })
    }

    /// Up to a little above the disk, so that this can be seen.
    fn curve(&self, name: &str, cluster: Cluster, most: u32) -> Result<Series, Invalid> {
        let step = (most / POINTS).max(1) as usize;
        let mut points = Vec::new();
        for machines in (1..=most).step_by(step) {
            let cluster = Cluster {
                machines,
                ..cluster
            };
            let response_s = cluster.solve()?.response_s();
            if response_s > 2.0 * self.disk_s && response_s > 4.0 * cluster.getpage_s {
                break;
            }
            points.push((f64::from(machines), response_s * 1e3));
        }
        Ok(Series::line(name, points))
    }
}

pub(super) fn rate(per_s: f64) -> Cell {
    let text = match per_s >= 100.0 {
        true => format!("{per_s:.0}"),
        false => format!("{per_s:.1}"),
    };
    Cell::count(text, per_s)
}

/// Above this a solution would be told to be off.
pub(super) const TRUSTED: f64 = 1e-6;

const POINTS: u32 = 40;

const MACHINES_MAX: u32 = 1_000_000;
