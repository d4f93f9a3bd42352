//! The marker: one line that says what a directory is.

use crate::error::OpenError;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Reads the marker of `dir`; `None` if there is none. An error if the store
/// is not one for this program.
pub(crate) fn read(dir: &Path) -> Result<Option<u32>, OpenError> {
    let file = dir.join(NAME);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io(&file, error)),
    };
    let line = parse(&bytes).map_err(|detail| OpenError::DamagedMarker { file, detail })?;
    // The version first: of a later format nothing else need be understood.
    if line.format > FORMAT {
        return Err(OpenError::NewerFormat {
            dir: dir.to_path_buf(),
            found: line.format,
            known: FORMAT,
        });
    }
    if line.engine != ENGINE {
        return Err(OpenError::OtherEngine {
            dir: dir.to_path_buf(),
            engine: line.engine,
        });
    }
    Ok(Some(line.format))
}

/// Writes the marker if it is of an earlier format. Earlier builds do not open the store any more.
pub(crate) fn write_if_older(dir: &Path) -> Result<(), OpenError> {
    match read(dir)? {
        Some(FORMAT) => Ok(()),
        _ => write(dir),
    }
}

/// Writes the marker, durably: afterwards it is there as a whole.
pub(crate) fn write(dir: &Path) -> Result<(), OpenError> {
    let (fresh, file) = (dir.join(FRESH), dir.join(NAME));
    let write = || -> io::Result<()> {
        let mut out = File::create(&fresh)?;
        out.write_all(line(FORMAT, ENGINE).as_bytes())?;
        out.sync_all()?;
        fs::rename(&fresh, &file)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| OpenError::io(&file, error))
}

/// A marker's line. Its checksum is the last word and covers all before it.
pub(crate) fn line(format: u32, engine: &str) -> String {
    let told = format!("{NAME} format={format} engine={engine}");
    let sum = crc32fast::hash(told.as_bytes());
    format!("{told} crc={sum:08x}\n")
}

/// The name of the marker, which is also its first word.
pub(crate) const NAME: &str = "thorp-store";

/// The marker while it is being written.
pub(crate) const FRESH: &str = "thorp-store.new";

/// The format that this program writes, and the highest that it reads. Version 1 had no history and no marks (rule R9).
pub(crate) const FORMAT: u32 = 2;

const ENGINE: &str = "fjall-3";

struct Line {
    format: u32,
    engine: String,
}

fn parse(bytes: &[u8]) -> Result<Line, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_string())?;
    let (told, sum) = text
        .trim_end_matches('\n')
        .rsplit_once(" crc=")
        .ok_or("no checksum")?;
    let found = format!("{:08x}", crc32fast::hash(told.as_bytes()));
    if sum != found {
        return Err(format!("checksum {found} instead of {sum}"));
    }
    let mut words = told.split(' ');
    if words.next() != Some(NAME) {
        return Err("not a marker of Thorp".to_string());
    }
    let (mut format, mut engine) = (None, None);
    for word in words {
        match word.split_once('=') {
            Some(("format", value)) => format = value.parse().ok(),
            Some(("engine", value)) => engine = Some(value.to_string()),
            // A later format may say more.
            _ => {}
        }
    }
    Ok(Line {
        format: format.ok_or("no format version")?,
        engine: engine.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_found() {
        let good = line(FORMAT, ENGINE).into_bytes();
        assert!(parse(&good).is_ok());
        for at in 0..good.len() - 1 {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert!(parse(&bad).is_err(), "byte {at} bit {bit}");
            }
        }
        assert!(parse(b"").is_err());
    }
}
