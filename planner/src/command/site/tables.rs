//! The answer's tables and charts.

use super::question::Question;
use super::said::{NOTHING, time};
use crate::Invalid;
use crate::command::given::three_digits;
use crate::report::{self, Axis, Cell, Chart, Section, Series, Table};
use crate::site::{BreakEven, Site};

impl Question {
    pub(super) fn now(&self) -> Result<Section, Invalid> {
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

    pub(super) fn by_members(&self) -> Result<Section, Invalid> {
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

    pub(super) fn by_distance(&self) -> Result<Section, Invalid> {
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
            let mut row = vec![Cell::time(three_digits(far), far / 1000.0)];
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

fn chart(name: &str, title: &str, x: Axis, series: Vec<Series>) -> Chart {
    Chart {
        name: name.into(),
        title: title.into(),
        x,
        y: Axis::linear("time saved, %"),
        series,
    }
}

fn from(pays: BreakEven) -> String {
    match pays {
        BreakEven::Always => "always".into(),
        BreakEven::Never => "never".into(),
        BreakEven::AboveMs(far) => format!("from {} on", time(far)),
    }
}

fn percent(part: f64) -> String {
    match (part * 100.0).round() {
        0.0 if part >= NOTHING => "<1 %".to_owned(),
        _ => report::percent(part, 0),
    }
}

fn part(saved: f64) -> Cell {
    Cell::part(percent(saved), saved)
}

fn took(ms: f64) -> Cell {
    Cell::time(time(ms), ms / 1000.0)
}
