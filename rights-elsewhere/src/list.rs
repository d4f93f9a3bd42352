//! Random rights lists.

use crate::village::NAMES;
use thorp_client::{Right, RightsList, Subject};
use thorp_model::{NameId, Xoshiro256};

/// Names that no node of the village has: an entry for one of them changes nothing for anybody.
const STRANGERS: [&str; 2] = ["eve", "zoe"];

/// The most entries that are drawn for one list.
const ENTRIES_MAX: u64 = 5;

/// A list of up to [`ENTRIES_MAX`] entries: often small, and with all members in a third of the lists.
pub(crate) fn draw(dice: &mut Xoshiro256) -> RightsList {
    let mut list = RightsList::default();
    for _ in 0..dice.below(ENTRIES_MAX + 1) {
        let right = *dice
            .pick(&[Right::Read, Right::Write, Right::Admin])
            .expect("there are three");
        list.grant(subject(dice), right);
    }
    if dice.percent(33) {
        let right = if dice.percent(60) {
            Right::Read
        } else {
            Right::Write
        };
        list.grant(Subject::Members, right);
    }
    list
}

/// Groups will be subjects, too: here they are drawn then, and `Judge::new` learns who is in them.
fn subject(dice: &mut Xoshiro256) -> Subject {
    let name = match dice.percent(10) {
        true => dice.pick(&STRANGERS),
        false => dice.pick(&NAMES),
    };
    let name = *name.expect("there are names");
    match dice.percent(25) {
        true => Subject::Id(NameId::of(name)),
        false => Subject::Name(name.to_owned()),
    }
}
