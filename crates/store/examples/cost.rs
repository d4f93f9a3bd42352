//! What a commit and a page read cost, beside a bare append with `fdatasync`
//! in the same directory.
//!
//! `cargo run --release -p thorp-store --example cost -- DIR`

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use thorp_model::{Batch, Engine as _, Mark, Op, Purpose, Reader as _, Table};
use thorp_store::{Options, Store};

const COMMITS: u64 = 2000;
const PAGES: u64 = 20_000;
const VALUE_BYTES: usize = 400;

fn main() -> Result<(), Box<dyn Error>> {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let dir = tempfile::tempdir_in(parent)?;
    let mut bare = File::create(dir.path().join("bare"))?;
    let store = Store::open(dir.path().join("store"), Options::default())?;
    // In turns, so that both meet the same mood of the disk.
    let (mut appends, mut commits) = (Vec::new(), Vec::new());
    for number in 0..COMMITS {
        appends.push(timed(|| Ok(append(&mut bare)?))?);
        commits.push(timed(|| Ok(store.commit(&[commit(number)])?))?);
    }
    tell("append + fdatasync", &mut appends);
    tell("commit of 2 records", &mut commits);
    pages(&store)?;
    memory(Path::new("/proc/self/status"))
}

fn append(file: &mut File) -> std::io::Result<()> {
    file.write_all(&[7; VALUE_BYTES + 100])?;
    file.sync_data()
}

fn commit(number: u64) -> Batch {
    let key = number.to_be_bytes().to_vec();
    let put = |table, bytes| Op::Put {
        table,
        key: key.clone(),
        value: vec![7; bytes],
    };
    Batch {
        mark: Mark(number),
        purpose: Purpose::NewData,
        ops: vec![put(Table::Log, VALUE_BYTES), put(Table::Outcomes, 20)],
    }
}

fn pages(store: &Store) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    for first in (0..PAGES * 3).step_by(64) {
        let ops = (first..first + 64).map(|number| Op::Put {
            table: Table::Pages,
            key: page_key(number),
            value: vec![number as u8; 8192],
        });
        store.commit(&[Batch {
            mark: Mark(first),
            purpose: Purpose::Housekeeping,
            ops: ops.collect(),
        }])?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{:>20}: {:.0} a second",
        "pages written",
        (PAGES * 3) as f64 / seconds
    );
    // Let the engine finish what it does behind. The second time is from the cache.
    std::thread::sleep(Duration::from_secs(2));
    for name in ["page read, first", "page read, again"] {
        let mut reads = Vec::new();
        for number in 0..2000 {
            let begin = Instant::now();
            let page = store.get(Table::Pages, &page_key(number))?;
            reads.push(begin.elapsed());
            assert!(page.is_some());
        }
        tell(name, &mut reads);
    }
    Ok(())
}

/// Three times over the same pages, in no order.
fn page_key(number: u64) -> Vec<u8> {
    (number * 7919 % PAGES).to_be_bytes().to_vec()
}

fn timed(run: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    run()?;
    Ok(begin.elapsed())
}

fn tell(name: &str, times: &mut [Duration]) {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
    println!("{name:>20}: median {:.1} us, 99th {:.1} us", at(50), at(99));
}

fn memory(status: &Path) -> Result<(), Box<dyn Error>> {
    let status = std::fs::read_to_string(status)?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{:>20}: {}", "memory", line.unwrap_or("not told"));
    Ok(())
}
