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
    value: Value,
    stamp: Option<(u64, u64)>,
}

impl Event {
    pub(crate) fn parse(line: &str) -> Outcome<Self> {
        let line: Value = serde_json::from_str(line)?;
        let number = |key: &str| line[key].as_u64().ok_or_else(|| format!("no {key}"));
        let stamp = &line["stamp"];
        Ok(Event {
            time: number("time")?,
            process: number("process")?,
            kind: line["type"].as_str().unwrap_or_default().to_owned(),
            stamp: stamp[0].as_u64().zip(stamp[1].as_u64()),
            value: line["value"].clone(),
        })
    }

    pub(crate) fn is_end(&self) -> bool {
        self.kind != "invoke"
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
    over_both: u64,
}

impl History {
    pub(crate) fn of(mut events: Vec<Event>, workload: Workload) -> Outcome<Self> {
        events.sort_by_key(|event| event.time);
        end_what_is_open(&mut events);
        let mut counts = BTreeMap::new();
        for event in &events {
            *counts.entry(event.kind.clone()).or_default() += 1;
        }
        if workload == Workload::Registers && counts.contains_key("info") {
            return Err(
                "an outcome was never learnt: its writes have no place in the order".into(),
            );
        }
        let ok = events.iter().filter(|event| event.kind == "ok");
        let over_both = ok.filter(|event| event.is_over_both()).count() as u64;
        Ok(History {
            order: order(&events),
            lines: events
                .iter()
                .enumerate()
                .map(|(at, event)| event.line(at))
                .collect(),
            counts,
            over_both,
        })
    }

    pub(crate) fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or_default()
    }

    pub(crate) fn over_both(&self) -> u64 {
        self.over_both
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} committed ({} over both homes, {} wrote), {} refused, {} unknown",
            self.count("ok"),
            self.over_both,
            self.order.len(),
            self.count("fail"),
            self.count("info"),
        )
    }
}

impl Event {
    /// Keys alternate between the homes.
    fn is_over_both(&self) -> bool {
        let steps = self.value.as_array().into_iter().flatten();
        let homes = steps.filter_map(|step| Some(step[1].as_u64()? % 2));
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

    fn event(time: u64, kind: &str, process: u64, stamp: Option<u64>) -> Event {
        let stamp = stamp.map(|clock| json!([clock, 1]));
        let value = json!([["w", process, time]]);
        let line =
            json!({"time": time, "type": kind, "process": process, "value": value, "stamp": stamp});
        Event::parse(&line.to_string()).unwrap()
    }

    #[test]
    fn events_of_all_processes_become_one_history_and_stamps_its_order() {
        let events = vec![
            event(1, "invoke", 1, None),
            event(4, "ok", 1, Some(20)),
            event(2, "invoke", 2, None),
            event(3, "ok", 2, Some(10)),
            event(5, "invoke", 2, None),
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
}
