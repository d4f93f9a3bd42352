//! Text for people: tables, sizes, times, and writing that does not panic when nobody reads.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Prints a line of results. A reader that has gone (`thorp ls | head`) ends the command in silence.
pub(crate) fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", harmless(text)).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        std::process::exit(0);
    }
    written
}

/// Prints what went wrong.
pub(crate) fn error(text: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "thorp: {}", harmless(text))
}

/// A text without what commands a terminal. Names and messages come from others.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    match text.contains(is_bad) {
        true => Cow::Owned(text.replace(is_bad, "?")),
        false => Cow::Borrowed(text),
    }
}

/// A name of somebody else's as it stands within a line.
pub(crate) fn name(text: &str) -> String {
    text.replace(char::is_control, "?")
}

/// A document, in which no character commands a terminal. Only within texts are there any.
pub(crate) fn json(document: &str) -> Cow<'_, str> {
    let is_bad = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !document.contains(is_bad) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len());
    for c in document.chars() {
        match is_bad(c) {
            true => safe.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Prints what went wrong, for a program.
pub(crate) fn error_document(document: &serde_json::Value) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{}", json(&format!("{document:#}")))
}

/// Prints what is worth knowing beside the results: to a person.
pub(crate) fn note(text: &str) -> io::Result<()> {
    match is_quiet() {
        true => Ok(()),
        false => writeln!(io::stderr().lock(), "{}", harmless(text)),
    }
}

/// Writes a line over the one before, for a person at a terminal.
pub(crate) fn over(text: &str) -> io::Result<()> {
    match QUIET.load(Ordering::Relaxed) {
        true => Ok(()),
        // Erases the line first.
        false => write!(io::stderr().lock(), "\r\x1b[K{text}"),
    }
}

/// A program reads: nothing is printed but documents. For the whole process.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether a program reads.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// A path that means the same from everywhere.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Bytes as people read them.
pub(crate) fn bytes(count: u64) -> String {
    thorp_store::people_bytes(count)
}

/// So many of something.
pub(crate) fn count(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// A time as people read it.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 120. => format!("{} min {} s", s as u64 / 60, s as u64 % 60),
        s if s >= 10. => format!("{s:.1} s"),
        s if s >= 1. => format!("{s:.2} s"),
        s => format!("{:.1} ms", s * 1000.),
    }
}

/// A part of a whole in per cent; a hyphen if there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{:.1}%", part as f64 * 100. / whole as f64),
    }
}

/// A directory, to be pasted into a shell anywhere on this machine.
pub(crate) fn pasted(dir: &Path) -> String {
    let path = absolute(dir).display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    match path.chars().all(plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

/// How a column is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table with a heading and a rule below it.
pub(crate) struct Table {
    columns: Vec<(String, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    pub(crate) fn new(columns: &[(&str, Side)]) -> Self {
        Table {
            columns: columns
                .iter()
                .map(|(name, side)| ((*name).to_owned(), *side))
                .collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; what is missing at its end stays empty. Others give names and paths: a control character among them
    /// would make up lines, or command the terminal.
    pub(crate) fn row(&mut self, mut cells: Vec<String>) {
        for cell in &mut cells {
            *cell = name(cell);
        }
        self.rows.push(cells);
    }

    /// The table as text, without a newline at the end.
    pub(crate) fn render(&self) -> String {
        let widths = self.widths();
        let heading: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut lines = vec![self.set(&heading, &widths), self.set(&rule, &widths)];
        lines.extend(self.rows.iter().map(|row| self.set(row, &widths)));
        lines.join("\n")
    }

    fn widths(&self) -> Vec<usize> {
        let width_of = |column: usize, name: &str| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(name.chars().count())
        };
        let named = self.columns.iter().enumerate();
        named.map(|(at, (name, _))| width_of(at, name)).collect()
    }

    fn set(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, ((_, side), width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = cells.get(at).map_or("", String::as_str);
            let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
            if at > 0 {
                line.push_str("  ");
            }
            match side {
                Side::Left => line.push_str(&format!("{cell}{pad}")),
                Side::Right => line.push_str(&format!("{pad}{cell}")),
            }
        }
        line.trim_end().to_owned()
    }
}

/// Bytes in hexadecimal digits, with what can be read of them, 16 a line.
pub(crate) fn hexdump(bytes: &[u8], from: u64) -> String {
    let dump = |(at, chunk): (usize, &[u8])| {
        let digits: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown = |byte: &u8| match byte {
            b' '..=b'~' => char::from(*byte),
            _ => '.',
        };
        let readable: String = chunk.iter().map(shown).collect();
        format!(
            "{:08x}  {:<47}  {readable}",
            from + (at * 16) as u64,
            digits.join(" ")
        )
    };
    let lines: Vec<String> = bytes.chunks(16).enumerate().map(dump).collect();
    lines.join("\n")
}

/// Whether people would rather read it than see its digits.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let good = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    !bytes.is_empty() && std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(good))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up() {
        let mut table = Table::new(&[("name", Side::Left), ("pages", Side::Right)]);
        table.row(vec!["short".into(), "7".into()]);
        table.row(vec!["much longer".into(), "12345".into()]);
        let wanted =
            "name         pages\n-----------  -----\nshort            7\nmuch longer  12345";
        assert_eq!(table.render(), wanted);
    }

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(8192), "8.0 KiB");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(time(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(time(Duration::from_secs(125)), "2 min 5 s");
        assert_eq!(percent(1, 4), "25.0%");
        assert_eq!(percent(0, 0), "-");
    }

    #[test]
    fn a_dump_shows_digits_and_letters() {
        let dump = hexdump(b"hello\x00", 0);
        assert!(dump.starts_with("00000000  68 65 6c 6c 6f 00"), "{dump}");
        assert!(dump.ends_with("hello."), "{dump}");
        assert!(is_text("grüezi\n".as_bytes()) && !is_text(b"a\x00b") && !is_text(b""));
    }
}
