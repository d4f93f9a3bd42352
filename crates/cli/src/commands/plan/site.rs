//! `thorp plan site`: what a site saves.

use super::given::{Given, Usual, numeral, refused};
use super::measured::{Measured, measured};
use super::shown::Shown;
use crate::failure::{Code, Failure};
use crate::text::note;
use clap::Args;
use serde::Serialize;
use thorp_plan::Invalid;
use thorp_plan::report::{self, Axis, Cell, Chart, Report, Section, Series, Table};
use thorp_plan::site::{BUDDY_CACHE, BreakEven, Cold, Hot, Site, THORP, Times};

/// What `thorp plan site` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    parameters: Parameters,
    /// Take members, distance and sharing from a running site: its --http address
    #[arg(long, value_name = "URL")]
    from_metrics: Option<String>,
    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "\
Examples:
  thorp plan site --members 5 --round-trip-ms 40
  thorp plan site --members 12 --round-trip-ms 15 --pages 20000 --html plan.html
  thorp plan site --from-metrics http://localhost:7431";

#[derive(Args, Debug, Default, Serialize)]
struct Parameters {
    /// Members at the site that want the same pages
    #[arg(long, value_name = "N")]
    members: Option<f64>,
    /// Round trip between the site and the home
    #[arg(long, value_name = "MS")]
    round_trip_ms: Option<f64>,
    /// Pages that each member wants
    #[arg(long, value_name = "N")]
    pages: Option<f64>,
    /// Pages that come with one round trip (1: one by one; more: fetched ahead)
    #[arg(long, value_name = "N")]
    pages_per_wait: Option<f64>,
    /// Transactions in which it reads them
    #[arg(long, value_name = "N")]
    transactions: Option<f64>,
    /// A transaction's own work
    #[arg(long, value_name = "MS")]
    compute_ms: Option<f64>,
    /// Later: pages that a warm transaction finds changed
    #[arg(long, value_name = "N")]
    misses: Option<f64>,
    /// Later: members that ask for a page between two of its changes
    #[arg(long, value_name = "N")]
    sharing: Option<f64>,
    /// Whose costs beside the round trip: thorp, or buddycache (2004)
    #[arg(long, value_name = "NAME")]
    system: Option<String>,
    /// A page from the home costs beside the round trip
    #[arg(long, value_name = "MS")]
    fetch_ms: Option<f64>,
    /// The same through the site
    #[arg(long, value_name = "MS")]
    fetch_by_site_ms: Option<f64>,
    /// A page from a neighbour
    #[arg(long, value_name = "MS")]
    redirect_ms: Option<f64>,
    /// A commit costs beside the round trip
    #[arg(long, value_name = "MS")]
    commit_ms: Option<f64>,
    /// The same through the site
    #[arg(long, value_name = "MS")]
    commit_by_site_ms: Option<f64>,
}

/// Answers.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut given = Given::new(&options.parameters, options.shown.file(), "site")?;
    if let Some(node) = &options.from_metrics {
        let told = given.told_number("members").map(|(members, _)| members);
        let measured = measured(node)?;
        for missing in measured.missing() {
            // Assumptions tell it, too.
            let _ = note(&format!("{node} does not tell {missing}"));
        }
        let measured = parameters(&measured, told);
        given.add(&format!("measured at {node}"), &measured)?;
    }
    let question = Question::of(&mut given)?;
    let mut report = question.report().map_err(|invalid| refused(&invalid))?;
    given.tell(&mut report);
    options.shown.show("What a site saves", &report)
}

/// What was measured of a site, or of one with as many members as were told.
fn parameters(measured: &Measured, members_told: Option<f64>) -> Parameters {
    let members = members_told.or(measured.members);
    let shared = measured.requests_per_fetch.zip(members);
    Parameters {
        members,
        round_trip_ms: measured.round_trip_ms,
        sharing: shared.map(|(requests, members)| requests.min(members)),
        ..Parameters::default()
    }
}

struct Question {
    site: Site,
    cold: Cold,
    hot: Hot,
}

impl Question {
    fn of(given: &mut Given) -> Result<Self, Failure> {
        let mut number = |key, words, unit, value, why| {
            given.number(&Usual {
                key,
                words,
                unit,
                value,
                why,
            })
        };
        let members = number("members", "members at the site", "", 5.0, "a small site");
        let round_trip_ms = number(
            "round_trip_ms",
            "round trip to the home",
            "ms",
            40.0,
            "within a continent",
        );
        let system = given.word(&Usual {
            key: "system",
            words: "whose costs",
            unit: "",
            value: "thorp",
            why: "what is planned",
        });
        let (costs, ahead, whose) = match &*system {
            "thorp" => (
                THORP,
                7.0,
                "Thorp, measured on one machine: docs/performance.md",
            ),
            "buddycache" => (BUDDY_CACHE, 1.0, "BuddyCache 2004, tables 1 and 2"),
            other => {
                let what = format!("--system is thorp or buddycache, not {other:?}");
                return Err(
                    Failure::new(what, "each cost has a flag of its own, too").with(Code::Usage)
                );
            }
        };
        let mut number = |key, words, unit, value, why| {
            given.number(&Usual {
                key,
                words,
                unit,
                value,
                why,
            })
        };
        let costs = thorp_plan::site::Costs {
            fetch_ms: number(
                "fetch_ms",
                "a page from the home, beside the round trip",
                "ms",
                costs.fetch_ms,
                whose,
            ),
            fetch_by_site_ms: number(
                "fetch_by_site_ms",
                "the same through the site",
                "ms",
                costs.fetch_by_site_ms,
                whose,
            ),
            redirect_ms: number(
                "redirect_ms",
                "a page from a neighbour",
                "ms",
                costs.redirect_ms,
                whose,
            ),
            commit_ms: number(
                "commit_ms",
                "a commit, beside the round trip",
                "ms",
                costs.commit_ms,
                whose,
            ),
            commit_by_site_ms: number(
                "commit_by_site_ms",
                "the same through the site",
                "ms",
                costs.commit_by_site_ms,
                whose,
            ),
        };
        let compute_ms = number(
            "compute_ms",
            "a transaction's own work",
            "ms",
            5.0,
            "short transactions",
        );
        let pages = number("pages", "pages that each member wants", "", 500.0, "4 MB");
        let cold = Cold {
            pages,
            pages_per_wait: number(
                "pages_per_wait",
                "pages that come with one round trip",
                "",
                // No more than there are.
                f64::min(ahead, pages.max(1.0)),
                whose,
            ),
            transactions: number(
                "transactions",
                "transactions in which it reads them",
                "",
                (pages / 50.0).ceil().max(1.0),
                "50 pages each",
            ),
            compute_ms,
        };
        let hot = Hot {
            misses: number(
                "misses",
                "pages that a warm transaction finds changed",
                "",
                2.0,
                "somebody changes what others read",
            ),
            sharing: number(
                "sharing",
                "members that ask for a page between two of its changes",
                "",
                members.max(1.0),
                "all of them",
            ),
            compute_ms,
        };
        let site = Site {
            members,
            round_trip_ms,
            costs,
        };
        for (name, count) in [
            ("members", members),
            ("pages", cold.pages),
            ("transactions", cold.transactions),
        ] {
            whole(name, count).map_err(|invalid| refused(&invalid))?;
        }
        Ok(Question { site, cold, hot })
    }

    fn report(&self) -> Result<Report, Invalid> {
        Ok(Report {
            answer: self.answer()?,
            sections: vec![self.now()?, self.by_members()?, self.by_distance()?],
            assumptions: Vec::new(),
        })
    }

    fn answer(&self) -> Result<String, Invalid> {
        let Site {
            members,
            round_trip_ms,
            ..
        } = self.site;
        let saved = self.site.cold(&self.cold)?.saved();
        let elsewhere = self.site.writer_elsewhere(&self.hot)?.saved();
        let here = self.here(&self.site)?.map(|times| times.saved());
        let verdict = match (saved, here.map_or(elsewhere, |here| here.max(elsewhere))) {
            (cold, warm) if cold < NOTHING && warm < 0.1 => "No",
            (cold, warm) if cold < 0.005 && warm < 0.0 => "No",
            (cold, warm) if cold.max(warm) < 0.1 => "Hardly",
            (cold, _) if cold < 0.005 => "Only for what is warm",
            _ => "Yes",
        };
        let people = match members {
            1.0 => "one member that begins".to_owned(),
            members => format!("{} members that begin", numeral(members)),
        };
        let warm = match here {
            Some(here) => format!(
                "{} of the time of a transaction that reads what a neighbour changes, and {} if somebody elsewhere changes it",
                words(here),
                words(elsewhere)
            ),
            None => format!(
                "{} of the time of a transaction that reads what somebody elsewhere changes",
                words(elsewhere)
            ),
        };
        Ok(format!(
            "{verdict}: with a site {} ms from the home, {people} with nothing cached would {} of the time that it takes to read everything once. {} Afterwards, with everything cached, a site would {warm}.{}",
            numeral(round_trip_ms),
            words(saved),
            self.where_it_pays()?,
            self.redirectors_work()?.unwrap_or_default(),
        ))
    }

    /// That the model lets one redirector pass on any number of pages, where that is more than a processor's work.
    fn redirectors_work(&self) -> Result<Option<String>, Invalid> {
        let times = self.site.cold(&self.cold)?;
        let passed_on = (self.site.members - 1.0) * self.cold.pages;
        let per_s = passed_on / (times.together_ms / 1000.0);
        let [least, most] = PASSED_ON_US.map(|us| per_s * us / 1e6);
        Ok((most > 1.0 && most.is_finite()).then(|| {
            format!(
                " What one redirector can do is not in this: if all begin at once, it passes on {} pages a second, which is the work of {} to {} processors.",
                thousands(per_s),
                thousands(least),
                thousands(most),
            )
        }))
    }

    /// With the writer at the site; nothing if nobody is there beside it.
    fn here(&self, site: &Site) -> Result<Option<Times>, Invalid> {
        match site.members < 2.0 {
            true => Ok(None),
            false => site.writer_here(&self.hot).map(Some),
        }
    }

    /// From which distance and from how many members on.
    fn where_it_pays(&self) -> Result<String, Invalid> {
        let saved = self.site.cold(&self.cold)?.saved();
        let is_little = (NOTHING..0.005).contains(&saved);
        let distance = match self.site.cold_break_even(&self.cold)? {
            BreakEven::Always if is_little => "It pays at any distance, but hardly".to_owned(),
            BreakEven::AboveMs(far) if is_little => {
                format!("It pays from {} on, but hardly at this distance", time(far))
            }
            BreakEven::Always => "It pays at any distance".to_owned(),
            BreakEven::Never if self.site.members < 2.0 => {
                return Ok("One alone has no neighbours: that pays at no distance.".to_owned());
            }
            BreakEven::Never => {
                let why = "It pays at no distance: the way through the site costs more than neighbours save.";
                return Ok(why.to_owned());
            }
            BreakEven::AboveMs(far) => format!("It pays from {} on", time(far)),
        };
        let half = match self.site.members_to_save(0.5, &self.cold)? {
            Some(1) => "here one member saves half of its time".to_owned(),
            Some(members) => format!("here it takes {members} members to save half of their time"),
            None => "here no number of members saves half of their time".to_owned(),
        };
        Ok(format!("{distance}; {half}."))
    }

    fn now(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            "",
            &[
                "each member's time",
                "without a site",
                "with it",
                "saved",
                "pays",
            ],
        );
        let site = &self.site;
        let mut rows = vec![(
            "until all pages are read once",
            site.cold(&self.cold)?,
            site.cold_break_even(&self.cold)?,
        )];
        if let Some(times) = self.here(site)? {
            let pays = site.here_break_even(&self.hot)?;
            rows.push(("a warm transaction, the writer at the site", times, pays));
        }
        rows.push((
            "a warm transaction, the writer elsewhere",
            site.writer_elsewhere(&self.hot)?,
            site.elsewhere_break_even(&self.hot)?,
        ));
        for (what, times, pays) in rows {
            table.cells(vec![
                what.into(),
                took(times.alone_ms),
                took(times.together_ms),
                part(times.saved()),
                from(pays).into(),
            ]);
        }
        Ok(Section {
            tables: vec![table],
            ..Section::default()
        })
    }

    fn by_members(&self) -> Result<Section, Invalid> {
        let mut counts = vec![1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, self.site.members];
        counts.sort_by(f64::total_cmp);
        counts.dedup();
        let mut table = Table::new("By members", &["members", "time each", "saved from cold"]);
        for &members in &counts {
            let times = self.site.with(members).cold(&self.cold)?;
            table.cells(vec![
                members.to_string().into(),
                took(times.together_ms),
                part(times.saved()),
            ]);
        }
        let mut points = Vec::new();
        for members in 1..=50 {
            let saved = self.site.with(f64::from(members)).cold(&self.cold)?.saved();
            points.push((f64::from(members), saved * 100.0));
        }
        let curves = vec![Series::line("from cold", points)];
        let chart = chart(
            "site-by-members",
            "Time saved, by members",
            Axis::linear("members"),
            curves,
        );
        Ok(Section {
            tables: vec![table],
            charts: vec![chart],
            ..Section::default()
        })
    }

    fn by_distance(&self) -> Result<Section, Invalid> {
        let mut table = Table::new(
            "By distance",
            &[
                "round trip, ms",
                "from cold",
                "writer at the site",
                "writer elsewhere",
            ],
        );
        let mut distances = vec![0.5, 1.0, 5.0, 10.0, 20.0, 40.0, 80.0, 150.0, 300.0];
        distances.push(self.site.round_trip_ms);
        distances.sort_by(f64::total_cmp);
        distances.dedup();
        let mut curves = ["from cold", "writer at the site", "writer elsewhere"]
            .map(|name| Series::line(name, Vec::new()));
        for far in distances {
            let saved = self.saved_at(far)?;
            let mut row = vec![Cell::time(numeral(far), far / 1000.0)];
            row.extend(saved.map(part));
            table.cells(row);
            for (curve, saved) in curves.iter_mut().zip(saved) {
                curve.points.push((far, saved * 100.0));
            }
        }
        let axis = Axis::log("round trip to the home, ms");
        let chart = chart(
            "site-by-distance",
            "Time saved, by distance",
            axis,
            curves.to_vec(),
        );
        Ok(Section {
            tables: vec![table],
            charts: vec![chart],
            ..Section::default()
        })
    }

    fn saved_at(&self, round_trip_ms: f64) -> Result<[f64; 3], Invalid> {
        let site = Site {
            round_trip_ms,
            ..self.site
        };
        Ok([
            site.cold(&self.cold)?.saved(),
            self.here(&site)?.map_or(f64::NAN, |times| times.saved()),
            site.writer_elsewhere(&self.hot)?.saved(),
        ])
    }
}

fn whole(name: &'static str, count: f64) -> Result<(), Invalid> {
    match count.is_finite() && count.fract() != 0.0 {
        true => Err(Invalid::new(
            name,
            format!("must be a whole number, not {count}"),
        )),
        // What is no number is refused where the model looks at it.
        false => Ok(()),
    }
}

fn chart(name: &str, title: &str, x: Axis, series: Vec<Series>) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x,
        y: Axis::linear("time saved, %"),
        series,
    }
}

/// What a site takes of a processor for each page that it passes on: docs/performance.md.
const PASSED_ON_US: [f64; 2] = [22.0, 45.0];

/// A number in two digits, for what is not known better.
fn thousands(value: f64) -> String {
    let size = 10_f64.powf(value.abs().max(0.1).log10().floor() - 1.0);
    let rounded = (value / size).round() * size;
    match rounded {
        many if many >= 1e9 => format!("{} billion", numeral(many / 1e9)),
        many if many >= 1e6 => format!("{} million", numeral(many / 1e6)),
        some => numeral(some),
    }
}

/// What a site does to a time, in words.
fn words(saved: f64) -> String {
    match (saved * 100.0).round() {
        0.0 if saved.abs() < NOTHING => "save nothing".to_owned(),
        0.0 if saved < 0.0 => "lose less than 1 %".to_owned(),
        0.0 => "save less than 1 %".to_owned(),
        per_cent if per_cent < 0.0 => format!("lose {} %", -per_cent),
        per_cent => format!("save {per_cent} %"),
    }
}

fn from(pays: BreakEven) -> String {
    match pays {
        BreakEven::Always => "always".into(),
        BreakEven::Never => "never".into(),
        BreakEven::AboveMs(far) => format!("from {far:.2} ms on"),
    }
}

fn percent(part: f64) -> String {
    match (part * 100.0).round() {
        0.0 if part >= NOTHING => "<1 %".to_owned(),
        _ => report::percent(part, 0),
    }
}

/// Less than any clock would tell.
const NOTHING: f64 = 1e-12;

fn part(saved: f64) -> Cell {
    Cell::part(percent(saved), saved)
}

fn took(ms: f64) -> Cell {
    Cell::time(time(ms), ms / 1000.0)
}

fn time(ms: f64) -> String {
    match ms {
        ms if ms >= 120_000.0 => format!("{:.1} min", ms / 60_000.0),
        ms if ms >= 1000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(parameters: &Parameters) -> Question {
        let mut given = Given::new(parameters, None, "site").expect("told");
        Question::of(&mut given).expect("it can be")
    }

    #[test]
    fn the_answer_says_what_the_table_shows() {
        let five = Parameters {
            members: Some(5.0),
            round_trip_ms: Some(40.0),
            ..Parameters::default()
        };
        let report = question(&five).report().expect("it can be");
        let saved = &report.sections[0].tables[0].rows[0][3];
        assert!(
            report
                .answer
                .starts_with("Yes: with a site 40 ms from the home, 5 members"),
            "{}",
            report.answer
        );
        assert!(
            report.answer.contains(&format!("save {saved}")),
            "{}",
            report.answer
        );
    }

    #[test]
    fn one_member_is_told_no() {
        let one = Parameters {
            members: Some(1.0),
            misses: Some(0.0),
            ..Parameters::default()
        };
        let answer = question(&one).answer().expect("it can be");
        assert!(
            answer.starts_with("No:") && answer.contains("one member"),
            "{answer}"
        );
    }

    #[test]
    fn a_saving_too_small_to_show_is_said_to_be_one() {
        for parameters in [
            Parameters {
                pages: Some(3.0),
                transactions: Some(100.0),
                ..Parameters::default()
            },
            Parameters {
                compute_ms: Some(1e9),
                ..Parameters::default()
            },
        ] {
            let report = question(&parameters).report().expect("it can be");
            let answer = report.answer;
            assert!(answer.contains("would save less than 1 % of"), "{answer}");
            assert!(answer.contains("but hardly at this distance"), "{answer}");
            assert!(
                !answer.contains("nothing of") && !answer.starts_with("No:"),
                "{answer}"
            );
            assert_eq!(report.sections[0].tables[0].rows[0][3], "<1 %");
        }
        assert_eq!(words(-0.001), "lose less than 1 %");
        assert_eq!(words(0.0), "save nothing");
    }

    #[test]
    fn more_pages_than_one_processor_passes_on_are_told() {
        let answer = |members| {
            let told = Parameters {
                members: Some(members),
                ..Parameters::default()
            };
            question(&told).answer().expect("it can be")
        };
        let told = "What one redirector can do is not in this";
        assert!(!answer(5.0).contains(told), "{}", answer(5.0));
        for members in [3000.0, 1e6] {
            assert!(answer(members).contains(told), "{}", answer(members));
        }
        assert_eq!(
            [7.26, 1234.0, 2.34e7].map(thousands),
            ["7.3", "1200", "23 million"]
        );
    }

    #[test]
    fn few_pages_come_together_and_are_read_at_once() {
        let few = Parameters {
            pages: Some(3.0),
            ..Parameters::default()
        };
        let cold = question(&few).cold;
        assert_eq!((cold.pages_per_wait, cold.transactions), (3.0, 1.0));
        question(&few).report().expect("it can be");
    }

    #[test]
    fn no_more_members_share_than_there_are() {
        let measured = Measured {
            members: None,
            round_trip_ms: Some(40.0),
            requests_per_fetch: Some(4.5),
        };
        assert_eq!(parameters(&measured, None).sharing, None);
        assert_eq!(parameters(&measured, Some(3.0)).sharing, Some(3.0));
        let here = Measured {
            members: Some(12.0),
            ..measured
        };
        assert_eq!(parameters(&here, None).sharing, Some(4.5));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_flag() {
        let none = Parameters {
            members: Some(0.0),
            ..Parameters::default()
        };
        let invalid = question(&none).report().expect_err("nobody");
        let told = refused(&invalid).to_string();
        assert!(
            told.starts_with("--members must be a number from 1 to 1000000000, not 0"),
            "{told}"
        );
        let other = Parameters {
            system: Some("zeo".into()),
            ..Parameters::default()
        };
        let mut given = Given::new(&other, None, "site").expect("told");
        assert!(Question::of(&mut given).is_err());
    }
}
