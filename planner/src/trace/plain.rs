//! Formats without columns: records of a fixed size, and lines.

use super::{At, Building, Wrong};
use std::io::{self, BufRead, Read};

/// libCacheSim's oracleGeneral.
pub(super) fn oracle(text: &mut dyn BufRead, trace: &mut Building) -> Result<(), Wrong> {
    let mut reading = Records::<24>::default();
    while trace.wants_more()? {
        let Some(record) = reading.next(text)? else {
            break;
        };
        trace.number(u64::from_le_bytes(part(&record, 4)));
        let time_s = u32::from_le_bytes(part(&record, 0));
        trace.trace.times_us.push(u64::from(time_s) * 1_000_000);
        trace.trace.bytes += u64::from(u32::from_le_bytes(part(&record, 12)));
    }
    Ok(())
}

/// Little-endian u32.
pub(super) fn packed(text: &mut dyn BufRead, trace: &mut Building) -> Result<(), Wrong> {
    let mut reading = Records::<4>::default();
    while trace.wants_more()? {
        let Some(record) = reading.next(text)? else {
            break;
        };
        trace.number(u64::from(u32::from_le_bytes(record)));
    }
    Ok(())
}

/// One object a line.
pub(super) fn lines(text: &mut dyn BufRead, trace: &mut Building) -> Result<(), Wrong> {
    let mut line = Vec::new();
    let mut number = 0;
    while trace.wants_more()? {
        line.clear();
        number += 1;
        // A byte more than there may be tells whether there are more.
        let mut ration = (&mut *text).take(LINE_BYTES_MAX as u64 + 1);
        if ration.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() > LINE_BYTES_MAX {
            let why = format!("is longer than {LINE_BYTES_MAX} bytes: this is no list of objects");
            return Err(Wrong::line(number, why));
        }
        let object = line.trim_ascii();
        if !object.is_empty() {
            trace.text(object);
        }
    }
    Ok(())
}

/// Longer lines are of something else, and perhaps endless.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// So many bytes of a record from a place on.
pub(super) fn part<const BYTES: usize>(record: &[u8], at: usize) -> [u8; BYTES] {
    let part = record[at..at + BYTES].try_into();
    part.expect("a part is as long as it is")
}

/// Records of a fixed size, one after the other.
#[derive(Default)]
struct Records<const BYTES: usize> {
    read: u64,
}

impl<const BYTES: usize> Records<BYTES> {
    /// The next; `None` at the end.
    fn next(&mut self, text: &mut dyn BufRead) -> Result<Option<[u8; BYTES]>, Wrong> {
        let mut record = [0; BYTES];
        let got = filled(text, &mut record)?;
        if got == 0 {
            return Ok(None);
        }
        if got < BYTES {
            let why = format!(
                "the last record has {got} of {BYTES} bytes: it was cut, or has another format"
            );
            return Err(Wrong {
                at: At::Byte(self.read),
                why,
            });
        }
        self.read += BYTES as u64;
        Ok(Some(record))
    }
}

/// Reads as much as there is of what is wanted.
fn filled(text: &mut dyn BufRead, wanted: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < wanted.len() {
        match text.read(&mut wanted[got..]) {
            Ok(0) => break,
            Ok(read) => got += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
