//! Values that pass through a command: it keeps little of them.

use crate::failure::Failure;
use crate::progress::Progress;
use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::SpooledTempFile;

/// Somebody gave a text where a file is expected.
const AS_TEXT: &str = "to store the words themselves: --text WORDS";

/// What a value is made of. It can be read again.
pub(crate) struct Input {
    /// What people call it.
    name: PathBuf,
    kind: Kind,
    bytes: u64,
    progress: Progress,
    failed: Option<io::Error>,
}

enum Kind {
    Memory(Cursor<Vec<u8>>),
    File(File),
}

impl Input {
    /// The bytes of a text.
    pub(crate) fn of_text(text: &str) -> Self {
        let bytes = text.as_bytes().to_vec();
        Self::new(Path::new(""), Kind::Memory(Cursor::new(bytes)))
    }

    /// A file; standard input for none and for `-`. What cannot be read twice, and is large, is copied into a file that
    /// has no name and ends with this process.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file.filter(|file| *file != Path::new("-")) else {
            let name = Path::new("standard input");
            note_terminal();
            let kind = copied(&mut io::stdin().lock());
            let kind = kind.map_err(|error| Failure::file(name, &error))?;
            return Ok(Self::new(name, kind));
        };
        let opened = File::open(path).and_then(|mut file| match file.metadata()?.is_file() {
            true => Ok(Kind::File(file)),
            false => copied(&mut file),
        });
        let kind = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Failure::file(path, &error).or(AS_TEXT),
            _ => Failure::file(path, &error),
        })?;
        Ok(Self::new(path, kind))
    }

    fn new(name: &Path, kind: Kind) -> Self {
        Input {
            name: name.to_owned(),
            kind,
            bytes: 0,
            progress: Progress::of("bytes"),
            failed: None,
        }
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&mut self) -> Result<u64, Failure> {
        let end = self.seek(SeekFrom::End(0));
        end.map_err(|error| Failure::file(&self.name, &error))
    }

    /// Why it could not be read, if that is so.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        let error = self.failed.take()?;
        Some(Failure::file(&self.name, &error))
    }
}

/// Says what a command waits for that reads what a person types.
pub(crate) fn note_terminal() {
    if io::stdin().is_terminal() {
        // Whoever reads no errors misses nothing.
        let _ = crate::text::note("reading standard input, from this terminal: Ctrl-D ends it");
    }
}

/// All that comes out of something that can be read once.
fn copied(from: &mut impl Read) -> io::Result<Kind> {
    let mut head = Vec::new();
    if from.take(LARGE_BYTES).read_to_end(&mut head)? < LARGE_BYTES as usize {
        return Ok(Kind::Memory(Cursor::new(head)));
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(&head)?;
    io::copy(from, &mut file)?;
    Ok(Kind::File(file))
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.kind {
            Kind::Memory(bytes) => bytes.read(into),
            Kind::File(file) => file.read(into),
        };
        match &read {
            Ok(_) => {
                let at = self.stream_position()?;
                self.progress.tell(at, self.bytes);
            }
            Err(error) => self.failed = Some(error.kind().into()),
        }
        read
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match &mut self.kind {
            Kind::Memory(bytes) => bytes.seek(to),
            Kind::File(file) => file.seek(to),
        }?;
        if to == SeekFrom::End(0) {
            self.bytes = at;
        }
        Ok(at)
    }
}

/// A value on its way from one object to another: in memory while it is small, then in a file that has no name and ends
/// with this process.
pub(crate) struct Spool {
    bytes: u64,
    kept: SpooledTempFile,
    progress: Progress,
    failed: Option<io::Error>,
}

impl Spool {
    /// For a value of about so many bytes.
    pub(crate) fn of(bytes: u64) -> Self {
        Spool {
            bytes,
            kept: tempfile::spooled_tempfile(LARGE_BYTES as usize),
            progress: Progress::of("bytes"),
            failed: None,
        }
    }

    /// How many bytes were expected.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets what it has.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let cleared = self.kept.set_len(0).and_then(|()| self.kept.rewind());
        self.noted(cleared)
    }

    /// Why it could not be kept, if that is so.
    pub(crate) fn failure(&mut self) -> Option<Failure> {
        let error = self.failed.take()?;
        let dir = std::env::temp_dir();
        let what = format!("a temporary file in {}: {error}", dir.display());
        Some(Failure::new(
            what,
            "let TMPDIR name a directory with enough space",
        ))
    }

    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            self.failed = Some(error.kind().into());
        }
        done
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.kept.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.kept.flush();
        self.noted(flushed)
    }
}

impl Read for Spool {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.kept.read(into);
        let count = self.noted(read)?;
        let at = self.kept.stream_position()?;
        self.progress.tell(at, self.bytes);
        Ok(count)
    }
}

impl Seek for Spool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = self.kept.seek(to);
        self.noted(at)
    }
}

/// Standard output, for a value of so many bytes.
pub(crate) struct Output {
    bytes: u64,
    written: u64,
    progress: Progress,
    failed: Option<io::Error>,
}

impl Output {
    pub(crate) fn of(bytes: u64) -> Self {
        Output {
            bytes,
            written: 0,
            progress: Progress::of("bytes"),
            failed: None,
        }
    }

    /// How many bytes have been written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Why it cannot be written, if that is so.
    pub(crate) fn failed(&mut self) -> Option<io::Error> {
        self.failed.take()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = io::stdout().lock().write(bytes);
        match &written {
            Ok(count) => {
                self.written += *count as u64;
                self.progress.tell(self.written, self.bytes);
            }
            Err(error) => self.failed = Some(error.kind().into()),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}

/// A value of more bytes passes through. One of fewer is in the memory of its command, and has to come in time as a
/// whole.
pub(crate) const LARGE_BYTES: u64 = 1 << 20;
