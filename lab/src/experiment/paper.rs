//! The evaluation of the BuddyCache paper (section 6), table by table and figure by figure.

use super::{CUT_SHORT, Cold, Common, Costs, Hot, cold, costs, hot};
use crate::Outcome;
use crate::stop::Stop;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What the evaluation is told.
#[derive(Clone, Debug)]
pub struct Paper {
    /// What all experiments are. The figures know their own distances.
    pub common: Common,
    /// Which tables and figures; all, if none is named.
    pub only: Vec<Part>,
    /// Fewer distances, one group, less of everything: to see that it works, and roughly what comes out.
    pub quick: bool,
}

/// A table or a figure of the paper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "they are called as in the paper")]
pub enum Part {
    Table1,
    Table2,
    Figure7,
    Figure8,
    Figure9,
    Figure10,
    Figure11,
    Figure12,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 8] = [
        Part::Table1,
        Part::Table2,
        Part::Figure7,
        Part::Figure8,
        Part::Figure9,
        Part::Figure10,
        Part::Figure11,
        Part::Figure12,
    ];

    /// From where it is measured.
    fn distances(self, quick: bool) -> &'static [u64] {
        match self {
            Part::Table1 | Part::Table2 => &[],
            Part::Figure7 | Part::Figure10 => &[40],
            Part::Figure8 | Part::Figure11 => &[80],
            Part::Figure9 | Part::Figure12 if quick => &[1, 20, 40, 80],
            Part::Figure9 | Part::Figure12 => &[1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100],
        }
    }

    fn is_cold(self) -> bool {
        matches!(self, Part::Figure7 | Part::Figure8 | Part::Figure9)
    }

    fn is_hot(self) -> bool {
        matches!(self, Part::Figure10 | Part::Figure11 | Part::Figure12)
    }

    /// Where it is drawn.
    fn file(self) -> &'static str {
        match self {
            Part::Table1 | Part::Table2 => "costs.svg",
            Part::Figure7 => "cold-40ms.svg",
            Part::Figure8 => "cold-80ms.svg",
            Part::Figure9 => "cold-figure9.svg, cold-figure9-thorp.svg",
            Part::Figure10 => "hot-40ms.svg",
            Part::Figure11 => "hot-80ms.svg",
            Part::Figure12 => "hot-figure12.svg",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Part::ALL.into_iter().find(|part| part.to_string() == text);
        found
            .ok_or_else(|| format!("the paper has table1, table2, figure7 .. figure12; not {text}"))
    }
}

/// Runs what is asked for, one after the other; tells the tables. Each distance is measured once, for all figures.
pub fn paper(told: &Paper, stop: &Stop, show: &mut dyn FnMut(&str)) -> Outcome<String> {
    let parts: Vec<Part> = match told.only[..] {
        [] => Part::ALL.to_vec(),
        _ => told.only.clone(),
    };
    let of = |distances: Vec<Duration>| Common {
        round_trips: distances,
        ..told.common.clone()
    };
    let mut text = String::new();
    if parts.iter().any(|part| !part.is_cold() && !part.is_hot()) {
        let requests = if told.quick { 200 } else { 1000 };
        let common = of(Vec::new());
        text += "\nTables 1 and 2: what a request costs\n";
        text += &costs(&Costs { common, requests }, stop, show)?;
    }
    let far = distances(&parts, Part::is_cold, told.quick);
    if !far.is_empty() && !stop.is_set() {
        let groups = if told.quick { vec![3] } else { vec![3, 5, 10] };
        let common = of(far);
        text += "\nFigures 7 to 9: cold misses\n";
        text += &cold(&Cold { common, groups }, stop, show)?;
    }
    let far = distances(&parts, Part::is_hot, told.quick);
    if !far.is_empty() && !stop.is_set() {
        let told = Hot {
            common: of(far),
            readers: 3,
            transactions: if told.quick { (10, 40) } else { (50, 200) },
        };
        text += "\nFigures 10 to 12: misses of what was changed\n";
        text += &hot(&told, stop, show)?;
    }
    if stop.is_set() && !text.ends_with(CUT_SHORT) {
        text += CUT_SHORT;
    }
    let drawn = parts
        .iter()
        .map(|part| format!("{part}: {}\n", part.file()));
    Ok(text + "\ndrawn:\n" + &drawn.collect::<String>())
}

fn distances(parts: &[Part], is_one: impl Fn(Part) -> bool, quick: bool) -> Vec<Duration> {
    let those = parts.iter().filter(|part| is_one(**part));
    let all: BTreeSet<u64> = those
        .flat_map(|part| part.distances(quick))
        .copied()
        .collect();
    all.into_iter().map(Duration::from_millis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_called_as_in_the_paper() {
        for part in Part::ALL {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        assert!("figure6".parse::<Part>().is_err());
    }

    #[test]
    fn each_distance_is_measured_once() {
        let far = distances(&Part::ALL, Part::is_cold, true);
        assert_eq!(far, [1, 20, 40, 80].map(Duration::from_millis));
        assert_eq!(distances(&Part::ALL, Part::is_hot, false).len(), 12);
        assert_eq!(
            distances(&[Part::Figure8], Part::is_cold, true),
            [Duration::from_millis(80)]
        );
        assert_eq!(distances(&[Part::Table1], Part::is_cold, true), []);
    }
}
