//! The least time that any schedule can take, by trying all of them.

use super::hierarchy::Hierarchy;
use super::job::Job;
use crate::Invalid;
use std::collections::HashSet;

/// The least time in which one process can end, by all schedules of fetches and replacements: microseconds.
///
/// Time is stepped by one microsecond, and all that can be is kept, so this is for a handful of pages, references and
/// microseconds: to check policies and bounds with.
///
/// # Errors
///
/// [`Invalid`] if a parameter cannot be, or is too large for trying everything.
pub fn optimum_us(hierarchy: &Hierarchy, job: &Job<'_>) -> Result<u64, Invalid> {
    hierarchy.check()?;
    job.check()?;
    if job.page_count() > 16 || job.pages.len() > 64 || hierarchy.server_disks > DISKS_MAX {
        let why = "must be few for the exhaustive optimum: 16 pages, 64 references, 2 server disks";
        return Err(Invalid::new("pages", why));
    }
    if hierarchy.compute_us == 0 || hierarchy.disk_fetch_us > 255 || hierarchy.issue_us > 0 {
        let why = "must be above 0, and fetches within 255 with none to issue them, for the exhaustive optimum";
        return Err(Invalid::new("compute_us", why));
    }
    if job.compute_us.is_some() {
        let why = "must be the same after each reference for the exhaustive optimum";
        return Err(Invalid::new("compute_us", why));
    }
    Ok(Search::new(hierarchy, job).run())
}

struct Search<'a> {
    hierarchy: &'a Hierarchy,
    pages: &'a [u32],
    /// The pages that are referenced from each position on.
    wanted: Vec<u16>,
    seen: HashSet<Schedule>,
}

/// All that matters of what a schedule has led to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Schedule {
    position: u8,
    /// Left of the computation, microseconds.
    compute_us: u64,
    /// Pages in local and global memory, as bits.
    local: u16,
    global: u16,
    /// By the link, the node's disk, and the servers' disks: the page as a bit, and how long it still takes.
    link: Coming,
    disk: Coming,
    servers: [Coming; DISKS_MAX as usize],
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Coming {
    page: u16,
    left_us: u8,
}

const DISKS_MAX: u32 = 2;

impl<'a> Search<'a> {
    fn new(hierarchy: &'a Hierarchy, job: &Job<'a>) -> Self {
        let mut wanted = vec![0; job.pages.len() + 1];
        for position in (0..job.pages.len()).rev() {
            wanted[position] = wanted[position + 1] | 1 << job.pages[position];
        }
        Search {
            hierarchy,
            pages: job.pages,
            wanted,
            seen: HashSet::new(),
        }
    }

    /// All schedules side by side, step by step, until one has ended.
    fn run(mut self) -> u64 {
        let mut now: Vec<Schedule> = vec![Schedule::default()];
        for now_us in 0.. {
            let mut next = HashSet::new();
            for mut schedule in now {
                if self.refers(&mut schedule) {
                    return now_us;
                }
                for mut begun in self.begin(schedule) {
                    begun.step();
                    if self.seen.insert(begun) {
                        next.insert(begun);
                    }
                }
            }
            now = next.into_iter().collect();
        }
        unreachable!("a schedule that fetches what is demanded ends")
    }

    /// References what is there; whether that was all.
    fn refers(&self, schedule: &mut Schedule) -> bool {
        let Some(&page) = self.pages.get(usize::from(schedule.position)) else {
            return schedule.compute_us == 0;
        };
        if schedule.compute_us == 0 && schedule.local & (1 << page) != 0 {
            schedule.position += 1;
            schedule.compute_us = self.hierarchy.compute_us;
        }
        false
    }

    /// What any fetches that can begin now, in any order, lead to.
    fn begin(&self, schedule: Schedule) -> HashSet<Schedule> {
        let mut all = HashSet::from([schedule]);
        let mut open = vec![schedule];
        while let Some(schedule) = open.pop() {
            let mut add = |begun: Schedule| {
                if all.insert(begun) {
                    open.push(begun);
                }
            };
            self.begin_on_link(&schedule, &mut add);
            self.begin_on_disk(&schedule, &mut add);
            self.begin_on_servers(&schedule, &mut add);
        }
        all
    }

    fn begin_on_link(&self, schedule: &Schedule, add: &mut impl FnMut(Schedule)) {
        if schedule.link.page != 0 {
            return;
        }
        for page in bits(schedule.global & self.wanted[usize::from(schedule.position)]) {
            let mut begun = *schedule;
            begun.global &= !page;
            begun.link = Coming::new(page, self.hierarchy.global_fetch_us);
            self.make_room(&begun, schedule, add);
        }
    }

    fn begin_on_disk(&self, schedule: &Schedule, add: &mut impl FnMut(Schedule)) {
        if schedule.disk.page != 0 {
            return;
        }
        for page in bits(self.on_disk(schedule)) {
            let mut begun = *schedule;
            begun.disk = Coming::new(page, self.hierarchy.disk_fetch_us);
            self.make_room(&begun, schedule, add);
        }
    }

    fn begin_on_servers(&self, schedule: &Schedule, add: &mut impl FnMut(Schedule)) {
        let disks = 0..self.hierarchy.server_disks as usize;
        let Some(idle) = disks
            .into_iter()
            .find(|&disk| schedule.servers[disk].page == 0)
        else {
            return;
        };
        for page in bits(self.on_disk(schedule)) {
            let mut begun = *schedule;
            begun.servers[idle] = Coming::new(page, self.hierarchy.disk_fetch_us);
            if self.has_room_in_global(schedule) {
                add(begun);
                continue;
            }
            for victim in bits(schedule.global) {
                let global = schedule.global & !victim;
                add(Schedule { global, ..begun });
            }
        }
    }

    /// The pages on disk that are still referenced.
    fn on_disk(&self, schedule: &Schedule) -> u16 {
        let servers = schedule
            .servers
            .iter()
            .fold(0, |pages, coming| pages | coming.page);
        let elsewhere = schedule.local | schedule.global | schedule.link.page | schedule.disk.page;
        self.wanted[usize::from(schedule.position)] & !(elsewhere | servers)
    }

    fn has_room_in_global(&self, schedule: &Schedule) -> bool {
        let coming = schedule
            .servers
            .iter()
            .filter(|coming| coming.page != 0)
            .count();
        coming as u32 + schedule.global.count_ones() < self.hierarchy.global_pages
    }

    /// A fetch into local memory has begun: what can make room for it, and where that goes.
    fn make_room(&self, begun: &Schedule, before: &Schedule, add: &mut impl FnMut(Schedule)) {
        let coming = u32::from(before.link.page != 0) + u32::from(before.disk.page != 0);
        if before.local.count_ones() + coming < self.hierarchy.local_pages {
            add(*begun);
            return;
        }
        for victim in bits(before.local) {
            let gone = Schedule {
                local: begun.local & !victim,
                ..*begun
            };
            add(gone);
            if self.has_room_in_global(&gone) {
                let global = gone.global | victim;
                add(Schedule { global, ..gone });
                continue;
            }
            for dropped in bits(gone.global) {
                let global = gone.global & !dropped | victim;
                add(Schedule { global, ..gone });
            }
        }
    }
}

impl Schedule {
    /// One microsecond.
    fn step(&mut self) {
        self.compute_us = self.compute_us.saturating_sub(1);
        self.local |= self.link.step() | self.disk.step();
        for server in &mut self.servers {
            self.global |= server.step();
        }
        // Which of the servers' disks brings what does not matter.
        self.servers
            .sort_unstable_by_key(|coming| std::cmp::Reverse((coming.left_us, coming.page)));
    }
}

impl Coming {
    fn new(page: u16, fetch_us: u64) -> Self {
        Coming {
            page,
            left_us: fetch_us as u8,
        }
    }

    /// One microsecond; the page if it has come.
    fn step(&mut self) -> u16 {
        self.left_us = self.left_us.saturating_sub(1);
        match self.left_us {
            0 => std::mem::take(&mut self.page),
            _ => 0,
        }
    }
}

fn bits(set: u16) -> impl Iterator<Item = u16> {
    (0..16)
        .map(|bit| 1 << bit)
        .filter(move |bit| set & bit != 0)
}
