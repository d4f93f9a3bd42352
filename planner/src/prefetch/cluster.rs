//! The simulation: from event to event, all exact.

use super::hierarchy::Hierarchy;
use super::job::Job;
use super::missing::LATEST;
use super::outcome::Outcome;
use super::policy::{Policy, Rule};
use super::process::{Flight, Place, Process, Room, State};
use crate::Invalid;

/// Runs processes, each on a node of its own with its memory, its link and its disk, against the memory servers that they share.
///
/// A reference needs its page in local memory at one instant and computes afterwards; what is not there is waited for. A page
/// that makes room is gone from its memory when the fetch begins; the fetched page is there when the fetch ends. Links and disks
/// bring one page at a time and are not interrupted. Evicted pages travel to global memory at no cost.
///
/// A run of *n* references costs in the order of *n* log *n*.
///
/// # Errors
///
/// [`Invalid`] if a parameter cannot be.
pub fn simulate(
    hierarchy: &Hierarchy,
    jobs: &[Job<'_>],
    policy: &Policy,
) -> Result<Vec<Outcome>, Invalid> {
    hierarchy.check()?;
    if jobs.is_empty() {
        return Err(Invalid::new("jobs", "must be at least one"));
    }
    jobs.iter().try_for_each(Job::check)?;
    let mut cluster = Cluster::new(hierarchy, jobs, policy);
    cluster.run();
    let outcomes = cluster.processes.into_iter().map(|process| process.outcome);
    Ok(outcomes.collect())
}

struct Cluster<'a> {
    hierarchy: &'a Hierarchy,
    policy: &'a Policy,
    processes: Vec<Process<'a>>,
    global_free: u32,
    /// What the disks of memory servers bring, and for which process.
    servers: Vec<Option<(usize, Flight)>>,
    now_us: u64,
}

impl<'a> Cluster<'a> {
    fn new(hierarchy: &'a Hierarchy, jobs: &[Job<'a>], policy: &'a Policy) -> Self {
        let process = |job| Process::new(job, hierarchy, policy);
        Cluster {
            hierarchy,
            policy,
            processes: jobs.iter().map(process).collect(),
            global_free: hierarchy.global_pages,
            servers: vec![None; hierarchy.server_disks as usize],
            now_us: 0,
        }
    }

    fn run(&mut self) {
        loop {
            self.arrive();
            let now_us = self.now_us;
            self.processes
                .iter_mut()
                .for_each(|process| process.run(now_us));
            for process in 0..self.processes.len() {
                self.demand(process);
                self.prefetch_into_local(process);
            }
            self.prefetch_into_global();
            debug_assert!(self.is_whole());
            match self.next_event() {
                Some(at_us) if self.is_running() => self.now_us = at_us,
                _ => return,
            }
        }
    }

    fn is_running(&self) -> bool {
        self.processes
            .iter()
            .any(|process| process.state != State::Done)
    }

    /// What has come is there.
    fn arrive(&mut self) {
        let now_us = self.now_us;
        let has_come = |flight: &mut Flight| flight.until_us <= now_us;
        for process in &mut self.processes {
            let come = [
                process.link.take_if(has_come),
                process.disk.take_if(has_come),
            ];
            for flight in come.into_iter().flatten() {
                process.put(flight.page, Place::Local);
            }
        }
        for server in &mut self.servers {
            if let Some((owner, flight)) = server.take_if(|(_, flight)| has_come(flight)) {
                self.processes[owner].put(flight.page, Place::Global);
            }
        }
    }

    /// A process that waits has its page fetched, unless that is on its way.
    fn demand(&mut self, number: usize) {
        let process = &mut self.processes[number];
        let Some(page) = process.waits_for() else {
            return;
        };
        if matches!(process.place(page), Place::ToLocal | Place::ToGlobal) {
            process.mark_late(page);
        }
        self.fetch(number, page);
    }

    /// What is due comes into local memory, as far as links, disks and room allow.
    fn prefetch_into_local(&mut self, number: usize) {
        while self
            .due(number)
            .into_iter()
            .flatten()
            .any(|page| self.fetch(number, page))
        {}
    }

    /// The pages that should be fetched now. Forestall's is the first that misses, wherever it is; the other rules have one for
    /// the link and one for the disk, as for several disks (Kimbrel et al. 96b).
    fn due(&self, number: usize) -> [Option<u32>; 2] {
        let process = &self.processes[number];
        let from_global = process.global.first().filter(|_| self.policy.from_global);
        let from_disk = process.first_on_disk();
        let page = |position: Option<u32>| process.told_at(position?);
        match self.policy.local {
            Rule::Never => [None, None],
            Rule::Aggressive => [page(from_global), page(from_disk)],
            Rule::FixedHorizon => {
                let is_near = |within_us: u64| {
                    move |at: &u32| process.until_us(*at, self.now_us) <= within_us
                };
                [
                    page(from_global.filter(is_near(self.hierarchy.global_fetch_us))),
                    page(from_disk.filter(is_near(self.hierarchy.disk_fetch_us))),
                ]
            }
            Rule::Forestall => {
                let is_true = process.start_us() <= process.worked_us(self.now_us);
                [page(process.first_missing().filter(|_| is_true)), None]
            }
        }
    }

    /// Begins to fetch a page into local memory if that can be.
    fn fetch(&mut self, number: usize, page: u32) -> bool {
        let process = &self.processes[number];
        let place = process.place(page);
        let (is_busy, fetch_us) = match place {
            Place::Global => (process.link.is_some(), self.hierarchy.global_fetch_us),
            Place::Disk => (process.disk.is_some(), self.hierarchy.disk_fetch_us),
            Place::ToGlobal | Place::ToLocal | Place::Local => return false,
        };
        if is_busy {
            return false;
        }
        let Some(room) = process.room_for(page, self.now_us) else {
            return false;
        };
        self.count(number, page, place);
        let flight = Some(Flight {
            page,
            until_us: self.now_us + fetch_us,
        });
        let process = &mut self.processes[number];
        process.put(page, Place::ToLocal);
        if place == Place::Global {
            process.mark_fetched(page);
            process.link = flight;
            self.global_free += 1;
        } else {
            process.disk = flight;
        }
        match room {
            Room::Free => self.processes[number].local_free -= 1,
            Room::Of(victim) => self.evict(number, victim),
        }
        true
    }

    fn count(&mut self, number: usize, page: u32, from: Place) {
        let process = &mut self.processes[number];
        let is_demanded = process.waits_for() == Some(page);
        let fetches = &mut process.outcome.fetches;
        *match (is_demanded, from) {
            (true, Place::Global) => &mut fetches.demand_global,
            (true, _) => &mut fetches.demand_disk,
            (false, Place::Global) => &mut fetches.prefetch_global,
            (false, _) => &mut fetches.prefetch_disk,
        } += 1;
        if !is_demanded {
            process.mark_ahead(page, Place::ToLocal);
            process.held_up(self.hierarchy.issue_us);
        }
    }

    /// A page leaves local memory: for global memory, unless all that is there is needed before (GLFD, section 4.2.3).
    fn evict(&mut self, number: usize, page: u32) {
        self.processes[number].mark_gone(page, Place::Local);
        let distance_us = self.processes[number].distance_of(page, self.now_us);
        let place = match self.room_in_global(distance_us) {
            true => Place::Global,
            false => Place::Disk,
        };
        self.processes[number].put(page, place);
    }

    /// Takes a frame of global memory: a free one, or one whose page is referenced no earlier than so far ahead.
    fn room_in_global(&mut self, distance_us: u64) -> bool {
        if self.global_free > 0 {
            self.global_free -= 1;
            return true;
        }
        match self.furthest_in_global() {
            Some((owner, victim, furthest_us)) if furthest_us >= distance_us => {
                let owner = &mut self.processes[owner];
                owner.mark_gone(victim, Place::Global);
                owner.put(victim, Place::Disk);
                true
            }
            _ => false,
        }
    }

    /// The page in global memory whose next reference is furthest ahead: of which process, which, how far.
    fn furthest_in_global(&self) -> Option<(usize, u32, u64)> {
        let furthest = self
            .processes
            .iter()
            .enumerate()
            .filter_map(|(owner, process)| {
                let (page, distance_us) = process.furthest_global(self.now_us)?;
                Some((owner, page, distance_us))
            });
        furthest.max_by_key(|&(_, _, distance_us)| distance_us)
    }

    /// Disks of memory servers that have nothing to do bring what is needed first, for what is needed later.
    fn prefetch_into_global(&mut self) {
        if !self.policy.into_global {
            return;
        }
        for server in 0..self.servers.len() {
            if self.servers[server].is_some() {
                continue;
            }
            let Some((owner, page, distance_us)) = self.soonest_on_disk() else {
                return;
            };
            if !self.room_in_global(distance_us.saturating_add(1)) {
                return;
            }
            let until_us = self.now_us + self.hierarchy.disk_fetch_us;
            self.servers[server] = Some((owner, Flight { page, until_us }));
            let process = &mut self.processes[owner];
            process.put(page, Place::ToGlobal);
            process.mark_ahead(page, Place::ToGlobal);
            process.held_up(self.hierarchy.issue_us);
            process.outcome.fetches.prefetch_into_global += 1;
        }
    }

    /// The page on disk that is told to be referenced first: of which process, which, how far ahead.
    fn soonest_on_disk(&self) -> Option<(usize, u32, u64)> {
        let soonest = self
            .processes
            .iter()
            .enumerate()
            .filter_map(|(owner, process)| {
                let position = process.first_on_disk()?;
                let page = process.told_at(position)?;
                Some((owner, page, process.until_us(position, self.now_us)))
            });
        soonest.min_by_key(|&(_, _, distance_us)| distance_us)
    }

    fn next_event(&self) -> Option<u64> {
        let flights = self
            .servers
            .iter()
            .flatten()
            .map(|(_, flight)| flight.until_us);
        let of_processes = self.processes.iter().flat_map(|process| {
            let computed = match process.state {
                State::Computing { until_us } => Some(until_us),
                State::Waiting { .. } | State::Done => None,
            };
            let link = process.link.map(|flight| flight.until_us);
            let disk = process.disk.map(|flight| flight.until_us);
            [computed, link, disk, self.wakes(process)]
        });
        flights.chain(of_processes.flatten()).min()
    }

    /// When a rule will ask for a page that it does not ask for yet.
    fn wakes(&self, process: &Process<'_>) -> Option<u64> {
        let at = |work_us: i64| process.when_worked(work_us, self.now_us);
        let near = |position: Option<u32>, within_us: u64| {
            at(process.work_before_us(position?) - within_us as i64)
        };
        match self.policy.local {
            Rule::Never | Rule::Aggressive => None,
            Rule::Forestall => Some(process.start_us())
                .filter(|&start_us| start_us != LATEST)
                .and_then(at),
            Rule::FixedHorizon => {
                let from_global = process.global.first().filter(|_| self.policy.from_global);
                let global = near(from_global, self.hierarchy.global_fetch_us);
                let disk = near(process.first_on_disk(), self.hierarchy.disk_fetch_us);
                [global, disk].into_iter().flatten().min()
            }
        }
    }

    /// Every frame is free, taken, or waits for a page.
    fn is_whole(&self) -> bool {
        let mut in_global = self.servers.iter().flatten().count();
        for process in &self.processes {
            let coming = usize::from(process.link.is_some()) + usize::from(process.disk.is_some());
            let frames = process.local.len() + coming + process.local_free as usize;
            if frames != self.hierarchy.local_pages as usize {
                return false;
            }
            in_global += process.global.len();
        }
        in_global + self.global_free as usize == self.hierarchy.global_pages as usize
    }
}
