//! What a replay has to say to people.

use super::bench::Bench;
use super::question::Question;
use crate::Invalid;
use crate::evict;
use crate::replay::{Kind, Outcome, Village};
use crate::report::{self, Axis, Cell, Chart, Report, Section, Series, Style, Table};
use crate::trace::{Dealing, dealt};

impl Question<'_> {
    /// Answers.
    pub(super) fn report(&self) -> Result<Report, Invalid> {
        let kinds = self.kinds();
        for kind in &kinds {
            kind.check(&self.village, &self.knobs)?;
        }
        let (sizes, rules) = (self.sizes(&kinds), self.other_rules());
        let mut bench = Bench::new(
            &self.trace.pages,
            self.knobs,
            kinds.len() + sizes.len() * 3 + rules.len() * 2,
        );
        let mut outcomes = Vec::new();
        for kind in kinds {
            outcomes.push((kind, bench.outcome(kind, &self.village, &self.dealt)?));
        }
        let (alone, best) = (&outcomes[0].1, self.best(&outcomes));
        let mut answer = self.answer(alone, best);
        let mut sections = vec![
            self.table(&outcomes),
            self.by_memory(&mut bench, best.0, &sizes)?,
        ];
        if !rules.is_empty() {
            let (section, by_rule) = self.by_rule(&mut bench, best.0, &rules)?;
            sections.push(section);
            answer += &self.otherwise(alone, &best.1, &by_rule).unwrap_or_default();
        }
        Ok(Report {
            answer,
            sections,
            assumptions: Vec::new(),
        })
    }

    /// What is replayed; the first is always each alone.
    fn kinds(&self) -> Vec<Kind> {
        match self.policy {
            None => Kind::ALL.to_vec(),
            Some(Kind::Alone) => vec![Kind::Alone],
            Some(kind) => vec![Kind::Alone, kind, Kind::Ideal],
        }
    }

    /// The policy that is asked about, or the fastest one that can be built.
    fn best<'o>(&self, outcomes: &'o [(Kind, Outcome)]) -> &'o (Kind, Outcome) {
        let cannot_be = [Kind::Alone, Kind::Weighted, Kind::GlobalLru, Kind::Ideal];
        let asked = outcomes.iter().filter(|(kind, _)| match self.policy {
            None => !cannot_be.contains(kind),
            Some(asked) => *kind == asked,
        });
        let time = |outcome: &Outcome| outcome.mean_ms(&self.village.times);
        asked
            .min_by(|a, b| time(&a.1).total_cmp(&time(&b.1)))
            .unwrap_or(&outcomes[0])
    }

    fn answer(&self, alone: &Outcome, (kind, best): &(Kind, Outcome)) -> String {
        let times = &self.village.times;
        let (alone_ms, best_ms) = (alone.mean_ms(times), best.mean_ms(times));
        if self.trace.footprint == self.trace.pages.len() {
            return format!(
                "No: nothing in it is asked for twice: no cache can help, and a request takes {}.",
                time(alone_ms)
            );
        }
        if *kind == Kind::Alone && self.village.clients == 1 {
            return format!(
                "One member, alone, answers {} of its requests without the disk: a request takes {}.",
                percent(alone.without_disk()),
                time(alone_ms)
            );
        }
        if *kind == Kind::Alone {
            return format!(
                "{}, each alone, answer {} of their requests without the disk: a request takes {}.",
                self.people(),
                percent(alone.without_disk()),
                time(alone_ms)
            );
        }
        if self.is_by_itself() {
            return format!(
                "No: one member has nobody to share with; what differs is how the home's memory is used: by {} {} of its requests are answered without the disk, else {}, and a request takes {} instead of {}.",
                kind.title(),
                percent(best.without_disk()),
                percent(alone.without_disk()),
                time(best_ms),
                time(alone_ms),
            );
        }
        let verdict = verdict(alone_ms / best_ms);
        let verdict = match self.assumed() {
            None => verdict.to_owned(),
            Some(assumed) => format!("{assumed}: {}", verdict.to_lowercase()),
        };
        format!(
            "{verdict}: {} that share their memory ({}) answer {} of their requests without the disk, {} alone {}: a request takes {} instead of {}.",
            self.people(),
            kind.title(),
            percent(best.without_disk()),
            match self.village.clients {
                1 => "the member",
                _ => "each",
            },
            percent(alone.without_disk()),
            time(best_ms),
            time(alone_ms),
        )
    }

    /// What is supposed of who asks, if the trace does not tell.
    fn assumed(&self) -> Option<String> {
        let members = count(self.village.clients as u64, "member");
        let rule = match self.rule {
            Dealing::Named => return None,
            // It was told, or it is what several files mean.
            Dealing::ByFile => return None,
            Dealing::RoundRobin => "in turn, a request each".to_owned(),
            Dealing::Random => "at random".to_owned(),
            Dealing::ByObject => "each for objects of its own".to_owned(),
            Dealing::Runs { mean } => format!("in turns of {mean} requests on average"),
            Dealing::Slices { seconds } => format!("in turns of {seconds} s"),
        };
        let untold = match self.trace.client_count() {
            0 => " (the trace does not tell)",
            _ => "",
        };
        Some(format!("If {members} ask {rule}{untold}"))
    }

    /// What other rules of dealing would have answered, if that is something else.
    fn otherwise(&self, alone: &Outcome, best: &Outcome, others: &[f64]) -> Option<String> {
        let times = &self.village.times;
        let told = alone.mean_ms(times) / best.mean_ms(times);
        let is_other = others.iter().any(|&times| verdict(times) != verdict(told));
        let is_asked = !self.is_by_itself() && self.trace.footprint < self.trace.pages.len();
        if !is_other || !is_asked || self.policy == Some(Kind::Alone) {
            return None;
        }
        let least = others.iter().copied().fold(told, f64::min);
        let most = others.iter().copied().fold(told, f64::max);
        Some(format!(
            " Who asks for what decides it: dealt by other rules, sharing is {least:.2} ({}) to {most:.2} ({}) times as fast.",
            verdict(least).to_lowercase(),
            verdict(most).to_lowercase(),
        ))
    }

    fn is_by_itself(&self) -> bool {
        self.village.clients == 1 && self.village.servers.is_empty()
    }

    fn people(&self) -> String {
        let members = count(self.village.clients as u64, "member");
        match self.village.servers.len() as u64 {
            0 => members,
            servers => format!("{members} and {}", count(servers, "memory server")),
        }
    }

    fn table(&self, outcomes: &[(Kind, Outcome)]) -> Section {
        let mut table = Table::new(
            "Where requests are answered",
            &[
                "policy",
                "without disk",
                "own memory",
                "others'",
                "home's",
                "disk",
                "a request takes",
                "times as fast",
                "pages sent on, of 100 requests",
            ],
        );
        let times = &self.village.times;
        let alone_ms = outcomes[0].1.mean_ms(times);
        for (kind, outcome) in outcomes {
            let sent = outcome.part(outcome.traffic.forwarded) * 100.0;
            table.cells(vec![
                kind.title().into(),
                part(outcome.without_disk()),
                part(outcome.part(outcome.local)),
                part(outcome.part(outcome.remote())),
                part(outcome.part(outcome.home)),
                part(outcome.part(outcome.disk)),
                took(outcome.mean_ms(times)),
                faster(alone_ms, outcome.mean_ms(times)),
                Cell::count(format!("{sent:.0}"), sent),
            ]);
        }
        let words = "Whatever is asked for the first time comes from disk. A write counts as an access: that it makes others' copies stale is not replayed, so that what members change all the time is answered less often than this says. Weighted LRU and global LRU are orders that need to know all memories at any time, and the ideal is one LRU of all memory that holds nothing twice and yet leaves each member its own: none of them can be built, and none is a bound, for what is used next may be what LRU lets go of, so that others may do better on a trace.";
        let mut words = vec![words.to_owned()];
        words.extend(self.who_has_no_evictor(outcomes));
        if self.is_by_itself() {
            words.push("There are no others here: what is counted as others' memory is the part of the member's own that the home manages (--shared, under centrally coordinated and hash-distributed). A page there is asked for like one of another's, and takes as long.".to_owned());
        }
        Section {
            words,
            tables: vec![table, legend(outcomes)],
            ..Section::default()
        }
    }

    /// Those policies that do not heed what members let go of, if that is not what they do anyhow.
    fn who_has_no_evictor(&self, outcomes: &[(Kind, Outcome)]) -> Option<String> {
        let reasons = outcomes
            .iter()
            .filter_map(|(kind, _)| kind.why_no_evictor());
        let reasons: Vec<&str> = reasons.collect();
        let is_heeded = self.village.local == evict::Kind::Lru || reasons.is_empty();
        (!is_heeded).then(|| {
            format!(
                "{} says what members let go of, but not where the policy itself does: {}.",
                self.village.local,
                reasons.join("; ")
            )
        })
    }

    /// Each member's memory, from a quarter to four times what was told.
    fn sizes(&self, kinds: &[Kind]) -> Vec<usize> {
        let told = self.village.client_pages;
        let mut sizes = vec![told / 4, told / 2, told, told * 2, told * 4];
        sizes.retain(|&pages| pages > 0 && pages <= self.trace.footprint.max(told));
        sizes.dedup();
        sizes.retain(|&pages| self.fits(pages, kinds));
        sizes
    }

    /// Whether policies could be tried with so many pages in each member's memory.
    fn fits(&self, client_pages: usize, kinds: &[Kind]) -> bool {
        let village = Village {
            client_pages,
            ..self.village.clone()
        };
        let mut checked = kinds.iter().map(|kind| kind.check(&village, &self.knobs));
        checked.all(|fits| fits.is_ok())
    }

    fn by_memory(
        &self,
        bench: &mut Bench<'_>,
        best: Kind,
        sizes: &[usize],
    ) -> Result<Section, Invalid> {
        let kinds = [Kind::Alone, best, Kind::Ideal];
        let mut curves = kinds.map(|kind| Series::line(kind.title(), Vec::new()));
        curves[2].style = Style::Thin;
        let mut table = Table::new(
            "By each member's memory",
            &[
                "pages",
                "of all pages",
                "without disk, each alone",
                "together",
                "a request takes, each alone",
                "together",
                "times as fast",
            ],
        );
        for &client_pages in sizes {
            let village = Village {
                client_pages,
                ..self.village.clone()
            };
            let mut outcomes = Vec::new();
            for (kind, curve) in kinds.iter().zip(&mut curves) {
                let outcome = bench.outcome(*kind, &village, &self.dealt)?;
                curve
                    .points
                    .push((client_pages as f64, outcome.without_disk() * 100.0));
                outcomes.push(outcome);
            }
            let ms = |at: usize| outcomes[at].mean_ms(&village.times);
            table.cells(vec![
                client_pages.to_string().into(),
                part(client_pages as f64 / self.trace.footprint as f64),
                part(outcomes[0].without_disk()),
                part(outcomes[1].without_disk()),
                took(ms(0)),
                took(ms(1)),
                faster(ms(0), ms(1)),
            ]);
        }
        let chart = Chart {
            name: "replay-by-memory".into(),
            title: "Requests that need no disk, by each member's memory".into(),
            x: Axis::log("memory of each member, pages"),
            y: Axis::linear("requests that need no disk, %"),
            series: curves
                .into_iter()
                .take(if best == Kind::Alone { 1 } else { 3 })
                .collect(),
        };
        Ok(Section {
            tables: vec![table],
            charts: vec![chart],
            ..Section::default()
        })
    }

    /// How else requests could be dealt, if the trace does not tell who asks.
    fn other_rules(&self) -> Vec<Dealing> {
        let rules = [
            Dealing::RoundRobin,
            Dealing::Runs { mean: 50.0 },
            Dealing::Runs { mean: 1000.0 },
            Dealing::ByObject,
        ];
        match self.rule {
            Dealing::Named | Dealing::ByFile => Vec::new(),
            told => rules.into_iter().filter(|&rule| rule != told).collect(),
        }
    }

    fn by_rule(
        &self,
        bench: &mut Bench<'_>,
        best: Kind,
        rules: &[Dealing],
    ) -> Result<(Section, Vec<f64>), Invalid> {
        let mut table = Table::new(
            "If requests are dealt otherwise",
            &[
                "rule",
                "without disk, each alone",
                "together",
                "times as fast",
            ],
        );
        let mut times_as_fast = Vec::new();
        for &rule in rules {
            let clients = dealt(self.trace, rule, self.village.clients, self.village.seed)?;
            let alone = bench.outcome(Kind::Alone, &self.village, &clients)?;
            let together = bench.outcome(best, &self.village, &clients)?;
            let [alone_ms, together_ms] =
                [&alone, &together].map(|outcome| outcome.mean_ms(&self.village.times));
            times_as_fast.push(alone_ms / together_ms);
            table.cells(vec![
                rule.to_string().into(),
                part(alone.without_disk()),
                part(together.without_disk()),
                faster(alone_ms, together_ms),
            ]);
        }
        let words = format!(
            "Who asked for what is a rule here, not known: requests were dealt {}.",
            self.rule
        );
        let section = Section {
            words: vec![words],
            tables: vec![table],
            ..Section::default()
        };
        Ok((section, times_as_fast))
    }
}

/// Whether it pays to be so many times as fast.
fn verdict(times_as_fast: f64) -> &'static str {
    match times_as_fast {
        faster if faster >= 1.1 => "Yes",
        faster if faster >= 1.01 => "Hardly",
        _ => "No",
    }
}

/// What the names in the other tables stand for.
fn legend(outcomes: &[(Kind, Outcome)]) -> Table {
    let mut table = Table::new(
        "What each policy does",
        &["policy", "--policy", "what it does"],
    );
    for (kind, _) in outcomes {
        table.row(vec![
            kind.title().into(),
            kind.to_string(),
            kind.what().into(),
        ]);
    }
    table
}

/// So many of something.
fn count(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

fn percent(part: f64) -> String {
    let is_little = part > 0.0 && part < 0.0995;
    report::percent(part, usize::from(is_little))
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 10.0 => format!("{ms:.1} ms"),
        ms if ms >= 0.1 || ms == 0.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.4} ms"),
    }
}

fn part(of_all: f64) -> Cell {
    Cell::part(percent(of_all), of_all)
}

fn took(ms: f64) -> Cell {
    Cell::time(time(ms), ms / 1000.0)
}

fn faster(before_ms: f64, after_ms: f64) -> Cell {
    let times = before_ms / after_ms;
    let text = match after_ms > 0.0 {
        true => format!("{times:.2}"),
        false => "∞".to_owned(),
    };
    Cell::count(text, times)
}
