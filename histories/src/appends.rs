//! All that was appended, by whom, and what came of it: every answered append is in its list once, and no refused one.

use crate::record::Event;
use std::collections::{BTreeMap, HashMap};

/// Everything that was appended, and the lists in the end.
#[derive(Default, Debug)]
pub(crate) struct Appends {
    writers: Vec<Writer>,
    /// By what it has appended.
    of: HashMap<i64, usize>,
    /// By key.
    lists: BTreeMap<u64, Vec<i64>>,
}

/// A transaction that has appended.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) began_ns: u64,
    /// When it was answered, if it was; of one that a log has answered, when its home had executed it.
    pub(crate) answered_ns: Option<u64>,
    end: End,
    /// Keys, and what was appended to them.
    pub(crate) appends: Vec<(u64, i64)>,
    /// It has read or appended at both homes. It is answered when both have voted, before they show it.
    pub(crate) is_over_both: bool,
    /// The weak session that it is of, if its visits see what it wrote: a log's do not at once.
    pub(crate) session: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Answered,
    Refused,
    Unknown,
}

impl Appends {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut sorted: Vec<&Event> = events.iter().collect();
        sorted.sort_by_key(|event| event.time());
        let mut appends = Appends::default();
        let mut open: HashMap<u64, usize> = HashMap::new();
        for event in sorted {
            if event.is_last() && event.is_ok() {
                appends.lists.extend(event.reads());
            }
            match open.get(&event.process()).copied() {
                Some(writer) if event.is_end() || event.is_saved() => {
                    appends.writers[writer].end(event);
                    if event.is_end() {
                        open.remove(&event.process());
                    }
                }
                _ if event.appends().next().is_some() => {
                    open.insert(event.process(), appends.begin(event));
                }
                _ => {}
            }
        }
        appends
    }

    fn begin(&mut self, event: &Event) -> usize {
        let number = self.writers.len();
        let appends: Vec<(u64, i64)> = event.appends().collect();
        self.of
            .extend(appends.iter().map(|(_, value)| (*value, number)));
        self.writers.push(Writer {
            began_ns: event.time(),
            answered_ns: None,
            end: End::Unknown,
            appends,
            is_over_both: event.is_over_both(),
            session: event.session(),
        });
        number
    }

    /// Whoever has appended something.
    pub(crate) fn writer(&self, value: i64) -> Option<&Writer> {
        Some(&self.writers[*self.of.get(&value)?])
    }

    pub(crate) fn writers(&self) -> &[Writer] {
        &self.writers
    }

    /// A list in the end.
    pub(crate) fn list(&self, key: u64) -> &[i64] {
        self.lists.get(&key).map_or(&[], Vec::as_slice)
    }

    /// What is lost, there twice, or there although it was refused or never written.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut times: HashMap<(u64, i64), u64> = HashMap::new();
        for (key, list) in &self.lists {
            let of_key = list.iter().map(|value| (*key, *value));
            of_key.for_each(|at| *times.entry(at).or_default() += 1);
        }
        let mut wrong = Vec::new();
        for writer in &self.writers {
            for at in &writer.appends {
                let times = times.remove(at).unwrap_or_default();
                let why = match (writer.end, times) {
                    (End::Answered, 0) => "was answered and is lost",
                    (End::Refused, 1..) => "was refused and is there",
                    (_, 2..) => "is there more than once",
                    _ => continue,
                };
                wrong.push(format!("{} of key {} {why}", at.1, at.0));
            }
        }
        let unknown = times.keys();
        wrong.extend(unknown.map(|(key, value)| format!("{value} of key {key} was never written")));
        wrong
    }
}

impl Writer {
    fn end(&mut self, event: &Event) {
        if event.is_saved() {
            self.end = End::Answered;
            self.session = None;
            return;
        }
        if event.is_ok() {
            self.end = End::Answered;
            self.answered_ns = Some(event.time());
        } else if event.is_refused() {
            self.end = End::Refused;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::SAVED;
    use serde_json::{Value, json};

    /// An event of a process.
    pub(crate) fn event(time: u64, kind: &str, process: u64, value: Value) -> Event {
        let line = json!({"time": time, "type": kind, "process": process, "session": process, "value": value});
        Event::parse(&line).expect("it is whole")
    }

    /// What the last reader reads.
    pub(crate) fn last(lists: &[(u64, &[i64])]) -> Event {
        let reads: Vec<Value> = lists
            .iter()
            .map(|(key, list)| json!(["r", key, list]))
            .collect();
        let line =
            json!({"time": 1_000, "type": "ok", "process": 99, "last": true, "value": reads});
        Event::parse(&line).expect("it is whole")
    }

    /// A transaction that appends, from its beginning to its end.
    pub(crate) fn append(
        times: (u64, u64),
        process: u64,
        kind: &str,
        at: &[(u64, i64)],
    ) -> [Event; 2] {
        let steps: Vec<Value> = at
            .iter()
            .map(|(key, value)| json!(["append", key, value]))
            .collect();
        let steps = Value::from(steps);
        [
            event(times.0, "invoke", process, steps.clone()),
            event(times.1, kind, process, steps),
        ]
    }

    fn wrong(events: &[[Event; 2]], lists: &[(u64, &[i64])]) -> Vec<String> {
        let events = events.iter().flatten().cloned();
        let events: Vec<Event> = events.chain([last(lists)]).collect();
        Appends::of(&events).wrong()
    }

    #[test]
    fn each_answered_append_is_there_once_and_no_refused_one() {
        let events = [
            append((1, 2), 1, "ok", &[(0, 10), (1, 11)]),
            append((3, 4), 2, "fail", &[(0, 20)]),
            append((5, 6), 3, "info", &[(0, 30)]),
            append((7, 8), 4, SAVED, &[(0, 40)]),
        ];
        let right: Vec<String> = Vec::new();
        assert_eq!(wrong(&events, &[(0, &[10, 40]), (1, &[11])]), right);
        assert_eq!(wrong(&events, &[(0, &[30, 10, 40]), (1, &[11])]), right);
        let lost = wrong(&events, &[(0, &[10]), (1, &[])]);
        assert_eq!(lost.len(), 2, "{lost:?}");
        assert!(lost.iter().all(|wrong| wrong.contains("lost")), "{lost:?}");
        let refused = wrong(&events, &[(0, &[10, 20, 40]), (1, &[11])]);
        assert!(refused[0].contains("refused"), "{refused:?}");
        let twice = wrong(&events, &[(0, &[10, 40, 40]), (1, &[11])]);
        assert!(twice[0].contains("more than once"), "{twice:?}");
        let made_up = wrong(&events, &[(0, &[10, 40, 50]), (1, &[11])]);
        assert!(made_up[0].contains("never written"), "{made_up:?}");
    }

    #[test]
    fn a_saved_append_ends_when_its_home_has_it() {
        let mut events = append((1, 2), 1, SAVED, &[(0, 10)]).to_vec();
        let appends = Appends::of(&events);
        assert_eq!(appends.writer(10).expect("it began").answered_ns, None);
        events.extend(append((0, 9), 2, "ok", &[(0, 11)]));
        events.push(event(9, "ok", 1, json!([["append", 0, 10]])));
        let appends = Appends::of(&events);
        let writer = appends.writer(10).expect("it began");
        assert_eq!((writer.answered_ns, writer.session), (Some(9), None));
    }
}
