//! `thorp demo --consistency`: a site that is cut off goes on sharing, hard reads elsewhere wait for its lease, and in the end each
//! update counts once (rules C3, C4, C6, C7 and C10).

pub(super) mod errand;
mod judge;
mod link;
mod member;
mod phases;

pub(super) use member::obey;

use super::checks::Checks;
use super::process::Interrupted;
use super::progress::Progress;
use super::village::{HOME, Node, Village, Worker, await_all, order_all, together};
use super::wire::{Done, Order};
use crate::failure::{Code, Failure};
use errand::{Errand, Span, Story, View};
use judge::{Case, expected, lease_end};
use link::Link;
use phases::{Phase, Teller, Tellers, Times};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What is chosen on the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) round_trip_ms: u64,
    pub(super) quick: bool,
}

/// What was found out.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) phases: Vec<Phase>,
    pub(super) lease_ms: u64,
}

/// Runs the demo and prints what was seen.
pub(super) fn run(
    (dir, logs): (&Path, &Path),
    settings: Settings,
    interrupted: &Interrupted,
    checks: &mut Checks,
) -> Result<Found, Failure> {
    if settings.round_trip_ms > ROUND_TRIP_MS_MAX {
        let what = format!("--rtt-ms is at most {ROUND_TRIP_MS_MAX} with --consistency");
        return Err(Failure::new(what, "").with(Code::Usage));
    }
    let plan = Plan::of(settings);
    let village = Village::new(dir, logs, settings.round_trip_ms, interrupted)?;
    let mut progress = Progress::new(6);
    let what = format!(
        "a home with leases of {} s, two sites, and members start",
        plan.lease_s
    );
    progress.step(&what);
    let mut cast = Cast::start(&village, dir, plan)?;
    let mut run = Run {
        tellers: tellers(),
        zero_us: member::now_us(),
        times: Times {
            cut: 0,
            lease_end: 0,
            mended: 0,
            again: 0,
            end: 0,
        },
        ends: Vec::new(),
        made: Vec::new(),
        interrupted,
    };
    cast.make(&mut progress)?;
    run.cut_and_mend(&mut cast, plan, &mut progress)?;
    progress.step("A has come back: everybody looks");
    run.settle(&mut cast, &mut progress)?;
    progress.step("both sites write and read again");
    run.again(&mut cast, plan, &mut progress)?;
    run.settle(&mut cast, &mut progress)?;
    cast.stop()?;
    let cut = run.times.cut;
    let end = lease_end(&run.tellers, &run.times).unwrap_or(cut + plan.lease_s * 1_000_000);
    run.times.lease_end = end.min(run.times.mended);
    let phases = run.tellers.phases(&run.times);
    checks.tell(&format!("\n{}\n", phases::table(&phases)))?;
    let case = Case {
        tellers: &run.tellers,
        times: &run.times,
        round_trip_ms: settings.round_trip_ms,
        site: A,
        ends: &run.ends,
        made: &run.made,
    };
    case.judge(checks)?;
    Ok(Found {
        phases,
        lease_ms: plan.lease_s * 1_000,
    })
}

/// How long everything takes, in milliseconds but for the lease.
#[derive(Clone, Copy, Debug)]
struct Plan {
    lease_s: u64,
    together: u64,
    cut: u64,
    back: u64,
    again: u64,
    write_pause: u64,
    /// How long Ben waits for an answer.
    patience: u64,
}

impl Plan {
    fn of(settings: Settings) -> Self {
        let (lease_s, stretch) = if settings.quick {
            (3, 2_000)
        } else {
            (5, 4_000)
        };
        Plan {
            lease_s,
            together: stretch,
            cut: lease_s * 1_000 + stretch,
            back: 3_000,
            again: stretch,
            write_pause: 100,
            // A hard read takes two round trips, and what is on its way.
            patience: 1_000 + 5 * settings.round_trip_ms,
        }
    }
}

/// Everybody in the village.
struct Cast {
    home: Node,
    sites: [Node; 2],
    /// Between site A and the home.
    link: Link,
    /// The two at site A, which write, then the two at site B, which read.
    workers: Vec<Worker>,
}

fn tellers() -> Tellers {
    let teller = |name, consistency, bound| Teller {
        name,
        consistency,
        bound,
        story: Story::default(),
    };
    Tellers {
        writers: [ANNA, NILS].map(|name| teller(name, NEAR, 0)),
        readers: [teller(BEN, BOUNDED, BOUND_US), teller(LENA, HARD, 0)],
    }
}

impl Cast {
    fn start(village: &Village, dir: &Path, plan: Plan) -> Result<Self, Failure> {
        let alive = [
            format!("--alive-ms={ALIVE_MS}"),
            format!("--alive-missed-max={ALIVE_MISSED_MAX}"),
        ];
        let lease = format!("--lease={}", plan.lease_s);
        let far = [A, B].map(ToOwned::to_owned);
        let of_home = [&alive[..], &[lease]].concat();
        let home = village.home_with(&far, &of_home)?;
        let link = Link::new(&dir.join("link.sock"), &home.address)?;
        let sites = [
            village.site_at(A, &link.address(), &alive)?,
            village.site_at(B, &home.address, &alive)?,
        ];
        let mut workers = Vec::new();
        for (name, site, more) in [
            (ANNA, 0, log_of(dir, ANNA)),
            (NILS, 0, log_of(dir, NILS)),
            (BEN, 1, format!("--patience-ms={}", plan.patience)),
            (LENA, 1, format!("--patience-ms={LONG_MS}")),
        ] {
            let more = [&alive[..], &[more]].concat();
            workers.push(village.member(name, &sites[site], &more)?);
        }
        Ok(Cast {
            home,
            sites,
            link,
            workers,
        })
    }

    fn make(&mut self, progress: &mut Progress) -> Result<(), Failure> {
        let make = Errand::Make { segment: segment() };
        let orders = [Order::Consistency(make)];
        together(&mut self.workers[..1], &orders, progress).map(|_| ())
    }

    fn stop(self) -> Result<(), Failure> {
        for worker in self.workers {
            worker.stop()?;
        }
        for site in self.sites {
            site.stop()?;
        }
        self.home.stop()
    }
}

/// What has happened so far.
struct Run<'a> {
    tellers: Tellers,
    zero_us: u64,
    times: Times,
    ends: Vec<Vec<Result<View, String>>>,
    made: Vec<[usize; 2]>,
    interrupted: &'a Interrupted,
}

impl Run<'_> {
    fn now(&self) -> u64 {
        member::now_us().saturating_sub(self.zero_us)
    }

    /// Everybody is at work all the time.
    fn cut_and_mend(
        &mut self,
        cast: &mut Cast,
        plan: Plan,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        progress.step("A writes with eventual consistency, B reads with hard bounds");
        self.order(cast, plan.together + plan.cut + plan.back, plan)?;
        self.pass(plan.together)?;
        progress.step("the link of A falls silent");
        cast.link.fall_silent();
        self.times.cut = self.now();
        self.pass(plan.cut)?;
        progress.step("the link of A is mended");
        self.times.mended = self.now();
        cast.link.mend();
        self.collect(cast, progress)
    }

    fn again(
        &mut self,
        cast: &mut Cast,
        plan: Plan,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        self.times.again = self.now();
        self.order(cast, plan.again, plan)?;
        self.collect(cast, progress)?;
        self.times.end = self.now();
        Ok(())
    }

    fn order(&self, cast: &mut Cast, ms: u64, plan: Plan) -> Result<(), Failure> {
        let span = |pause_ms| Span {
            zero_us: self.zero_us,
            ms,
            pause_ms,
        };
        let writers = self.tellers.writers.iter().map(|writer| Errand::Share {
            segment: segment(),
            letter: writer.letter(),
            from: writer.story.appends.len() as u64 + 1,
            span: span(plan.write_pause),
        });
        let readers = self.tellers.readers.iter().map(|reader| Errand::Read {
            segment: segment(),
            consistency: reader.consistency.to_owned(),
            span: span(READ_PAUSE_MS),
        });
        let orders: Vec<Order> = writers.chain(readers).map(Order::Consistency).collect();
        order_all(&mut cast.workers, &orders)
    }

    fn collect(&mut self, cast: &mut Cast, progress: &mut Progress) -> Result<(), Failure> {
        let done = await_all(&mut cast.workers, progress)?;
        let Tellers { writers, readers } = &mut self.tellers;
        for (teller, done) in writers.iter_mut().chain(readers).zip(done) {
            teller.story.append(done.story);
        }
        Ok(())
    }

    /// Waits until everybody sees everything.
    fn settle(&mut self, cast: &mut Cast, progress: &mut Progress) -> Result<(), Failure> {
        let made = [0, 1].map(|at| self.tellers.writers[at].story.appends.len());
        let expected = expected(&self.tellers.writers, made);
        let near = [NEAR_READ, NEAR_READ, HARD, HARD];
        let look = |consistency: &str| Errand::Look {
            segment: segment(),
            consistency: consistency.to_owned(),
        };
        let orders = near.map(look).map(Order::Consistency);
        let end = Instant::now() + SETTLE_TIMEOUT;
        loop {
            let done = together(&mut cast.workers, &orders, progress)?;
            let views: Vec<_> = done.into_iter().filter_map(view).collect();
            let is_same = views.iter().all(|view| view.as_ref() == Ok(&expected));
            if is_same || Instant::now() > end {
                self.ends.push(views);
                self.made.push(made);
                return Ok(());
            }
            self.pass(LOOK_AGAIN_MS)?;
        }
    }

    /// Lets time pass.
    fn pass(&self, ms: u64) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < end {
            self.interrupted.ask()?;
            let left = end.saturating_duration_since(Instant::now());
            sleep(left.min(Duration::from_millis(LOOK_AGAIN_MS)));
        }
        Ok(())
    }
}

fn view(done: Done) -> Option<Result<View, String>> {
    done.story.reads.into_iter().next().map(|read| read.seen)
}

fn log_of(dir: &Path, name: &str) -> String {
    format!("--log={}", dir.join(name).join("log").display())
}

fn segment() -> String {
    format!("thorp://{HOME}/board")
}

/// The sites: the first one is cut off.
const A: &str = "a";
const B: &str = "b";
/// At site A.
const ANNA: &str = "anna";
const NILS: &str = "nils";
/// At site B.
const BEN: &str = "ben";
const LENA: &str = "lena";
const NEAR: &str = "eventual";
const NEAR_READ: &str = "eventual,mode=rd";
const BOUNDED: &str = "bounded,time=100ms,hard,mode=rd";
const BOUND_US: u64 = 100_000;
const HARD: &str = "close-to-open,mode=rd";
/// How long Lena waits for an answer.
const LONG_MS: u64 = 30_000;
/// A neighbour that is silent is given up within the lease, as by default.
const ALIVE_MS: u64 = 500;
const ALIVE_MISSED_MAX: u32 = 4;
const READ_PAUSE_MS: u64 = 5;
/// How long it may take until everybody sees everything.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Ben's patience ends within the lease.
const ROUND_TRIP_MS_MAX: u64 = 200;
const LOOK_AGAIN_MS: u64 = 50;
