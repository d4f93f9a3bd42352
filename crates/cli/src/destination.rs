//! Where a command writes what it makes.

use std::fs;
use std::path::{Path, PathBuf};

/// What a name on the command line leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Destination {
    /// Standard output: `-`.
    Standard,
    /// A pipe or a device, which is written into.
    Stream(PathBuf),
    /// A file, there or not. It is written beside its place and moved there: nobody sees half of it.
    Regular {
        /// Its place. Of a link the file that it leads to, so that the link stays one.
        place: PathBuf,
        /// Where it is until it is whole.
        part: PathBuf,
    },
}

impl Destination {
    /// That of a name.
    pub(crate) fn of(name: &Path) -> Self {
        if name == Path::new("-") {
            return Destination::Standard;
        }
        if fs::metadata(name).is_ok_and(|there| !there.is_file()) {
            return Destination::Stream(name.to_owned());
        }
        let place = fs::canonicalize(name).unwrap_or_else(|_| name.to_owned());
        let mut part = place.as_os_str().to_owned();
        part.push(".part");
        Destination::Regular {
            place,
            part: PathBuf::from(part),
        }
    }
}
