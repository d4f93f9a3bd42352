//! Reading a dump, line after line.

use super::Line;
use super::line::{Target, Value};
use crate::failure::Failure;
use crate::stream;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a dump is read from, as often as it is wanted.
pub(crate) struct Source {
    /// What people call it.
    name: PathBuf,
    /// Standard input, copied.
    spooled: Option<NamedTempFile>,
}

impl Source {
    /// A file; standard input if it is `-`.
    pub(crate) fn of(file: &Path) -> Result<Self, Failure> {
        if file != Path::new("-") {
            return Ok(Source {
                name: file.to_owned(),
                spooled: None,
            });
        }
        let name = PathBuf::from("standard input");
        let spooled = spool().map_err(|error| Failure::file(&name, &error))?;
        Ok(Source {
            name,
            spooled: Some(spooled),
        })
    }

    fn open(&self) -> Result<File, Failure> {
        let spooled = self.spooled.as_ref().map(NamedTempFile::path);
        let opened = File::open(spooled.unwrap_or(&self.name));
        opened.map_err(|error| Failure::file(&self.name, &error))
    }

    fn is_empty(&self) -> Failure {
        let what = format!("{} is empty", self.name.display());
        let todo = match self.spooled {
            Some(_) => {
                "nothing was loaded: look at what was to write into it, as `thorp dump SEGMENT |`"
            }
            None => "nothing was loaded: dump the segment again",
        };
        Failure::new(what, todo)
    }
}

/// The lines of a dump, each with its number.
pub(crate) struct Lines<'a> {
    source: &'a Source,
    lines: BufReader<File>,
    number: u64,
    text: Vec<u8>,
}

/// A dump that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Checked {
    /// Its objects are numbered up to this.
    pub(crate) objects: u64,
    /// Bytes of the file, and their checksum: whether it is the same file as another time.
    pub(crate) bytes: u64,
    pub(crate) sum: u32,
}

impl<'a> Lines<'a> {
    pub(crate) fn open(source: &'a Source) -> Result<Lines<'a>, Failure> {
        Ok(Lines {
            source,
            lines: BufReader::new(source.open()?),
            number: 0,
            text: Vec::new(),
        })
    }

    /// The next line; none at the end of the file.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, Failure> {
        self.text.clear();
        self.number += 1;
        let read = self.lines.read_until(b'\n', &mut self.text);
        match read.map_err(|error| Failure::file(&self.source.name, &error))? {
            0 => Ok(None),
            _ => Line::parse(&self.text)
                .map(Some)
                .map_err(|why| self.broken(&why)),
        }
    }

    /// What is wrong with the line that was read last.
    pub(crate) fn broken(&self, why: &str) -> Failure {
        let what = format!(
            "{}, line {}: {why}",
            self.source.name.display(),
            self.number
        );
        let todo = "nothing was loaded from there on: mend the line, or dump the segment again";
        Failure::new(what, todo)
    }
}

/// Reads all of a dump and tells whether it is whole, before anything of it is loaded.
pub(crate) fn check(source: &Source) -> Result<Checked, Failure> {
    let mut lines = Lines::open(source)?;
    let (mut sum, mut bytes) = (crc32fast::Hasher::new(), 0);
    let (mut objects, mut highest, mut is_ended) = (0, (0, 0), false);
    let mut last_root: Option<String> = None;
    loop {
        let line = lines.next()?;
        sum.update(&lines.text);
        bytes += lines.text.len() as u64;
        match line {
            None if is_ended => break,
            None if lines.number == 1 => return Err(source.is_empty()),
            None => return Err(lines.broken("the dump ends here, before its last line")),
            Some(_) if is_ended => return Err(lines.broken("there is more after the last line")),
            Some(Line::Head) if lines.number == 1 => {}
            Some(_) if lines.number == 1 => {
                return Err(lines.broken("it is not the first line of a dump"));
            }
            Some(Line::Head) => {
                return Err(lines.broken("it is the first line of a dump once more"));
            }
            Some(Line::Object(..)) if last_root.is_some() => {
                return Err(lines.broken("objects come before roots"));
            }
            Some(Line::Object(id, value)) => {
                objects += 1;
                if id != objects {
                    return Err(lines.broken(&format!("its id is {id}, and {objects} comes next")));
                }
                check_value(&value).map_err(|why| lines.broken(&why))?;
                let most = value.refers_to().max().unwrap_or_default();
                if value.refers_to().any(|to| to == 0) {
                    return Err(lines.broken("it refers to object 0, and the first one is 1"));
                }
                highest = highest.max((most, lines.number));
            }
            Some(Line::Root(name, to)) => {
                if last_root.as_ref().is_some_and(|last| *last >= name) {
                    return Err(lines.broken("roots come in the order of their names, each once"));
                }
                if matches!(to, Target::Id(id) if id == 0 || id > objects) {
                    return Err(lines.broken("it names an object that the dump does not have"));
                }
                last_root = Some(name);
            }
            Some(Line::End(told)) => {
                if told != objects {
                    return Err(
                        lines.broken(&format!("it says {told} objects, and there are {objects}"))
                    );
                }
                is_ended = true;
            }
        }
    }
    if highest.0 > objects {
        lines.number = highest.1;
        return Err(lines.broken(&format!(
            "it refers to object {}, and the last one is {objects}",
            highest.0
        )));
    }
    Ok(Checked {
        objects,
        bytes,
        sum: sum.finalize(),
    })
}

fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::Text(_) => Ok(()),
        Value::Pieces(pieces) => pieces.iter().try_for_each(super::pieces::check),
    }
}

/// A file in which all of standard input is.
fn spool() -> io::Result<NamedTempFile> {
    stream::note_terminal();
    let mut file = NamedTempFile::new()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Result<Checked, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump");
        std::fs::write(&path, text).unwrap();
        check(&Source::of(&path).unwrap()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_dump_is_whole_or_the_line_is_named() {
        let good = "{\"thorp_dump\":1}\n{\"id\":1,\"value\":[{\"to\":2}]}\n{\"id\":2,\"text\":\"\"}\n{\"root\":\"a\",\"to\":2}\n{\"objects\":2}\n";
        let checked = told(good).unwrap();
        assert_eq!((checked.objects, checked.bytes), (2, good.len() as u64));
        let cases = [
            ("", "dump is empty"),
            ("{\"objects\":0}\n", "line 1: it is not the first"),
            ("{\"thorp_dump\":1}\n", "line 2: the dump ends here"),
            (
                &good.replace("\"id\":2", "\"id\":3"),
                "line 3: its id is 3, and 2 comes next",
            ),
            (
                &good.replace("[{\"to\":2}]", "[{\"to\":9}]"),
                "line 2: it refers to object 9",
            ),
            (
                &good.replace("[{\"to\":2}]", "[\"0x\"]"),
                "line 2: a value has something else",
            ),
            (
                &good.replace("\"to\":2}\n{\"objects", "\"to\":3}\n{\"objects"),
                "line 4: it names an object",
            ),
            (
                &good.replace("s\":2}", "s\":3}"),
                "line 5: it says 3 objects",
            ),
            (&format!("{good}\n"), "line 6: "),
            (&good.replace("\"text\":\"\"}", "\"text\":"), "line 3: "),
        ];
        for (text, words) in cases {
            let why = told(text).unwrap_err();
            assert!(why.contains(words), "{words}: {why}");
        }
    }
}
