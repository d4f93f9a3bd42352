//! What the workers told, as one history.

use crate::{Outcome, Workload};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The beginning or end of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    time: u64,
    kind: String,
    process: u64,
    /// Where its member has joined.
    place: String,
    value: Value,
    stamp: Option<(u64, u64)>,
    /// The preset of a weak session.
    weak: Option<String>,
    /// The number of a weak session.
    session: Option<u64>,
    /// Of the reader that comes when everything has ended.
    is_last: bool,
}

/// A log has answered an append. Its end comes later.
pub(crate) const SAVED: &str = "saved";

impl Event {
    pub(crate) fn parse(line: &Value) -> Outcome<Self> {
        let number = |key: &str| line[key].as_u64().ok_or_else(|| format!("no {key}"));
        let stamp = &line["stamp"];
        Ok(Event {
            time: number("time")?,
            process: number("process")?,
            kind: line["type"].as_str().unwrap_or_default().to_owned(),
            place: line["place"].as_str().unwrap_or_default().to_owned(),
            stamp: stamp[0].as_u64().zip(stamp[1].as_u64()),
            value: line["value"].clone(),
            weak: line["weak"].as_str().map(str::to_owned),
            session: line["session"].as_u64(),
            is_last: line["last"].as_bool().unwrap_or_default(),
        })
    }

    /// A transaction of a program that is not weak.
    pub(crate) fn is_committed(&self) -> bool {
        self.is_ok() && self.weak.is_none()
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.kind == "ok"
    }

    pub(crate) fn is_saved(&self) -> bool {
        self.kind == SAVED
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.kind == "fail"
    }

    pub(crate) fn is_last(&self) -> bool {
        self.is_last
    }

    pub(crate) fn is_end(&self) -> bool {
        self.kind != "invoke" && !self.is_saved()
    }

    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// Of a weak append.
    pub(crate) fn session(&self) -> Option<u64> {
        self.session
    }

    /// Keys, and what was appended to them.
    pub(crate) fn appends(&self) -> impl Iterator<Item = (u64, i64)> {
        let steps = self.steps().filter(|step| step[0] == "append");
        steps.filter_map(|step| step[1].as_u64().zip(step[2].as_i64()))
    }

    /// Keys, and what was read of them.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (u64, Vec<i64>)> {
        let steps = self.steps().filter(|step| step[0] == "r");
        let list = |value: &Value| {
            value
                .as_array()
                .map(|list| list.iter().filter_map(Value::as_i64).collect())
        };
        steps.filter_map(move |step| step[1].as_u64().zip(list(&step[2])))
    }

    fn steps(&self) -> impl Iterator<Item = &Value> {
        self.value.as_array().into_iter().flatten()
    }

    fn writes(&self) -> u64 {
        self.steps().filter(|step| step[0] != "r").count() as u64
    }

    fn line(&self, index: usize) -> String {
        let Event {
            time,
            kind,
            process,
            value,
            ..
        } = self;
        let line =
            json!({"index": index, "type": kind, "process": process, "value": value, "time": time});
        line.to_string()
    }
}

/// All that happened, in the order of time.
pub(crate) struct History {
    pub(crate) lines: Vec<String>,
    /// By the index of its end: the place of a transaction in the order of stamps.
    pub(crate) order: HashMap<u64, i64>,
    counts: BTreeMap<String, u64>,
    pub(crate) committed: Committed,
}

/// What was committed.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) transactions: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Over both homes: transactions that only read, and those that wrote.
    pub(crate) readers_over_both: u64,
    pub(crate) writers_over_both: u64,
    /// Transactions, by where their members have joined.
    pub(crate) at: BTreeMap<String, u64>,
    /// Appends of weak sessions, by their preset. They count nowhere else.
    pub(crate) weak: BTreeMap<String, u64>,
}

impl History {
    pub(crate) fn of(mut events: Vec<Event>, workload: Workload) -> Outcome<Self> {
        events.sort_by_key(|event| event.time);
        events.retain(|event| !event.is_saved());
        end_what_is_open(&mut events);
        let mut counts = BTreeMap::new();
        for event in events.iter().filter(|event| event.weak.is_none()) {
            *counts.entry(event.kind.clone()).or_default() += 1;
        }
        let mut unknown = events.iter().filter(|event| event.kind == "info");
        if workload == Workload::Registers && unknown.any(|event| event.writes() > 0) {
            return Err(
                "an outcome was never learnt: its writes have no place in the order".into(),
            );
        }
        let mut committed = Committed::default();
        let ok = events.iter().filter(|event| event.is_ok());
        ok.for_each(|event| committed.count(event));
        Ok(History {
            order: order(&events),
            lines: events
                .iter()
                .enumerate()
                .map(|(at, event)| event.line(at))
                .collect(),
            counts,
            committed,
        })
    }

    pub(crate) fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or_default()
    }

    pub(crate) fn summary(&self) -> String {
        let committed = &self.committed;
        let at = committed.at.iter();
        let at: Vec<String> = at
            .map(|(place, count)| format!("{count} {place}"))
            .collect();
        format!(
            "{} transactions committed ({} read and {} wrote over both homes; {}), {} refused, {} unknown\n\
             {} operations: {} reads, {} writes{}",
            committed.transactions,
            committed.readers_over_both,
            committed.writers_over_both,
            at.join(", "),
            self.count("fail"),
            self.count("info"),
            committed.operations(),
            committed.reads,
            committed.writes,
            committed.weak_told(),
        )
    }
}

impl Committed {
    fn count(&mut self, event: &Event) {
        if let Some(preset) = &event.weak {
            *self.weak.entry(preset.clone()).or_default() += 1;
            return;
        }
        let (all, writes) = (event.steps().count() as u64, event.writes());
        self.transactions += 1;
        self.writes += writes;
        self.reads += all - writes;
        match (event.is_over_both(), writes) {
            (false, _) => {}
            (true, 0) => self.readers_over_both += 1,
            (true, _) => self.writers_over_both += 1,
        }
        *self.at.entry(event.place.clone()).or_default() += 1;
    }

    fn weak_told(&self) -> String {
        let weak = self.weak.iter();
        let weak: Vec<String> = weak
            .map(|(preset, count)| format!("{count} {preset}"))
            .collect();
        match weak.is_empty() {
            true => String::new(),
            false => format!(
                "\nbeside them appends of weak sessions: {}",
                weak.join(", ")
            ),
        }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.reads + self.writes
    }
}

impl Event {
    /// Keys alternate between the homes.
    pub(crate) fn is_over_both(&self) -> bool {
        let homes = self.steps().filter_map(|step| Some(step[1].as_u64()? % 2));
        let (mut even, mut odd) = (false, false);
        homes.for_each(|home| *(if home == 0 { &mut even } else { &mut odd }) = true);
        even && odd
    }
}

/// A worker that was killed did not say how it ended.
fn end_what_is_open(events: &mut Vec<Event>) {
    let mut open: BTreeMap<u64, Event> = BTreeMap::new();
    for event in events.iter() {
        match event.is_end() {
            true => open.remove(&event.process),
            false => open.insert(event.process, event.clone()),
        };
    }
    let last = events.last().map_or(0, |event| event.time);
    events.extend(open.into_values().map(|event| Event {
        kind: "info".to_owned(),
        time: last + 1,
        ..event
    }));
}

/// Two that write one object are stamped in the order in which it had their values: the later one is accepted by its home, or
/// voted for, only when that has delivered the earlier one, and then its clock is past that stamp.
fn order(events: &[Event]) -> HashMap<u64, i64> {
    let stamped = events.iter().enumerate();
    let stamped = stamped.filter_map(|(at, event)| Some((event.stamp?, at as u64)));
    let mut stamped: Vec<((u64, u64), u64)> = stamped.collect();
    stamped.sort_unstable();
    let ranked = (0..).zip(stamped);
    ranked.map(|(rank, (_, at))| (at, rank)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn event(time: u64, kind: &str, process: u64, stamp: Option<u64>, value: Value) -> Event {
        let stamp = stamp.map(|clock| json!([clock, 1]));
        let line = json!({
            "time": time, "type": kind, "process": process, "place": "here", "value": value, "stamp": stamp,
        });
        Event::parse(&line).unwrap()
    }

    fn write(key: u64) -> Value {
        json!([["w", key, 7]])
    }

    #[test]
    fn events_of_all_processes_become_one_history_and_stamps_its_order() {
        let events = vec![
            event(1, "invoke", 1, None, write(1)),
            event(4, "ok", 1, Some(20), write(1)),
            event(2, "invoke", 2, None, write(2)),
            event(3, "ok", 2, Some(10), write(2)),
            event(5, "invoke", 2, None, write(2)),
        ];
        let lists = History::of(events.clone(), Workload::Lists).unwrap();
        assert_eq!(lists.order, HashMap::from([(2, 0), (3, 1)]));
        assert_eq!((lists.count("ok"), lists.count("info")), (2, 1));
        let last: Value = serde_json::from_str(&lists.lines[5]).unwrap();
        assert_eq!(
            (&last["type"], &last["process"]),
            (&json!("info"), &json!(2))
        );
        assert!(History::of(events, Workload::Registers).is_err());
    }

    #[test]
    fn what_only_read_needs_no_place_in_the_order() {
        let events = vec![event(1, "invoke", 1, None, json!([["r", 1, null]]))];
        let registers = History::of(events, Workload::Registers).unwrap();
        assert_eq!(registers.count("info"), 1);
    }

    #[test]
    fn a_weak_append_is_a_transaction_that_counts_by_itself() {
        let weak = |time, kind: &str| {
            let value = json!([["append", 1, 7]]);
            let line = json!({
                "time": time, "type": kind, "process": 10_001, "session": 1, "weak": "eventual", "value": value,
            });
            Event::parse(&line).unwrap()
        };
        let saved = vec![weak(1, "invoke"), weak(2, SAVED)];
        let history = History::of(saved.clone(), Workload::Lists).unwrap();
        assert_eq!(history.lines.len(), 2, "its end is not known");
        assert!(history.lines[1].contains("info"), "{}", history.lines[1]);
        let ended = [saved, vec![weak(3, "ok")]].concat();
        let history = History::of(ended, Workload::Lists).unwrap();
        assert!(history.lines[1].contains("ok"), "{}", history.lines[1]);
        assert_eq!(history.committed.transactions, 0);
        assert_eq!(
            history.committed.weak,
            BTreeMap::from([("eventual".to_owned(), 1)])
        );
    }

    #[test]
    fn operations_are_those_of_what_was_committed() {
        let both = json!([["r", 1, null], ["r", 2, null], ["w", 2, 5]]);
        let events = vec![
            event(1, "invoke", 1, None, both.clone()),
            event(2, "ok", 1, Some(20), both.clone()),
            event(3, "invoke", 1, None, both.clone()),
            event(4, "fail", 1, None, both),
            event(
                5,
                "invoke",
                1,
                None,
                json!([["r", 1, null], ["r", 4, null]]),
            ),
            event(6, "ok", 1, None, json!([["r", 1, null], ["r", 4, 5]])),
            event(7, "invoke", 1, None, json!([["r", 1, null]])),
            event(8, "ok", 1, None, json!([["r", 1, null]])),
        ];
        let history = History::of(events, Workload::Registers).unwrap();
        let expected = Committed {
            transactions: 3,
            reads: 5,
            writes: 1,
            readers_over_both: 1,
            writers_over_both: 1,
            at: BTreeMap::from([("here".to_owned(), 3)]),
            weak: BTreeMap::new(),
        };
        assert_eq!(history.committed, expected);
    }
}
