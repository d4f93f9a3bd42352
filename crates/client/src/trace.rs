//! A trace of the pages that this member's transactions use, for planning: `thorp plan replay` reads it.

use crate::lock::lock;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thorp_model::Place;
use thorp_model::limits::PAGE_BYTES;

/// The first line: what the columns are.
pub(crate) const HEADER: &str = "time_us,client,op,object,size";

/// Writes a line for each page that a transaction has read or written.
#[derive(Debug)]
pub(crate) struct Recorder {
    client: String,
    out: Mutex<Out>,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Out {
    /// None since it could not be written.
    file: Option<BufWriter<File>>,
    flushed: Instant,
}

/// What a transaction did to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    Read,
    Written,
}

impl Recorder {
    /// Goes on in a file, or makes it. Another program's file is left alone.
    pub(crate) fn open(path: &Path, client: &str) -> io::Result<Self> {
        let read = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)?;
        let is_new = read.metadata()?.len() == 0;
        if !is_new && !begins_with_header(path)? {
            let why = format!("it is there and is no trace: it does not begin with {HEADER:?}");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, read);
        if is_new {
            writeln!(file, "{HEADER}")?;
            file.flush()?;
        }
        let out = Out {
            file: Some(file),
            flushed: Instant::now(),
        };
        Ok(Recorder {
            client: client.replace(|c: char| c == ',' || c.is_control(), "-"),
            out: Mutex::new(out),
            lost: AtomicU64::new(0),
        })
    }

    /// What one transaction used, in this order, when it ended. The program does not wait for the disk, or at most for
    /// the system to take the bytes; and goes on if that fails.
    pub(crate) fn record(&self, uses: impl Iterator<Item = (Place, Use)>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_us = now.unwrap_or_default().as_micros();
        let mut lines = Vec::new();
        let mut count = 0;
        for (place, used) in uses {
            let op = match used {
                Use::Read => "read",
                Use::Written => "write",
            };
            let (client, Place { home, page }) = (&self.client, place);
            // Writing to memory does not fail.
            let _ = writeln!(lines, "{now_us},{client},{op},{home}/{page},{PAGE_BYTES}");
            count += 1;
        }
        if count > 0 && lock(&self.out).write(&lines).is_err() {
            self.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Hands what is in memory to the system: the member leaves.
    pub(crate) fn flush(&self) {
        let mut out = lock(&self.out);
        if out.flush().is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Uses that could not be written, but for those that were on their way when that was found.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Out {
    fn flush(&mut self) -> io::Result<()> {
        let written = self.file.as_mut().map_or(Ok(()), Write::flush);
        if written.is_err() {
            self.file = None;
        }
        written
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // Whole lines go out together: other members may write to the same file.
        let mut written = Ok(());
        if file.buffer().len() + lines.len() > BUFFER_BYTES || self.flushed.elapsed() > FLUSH_EVERY
        {
            written = file.flush();
            self.flushed = Instant::now();
        }
        written = written.and_then(|()| file.write_all(lines));
        if written.is_err() {
            self.file = None;
        }
        written
    }
}

fn begins_with_header(path: &Path) -> io::Result<bool> {
    use io::Read;
    let mut head = Vec::new();
    File::open(path)?
        .take(HEADER.len() as u64)
        .read_to_end(&mut head)?;
    Ok(head == HEADER.as_bytes())
}

const BUFFER_BYTES: usize = 64 << 10;

/// What a program that is killed loses of its trace.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{HomeId, PageId};

    fn place(page: u32) -> Place {
        Place {
            home: HomeId(7),
            page: PageId::new(3, page),
        }
    }

    fn recorded(path: &Path, client: &str, page: u32) {
        let recorder = Recorder::open(path, client).expect("it can be written");
        recorder.record([(place(page), Use::Read), (place(page + 1), Use::Written)].into_iter());
        assert_eq!(recorder.lost(), 0);
    }

    #[test]
    fn members_go_on_where_others_stopped_under_one_header() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("trace.csv");
        recorded(&path, "anna", 1);
        recorded(&path, "bert, the second", 5);
        let text = std::fs::read_to_string(&path).expect("it is there");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines[0].join(","), HEADER);
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines.iter().all(|line| line.len() == 5), "{text}");
        assert_eq!((lines[1][1], lines[1][2]), ("anna", "read"));
        assert_eq!((lines[4][1], lines[4][2]), ("bert- the second", "write"));
        assert_ne!(lines[3][3], lines[4][3]);
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("thesis.tex");
        std::fs::write(&path, "all my work").expect("it can be written");
        let refused = Recorder::open(&path, "anna").expect_err("no trace");
        assert!(refused.to_string().contains("is no trace"), "{refused}");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"all my work");
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let no_room = OpenOptions::new().write(true).open("/dev/full");
        let recorder = Recorder {
            client: "anna".into(),
            out: Mutex::new(Out {
                file: Some(BufWriter::with_capacity(
                    BUFFER_BYTES,
                    no_room.expect("it opens"),
                )),
                flushed: Instant::now(),
            }),
            lost: AtomicU64::new(0),
        };
        for _ in 0..BUFFER_BYTES / 20 {
            recorder.record([(place(1), Use::Read)].into_iter());
        }
        assert!(recorder.lost() > 0);
    }
}
