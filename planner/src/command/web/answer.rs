//! What is answered.

use super::question::{Question, Scheme};
use super::said::{
    SHOWN_S, caches, compared, count, counted, is_nearest, megabytes, percent, rates, saving,
    share, size, time, took,
};
use crate::Invalid;
use crate::report::{Axis, Cell, Chart, Report, Section, Series, Table};
use crate::web::schemes::{
    BreakEven, Outcome, Sites, alone, break_even, directory, hashed, hierarchical,
};
use crate::web::sweep::{clients_for, log_spaced};
use crate::web::{Model, Workload};

/// Every cache on its own, and the schemes that can be computed.
pub(super) struct Outcomes {
    pub(super) alone: Outcome,
    pub(super) schemes: Vec<(Scheme, Outcome)>,
}

impl Outcomes {
    /// That of the scheme that is asked for, or the one with the least waiting; none where there is nobody to cooperate with.
    fn of(&self, asked: Option<Scheme>) -> Option<(Scheme, &Outcome)> {
        let told = self
            .schemes
            .iter()
            .filter(|(scheme, _)| asked.is_none_or(|asked| asked == *scheme));
        let least = told.min_by(|a, b| a.1.latency_s.total_cmp(&b.1.latency_s));
        let (scheme, outcome) = least?;
        Some((*scheme, outcome))
    }

    fn saved(&self, outcome: &Outcome) -> f64 {
        1.0 - outcome.latency_s / self.alone.latency_s
    }
}

impl Question {
    pub(super) fn report(&self) -> Result<Report, Invalid> {
        let model = Model::new(self.workload)?;
        let mut sections = vec![self.now(&model)?, self.by_population(&model)?];
        if self.sites.caches > 1 {
            sections.extend([self.by_distance(&model)?, self.by_parameter(&model)?]);
        }
        if let Some(sweep) = self.sweep {
            sections.push(self.by_sweep(&model, sweep)?);
        }
        sections.push(checked(&model, self.sites.clients));
        Ok(Report {
            answer: self.answer(&model)?,
            sections,
            assumptions: Vec::new(),
        })
    }

    pub(super) fn outcomes(&self, model: &Model, sites: &Sites) -> Result<Outcomes, Invalid> {
        let mut schemes = Vec::new();
        let are_several = sites.caches > 1;
        // Where caches fill up, no form is known for a tree.
        if sites.store.is_none() && (are_several || self.tree.is_some()) {
            let tree = hierarchical(model, sites.clients, &self.tree_of(sites))?;
            schemes.push((Scheme::Hierarchical, tree));
        }
        if are_several {
            schemes.push((Scheme::Hashed, hashed(model, sites)?));
            schemes.push((Scheme::Directory, directory(model, sites)?));
        }
        let alone = alone(model, sites)?;
        Ok(Outcomes { alone, schemes })
    }

    fn answer(&self, model: &Model) -> Result<String, Invalid> {
        let outcomes = self.outcomes(model, &self.sites)?;
        let several = outcomes.of(self.scheme).filter(|_| self.sites.caches > 1);
        let Some((scheme, outcome)) = several else {
            return Ok(self.nobody(&outcomes.alone));
        };
        if let Some(why_not) = self.servers_are_nearer(&outcomes, outcome) {
            return Ok(match is_nearest(&self.workload, &self.sites) {
                true => why_not,
                false => format!(
                    "{why_not} {}",
                    self.where_it_pays(break_even(model, &self.sites)?)
                ),
            });
        }
        let saved = outcomes.saved(outcome);
        let verdict = match saved {
            _ if saved < SAVES => "No",
            _ if saved < 0.1 => "Hardly",
            _ => "Yes",
        };
        if self.scheme.is_none() && saved.abs() < SAVES {
            return self.nothing(model, outcome);
        }
        Ok(format!(
            "{verdict}: {} that cooperate ({}) {} as many that do not: a document takes {} instead of {}. {} {}",
            caches(self.sites.caches),
            scheme.name(),
            compared(saved),
            time(outcome.latency_s),
            time(outcomes.alone.latency_s),
            self.part_of_all(&outcomes.alone, outcome),
            self.where_it_pays(break_even(model, &self.sites)?),
        ))
    }

    /// No scheme saves anything: at this distance, or at any.
    fn nothing(&self, model: &Model, best: &Outcome) -> Result<String, Invalid> {
        let said = format!(
            "No: no scheme saves {} anything: a document takes {}, as it does with each on its own.",
            caches(self.sites.caches),
            time(best.latency_s)
        );
        let side_by_side = Sites {
            between_s: self.sites.near_s,
            ..self.sites
        };
        let outcomes = self.outcomes(model, &side_by_side)?;
        let nearest = outcomes.of(None).map(|(_, it)| outcomes.saved(it));
        Ok(match nearest.is_none_or(|saved| saved < SAVES) {
            true => format!("{said} Nor would it if they stood side by side."),
            false => format!(
                "{said} {}",
                self.where_it_pays(break_even(model, &self.sites)?)
            ),
        })
    }

    /// What there is to say if servers answer sooner than caches, and cooperating does not make up for it.
    fn servers_are_nearer(&self, outcomes: &Outcomes, best: &Outcome) -> Option<String> {
        let (server_s, sites) = (self.workload.server_s, &self.sites);
        let sooner = |than: &str, cache_s: f64| {
            format!(
                "No: a server answers in {}, no later than {than} ({})",
                time(server_s),
                time(cache_s)
            )
        };
        if is_nearest(&self.workload, sites) {
            let said = sooner("even a client's own cache", sites.near_s);
            return Some(format!("{said}: no cache pays, alone or together."));
        }
        if server_s <= sites.between_s && outcomes.saved(best) <= 0.0 {
            let said = sooner("another cache", sites.between_s);
            return Some(format!(
                "{said}: cooperating does not pay. With caches on their own a document takes {}.",
                time(outcomes.alone.latency_s)
            ));
        }
        None
    }

    fn nobody(&self, alone: &Outcome) -> String {
        let pays = match is_nearest(&self.workload, &self.sites) {
            true => ": it does not pay",
            false => "",
        };
        format!(
            "No: one cache has nobody to cooperate with. A document takes {} instead of the server's {}{pays}.",
            time(alone.latency_s),
            time(self.workload.server_s)
        )
    }

    /// How much of what caches could ever save is had.
    fn part_of_all(&self, alone: &Outcome, together: &Outcome) -> String {
        let told = &self.workload;
        let most_s = told.cacheable * (told.server_s - self.sites.near_s);
        if most_s <= 0.0 {
            return "No cache may answer anything.".to_owned();
        }
        let part = |outcome: &Outcome| match (told.server_s - outcome.latency_s) / most_s {
            part if part < 0.005 => "nothing".to_owned(),
            part => percent(part),
        };
        format!(
            "Of the most that caches could ever save, each alone has {}, together they have {}.",
            part(alone),
            part(together)
        )
    }

    fn where_it_pays(&self, pays: BreakEven) -> String {
        let up_to = |name: &str, limit_s: f64| match limit_s > SHOWN_S {
            true => format!("{name} pays up to {} between caches", time(limit_s)),
            false => format!("{name} pays at no distance"),
        };
        let here = time(self.sites.between_s);
        let (hashing, directory) = (pays.hashed_s, up_to("a directory", pays.directory_s));
        // A told tree has latencies of its own, and where caches fill up no form is known for one.
        match self.tree.is_none() && self.sites.store.is_none() {
            true => format!(
                "{}, {}, {directory}; here it is {here}.",
                up_to("A root above the caches (hierarchical)", pays.root_s),
                up_to("hashing", hashing),
            ),
            false => format!(
                "{}, {directory}; here it is {here}.",
                up_to("Hashing", hashing)
            ),
        }
    }

    fn now(&self, model: &Model) -> Result<Section, Invalid> {
        let outcomes = self.outcomes(model, &self.sites)?;
        let mut table = Table::new(
            "",
            &[
                "caches",
                "requests that hit",
                "a document takes",
                "saved",
                "servers need not send, MB/s",
                "requests to a cache, the highest first",
                "valid copies in a cache",
            ],
        );
        let mut row = |name: &str, outcome: &Outcome| {
            let saved = outcomes.saved(outcome);
            let spared = outcome.saved_bytes_s;
            table.cells(vec![
                name.into(),
                share(outcome.hit_rate),
                took(outcome.latency_s),
                saving(&self.workload, &self.sites, saved),
                Cell::count(megabytes(spared), spared / 1e6),
                rates(&outcome.arrivals_s),
                size(outcome.valid_bytes),
            ]);
        };
        row("each on its own", &outcomes.alone);
        for (scheme, outcome) in &outcomes.schemes {
            row(scheme.name(), outcome);
        }
        let mut words = Vec::new();
        if self.sites.store.is_some() {
            words.push("Caches that fill up are computed by Che's approximation: each copy is taken to stay equally long after a request for it. It is within a percent or two; a tree of such caches cannot be computed so, and is left out.".to_owned());
        }
        Ok(Section {
            words,
            tables: vec![table, needed(model)?],
            ..Section::default()
        })
    }

    fn by_population(&self, model: &Model) -> Result<Section, Invalid> {
        let title = format!("By population, of {}", caches(self.sites.caches));
        let populations = log_spaced(1e3, 1e9, 7);
        let (table, _) = self.swept(model, &title, "clients", populations, &|sites, clients| {
            sites.clients = clients;
        })?;
        let fine = log_spaced(1e2, 1e9, 29);
        let (_, series) = self.swept(model, &title, "clients", fine, &|sites, clients| {
            sites.clients = clients;
        })?;
        let chart = Chart {
            name: "web-by-population".to_owned(),
            title: "A document takes, by population".to_owned(),
            x: Axis::log("clients"),
            y: Axis::linear("ms"),
            series,
        };
        Ok(section(table, chart))
    }

    fn by_distance(&self, model: &Model) -> Result<Section, Invalid> {
        let mut distances = vec![5.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
        distances.push(self.sites.between_s * 1000.0);
        distances.sort_by(f64::total_cmp);
        distances.dedup();
        let title = match self.tree {
            Some(_) => "By latency between caches; the tree has its own",
            None => "By latency between caches, and from them to the root of the tree",
        };
        let vary = |sites: &mut Sites, ms: f64| sites.between_s = ms / 1000.0;
        let (table, series) = self.swept(
            model,
            title,
            "ms between caches",
            distances.into_iter(),
            &vary,
        )?;
        let chart = Chart {
            name: "web-by-distance".to_owned(),
            title: "A document takes, by latency between caches".to_owned(),
            x: Axis::log("between caches, ms"),
            y: Axis::linear("ms"),
            series,
        };
        Ok(section(table, chart))
    }

    /// What a document takes with each scheme, as a table and as curves.
    fn swept(
        &self,
        model: &Model,
        title: &str,
        column: &str,
        values: impl Iterator<Item = f64>,
        vary: &dyn Fn(&mut Sites, f64),
    ) -> Result<(Table, Vec<Series>), Invalid> {
        let mut names = vec!["each on its own"];
        names.extend(
            self.outcomes(model, &self.sites)?
                .schemes
                .iter()
                .map(|(scheme, _)| scheme.name()),
        );
        let mut table = Table::new(title, &[&[column], &names[..]].concat());
        let mut series: Vec<Series> = names
            .iter()
            .map(|name| Series::line(name, Vec::new()))
            .collect();
        for value in values {
            let mut sites = self.sites;
            vary(&mut sites, value);
            let outcomes = self.outcomes(model, &sites)?;
            let of_schemes = outcomes
                .schemes
                .iter()
                .map(|(_, outcome)| outcome.latency_s);
            let latencies: Vec<f64> = std::iter::once(outcomes.alone.latency_s)
                .chain(of_schemes)
                .collect();
            let mut row = vec![counted(value)];
            row.extend(latencies.iter().map(|&s| took(s)));
            table.cells(row);
            for (curve, s) in series.iter_mut().zip(latencies) {
                curve.points.push((value, s * 1000.0));
            }
        }
        Ok((table, series))
    }

    /// What cooperating saves if one parameter is half or twice of what it is.
    fn by_parameter(&self, model: &Model) -> Result<Section, Invalid> {
        let mut table = Table::new(
            "Waiting that cooperating saves, if one parameter is another",
            &["parameter", "half", "as it is", "twice"],
        );
        let parameters: [(&str, Vary); 6] = [
            ("requests of a client (or clients)", |told, by| {
                told.requests_per_client_s *= by
            }),
            ("days between changes of popular documents", |told, by| {
                told.popular_change_s *= by
            }),
            ("days between changes of the others", |told, by| {
                told.unpopular_change_s *= by
            }),
            ("documents, popular ones as well", |told, by| {
                told.documents = scaled(told.documents, by).max(1);
                told.popular_documents = scaled(told.popular_documents, by).min(told.documents);
            }),
            ("exponent of popularity", |told, by| {
                told.alpha = (told.alpha * by).min(20.0)
            }),
            ("a document from its server", |told, by| told.server_s *= by),
        ];
        for (name, vary) in parameters {
            let mut row = vec![name.into()];
            for by in [0.5, 1.0, 2.0] {
                let mut workload = self.workload;
                vary(&mut workload, by);
                let outcomes = self.outcomes(&model.with(workload)?, &self.sites)?;
                let saved = outcomes.of(self.scheme).map(|(_, it)| outcomes.saved(it));
                row.extend(saved.map(|saved| saving(&workload, &self.sites, saved)));
            }
            table.cells(row);
        }
        Ok(Section {
            tables: vec![table],
            ..Section::default()
        })
    }
}

/// Less than this part of the waiting is nothing.
const SAVES: f64 = 0.005;

/// Makes a parameter so many times what it is.
type Vary = fn(&mut Workload, f64);

pub(super) fn section(table: Table, chart: Chart) -> Section {
    Section {
        tables: vec![table],
        charts: vec![chart],
        ..Section::default()
    }
}

fn scaled(count: u64, by: f64) -> u64 {
    (count as f64 * by).round() as u64
}

/// How far the hit rates may be off, for who wants to check them.
fn checked(model: &Model, clients: f64) -> Section {
    let sum = model.hit_rate(clients);
    let mut words = format!(
        "Hit rates are sums over all documents. One cache for all {} clients that holds everything hits in {:.4} % of all requests, which is right to {}.",
        count(clients),
        sum.value * 100.0,
        digits(sum.error)
    );
    if let Some(integral) = model.cacheable_hit_rate_by_integral(clients) {
        let integral = integral * model.workload().cacheable;
        let more = format!(
            " The thesis takes an integral in place of the sum: that is {:.4} %, right to {}.",
            integral.value * 100.0,
            digits(integral.error)
        );
        words.push_str(&more);
    }
    Section {
        heading: "To check the figures".to_owned(),
        words: vec![words],
        ..Section::default()
    }
}

/// How large an error may be, without powers of ten.
fn digits(error: f64) -> String {
    match error * 100.0 {
        per_cent if per_cent < 1e-4 => "all these digits".to_owned(),
        per_cent => format!("{per_cent:.4} %"),
    }
}

/// How many clients one cache needs.
fn needed(model: &Model) -> Result<Table, Invalid> {
    let mut table = Table::new(
        "Clients that it takes until a cache that holds everything hits so many of the requests that caches may answer",
        &["hits", "clients"],
    );
    for hits in [0.5, 0.75, 0.9, 0.95, 0.99] {
        let clients = match clients_for(model, hits)? {
            Some(clients) => counted(clients.ceil()),
            None => "no number".into(),
        };
        table.cells(vec![share(hits), clients]);
    }
    Ok(table)
}
