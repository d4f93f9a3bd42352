//! What writers and readers write down, a file for each thread: words of eight bytes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;

/// A change was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) object: usize,
    /// What the object holds since.
    pub(crate) value: u64,
    /// After the answer.
    pub(crate) at_ns: u64,
    /// False: its log had no lease for it, and the home has not answered either.
    pub(crate) is_leased: bool,
}

/// A reader has read the objects of its class, or failed to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    /// Before the visit was opened; of an access, before that.
    pub(crate) at_ns: u64,
    /// When the first object could be read.
    pub(crate) opened_ns: u64,
    /// What was there; none: this object was not looked at. No value at all: the visit failed.
    pub(crate) values: Vec<Option<u64>>,
}

/// A file that is being written.
pub(crate) struct Recorder(BufWriter<File>);

/// A file that is read again.
pub(crate) struct Recorded(BufReader<File>);

impl Recorder {
    pub(crate) fn create(file: &Path) -> io::Result<Self> {
        Ok(Recorder(BufWriter::with_capacity(
            BUFFER_BYTES,
            File::create(file)?,
        )))
    }

    pub(crate) fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        self.word(answer.object as u64)?;
        self.word(answer.value)?;
        self.word(answer.at_ns)?;
        self.word(u64::from(answer.is_leased))
    }

    pub(crate) fn read(&mut self, read: &Read) -> io::Result<()> {
        self.word(read.at_ns)?;
        self.word(read.opened_ns)?;
        self.word(read.values.len() as u64)?;
        let mut values = read.values.iter();
        values.try_for_each(|value| self.word(value.unwrap_or(NOT_LOOKED_AT)))
    }

    fn word(&mut self, word: u64) -> io::Result<()> {
        self.0.write_all(&word.to_le_bytes())
    }

    /// All of it is in the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Recorded {
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        Ok(Recorded(BufReader::with_capacity(
            BUFFER_BYTES,
            File::open(file)?,
        )))
    }

    /// The next answer; none at the end.
    pub(crate) fn answer(&mut self) -> io::Result<Option<Answer>> {
        let Some(object) = self.first_word()? else {
            return Ok(None);
        };
        Ok(Some(Answer {
            object: object as usize,
            value: self.word()?,
            at_ns: self.word()?,
            is_leased: self.word()? != 0,
        }))
    }

    /// The next read; none at the end.
    pub(crate) fn read(&mut self) -> io::Result<Option<Read>> {
        let Some(at_ns) = self.first_word()? else {
            return Ok(None);
        };
        let (opened_ns, count) = (self.word()?, self.word()?);
        let value = |_| Ok(Some(self.word()?).filter(|value| *value != NOT_LOOKED_AT));
        let values = (0..count).map(value).collect::<io::Result<_>>()?;
        Ok(Some(Read {
            at_ns,
            opened_ns,
            values,
        }))
    }

    fn first_word(&mut self) -> io::Result<Option<u64>> {
        match self.word() {
            Ok(word) => Ok(Some(word)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn word(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Copies all such files of a directory to another one.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let file = entry?.path();
        let kind = file.extension().and_then(OsStr::to_str);
        if let (Some(ANSWERS | READS), Some(name)) = (kind, file.file_name()) {
            fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

/// How the name of a writer's file ends.
pub(crate) const ANSWERS: &str = "answers";
/// How the name of a reader's file ends.
pub(crate) const READS: &str = "reads";
const NOT_LOOKED_AT: u64 = u64::MAX;
const BUFFER_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        let answer = Answer {
            object: 3,
            value: 7,
            at_ns: 9,
            is_leased: true,
        };
        let mut recorder = Recorder::create(&file).expect("it is new");
        recorder.answer(&answer).expect("it is written");
        recorder.finish().expect("it is written");
        let mut recorded = Recorded::open(&file).expect("it is there");
        assert_eq!(recorded.answer().expect("whole"), Some(answer));
        assert_eq!(recorded.answer().expect("whole"), None);

        let reads = [vec![Some(1), None], Vec::new()].map(|values| Read {
            at_ns: 1,
            opened_ns: 2,
            values,
        });
        let mut recorder = Recorder::create(&file).expect("it is mine");
        let mut all = reads.iter();
        all.try_for_each(|read| recorder.read(read))
            .expect("they are written");
        recorder.finish().expect("they are written");
        let mut recorded = Recorded::open(&file).expect("it is there");
        for read in reads {
            assert_eq!(recorded.read().expect("whole"), Some(read));
        }
        assert_eq!(recorded.read().expect("whole"), None);
    }
}
