//! A village as its seed draws it: who lives where, with which limits, how
//! programs behave, and what goes wrong.

use crate::faults::kinds::Kind;
use thorp_model::limits::{
    ENTERINGS_MAX, FETCH_RETRY_MS, HISTORY_PAGES_MAX, INLINE_VALUE_BYTES_MAX, REPORT_PAGES_MAX,
};
use thorp_model::{EntryNo, Xoshiro256};
use thorp_protocol::AliveLimits;

/// Everything that a seed decides before time begins.
#[derive(Clone, Debug)]
pub struct Village {
    /// The limits of each home.
    pub homes: Vec<HomePlan>,
    /// The sites; one may lie below an earlier one.
    pub sites: Vec<SitePlan>,
    /// The members.
    pub members: Vec<MemberPlan>,
    /// Whether all of them are programs of one user, with one name (rule R1).
    pub one_user: bool,
    /// Delays between neighbours.
    pub near: Delay,
    /// Delays to a home, or to a site far above.
    pub far: Delay,
    /// Messages that a driver queues for a peer before it cuts the edge (rule 15).
    pub queue_max: usize,
    /// Enterings of one epoch, at every parent.
    pub enterings_max: EntryNo,
    /// When a neighbour is silent (rule 13).
    pub alive: AliveLimits,
    /// Whether members that lost their site turn to another, or carry one.
    pub turns: bool,
    /// Pages in one piece of a report to a new parent (rule 13).
    pub report_pages_max: usize,
    /// Whether messages travel as bytes.
    pub as_bytes: bool,
    /// Whether helpers' images travel beside the stream, on connections of their own (foundation 5). So do those of homes
    /// that are asked for it.
    pub beside: bool,
    /// What programs do.
    pub habits: Habits,
    /// Thousandths of the true time by which monotone clocks go wrong, at most.
    pub mono_per_mille_max: u64,
    /// Kinds of faults that happen here.
    pub faults: Vec<Kind>,
    /// How many of them.
    pub strikes: usize,
    /// Milliseconds between them, at most.
    pub strike_gap_ms_max: u64,
    /// Reads and writes of programs before the village is healed.
    pub operations_min: u64,
}

/// A home's limits, small enough that each is met.
#[derive(Clone, Debug)]
pub struct HomePlan {
    /// Objects of which the last change is known.
    pub changes_known_max: usize,
    /// Bytes of modified objects before installation.
    pub mob_bytes_high: usize,
    /// Bytes of images in memory.
    pub cache_bytes: usize,
    /// Bytes accepted and not durable.
    pub pending_bytes_max: usize,
    /// Members remembered.
    pub registrations_max: usize,
    /// Outcomes remembered of each.
    pub outcomes_per_member: u64,
    /// How long staged values of a member that is not heard of are kept.
    pub staged_silent_ms_max: u64,
    /// Commits that wait for pages.
    pub parked_max: usize,
    /// Bytes of such commits and of the pages kept for them.
    pub parked_bytes_max: usize,
    /// Milliseconds that a sync takes, at most.
    pub sync_ms_max: u64,
    /// Log records trimmed by one batch.
    pub log_trim_max: u64,
    /// Pages of a removed segment deleted by one batch.
    pub pages_removed_max: u32,
    /// How far its wall clock is ahead of the true time from the beginning, in milliseconds.
    pub wall_ms_ahead: u64,
}

/// The least that a change in the MOB is charged, in bytes.
const CHANGE_BYTES_MIN: usize = 64;

impl HomePlan {
    /// Records in the log before installation: as many as the changes that fit below its mark.
    pub fn log_records_high(&self) -> usize {
        self.mob_bytes_high / CHANGE_BYTES_MIN
    }
}

/// A site.
#[derive(Clone, Debug)]
pub struct SitePlan {
    /// The site it lies below, if any.
    pub above: Option<usize>,
    /// Bytes of images in the redirector's memory; zero keeps none.
    pub cache_bytes: usize,
    /// Bytes of commits kept on their way.
    pub kept_bytes_max: usize,
}

impl SitePlan {
    /// Pages whose past its redirector knows: few where it keeps few commits, too.
    pub fn history_pages_max(&self) -> usize {
        match self.kept_bytes_max {
            few @ ..=1_000 => few % 4,
            _ => HISTORY_PAGES_MAX,
        }
    }

    /// Pages of which its redirector knows what came next: as many.
    pub fn successor_pages_max(&self) -> usize {
        self.history_pages_max()
    }
}

/// A member.
#[derive(Clone, Debug)]
pub struct MemberPlan {
    /// Its site; none is straight at the homes.
    pub site: Option<usize>,
    /// Bytes of its page cache.
    pub cache_bytes: usize,
    /// Its sessions; true is strict.
    pub sessions: Vec<bool>,
}

/// A delay in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    /// At least.
    pub least_us: u64,
    /// And up to so much more.
    pub jitter_us: u64,
}

/// What programs do.
#[derive(Clone, Debug)]
pub struct Habits {
    /// Pages of the shared segment that programs use.
    pub pages: u32,
    /// Slots of each.
    pub slots: u16,
    /// Bytes of a value, at most.
    pub value_bytes_max: usize,
    /// Actions of one transaction, at most.
    pub actions_max: u64,
    /// Milliseconds between transactions, at most.
    pub think_ms_max: u64,
    /// Milliseconds between two actions of a slow transaction, at most.
    pub dawdle_ms_max: u64,
    /// Of a hundred transactions, those that only read.
    pub read_only: u64,
    /// Of a hundred, those that are slow.
    pub slow: u64,
    /// Of a hundred, those that are given up.
    pub given_up: u64,
    /// Of a hundred writes, those made without reading.
    pub blind: u64,
    /// Of a hundred transactions, those with a large value.
    pub large: u64,
    /// Of a thousand requests, those that cannot be right.
    pub wrong: u64,
    /// Of a hundred transactions, those that create in reserved pages.
    pub reserved: u64,
    /// Of a thousand, those that make and remove a segment.
    pub passing: u64,
    /// Of a thousand writes in such a segment, those that change its rights.
    pub rights: u64,
    /// Of a thousand, those that flood the parent with calls.
    pub flood: u64,
    /// Of a hundred commits, those whose program goes on before they are answered (rule 14).
    pub early: u64,
    /// Of a hundred transactions after such a one that wrote without looking, those that write over it in the same way.
    pub over: u64,
    /// Of a hundred commits, those that wait for another session's, to be one with it.
    pub joint: u64,
    /// Of a hundred pages that programs are told they are likely to read next, those that they fetch.
    pub heeds: u64,
    /// Whether most values are so large that the pages are full: what is small and new then moves others out (foundation 1).
    pub full_pages: bool,
    /// Milliseconds without news after which a read is not free, at most.
    pub staleness_ms_max: u64,
}

/// A link so slow that a page is asked for again before the first answer can be there.
const FAR_AWAY_US: u64 = FETCH_RETRY_MS * 1000 * 11 / 20;

/// Thousandths by which a monotone clock goes wrong, at most: a twentieth, where real ones do a tenth of a thousandth.
const MONO_PER_MILLE_MAX: u64 = 50;

/// Pages of the shared segment, where there are many: more than a report may have under way, if each is a piece of it.
const WIDE_PAGES_MAX: u64 = 48;

/// Of a thousand times between transactions, those at which a segment is made, where this is done all the time.
const PASSING_PER_MILLE_MAX: u64 = 150;

/// Of a thousand writes in a segment that comes and goes, those that change its rights, at most.
const RIGHTS_PER_MILLE_MAX: u64 = 200;

/// Milliseconds by which the clocks of homes differ, at most: three times what a home reserves (rule 12).
const WALL_APART_MS_MAX: u64 = 30_000;

/// Of a hundred villages, those where pages are full.
const FULL_PAGES_PERCENT: u64 = 12;

/// Rogues and visitors need a place, too.
const REGISTRATIONS_LEAST: usize = 4;

/// Of a hundred villages, those where all members have one name.
const ONE_USER_PERCENT: u64 = 5;

/// Of a hundred villages with several homes, those where chains are over them.
const CHAINS_OVER_HOMES_PERCENT: u64 = 25;

impl Village {
    /// Draws the village of a seed.
    pub fn draw(prng: &mut Xoshiro256) -> Self {
        let sites = draw_sites(prng);
        let members = draw_members(prng, sites.len());
        let far_least = if prng.percent(3) {
            FAR_AWAY_US
        } else {
            [500, 5_000, 40_000][prng.index(3)]
        };
        Village {
            homes: vec![draw_home(prng)],
            sites,
            members,
            one_user: false,
            near: Delay {
                least_us: 100,
                jitter_us: [50, 1_000, 20_000][prng.index(3)],
            },
            far: Delay {
                least_us: far_least,
                jitter_us: [100, 5_000, 60_000][prng.index(3)],
            },
            queue_max: prng.range(200, 600) as usize,
            enterings_max: EntryNo(ENTERINGS_MAX),
            alive: AliveLimits::default(),
            turns: false,
            report_pages_max: REPORT_PAGES_MAX,
            as_bytes: prng.percent(30),
            beside: prng.percent(50),
            habits: draw_habits(prng),
            mono_per_mille_max: 0,
            faults: Kind::ANYWHERE
                .iter()
                .copied()
                .filter(|_| prng.percent(60))
                .collect(),
            strikes: prng.range(6, 16) as usize,
            strike_gap_ms_max: prng.range(300, 2_000),
            operations_min: prng.range(500, 900),
        }
        .with_faults(prng)
        .with_queues()
        .with_registrations(prng)
        .with_enterings(prng)
        .with_homes(prng)
        .with_reports(prng)
        .with_alive(prng)
        .with_clocks(prng)
        .with_extremes(prng)
        .with_hints(prng)
        .with_full_pages(prng)
        .with_chains_over_homes(prng)
        .with_one_user(prng)
    }

    /// In some, all members are programs of one user, and a home remembers about as many of one name as there are. A
    /// program that registers, or comes again, is one too many then: the longest silent one of that name is forgotten,
    /// also while it lives and waits for an outcome (rule R2). Drawn last: other villages are what they were before.
    fn with_one_user(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(ONE_USER_PERCENT) {
            self.one_user = true;
            for home in &mut self.homes {
                let most = 2 * self.members.len() + prng.below(4) as usize;
                home.registrations_max = most.saturating_sub(2).max(REGISTRATIONS_LEAST);
            }
        }
        self
    }

    /// In some villages the pages are full, and new slots come all the time.
    fn with_full_pages(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(FULL_PAGES_PERCENT) {
            let habits = &mut self.habits;
            habits.full_pages = true;
            habits.pages = prng.range(1, 2) as u32;
            habits.early = habits.early.max(30);
            habits.slots = prng.range(4, 8) as u16;
            (habits.think_ms_max, habits.slow) = (prng.range(20, 60), 5);
            (habits.read_only, habits.reserved) = (10, 0);
            // So that as many as there are slots do not fit.
            habits.value_bytes_max = (INLINE_VALUE_BYTES_MAX / usize::from(habits.slots)) * 3 / 2;
        }
        self
    }

    /// In some, hardly anybody waits for a commit, and half of those are over several homes, whose pages are given up
    /// soon, at members and at homes: rules 10 and 14 meet.
    fn with_chains_over_homes(mut self, prng: &mut Xoshiro256) -> Self {
        if self.homes.len() > 1 && prng.percent(CHAINS_OVER_HOMES_PERCENT) {
            let habits = &mut self.habits;
            (habits.early, habits.over) = (prng.range(60, 90), prng.range(20, 60));
            (habits.joint, habits.blind) = (prng.range(30, 70), prng.range(20, 60));
            if !habits.full_pages {
                (habits.pages, habits.slots) = (2, prng.range(2, 4) as u16);
            }
            habits.actions_max = 8;
            for home in &mut self.homes {
                if prng.percent(50) {
                    home.cache_bytes = prng.below(2_000) as usize;
                }
            }
            for member in &mut self.members {
                let sessions = prng.range(3, 6);
                member.sessions = (0..sessions).map(|_| prng.percent(25)).collect();
                if prng.percent(50) {
                    member.cache_bytes = prng.range(150, 1_500) as usize;
                }
            }
        }
        self
    }

    /// Some villages have much of one thing, which others hardly have: what takes two of them at once is met as well.
    fn with_extremes(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(10) {
            self.habits.pages = prng.range(8, WIDE_PAGES_MAX) as u32;
            // What all report anew to a new edge must not wear that one out, too.
            let reported = self.members.len() as u32 * self.habits.pages;
            self.enterings_max = self.enterings_max.max(EntryNo(2 * reported));
            if prng.percent(50) && !self.edges_wear_out() {
                self.report_pages_max = 1;
            }
        }
        if prng.percent(8) {
            self.habits.passing = prng.range(30, PASSING_PER_MILLE_MAX);
        }
        if self.habits.passing > 0 && prng.percent(60) {
            self.habits.rights = prng.range(20, RIGHTS_PER_MILLE_MAX);
        }
        if self.homes.len() > 1 && prng.percent(20) {
            for home in &mut self.homes {
                home.wall_ms_ahead = prng.below(WALL_APART_MS_MAX);
            }
        }
        self
    }

    /// In most villages programs fetch some of what they are told they are likely to read next.
    fn with_hints(mut self, prng: &mut Xoshiro256) -> Self {
        self.habits.heeds = [0, 30, 100][prng.index(3)];
        self
    }

    /// In a third of the villages no two monotone clocks go alike.
    fn with_clocks(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(30) {
            self.mono_per_mille_max = prng.range(1, MONO_PER_MILLE_MAX);
        }
        self
    }

    /// Often neighbours are given up soon, though never while the first word is on its way.
    fn with_alive(mut self, prng: &mut Xoshiro256) -> Self {
        self.turns = prng.percent(50) && !self.sites.is_empty();
        if prng.percent(60) {
            let every_ms = prng.range(200, 600);
            let way_ms = (self.far.least_us + self.far.jitter_us) / 1000;
            let missed = 2 + (3 * way_ms + 300) / every_ms;
            self.alive = AliveLimits {
                every_ms,
                missed_max: u32::try_from(missed).unwrap_or(u32::MAX),
            };
        }
        self
    }

    /// Few pages in a piece: a report takes several, and more than may be under way. Where edges wear out, not one page: a
    /// report of a hundred pieces, and what is asked for meanwhile, would wear out each edge before it has ended (seed 10003).
    fn with_reports(mut self, prng: &mut Xoshiro256) -> Self {
        let least = if self.edges_wear_out() { 3 } else { 1 };
        self.report_pages_max = [1, 1, 3, REPORT_PAGES_MAX][prng.index(4)].max(least);
        self
    }

    /// Whether entry numbers are few, so that edges end when these are used up.
    pub fn edges_wear_out(&self) -> bool {
        self.enterings_max < EntryNo(ENTERINGS_MAX)
    }

    /// Half of the villages have several homes, and transactions over them (rule 10).
    fn with_homes(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(50) {
            self.homes
                .extend((0..prng.range(1, 2)).map(|_| draw_home(prng)));
            self.habits.joint = prng.range(10, 60);
            if prng.percent(60) {
                self.faults.push(Kind::LeftInDoubt);
            }
        }
        self
    }

    /// Sometimes edges wear out, again and again (rule 2). Not so soon that what is reported to a new one, page by page,
    /// wears that one out, too (rule 13).
    fn with_enterings(mut self, prng: &mut Xoshiro256) -> Self {
        if prng.percent(20) {
            self.enterings_max = EntryNo(prng.range(220, 600) as u32);
        }
        self
    }

    /// Sometimes the homes remember few members: of each name one or two. Those that died, and now
    /// and then a silent one, are forgotten. Rogues and visitors have one name together.
    fn with_registrations(mut self, prng: &mut Xoshiro256) -> Self {
        for home in &mut self.homes {
            if prng.percent(40) {
                let names = self.members.len() + 2;
                home.registrations_max = 2 * names + prng.below(3) as usize;
            }
        }
        self
    }

    /// A flood of requests is limited by the cores; it must not end every
    /// connection on which they are answered.
    fn with_queues(mut self) -> Self {
        if self.habits.flood > 0 || self.faults.contains(&Kind::Byzantine) {
            self.queue_max = 10_000;
        }
        self
    }

    /// A village in which nothing could go wrong tells nothing.
    fn with_faults(mut self, prng: &mut Xoshiro256) -> Self {
        while self.faults.len() < 3 {
            let kind = Kind::ANYWHERE[prng.index(Kind::ANYWHERE.len())];
            self.faults.push(kind);
        }
        self
    }
}

fn draw_home(prng: &mut Xoshiro256) -> HomePlan {
    let mut small_or = |small: u64, most: u64, usual: u64| {
        if prng.percent(50) {
            prng.range(small, most) as usize
        } else {
            usual as usize
        }
    };
    HomePlan {
        changes_known_max: small_or(1, 60, 100_000),
        mob_bytes_high: small_or(200, 5_000, 50_000),
        cache_bytes: small_or(0, 10_000, 1_000_000),
        pending_bytes_max: small_or(200, 3_000, 1_000_000),
        registrations_max: 1_000,
        outcomes_per_member: small_or(64, 70, 256) as u64,
        staged_silent_ms_max: small_or(200, 4_000, 3_600_000) as u64,
        parked_max: small_or(1, 4, 1_000),
        parked_bytes_max: small_or(1_000, 40_000, 10_000_000),
        sync_ms_max: small_or(1, 40, 5) as u64,
        log_trim_max: small_or(1, 20, 4_096) as u64,
        pages_removed_max: small_or(8, 40, 1_024) as u32,
        wall_ms_ahead: 0,
    }
}

fn draw_sites(prng: &mut Xoshiro256) -> Vec<SitePlan> {
    let count = [0, 1, 1, 1, 2, 2, 3][prng.index(7)];
    (0..count)
        .map(|index: usize| SitePlan {
            above: (index > 0 && prng.percent(25)).then(|| prng.index(index)),
            cache_bytes: match prng.index(3) {
                0 => 0,
                1 => prng.range(200, 10_000) as usize,
                _ => 1_000_000,
            },
            kept_bytes_max: if prng.percent(40) {
                prng.range(0, 1_000) as usize
            } else {
                1_000_000
            },
        })
        .collect()
}

fn draw_members(prng: &mut Xoshiro256, sites: usize) -> Vec<MemberPlan> {
    let mut members = Vec::new();
    for site in 0..sites {
        let count = prng.range(1, 4);
        members.extend((0..count).map(|_| draw_member(prng, Some(site))));
    }
    let straight = if sites == 0 {
        prng.range(2, 5)
    } else {
        prng.below(3)
    };
    members.extend((0..straight).map(|_| draw_member(prng, None)));
    if members.len() < 2 {
        members.push(draw_member(prng, None));
    }
    members
}

fn draw_member(prng: &mut Xoshiro256, site: Option<usize>) -> MemberPlan {
    MemberPlan {
        site,
        cache_bytes: if prng.percent(50) {
            prng.range(300, 5_000) as usize
        } else {
            10_000_000
        },
        sessions: (0..prng.range(1, 3)).map(|_| prng.percent(25)).collect(),
    }
}

fn draw_habits(prng: &mut Xoshiro256) -> Habits {
    let rare = |prng: &mut Xoshiro256, chance: u64, value: u64| {
        if prng.percent(chance) { value } else { 0 }
    };
    Habits {
        pages: prng.range(2, 6) as u32,
        slots: prng.range(2, 6) as u16,
        value_bytes_max: [40, 40, 300, 3_000][prng.index(4)],
        actions_max: prng.range(2, 8),
        think_ms_max: prng.range(20, 400),
        dawdle_ms_max: prng.range(20, 600),
        read_only: prng.range(10, 60),
        slow: prng.range(0, 30),
        given_up: prng.range(0, 10),
        blind: prng.range(0, 60),
        large: rare(prng, 30, 8),
        wrong: rare(prng, 40, 10),
        reserved: prng.range(0, 30),
        passing: rare(prng, 40, 15),
        rights: 0,
        flood: rare(prng, 20, 10),
        joint: 0,
        early: rare(prng, 50, 60),
        over: rare(prng, 50, 40),
        heeds: 0,
        full_pages: false,
        staleness_ms_max: if prng.percent(30) {
            prng.range(300, 1_500)
        } else {
            prng.range(1_500, 10_000)
        },
    }
}
