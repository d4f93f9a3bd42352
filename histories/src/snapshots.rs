//! Our own judge of snapshots: visits that read several lists of one home as of one moment.
//!
//! | anomaly | a snapshot |
//! |---|---|
//! | dirty read | holds what is not in the list in the end, or leaves something out |
//! | fractured read | shows an append of a transaction, and misses another append of it |
//! | later without earlier | misses what one home had answered before something began that it shows |
//! | backward read | misses what an earlier snapshot of its session has shown |
//! | missed own write | misses what its session was answered before it was opened |
//! | newer than its view | shows what began after its first list was read |

use crate::appends::Appends;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// What a visit has read.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    session: u64,
    /// Before the visit was opened.
    began_ns: u64,
    /// When its first list was read. Until then its view may move.
    first_ns: u64,
    /// By key.
    lists: BTreeMap<u64, Vec<i64>>,
}

/// As workers tell it.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// The verdict.
#[derive(Default, Debug)]
pub(crate) struct Judged {
    pub(crate) snapshots: usize,
    /// Parts of transactions that were shown, and another part in another list, too.
    pub(crate) whole: usize,
    /// Snapshots that missed something that was answered before they were opened. That is allowed.
    pub(crate) stale: usize,
    /// By the name of the anomaly: how many, and the first one for people.
    pub(crate) anomalies: BTreeMap<&'static str, (usize, String)>,
}

/// By session and key, the most values that a snapshot has shown.
type Seen = HashMap<(u64, u64), usize>;

impl Snapshot {
    pub(crate) fn parse(line: &Value) -> Option<Self> {
        let list = |list: &Value| {
            let values = list[1].as_array()?.iter().map(Value::as_i64);
            Some((list[0].as_u64()?, values.collect::<Option<_>>()?))
        };
        let lists = line["value"].as_array()?.iter().map(list);
        Some(Snapshot {
            session: line["session"].as_u64()?,
            began_ns: line["began"].as_u64()?,
            first_ns: line["first"].as_u64()?,
            lists: lists.collect::<Option<_>>()?,
        })
    }
}

/// Judges all snapshots by what was appended.
pub(crate) fn judge(appends: &Appends, mut snapshots: Vec<Snapshot>) -> Judged {
    snapshots.sort_by_key(|snapshot| snapshot.began_ns);
    let own = own_writes(appends);
    let mut seen = Seen::new();
    let mut judged = Judged::default();
    for snapshot in &snapshots {
        judged.snapshots += 1;
        judged.of_one(appends, snapshot);
        judged.of_session(&mut seen, snapshot);
        let own = own.get(&snapshot.session).map_or(&[][..], Vec::as_slice);
        judged.of_own(own, snapshot);
    }
    judged
}

/// By session: when each of its writes was answered, its key, and what was appended.
fn own_writes(appends: &Appends) -> HashMap<u64, Vec<(u64, u64, i64)>> {
    let mut own: HashMap<u64, Vec<(u64, u64, i64)>> = HashMap::new();
    for writer in appends.writers() {
        if let Some((session, answered)) = writer.session.zip(writer.answered_ns) {
            let all = writer.appends.iter();
            let all = all.map(|(key, value)| (answered, *key, *value));
            own.entry(session).or_default().extend(all);
        }
    }
    own
}

impl Judged {
    /// What can be told of a snapshot alone.
    fn of_one(&mut self, appends: &Appends, snapshot: &Snapshot) {
        let (mut latest, mut earliest) = (0, u64::MAX);
        for (key, list) in &snapshot.lists {
            let whole = appends.list(*key);
            let Some(missed) = whole.strip_prefix(list.as_slice()) else {
                self.note("dirty read", || {
                    format!("{snapshot:?}: key {key} ends as {whole:?}")
                });
                continue;
            };
            for value in list {
                let Some(writer) = appends.writer(*value) else {
                    continue;
                };
                latest = latest.max(writer.began_ns);
                self.of_parts(&writer.appends, (*key, *value), snapshot);
            }
            let missed = missed.iter().filter_map(|value| appends.writer(*value));
            // The parts of a transaction over several homes come after its answer.
            let missed = missed.filter(|writer| !writer.is_over_both);
            let answered = missed.filter_map(|writer| writer.answered_ns);
            earliest = answered.fold(earliest, u64::min);
        }
        self.stale += usize::from(earliest < snapshot.began_ns);
        if earliest < latest {
            self.note("later without earlier", || {
                format!("{snapshot:?}: it misses what was answered at {earliest}, and shows what began at {latest}")
            });
        }
        if latest > snapshot.first_ns {
            self.note("newer than its view", || {
                format!("{snapshot:?}: it shows what began at {latest}")
            });
        }
    }

    /// One append of a transaction is shown, so all of them are.
    fn of_parts(&mut self, parts: &[(u64, i64)], shown: (u64, i64), snapshot: &Snapshot) {
        for (key, value) in parts.iter().filter(|part| **part != shown) {
            let Some(list) = snapshot.lists.get(key) else {
                continue;
            };
            match list.contains(value) {
                true => self.whole += 1,
                false => self.note("fractured read", || {
                    format!(
                        "{snapshot:?}: it shows {shown:?} and not {:?}",
                        (key, value)
                    )
                }),
            }
        }
    }

    fn of_session(&mut self, seen: &mut Seen, snapshot: &Snapshot) {
        for (key, list) in &snapshot.lists {
            let most = seen.entry((snapshot.session, *key)).or_default();
            if list.len() < *most {
                self.note("backward read", || {
                    format!("{snapshot:?}: its session has seen {most} values of key {key} before")
                });
            }
            *most = list.len().max(*most);
        }
    }

    fn of_own(&mut self, own: &[(u64, u64, i64)], snapshot: &Snapshot) {
        let before = own
            .iter()
            .filter(|(answered, ..)| *answered < snapshot.began_ns);
        for (_, key, value) in before {
            let list = snapshot.lists.get(key);
            if list.is_some_and(|list| !list.contains(value)) {
                self.note("missed own write", || {
                    format!("{snapshot:?}: {value} of key {key} is not there")
                });
            }
        }
    }

    fn note(&mut self, anomaly: &'static str, told: impl FnOnce() -> String) {
        let (count, _) = self.anomalies.entry(anomaly).or_insert_with(|| (0, told()));
        *count += 1;
    }

    /// For people.
    pub(crate) fn tell(&self) {
        println!(
            "{} snapshots with {} parts of transactions over several of their lists; {} snapshots missed something answered",
            self.snapshots, self.whole, self.stale
        );
        for (anomaly, (count, first)) in &self.anomalies {
            println!("{anomaly}: {count}\n{first}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::appends::tests::{append, event, last};
    use crate::record::Event;
    use serde_json::json;

    /// Keys 0, 2 and 4 are of one home. Process 1 appends to two of them at once.
    fn appends() -> Appends {
        let events = [
            append((10, 20), 1, "ok", &[(0, 1), (2, 2)]),
            append((30, 40), 2, "ok", &[(4, 3)]),
            append((50, 60), 3, "ok", &[(0, 4)]),
        ];
        let lists = last(&[(0, &[1, 4]), (2, &[2]), (4, &[3])]);
        let events = events.into_iter().flatten().chain([lists]);
        let events: Vec<Event> = events.collect();
        Appends::of(&events)
    }

    /// A snapshot of a session, by when it was opened and its first list read.
    fn snapshot(session: u64, (began, first): (u64, u64), lists: &[(u64, &[i64])]) -> Snapshot {
        let lists: Vec<Value> = lists.iter().map(|(key, list)| json!([key, list])).collect();
        let line = json!({"session": session, "began": began, "first": first, "value": lists});
        Snapshot::parse(&line).expect("it is whole")
    }

    /// The anomalies of some snapshots.
    fn found(snapshots: &[Snapshot]) -> Vec<&'static str> {
        let judged = judge(&appends(), snapshots.to_vec());
        judged.anomalies.keys().copied().collect()
    }

    #[test]
    fn states_of_one_moment_are_right_however_old_they_are() {
        let right = [
            snapshot(9, (5, 6), &[(0, &[]), (2, &[]), (4, &[])]),
            snapshot(9, (70, 71), &[(0, &[]), (2, &[]), (4, &[])]),
            snapshot(9, (72, 73), &[(0, &[1]), (2, &[2]), (4, &[])]),
            snapshot(9, (74, 75), &[(0, &[1, 4]), (2, &[2]), (4, &[3])]),
        ];
        let judged = judge(&appends(), right.to_vec());
        assert!(judged.anomalies.is_empty(), "{judged:?}");
        assert_eq!((judged.snapshots, judged.stale, judged.whole), (4, 2, 4));
    }

    #[test]
    fn a_part_of_a_transaction_is_a_fractured_read() {
        let part = snapshot(9, (70, 71), &[(0, &[1]), (2, &[])]);
        assert_eq!(found(&[part]), ["fractured read"]);
    }

    #[test]
    fn what_came_later_is_not_shown_without_what_came_before() {
        let later = snapshot(9, (70, 71), &[(0, &[1, 4]), (4, &[])]);
        assert_eq!(found(&[later]), ["later without earlier"]);
    }

    /// It is answered by the votes of both, before its home shows it.
    #[test]
    fn what_was_over_both_homes_may_come_after_its_answer() {
        let steps = |list: Value| json!([["r", 1, list], ["append", 0, 1]]);
        let events = [
            event(10, "invoke", 1, steps(Value::Null)),
            event(20, "ok", 1, steps(json!([]))),
        ];
        let later = append((30, 40), 2, "ok", &[(2, 2)]);
        let lists = last(&[(0, &[1]), (2, &[2])]);
        let events = events.into_iter().chain(later).chain([lists]);
        let appends = Appends::of(&events.collect::<Vec<_>>());
        let missing = snapshot(9, (70, 71), &[(0, &[]), (2, &[2])]);
        assert!(judge(&appends, vec![missing]).anomalies.is_empty());
    }

    #[test]
    fn a_session_does_not_go_back() {
        let newer = snapshot(9, (70, 71), &[(0, &[1])]);
        let older = snapshot(9, (72, 73), &[(0, &[])]);
        assert_eq!(found(&[older.clone(), newer.clone()]), ["backward read"]);
        let of_another = Snapshot {
            session: 8,
            ..older
        };
        assert!(found(&[of_another, newer]).is_empty());
    }

    #[test]
    fn a_session_sees_what_it_was_answered_before() {
        let after = snapshot(3, (61, 62), &[(0, &[1])]);
        assert_eq!(found(&[after]), ["missed own write"]);
        let during = snapshot(3, (55, 56), &[(0, &[1])]);
        assert!(found(&[during]).is_empty());
    }

    #[test]
    fn nothing_is_newer_than_the_first_read() {
        let newer = snapshot(9, (15, 45), &[(0, &[1, 4])]);
        assert_eq!(found(&[newer]), ["newer than its view"]);
        let moved = snapshot(9, (15, 55), &[(0, &[1, 4])]);
        assert!(found(&[moved]).is_empty());
    }

    #[test]
    fn what_is_not_there_in_the_end_was_never_there() {
        assert_eq!(
            found(&[snapshot(9, (70, 71), &[(0, &[4])])]),
            ["dirty read"]
        );
        assert_eq!(
            found(&[snapshot(9, (70, 71), &[(0, &[1, 7])])]),
            ["dirty read"]
        );
    }
}
