//! Compares the engine's manifests with their checksums, because the engine
//! writes these but does not look at them: a flipped bit in a manifest could
//! make it give out overwritten values, intact by any other checksum.
//!
//! Each keyspace's directory has a file `current` and the manifest in force,
//! `v` with its number. The file has three fields, all little-endian: that number
//! (u64), the manifest's xxh3 (u128), and 0 for that kind of checksum.

use std::fs;
use std::io;
use std::path::Path;

/// Looks at the manifests of all keyspaces; tells what is wrong, for a person.
pub(crate) fn inspect(engine_dir: &Path) -> io::Result<Result<(), String>> {
    let keyspaces = engine_dir.join("keyspaces");
    let entries = match fs::read_dir(&keyspaces) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err("the tables are missing".to_string()));
        }
        Err(error) => return Err(error),
    };
    for entry in entries {
        let dir = entry?.path();
        // One that was not finished when the store was made has none; then
        // the table is missed by its name.
        if let (true, Err(detail)) = (dir.join(CURRENT).exists(), inspect_one(&dir)?) {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            return Ok(Err(format!("the manifest of keyspace {name}: {detail}")));
        }
    }
    Ok(Ok(()))
}

const CURRENT: &str = "current";

fn inspect_one(dir: &Path) -> io::Result<Result<(), String>> {
    let current = fs::read(dir.join(CURRENT))?;
    let Some((number, sum)) = parse(&current) else {
        return Ok(Err(format!("{CURRENT} cannot be read")));
    };
    let manifest = match fs::read(dir.join(format!("v{number}"))) {
        Ok(manifest) => manifest,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(format!("v{number} is missing")));
        }
        Err(error) => return Err(error),
    };
    if xxhash_rust::xxh3::xxh3_128(&manifest) == sum {
        return Ok(Ok(()));
    }
    Ok(Err(format!("v{number} does not have its checksum")))
}

fn parse(current: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = current.split_first_chunk::<8>()?;
    let (sum, rest) = rest.split_first_chunk::<16>()?;
    (rest == [0]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*sum)))
}
