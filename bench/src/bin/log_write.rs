//! What an update in a log costs, against a bare append with a sync; and how long a log of 1,000 updates takes after a cut.
//!
//! `cargo run --release -p thorp-bench --bin log_write -- [DIRECTORY]`
//!
//! The home is 40 ms away (a round trip). The log and the bare file are on the same file system: that of the directory, which is
//! the temporary one if none is given. Updates and bare appends take turns, in groups of [`GROUP`].

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thorp_bench::figure::Figure;
use thorp_bench::samples::Samples;
use thorp_client::{Consistency, JoinConfig, Member, Procedure, Reference, Segment, Visit};
use thorp_testing::{Link, Village};

const ROUND_TRIP: Duration = Duration::from_millis(40);
const UPDATE_BYTES: usize = 64;
const GROUPS: usize = 20;
const GROUP: usize = 25;
const AFTER_A_CUT: usize = 1_000;
const GIVEN_UP_AFTER: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A member with a log, and the object that it appends to.
struct Writer {
    member: Member,
    segment: Segment,
    object: Reference,
    link: Link,
}

fn main() -> Outcome<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let place = tempfile::tempdir_in(directory)?;
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(ROUND_TRIP / 2);
    let writer = Writer::new(&village, link, place.path())?;
    writer.against_bare_appends(place.path())?;
    writer.after_a_cut()
}

impl Writer {
    fn new(village: &Village, link: Link, place: &Path) -> Outcome<Self> {
        let config = JoinConfig::new(link.address())
            .identity(village.member("anna"))
            .log(place.join("log"));
        let member = Member::join(config)?;
        let segment = member.open_or_create("thorp://alps/desk")?;
        let object = member.transact(|tx| tx.create(&segment, "notes"))?;
        Ok(Writer {
            member,
            segment,
            object,
            link,
        })
    }

    fn visit(&self) -> Outcome<Visit> {
        let consistency: Consistency = "eventual,visibility=access".parse()?;
        Ok(Visit::open(&self.member, consistency, &[&self.segment])?)
    }

    fn append(&self, visit: &mut Visit) -> Outcome<()> {
        let bytes = [b'x'; UPDATE_BYTES];
        visit.apply(&self.object, Procedure::Append(bytes[..].into()))?;
        Ok(visit.publish()?)
    }

    /// Each update is answered when it is on the disk of its log.
    fn against_bare_appends(&self, place: &Path) -> Outcome<()> {
        let mut file = File::create(place.join("bare"))?;
        let mut visit = self.visit()?;
        let (mut updates, mut bare) = (Samples::default(), Samples::default());
        for _ in 0..GROUPS {
            for _ in 0..GROUP {
                let start = Instant::now();
                self.append(&mut visit)?;
                updates.push(start.elapsed());
            }
            for _ in 0..GROUP {
                let start = Instant::now();
                file.write_all(&[b'x'; UPDATE_BYTES])?;
                file.sync_data()?;
                bare.push(start.elapsed());
            }
        }
        visit.close()?;
        let (update_us, bare_us) = (updates.micros(0.5), bare.micros(0.5));
        Figure::new("log_write")
            .with("update_us", update_us)
            .with("append_and_sync_us", bare_us)
            .with("update_p99_us", updates.micros(0.99))
            .at_most("ratio", update_us / bare_us, 2.0);
        Ok(())
    }

    /// The member was cut off, and has written meanwhile.
    fn after_a_cut(&self) -> Outcome<()> {
        self.wait_until_saved()?;
        self.link.cut();
        let mut visit = self.visit()?;
        for _ in 0..AFTER_A_CUT {
            self.append(&mut visit)?;
        }
        visit.close()?;
        self.link.mend();
        while self.tentative() == AFTER_A_CUT {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        self.wait_until_saved()?;
        let round_trips = start.elapsed().as_secs_f64() / ROUND_TRIP.as_secs_f64();
        Figure::new("log_after_a_cut")
            .with("updates", AFTER_A_CUT)
            .at_most("round_trips", round_trips, 3.0);
        Ok(())
    }

    fn tentative(&self) -> usize {
        self.member.log().map_or(0, |log| log.tentative)
    }

    fn wait_until_saved(&self) -> Outcome<()> {
        let start = Instant::now();
        while self.tentative() > 0 {
            if start.elapsed() > GIVEN_UP_AFTER {
                return Err("the log is not empty after a minute".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
