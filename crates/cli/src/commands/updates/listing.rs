//! `thorp updates ls` and `rejected`: what is in a log.

use super::opened::{Opened, name};
use crate::commands::{say, say_json};
use crate::failure::Failure;
use crate::text::{Side, Table};
use thorp_model::records::UpdateRecord;
use thorp_model::{LeftNumbers, LeftRecord, WhyLeft};

/// Lists the updates of a log, or only those that a home has refused.
pub(super) fn list(opened: &Opened, only_rejected: bool, json: bool) -> Result<(), Failure> {
    let updates = opened.updates.iter();
    let updates = updates.filter(|record| !only_rejected || record.rejected.is_some());
    let updates: Vec<&UpdateRecord> = updates.collect();
    if json {
        let each: Vec<_> = updates.iter().map(|record| as_json(record)).collect();
        let left: Vec<_> = opened.left.numbers.iter().map(left_as_json).collect();
        return say_json(&serde_json::json!({
            "updates": each,
            "left": left,
            "left_dropped": opened.left.dropped,
        }));
    }
    match (updates.is_empty(), only_rejected) {
        (true, true) => return say("nothing: no update was rejected"),
        (true, false) => say("nothing: no update is in this log")?,
        (false, _) => say(&table(&updates).render())?,
    }
    match only_rejected {
        true => Ok(()),
        false => left_lines(&opened.left)
            .iter()
            .try_for_each(|line| say(line)),
    }
}

/// What has left the log although no step of its own said so.
fn left_lines(left: &LeftRecord) -> Vec<String> {
    let lines = left.numbers.iter();
    let mut lines: Vec<String> = lines.map(left_line).collect();
    if left.dropped > 0 {
        lines.push(format!("{} earlier such lines were dropped", left.dropped));
    }
    lines
}

fn left_line(left: &LeftNumbers) -> String {
    let LeftNumbers {
        home,
        log,
        segment,
        first,
        last,
        why,
    } = left;
    let numbers = match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let why = match why {
        WhyLeft::Saved => "left the log: their home had executed that before",
        WhyLeft::Dropped => {
            "given up by a conflict routine: its home had refused that; look what others wrote"
        }
        WhyLeft::Void => {
            "void: their home has gone back, and the log has that no more; look whether it is there"
        }
    };
    format!("{home}/{log}/{segment}/{numbers}  {why}")
}

fn left_as_json(left: &LeftNumbers) -> serde_json::Value {
    let why = match left.why {
        WhyLeft::Saved => "saved",
        WhyLeft::Void => "void",
        WhyLeft::Dropped => "dropped",
    };
    serde_json::json!({
        "home": left.home.0,
        "log": left.log.to_string(),
        "segment": left.segment.0,
        "first": left.first,
        "last": left.last,
        "why": why,
    })
}

fn table(updates: &[&UpdateRecord]) -> Table {
    let mut table = Table::new(&[
        ("update", Side::Left),
        ("written by", Side::Left),
        ("objects", Side::Right),
        ("bytes", Side::Right),
        ("what became of it", Side::Left),
    ]);
    for record in updates {
        table.row(vec![
            name(record),
            author(record).unwrap_or_else(|| "this log".to_owned()),
            objects(record).to_string(),
            record.update.bytes().to_string(),
            fate(record),
        ]);
    }
    table
}

fn objects(record: &UpdateRecord) -> usize {
    let pages = record.update.writes.iter();
    pages.map(|page| page.slots.len()).sum()
}

fn fate(record: &UpdateRecord) -> String {
    match &record.rejected {
        None => "its home has not said".to_owned(),
        Some(why) => format!("rejected: {why}"),
    }
}

fn as_json(record: &UpdateRecord) -> serde_json::Value {
    serde_json::json!({
        "update": name(record),
        "home": record.update.home.0,
        "objects": objects(record),
        "bytes": record.update.bytes(),
        "rejected": record.rejected.as_ref().map(ToString::to_string),
        "author": author(record),
    })
}

/// The member that has written it, if it is not that of the log.
fn author(record: &UpdateRecord) -> Option<String> {
    let author = record.author.as_ref()?;
    Some(author.by.member.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use thorp_model::{HomeId, LogId, MemberId, SegmentId, UpdateId};

    #[test]
    fn what_has_left_is_told_with_its_reason() {
        let mut left = LeftRecord::default();
        let id = |number| UpdateId {
            log: LogId(MemberId(7)),
            segment: SegmentId(2),
            number,
        };
        assert!(
            [5, 6, 7]
                .into_iter()
                .all(|number| left.add(HomeId(1), id(number), WhyLeft::Void))
        );
        assert!(left.add(HomeId(1), id(9), WhyLeft::Saved));
        left.dropped = 3;
        let lines = left_lines(&left);
        let begin = [
            "1/7/2/5-7  void: their home has gone back",
            "1/7/2/9  left the log: their home had",
            "3 earlier",
        ];
        assert_eq!(lines.len(), begin.len());
        for (line, begin) in lines.iter().zip(begin) {
            assert!(line.starts_with(begin), "{line}");
        }
        assert_eq!(left_as_json(&left.numbers[0])["why"], "void");
    }
}
