//! A process: how far it is, where its pages are, what is on its way to them.

use super::hierarchy::Hierarchy;
use super::hints::{Hints, NEVER};
use super::job::Job;
use super::missing::{LATEST, Missing};
use super::outcome::Outcome;
use super::policy::{Policy, Rule};
use super::residents::Residents;
use std::collections::BTreeSet;

/// A process on its node.
pub(super) struct Process<'a> {
    pages: &'a [u32],
    hints: Hints,
    /// The work before each reference and in all, microseconds.
    work_us: Vec<u64>,
    /// The reference that is waited for, or comes after this computation.
    position: u32,
    pub(super) state: State,
    page: Vec<Page>,
    pub(super) local: Residents,
    pub(super) local_free: u32,
    pub(super) global: Residents,
    /// Next references of pages that are on disk.
    on_disk: BTreeSet<u32>,
    missing: Option<Missing>,
    foreseen: Foreseen,
    /// What comes from global memory.
    pub(super) link: Option<Flight>,
    /// What comes from the node's own disk.
    pub(super) disk: Option<Flight>,
    pub(super) outcome: Outcome,
}

/// What a process is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It waits for the page of its next reference.
    Waiting { since_us: u64 },
    /// It computes after a reference.
    Computing { until_us: u64 },
    /// It has ended.
    Done,
}

/// A page on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) page: u32,
    pub(super) until_us: u64,
}

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Disk,
    ToGlobal,
    Global,
    ToLocal,
    Local,
}

/// Where a page can go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    Free,
    /// If this page goes.
    Of(u32),
}

#[derive(Clone, Copy, Debug)]
struct Page {
    place: Place,
    /// Where it is told to be referenced next.
    next: u32,
    used_us: u64,
    /// Prefetched into local memory and not referenced since.
    is_ahead_locally: bool,
    /// Prefetched into global memory and not fetched since.
    is_ahead_globally: bool,
    /// Referenced while its prefetch was on its way.
    is_late: bool,
}

impl<'a> Process<'a> {
    pub(super) fn new(job: &Job<'a>, hierarchy: &Hierarchy, policy: &Policy) -> Self {
        let work_us = job.work_us(hierarchy.compute_us);
        let hinting = match policy.hears_hints {
            true => job.hinting,
            false => super::Hinting::NONE,
        };
        let hints = Hints::of(job.pages, job.page_count(), &hinting);
        let page = (0..hints.page_count() as u32).map(|page| Page::on_disk(hints.first(page)));
        let page: Vec<Page> = page.collect();
        let on_disk: BTreeSet<u32> = page.iter().filter_map(Page::told).collect();
        let foreseen = Foreseen::new(hierarchy, policy);
        let missing = (policy.local == Rule::Forestall).then(|| {
            let first = on_disk
                .iter()
                .map(|&at| (at, foreseen.disk_us, work_us[at as usize]));
            Missing::new(job.pages.len(), first)
        });
        Process {
            pages: job.pages,
            hints,
            position: 0,
            state: State::Waiting { since_us: 0 },
            page,
            local: Residents::default(),
            local_free: hierarchy.local_pages,
            global: Residents::default(),
            on_disk,
            missing,
            foreseen,
            link: None,
            disk: None,
            outcome: Outcome {
                references: job.pages.len() as u64,
                compute_us: work_us[job.pages.len()],
                ..Outcome::default()
            },
            work_us,
        }
    }

    /// Goes on as far as it can now.
    pub(super) fn run(&mut self, now_us: u64) {
        loop {
            match self.state {
                State::Computing { until_us } if until_us <= now_us => {
                    self.state = self.next(now_us)
                }
                State::Waiting { since_us } if self.place(self.wanted()) == Place::Local => {
                    self.refer(since_us, now_us);
                }
                _ => return,
            }
        }
    }

    fn next(&mut self, now_us: u64) -> State {
        if (self.position as usize) < self.pages.len() {
            return State::Waiting { since_us: now_us };
        }
        self.outcome.elapsed_us = now_us;
        let unused =
            |page: &Page| u64::from(page.is_ahead_locally) + u64::from(page.is_ahead_globally);
        self.outcome.useless += self.page.iter().map(unused).sum::<u64>();
        State::Done
    }

    /// The page that it references next.
    pub(super) fn wanted(&self) -> u32 {
        self.pages[self.position as usize]
    }

    /// The page that it waits for.
    pub(super) fn waits_for(&self) -> Option<u32> {
        matches!(self.state, State::Waiting { .. }).then(|| self.wanted())
    }

    fn refer(&mut self, since_us: u64, now_us: u64) {
        match now_us - since_us {
            0 => self.outcome.hits += 1,
            waited_us => {
                self.outcome.waits += 1;
                self.outcome.stall_us += waited_us;
            }
        }
        let (position, page) = (self.position, self.wanted());
        let told = self.hints.page_at(position);
        let next = self.hints.next(position);
        if told.is_some() {
            self.set_missing(position, 0);
        }
        let is_told = told == Some(page);
        self.change(page, |page| {
            page.used_us = now_us;
            page.is_ahead_locally = false;
            page.is_late = false;
            if is_told {
                page.next = next;
            }
        });
        if let Some(other) = told.filter(|&told| told != page) {
            self.change(other, |page| page.next = next);
        }
        self.position += 1;
        let work_us = self.work_us[self.position as usize] - self.work_us[position as usize];
        self.state = State::Computing {
            until_us: now_us + work_us,
        };
    }

    /// The work that it has done, microseconds. Where issuing a prefetch held it up, that work is still before it.
    pub(super) fn worked_us(&self, now_us: u64) -> i64 {
        let before = self.work_us[self.position as usize] as i64;
        match self.state {
            State::Computing { until_us } => before - (until_us - now_us) as i64,
            State::Waiting { .. } | State::Done => before,
        }
    }

    /// When so much work will be done, if that is within this computation.
    pub(super) fn when_worked(&self, work_us: i64, now_us: u64) -> Option<u64> {
        let State::Computing { until_us } = self.state else {
            return None;
        };
        let ahead_us = u64::try_from(work_us.checked_sub(self.worked_us(now_us))?).ok()?;
        let at_us = now_us.checked_add(ahead_us)?;
        (at_us > now_us && at_us < until_us).then_some(at_us)
    }

    /// A prefetch is issued: whoever computes is held up by it.
    pub(super) fn held_up(&mut self, issue_us: u64) {
        if let State::Computing { until_us } = &mut self.state {
            *until_us += issue_us;
            self.outcome.issue_us += issue_us;
        }
    }

    /// The time until a told reference, if nothing stalls, microseconds.
    pub(super) fn until_us(&self, position: u32, now_us: u64) -> u64 {
        let at_us = self.work_us[position as usize] as i64;
        u64::try_from(at_us - self.worked_us(now_us)).unwrap_or(0)
    }

    /// The time until the next reference to a page, microseconds: as it is told; never again, if nothing is told and everything
    /// would be; else as long as since its last use (section 4.3.3).
    fn distance_us(&self, page: u32, now_us: u64) -> u64 {
        let page = &self.page[page as usize];
        match page.told() {
            Some(position) => self.until_us(position, now_us),
            None if self.hints.is_complete() => u64::MAX,
            None => now_us - page.used_us,
        }
    }

    /// The page there whose next reference is furthest ahead, and how far.
    fn furthest(&self, memory: &Residents, now_us: u64) -> Option<(u32, u64)> {
        let told = memory
            .last()
            .and_then(|position| self.hints.page_at(position));
        let pages = [told, memory.oldest()].into_iter().flatten();
        pages
            .map(|page| (page, self.distance_us(page, now_us)))
            .max_by_key(|&(_, distance_us)| distance_us)
    }

    /// The page in global memory whose next reference is furthest ahead, and how far.
    pub(super) fn furthest_global(&self, now_us: u64) -> Option<(u32, u64)> {
        self.furthest(&self.global, now_us)
    }

    /// Room in local memory for a page: a free frame, or one whose page is referenced later. For what is demanded any page goes.
    pub(super) fn room_for(&self, page: u32, now_us: u64) -> Option<Room> {
        if self.local_free > 0 {
            return Some(Room::Free);
        }
        let (victim, distance_us) = self.furthest(&self.local, now_us)?;
        let is_demanded = self.waits_for() == Some(page);
        (is_demanded || distance_us > self.distance_us(page, now_us)).then_some(Room::Of(victim))
    }

    /// The distance of a page, to compare it with those of others.
    pub(super) fn distance_of(&self, page: u32, now_us: u64) -> u64 {
        self.distance_us(page, now_us)
    }

    /// Where a page is.
    pub(super) fn place(&self, page: u32) -> Place {
        self.page[page as usize].place
    }

    /// A page is somewhere else now.
    pub(super) fn put(&mut self, page: u32, place: Place) {
        self.change(page, |page| page.place = place);
    }

    /// A page is prefetched.
    pub(super) fn mark_ahead(&mut self, page: u32, into: Place) {
        let page = &mut self.page[page as usize];
        match into {
            Place::ToGlobal => page.is_ahead_globally = true,
            _ => page.is_ahead_locally = true,
        }
    }

    /// A page is fetched from global memory.
    pub(super) fn mark_fetched(&mut self, page: u32) {
        self.page[page as usize].is_ahead_globally = false;
    }

    /// A page leaves a memory: if it came there ahead, that was for nothing.
    pub(super) fn mark_gone(&mut self, page: u32, from: Place) {
        let page = &mut self.page[page as usize];
        let is_ahead = match from {
            Place::Global => &mut page.is_ahead_globally,
            _ => &mut page.is_ahead_locally,
        };
        self.outcome.useless += u64::from(std::mem::take(is_ahead));
    }

    /// The page waited for is on its way: if it comes ahead, it comes late.
    pub(super) fn mark_late(&mut self, page: u32) {
        let page = &mut self.page[page as usize];
        if (page.is_ahead_locally || page.is_ahead_globally) && !page.is_late {
            page.is_late = true;
            self.outcome.late += 1;
        }
    }

    /// The first reference to a page that is missing, as far as it is foreseen; only with forestall.
    pub(super) fn first_missing(&self) -> Option<u32> {
        self.missing.as_ref()?.first()
    }

    /// The work after which the first missing page has to be fetched, microseconds; only with forestall.
    pub(super) fn start_us(&self) -> i64 {
        self.missing.as_ref().map_or(LATEST, Missing::start_us)
    }

    /// The first told reference to a page on disk.
    pub(super) fn first_on_disk(&self) -> Option<u32> {
        self.on_disk.first().copied()
    }

    /// The work before a reference, microseconds.
    pub(super) fn work_before_us(&self, position: u32) -> i64 {
        self.work_us[position as usize] as i64
    }

    /// The page told at a position at which one is.
    pub(super) fn told_at(&self, position: u32) -> Option<u32> {
        self.hints.page_at(position)
    }

    /// Changes what is known of a page, and where it stands for that.
    fn change(&mut self, number: u32, change: impl FnOnce(&mut Page)) {
        let mut page = self.page[number as usize];
        match page.place {
            Place::Local => self.local.remove(number, page.next, page.used_us),
            Place::Global => self.global.remove(number, page.next, page.used_us),
            Place::Disk => {
                self.on_disk.remove(&page.next);
            }
            Place::ToGlobal | Place::ToLocal => {}
        }
        change(&mut page);
        self.page[number as usize] = page;
        match page.place {
            Place::Local => self.local.insert(number, page.next, page.used_us),
            Place::Global => self.global.insert(number, page.next, page.used_us),
            Place::Disk if page.next != NEVER => {
                self.on_disk.insert(page.next);
            }
            Place::Disk | Place::ToGlobal | Place::ToLocal => {}
        }
        if let Some(next) = page.told() {
            self.set_missing(next, self.foreseen.fetch_us(page.place));
        }
    }

    fn set_missing(&mut self, position: u32, fetch_us: u64) {
        if let Some(missing) = &mut self.missing {
            missing.set(position, fetch_us, self.work_us[position as usize]);
        }
    }
}

/// What fetching pages into local memory takes, by where they are, as far as that is prefetched; microseconds.
#[derive(Clone, Copy)]
struct Foreseen {
    disk_us: u64,
    to_global_us: u64,
    global_us: u64,
}

impl Foreseen {
    fn new(hierarchy: &Hierarchy, policy: &Policy) -> Self {
        let only_if = |is_foreseen: bool| match is_foreseen {
            true => hierarchy.global_fetch_us,
            false => 0,
        };
        Foreseen {
            disk_us: hierarchy.disk_fetch_us,
            // As if it were there already, as soon as it is on its way there (section 4.3.3).
            to_global_us: only_if(policy.from_global && !policy.looks_past),
            global_us: only_if(policy.from_global),
        }
    }

    fn fetch_us(&self, place: Place) -> u64 {
        match place {
            Place::Disk => self.disk_us,
            Place::ToGlobal => self.to_global_us,
            Place::Global => self.global_us,
            Place::ToLocal | Place::Local => 0,
        }
    }
}

impl Page {
    fn on_disk(next: u32) -> Self {
        Page {
            place: Place::Disk,
            next,
            used_us: 0,
            is_ahead_locally: false,
            is_ahead_globally: false,
            is_late: false,
        }
    }

    fn told(&self) -> Option<u32> {
        (self.next != NEVER).then_some(self.next)
    }
}
