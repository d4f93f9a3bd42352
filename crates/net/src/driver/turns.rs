//! Whose input the loop takes next: no name has more of the loop's time than another one that has something to do.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use thorp_model::NameId;

/// A parent pays for one part in so many of the loop's time that its inputs take.
const PARENT_SHARES: u32 = 8;
/// An input that takes as long is a long one.
const LONG: Duration = Duration::from_micros(500);
/// After a long input its name rests for so many times as long, where others have something to do. Others wait for each
/// answer before they go on: they need some time in a row, and not one turn in between.
const RESTS: u32 = 3;
/// Names with an empty line that are remembered.
const PAUSED_MAX: usize = 1_024;
/// Others had something to do if they asked for something so often within this time, each between inputs of somebody else.
const COMPANY_TURNS: usize = 4;
const COMPANY: Duration = Duration::from_secs(1);
/// Turns that are remembered.
const RECENT_MAX: usize = 4 * COMPANY_TURNS;

/// Inputs that wait for the loop, in a line for each name.
///
/// The name whose inputs have taken least of the loop's time is next. A name that comes after a pause begins where the others
/// are: it has saved nothing up. So a name waits for one input of another, however many of them wait (rule R7).
///
/// Invariant: each line that is not empty is either in `waiting` or in `resting`. `paused` has each empty one that has used
/// more than `now`, or rests, and at most [`PAUSED_MAX`]. Other empty lines are forgotten. Inputs of one name keep their order.
#[derive(Debug)]
pub(super) struct Turns<T> {
    lines: BTreeMap<NameId, Line<T>>,
    /// What each has used, and whose line it is.
    waiting: BTreeSet<(Duration, NameId)>,
    /// Until when each rests.
    resting: BTreeSet<(Instant, NameId)>,
    paused: BTreeSet<(Duration, NameId)>,
    /// What the line had used that was served last: none that waits has used less.
    now: Duration,
    /// Who asked for something last, and when: each run of inputs of one name.
    recent: VecDeque<(Instant, NameId)>,
}

#[derive(Debug)]
struct Line<T> {
    inputs: VecDeque<T>,
    used: Duration,
    rests_until: Option<Instant>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns {
            lines: BTreeMap::new(),
            waiting: BTreeSet::new(),
            resting: BTreeSet::new(),
            paused: BTreeSet::new(),
            now: Duration::ZERO,
            recent: VecDeque::new(),
        }
    }
}

impl<T> Turns<T> {
    /// An input waits.
    pub(super) fn push(&mut self, name: NameId, input: T) {
        let line = self.take_out(name);
        line.inputs.push_back(input);
        self.put_back(name);
    }

    /// The next input.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(NameId, T)> {
        while let Some((_, name)) = self.resting.first().copied().filter(|(at, _)| *at <= now) {
            self.take_out(name).rests_until = None;
            self.put_back(name);
        }
        let (used, name) = self.waiting.first().copied()?;
        self.now = used;
        let input = self.take_out(name).inputs.pop_front();
        self.put_back(name);
        self.forget_paused(now);
        Some((name, input?))
    }

    /// What a child's input has taken until now. It may be one that asks for something.
    pub(super) fn charge(&mut self, name: NameId, time: Duration, (now, asks): (Instant, bool)) {
        if asks && self.recent.back().is_none_or(|(_, last)| *last != name) {
            self.recent.push_back((now, name));
            if self.recent.len() > RECENT_MAX {
                self.recent.pop_front();
            }
        }
        let rests = time >= LONG && self.has_company(name, now.checked_sub(time).unwrap_or(now));
        let line = self.take_out(name);
        line.used += time;
        line.rests_until = rests.then(|| now + RESTS * time);
        self.put_back(name);
    }

    /// What a parent's input has taken. A parent speaks for many: it pays for a part, does not rest, and is nobody's company.
    pub(super) fn charge_parent(&mut self, name: NameId, time: Duration) {
        self.take_out(name).used += time / PARENT_SHARES;
        self.put_back(name);
    }

    /// Whether others had something to do.
    fn has_company(&self, name: NameId, now: Instant) -> bool {
        let is_other = |(at, of): &&(Instant, NameId)| {
            *of != name && now.saturating_duration_since(*at) < COMPANY
        };
        self.recent.iter().filter(is_other).count() >= COMPANY_TURNS
    }

    /// Whether no input can be taken now.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When an input can be taken that waits for its name's rest.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.resting.first().map(|(at, _)| *at)
    }

    /// A name's line, which is in no set until it is put back.
    fn take_out(&mut self, name: NameId) -> &mut Line<T> {
        let now = self.now;
        let line = self.lines.entry(name).or_insert_with(|| Line {
            inputs: VecDeque::new(),
            used: now,
            rests_until: None,
        });
        self.waiting.remove(&(line.used, name));
        self.paused.remove(&(line.used, name));
        if let Some(until) = line.rests_until {
            self.resting.remove(&(until, name));
        }
        if line.inputs.is_empty() {
            line.used = line.used.max(now);
        }
        line
    }

    fn put_back(&mut self, name: NameId) {
        let Some(line) = self.lines.get(&name) else {
            return;
        };
        let at = (line.used, name);
        let has_debt = line.rests_until.is_some() || line.used > self.now;
        match line.rests_until {
            Some(until) if !line.inputs.is_empty() => {
                self.resting.insert((until, name));
            }
            None if !line.inputs.is_empty() => {
                self.waiting.insert(at);
            }
            _ if has_debt => {
                self.paused.insert(at);
            }
            _ => {
                self.lines.remove(&name);
            }
        }
    }

    /// Forgets lines that are empty and owe nothing any more, and those that owe least if they are too many.
    fn forget_paused(&mut self, now: Instant) {
        let too_many = self.paused.len().saturating_sub(PAUSED_MAX);
        let lines = &self.lines;
        let rests = |name: NameId| {
            let rest = lines.get(&name).and_then(|line: &Line<T>| line.rests_until);
            rest.is_some_and(|until| until > now)
        };
        let debts = self.paused.iter().copied().enumerate();
        let debts = debts.take_while(|(index, (used, _))| *index < too_many || *used <= self.now);
        let old = debts.filter(|(index, (_, name))| *index < too_many || !rests(*name));
        let old: Vec<(Duration, NameId)> = old.map(|(_, debt)| debt).collect();
        for debt in old {
            self.paused.remove(&debt);
            self.lines.remove(&debt.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: NameId = NameId(1);
    const MALLORY: NameId = NameId(66);

    /// A loop, and its clock.
    struct Loop {
        turns: Turns<u32>,
        now: Instant,
    }

    impl Loop {
        fn new() -> Self {
            Loop {
                turns: Turns::default(),
                now: Instant::now(),
            }
        }

        fn push(&mut self, name: NameId, input: u32) {
            self.turns.push(name, input);
        }

        /// Serves one input, which takes so many microseconds.
        fn serve(&mut self, us: impl Fn(NameId) -> u64) -> Option<(NameId, u32)> {
            let (name, input) = self.turns.pop(self.now)?;
            let time = Duration::from_micros(us(name));
            self.now += time;
            self.turns.charge(name, time, (self.now, true));
            Some((name, input))
        }
    }

    #[test]
    fn a_name_with_many_inputs_waits_for_one_with_few() {
        let mut turns = Loop::new();
        let long = |name| if name == MALLORY { 400 } else { 4 };
        for input in 0..10 {
            turns.push(MALLORY, input);
        }
        assert_eq!(turns.serve(long), Some((MALLORY, 0)));
        // Each of hers comes before the next one of mallory, until she has used as much.
        for input in 0..100 {
            turns.push(ANNA, input);
            assert_eq!(turns.serve(long), Some((ANNA, input)));
        }
        turns.push(ANNA, 100);
        let next = [(); 2].map(|()| turns.serve(long).unwrap().0);
        assert!(next.contains(&MALLORY) && next.contains(&ANNA));
    }

    #[test]
    fn after_a_long_input_others_have_time_in_a_row() {
        let mut turns = Loop::new();
        let long = |name| if name == MALLORY { 3_000 } else { 100 };
        let mut annas = 0;
        for input in 0..2_000 {
            turns.push(MALLORY, input);
            turns.push(ANNA, input);
            match turns.serve(long) {
                Some((ANNA, _)) => annas += 1,
                Some(_) => {}
                None => panic!("nothing to do"),
            }
        }
        // Three quarters of the time are hers: ninety inputs of a hundred microseconds for each of mallory.
        assert!((1_975..1_985).contains(&annas), "{annas}");
    }

    #[test]
    fn a_name_alone_rests_never() {
        let mut turns = Loop::new();
        turns.push(ANNA, 0);
        turns.serve(|_| 10);
        for input in 0..100 {
            turns.push(MALLORY, input);
        }
        let mut rested = 0;
        for _ in 0..100 {
            while turns.serve(|_| 5_000).is_none() {
                let until = turns.turns.rests_until().unwrap();
                assert!(until > turns.now);
                turns.now = until;
                rested += 1;
            }
        }
        // Company is what was there a moment ago.
        assert!(rested < 20, "{rested}");
    }

    #[test]
    fn a_pause_saves_nothing_up_and_forgets_no_debt() {
        let mut turns = Loop::new();
        let all = |_| 10;
        turns.push(ANNA, 0);
        turns.serve(all);
        for input in 0..20 {
            turns.push(MALLORY, input);
            turns.serve(all);
        }
        // Anna was silent for long: they take turns now.
        for input in 0..4 {
            turns.push(ANNA, input);
            turns.push(MALLORY, input);
        }
        let order: Vec<NameId> = (0..8).map(|_| turns.serve(all).unwrap().0).collect();
        let annas = order[..4].iter().filter(|name| **name == ANNA).count();
        assert!((2..=3).contains(&annas), "{order:?}");
        // A name that has just been served does not come first because its line was empty.
        turns.push(MALLORY, 9);
        turns.serve(|_| 100);
        turns.push(MALLORY, 10);
        turns.push(ANNA, 10);
        assert_eq!(turns.serve(all).map(|(name, _)| name), Some(ANNA));
    }

    #[test]
    fn inputs_of_a_name_keep_their_order_and_nothing_is_kept_of_silent_ones() {
        let mut turns = Loop::new();
        for input in 0..3 {
            turns.push(ANNA, input);
        }
        for input in 0..3 {
            assert_eq!(turns.serve(|_| 1), Some((ANNA, input)));
        }
        for name in 100..3_100 {
            turns.push(NameId(name), 0);
            turns.serve(|_| 1_000);
        }
        assert!(turns.turns.is_empty() && turns.turns.pop(turns.now).is_none());
        turns.now += COMPANY;
        for _ in 0..3 {
            turns.push(ANNA, 0);
            turns.serve(|_| 5_000);
        }
        let Turns {
            lines,
            paused,
            resting,
            waiting,
            ..
        } = &turns.turns;
        assert!(lines.len() <= PAUSED_MAX + 1, "{}", lines.len());
        assert_eq!(lines.len(), paused.len() + resting.len() + waiting.len());
    }
}
