//! Numbers in what people read, for programs.

use serde::{Serialize, Serializer};

/// A text, and the number that it is: as exact as it is shown, in the unit in which it is shown.
#[derive(Serialize)]
struct Cell<'a> {
    text: &'a str,
    #[serde(flatten)]
    number: Option<Number<'a>>,
}

#[derive(Serialize, Debug, PartialEq)]
struct Number<'a> {
    value: f64,
    /// Empty for what is counted.
    unit: &'a str,
}

/// Shows the cells of a table's rows.
pub(super) fn rows<S: Serializer>(rows: &[Vec<String>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        rows.iter()
            .map(|row| row.iter().map(cell).collect::<Vec<_>>()),
    )
}

/// Shows the value of a parameter.
pub(super) fn value<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    cell(text).serialize(serializer)
}

fn cell<T: AsRef<str> + ?Sized>(text: &T) -> Cell<'_> {
    let text = text.as_ref();
    Cell {
        text,
        number: number(text),
    }
}

/// *12.3 %*, *250,000*, *3.2 billion*, *53/s*: a numeral, how many of them, and a unit of one word. `None` for all else, also for
/// what has a number in it.
fn number(text: &str) -> Option<Number<'_>> {
    let is_part = |at: char| at.is_ascii_digit() || matches!(at, '+' | '-' | '.' | ',' | 'e');
    let end = text.find(|at| !is_part(at)).unwrap_or(text.len());
    let (numeral, rest) = text.split_at(end);
    let (factor, rest) = SCALES
        .iter()
        .find_map(|(name, factor)| Some((*factor, rest.strip_prefix(name)?)))
        .unwrap_or((1.0, rest));
    let unit = unit(rest)?;
    let value = without_groups(numeral)?.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(Number { value, unit })
}

/// What is left of a text behind its number.
fn unit(rest: &str) -> Option<&str> {
    let unit = match rest.strip_prefix(' ') {
        Some(unit) if !unit.is_empty() => unit,
        Some(_) => return None,
        None if rest.is_empty() || rest.starts_with(['/', '%']) => rest,
        None => return None,
    };
    let is_word = |at: char| at.is_alphabetic() || matches!(at, '%' | '/');
    unit.chars().all(is_word).then_some(unit)
}

/// Digits in threes are one numeral; any others with commas are several.
fn without_groups(numeral: &str) -> Option<String> {
    let mut groups = numeral.split(',');
    let first = groups.next()?.to_owned();
    groups.try_fold(first, |all, group| {
        let whole = group.split('.').next()?;
        (whole.len() == 3 && !all.contains('.')).then(|| all + group)
    })
}

const SCALES: [(&str, f64); 2] = [(" million", 1e6), (" billion", 1e9)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_number_has_its_value_and_unit() {
        for (text, value, unit) in [
            ("0.54 ms", 0.54, "ms"),
            ("12.3 %", 12.3, "%"),
            ("-6.0 %", -6.0, "%"),
            ("+0.9 %", 0.9, "%"),
            ("84", 84.0, ""),
            ("1e-9", 1e-9, ""),
            ("250,000", 250_000.0, ""),
            ("1,234,567.5 s", 1_234_567.5, "s"),
            ("3.2 billion", 3.2e9, ""),
            ("20 million documents", 2e7, "documents"),
            ("53/s", 53.0, "/s"),
            ("5%", 5.0, "%"),
            ("194 µs", 194.0, "µs"),
        ] {
            assert_eq!(number(text), Some(Number { value, unit }), "{text}");
        }
    }

    #[test]
    fn what_only_begins_with_a_number_is_text() {
        for text in [
            "",
            "-",
            "∞",
            "GMS",
            "e",
            "0.523 (12 %)",
            "5 to 20 %",
            "10 or 12",
            "7/12",
            "1.2.3",
            "12, 13",
            "1,2",
            "2 ",
            "inf",
            "3 %, 1.05",
            "24: (0.75, 0.025)",
            "201 ± 2",
            "40ms",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
