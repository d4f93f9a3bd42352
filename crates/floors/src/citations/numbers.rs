//! What is cited by number: rules, foundations, decision records and traps.

use super::words::{Word, words};
use super::{Found, RECORDS, citing};
use crate::complaint::Complaint;
use crate::tree::Tree;
use std::collections::BTreeSet;

const FOUNDATIONS: &str = "docs/foundations.md";
const TRAPS: &str = "docs/traps.md";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Rule,
    Foundation,
    Decision,
    Record,
    Trap,
}

/// The words that cite: for one and for several.
const CITING: &[(&str, &str, Kind)] = &[
    ("rule", "rules", Kind::Rule),
    ("foundation", "foundations", Kind::Foundation),
    ("decision", "decisions", Kind::Decision),
    ("record", "records", Kind::Record),
    ("trap", "traps", Kind::Trap),
];

#[derive(PartialEq, Eq, Debug)]
struct Citation {
    kind: Kind,
    id: String,
    line: usize,
}

/// What there is to cite.
struct Known {
    rules: BTreeSet<String>,
    foundations: BTreeSet<String>,
    records: BTreeSet<String>,
    traps: BTreeSet<String>,
}

pub(super) fn check(tree: &Tree) -> Found {
    let known = Known::of(tree);
    let mut found = Found::default();
    let mut counts = [0; 4];
    for (path, text) in citing(tree) {
        for citation in citations(&text) {
            counts[match citation.kind {
                Kind::Rule => 0,
                Kind::Foundation | Kind::Decision => 1,
                Kind::Record => 2,
                Kind::Trap => 3,
            }] += 1;
            let complaint = known.judge(&citation);
            found.complaints.extend(
                complaint
                    .map(|(wrong, remedy)| Complaint::new((path, citation.line), wrong, remedy)),
            );
        }
    }
    found.seen = ["rules", "foundations", "records", "traps"]
        .into_iter()
        .zip(counts)
        .collect();
    found
}

impl Known {
    fn of(tree: &Tree) -> Self {
        let records = tree
            .below(RECORDS)
            .filter_map(|path| path.strip_prefix(RECORDS)?.get(..4));
        let text = |page| tree.text(page).unwrap_or_default();
        Self {
            rules: rules(tree),
            foundations: headings(text(FOUNDATIONS), "foundation"),
            records: records.map(str::to_owned).collect(),
            traps: headings(text(TRAPS), "trap"),
        }
    }

    /// What is wrong with a citation, and what to do.
    fn judge(&self, citation: &Citation) -> Option<(String, String)> {
        let id = &citation.id;
        let (known, name, place) = match citation.kind {
            Kind::Rule => (
                self.rules.contains(id),
                "rule",
                "docs/protocol.md or docs/protocol",
            ),
            Kind::Foundation => (self.foundations.contains(id), "foundation", FOUNDATIONS),
            Kind::Record => (self.records.contains(id), "record", RECORDS),
            Kind::Trap => (self.traps.contains(id), "trap", TRAPS),
            Kind::Decision => {
                let wrong = format!("`decision {id}` names no list");
                let remedy = "cite a foundation by its number, or a record as `record 0014`";
                return Some((wrong, remedy.to_owned()));
            }
        };
        (!known).then(|| {
            let wrong = format!("there is no {name} {id}");
            (wrong, format!("cite one of {place}, or add it there"))
        })
    }
}

/// The rules: of the page with all of them, and of those with a page of their own. Rule 9 exists if rule 9a does.
fn rules(tree: &Tree) -> BTreeSet<String> {
    let pages = tree.below("docs/protocol/");
    let of_pages = pages.filter_map(|path| {
        let name = path
            .strip_prefix("docs/protocol/rule-")?
            .strip_suffix(".md")?;
        Some(name.trim_start_matches('0').to_owned())
    });
    let page = tree.text("docs/protocol.md").unwrap_or_default();
    let bold = page.lines().filter_map(|line| {
        let (id, _) = line.strip_prefix("**")?.split_once(". ")?;
        id_of(id).map(|(id, _)| id)
    });
    let mut rules: BTreeSet<String> = of_pages.chain(bold).collect();
    rules.extend(headings(page, "rule"));
    let is_letter = |letter: char| letter.is_ascii_lowercase();
    let whole = rules
        .iter()
        .map(|id| id.trim_end_matches(is_letter).to_owned());
    let whole: Vec<String> = whole.collect();
    rules.extend(whole);
    rules
}

/// The numbers of headings like `## Trap 7: ...`.
fn headings(text: &str, word: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let ids = headings.filter_map(|heading| {
        let mut words = heading.trim_start_matches('#').split_whitespace();
        let is_wanted = words.next()?.eq_ignore_ascii_case(word);
        is_wanted.then(|| id_of(words.next()?)).flatten()
    });
    ids.map(|(id, _)| id).collect()
}

fn citations(text: &str) -> Vec<Citation> {
    let words = words(text);
    let mut citations = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let name = word
            .text
            .trim_start_matches(['(', '[', '"', '*', '_', '`', '|']);
        for (one, several, kind) in CITING {
            let is_several = name.eq_ignore_ascii_case(several);
            if is_several || name.eq_ignore_ascii_case(one) {
                take_list(&words[index + 1..], is_several, *kind, &mut citations);
            }
        }
    }
    citations
}

/// Takes `4`, `6, 10 and 11` or `1 to 15` after a word that cites.
fn take_list(words: &[Word<'_>], several: bool, kind: Kind, citations: &mut Vec<Citation>) {
    let mut words = words.iter();
    let mut range_from: Option<String> = None;
    while let Some(word) = words.next() {
        let Some((id, rest)) = id_of(word.text.trim_start_matches(['[', '`', '*'])) else {
            return;
        };
        // The log of a home has records, too.
        if kind == Kind::Record && !(id.len() == 4 && id.starts_with('0')) {
            return;
        }
        let between = range_from
            .take()
            .map_or(Vec::new(), |from| between(&from, &id));
        citations.extend(between.into_iter().chain([id.clone()]).map(|id| Citation {
            kind,
            id,
            line: word.line,
        }));
        if !several {
            return;
        }
        let mut ahead = words.clone();
        match (rest, ahead.next().map(|word| word.text)) {
            (",", Some("and" | "or")) | ("", Some("and" | "or")) => words = ahead,
            (",", _) => {}
            ("", Some("to")) => {
                range_from = Some(id);
                words = ahead;
            }
            _ => return,
        }
    }
}

/// The numbers between the ends of a range, written like its end.
fn between(from: &str, to: &str) -> Vec<String> {
    let (Ok(first), Ok(last)) = (from.parse::<u32>(), to.parse::<u32>()) else {
        return Vec::new();
    };
    let width = if to.starts_with('0') { to.len() } else { 0 };
    let numbers = (first + 1)..last;
    numbers.map(|number| format!("{number:0width$}")).collect()
}

/// A number like `9`, `9a`, `R1` or `0014` at the beginning of a word, and what follows it.
fn id_of(word: &str) -> Option<(String, &str)> {
    let letters = usize::from(word.starts_with(|letter: char| letter.is_ascii_uppercase()));
    let digits = word[letters..]
        .chars()
        .take_while(char::is_ascii_digit)
        .count();
    let mut end = letters + digits;
    if word[end..].starts_with(|letter: char| letter.is_ascii_lowercase()) {
        end += 1;
    }
    let rest = &word[end..];
    let goes_on = rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '%');
    let is_fraction = rest
        .strip_prefix(['.', ','])
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    (digits > 0 && !goes_on && !is_fraction).then(|| (word[..end].to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let citations = citations(text);
        let ids = citations
            .iter()
            .map(|citation| format!("{:?} {}", citation.kind, citation.id));
        ids.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn citations_are_found_in_lists_and_over_lines() {
        for (text, found) in [
            ("(rule 4).", "Rule 4"),
            (
                "// see rules 6, 10\n// and 11: x",
                "Rule 6, Rule 10, Rule 11",
            ),
            (
                "[Rule 9a](rule-09a.md), rules 9b, and 9c,",
                "Rule 9a, Rule 9b, Rule 9c",
            ),
            ("traps 1 to 3", "Trap 1, Trap 2, Trap 3"),
            (
                "records 0001 to 0003",
                "Record 0001, Record 0002, Record 0003",
            ),
            ("(* Trap 8: nobody *)", "Trap 8"),
            ("[record 0014](0014-chains.md)", "Record 0014"),
            ("rule R1 and trap W4", "Rule R1, Trap W4"),
            ("foundation 9; decision 9", "Foundation 9, Decision 9"),
            ("rule 4, 5 pages", "Rule 4"),
            (
                "a log record 3, a record 00123, a decision of 5, rule 1.5, rules",
                "",
            ),
            ("| decision |\n| [0001](a.md)", ""),
        ] {
            assert_eq!(shown(text), found, "{text}");
        }
    }

    fn complaints(text: &str) -> Vec<String> {
        let files = [
            ("docs/protocol.md", "**1. Order.** Down one edge\n"),
            ("docs/protocol/rule-09a.md", "# Rule 9a: fetching"),
            ("docs/protocol/rule-10.md", ""),
            ("docs/decisions/0014-chains.md", ""),
            (
                "docs/foundations.md",
                "# Foundations\n## Foundation 2: who picks slots\n",
            ),
            ("docs/traps.md", "## Trap 7: blind patch\n"),
            ("src/a.rs", text),
        ];
        let found = check(&Tree::of(&files));
        let complaints = found.complaints.iter();
        complaints.map(|complaint| complaint.to_string()).collect()
    }

    #[test]
    fn what_exists_can_be_cited() {
        let text = "// Rules 1, 9, 9a and 10; record 0014; foundation 2; trap 7.";
        assert_eq!(complaints(text), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_exist_cannot_be_cited() {
        for (text, wrong) in [
            ("// (rule 2)", "there is no rule 2"),
            ("// rules 9 to 11", "there is no rule 11"),
            ("// rule 9b", "there is no rule 9b"),
            ("// record 0015", "there is no record 0015"),
            ("// foundation 13", "there is no foundation 13"),
            ("// trap 26", "there is no trap 26"),
            ("// decision 2", "`decision 2` names no list"),
            ("// decision 0014", "`decision 0014` names no list"),
        ] {
            let complaints = complaints(text);
            let [complaint] = &complaints[..] else {
                panic!("{text}: {complaints:?}");
            };
            let begin = format!("src/a.rs:1: {wrong} -> cite ");
            assert!(complaint.starts_with(&begin), "{complaint}");
        }
    }
}
