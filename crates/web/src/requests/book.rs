//! Which proxies a keeper has to ask when it starts: a file beside its table. A keeper that dies leaves it to the next one.

use super::wire::beside;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The lives of proxies that may have an open update, with their processes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Page {
    /// Whether these are all. A keeper that does not know waits until no request of before can be at work.
    pub are_all: bool,
    /// The process of each.
    pub lives: BTreeMap<u64, u32>,
}

/// The file. No proxy gets an answer before its life is in it.
#[derive(Debug)]
pub(super) struct Book {
    path: PathBuf,
    written: Page,
}

impl Book {
    /// The book beside a table. If there is none, or it cannot be read, nobody knows which proxies there were.
    pub(super) fn open(table: &Path) -> Self {
        let path = beside(table, ".proxies");
        let read = fs::read(&path).ok();
        let written = read.and_then(|text| serde_json::from_slice(&text).ok());
        Book {
            path,
            written: written.unwrap_or_default(),
        }
    }

    /// What it says.
    pub(super) fn page(&self) -> &Page {
        &self.written
    }

    /// Writes what is so now, unless it says so. It lasts when this returns.
    pub(super) fn write(&mut self, page: Page) -> io::Result<()> {
        if page == self.written {
            return Ok(());
        }
        let new = self.path.with_extension("new-proxies");
        let mut file = File::create(&new)?;
        file.write_all(&serde_json::to_vec(&page)?)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        if let Some(directory) = self.path.parent().filter(|path| path.is_dir()) {
            File::open(directory)?.sync_all()?;
        }
        self.written = page;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_that_is_not_there_or_is_cut_does_not_know_all() {
        let place = tempfile::tempdir().expect("a directory");
        let table = place.path().join("shop.table");
        let mut book = Book::open(&table);
        assert!(!book.page().are_all);
        let page = Page {
            are_all: true,
            lives: BTreeMap::from([(7, 8)]),
        };
        book.write(page.clone()).expect("it is written");
        assert_eq!(Book::open(&table).page(), &page);
        let path = place.path().join("shop.table.proxies");
        fs::write(path, "{\"are_all\":true,").expect("it is cut");
        assert_eq!(Book::open(&table).page(), &Page::default());
    }
}
