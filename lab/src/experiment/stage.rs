//! What experiments with villages have in common: the network, a home with a module, one case after the other.

use super::Common;
use crate::Outcome;
use crate::net::{Link, Plan, Wan};
use crate::stop::Stop;
use crate::village::{Manner, Village, answer};
use std::time::Duration;

/// The home's place, and that of the site and its members.
pub(crate) const HOME: &str = "home";
pub(crate) const SITE: &str = "site";
/// A second site, for whom is not in the group.
pub(crate) const OTHER: &str = "other";
/// After what there was until somebody wanted the end.
pub(crate) const CUT_SHORT: &str = "cut short: NaN is what was not measured\n";
/// As the paper's clients have (section 6.2).
const CACHE_BYTES: usize = 40 << 20;

/// As the paper's clients behave: page by page, and every commit is validated at the home.
pub(crate) const PLAIN: Manner = Manner {
    cache_bytes: CACHE_BYTES,
    fetch_ahead: Some(0),
    strict: true,
};
/// As members behave that nobody has told otherwise.
pub(crate) const TUNED: Manner = Manner {
    cache_bytes: CACHE_BYTES,
    fetch_ahead: None,
    strict: false,
};

/// The home so far from everybody else, who are together.
pub(crate) fn network(link: Link) -> Outcome<Wan> {
    let mut plan = Plan::default();
    plan.add(HOME, link)?;
    plan.add(SITE, Link::default())?;
    plan.add(OTHER, Link::default())?;
    Wan::start(&plan)
}

/// Moves the home away, or nearer.
pub(crate) fn set_round_trip(wan: &Wan, round_trip: Duration) -> Outcome<()> {
    wan.controls()
        .set_spoke(HOME, Link::with_delay(round_trip / 2))
}

/// A home with OO7's module. It is made next door to the home, however far everybody else is.
pub(crate) fn built<'a>(common: &Common, wan: &'a Wan, stop: &Stop) -> Outcome<Village<'a>> {
    let village = Village::start(wan, HOME, &common.programs, stop)?;
    let mut builder = village.member(HOME, HOME, "builder", TUNED)?;
    builder.tell(&format!("build {}", common.size))?;
    answer(&mut builder)?;
    Ok(village)
}

/// One after the other. Tells whether nobody wanted the end before.
pub(crate) fn each<T>(
    all: &[T],
    words: impl Fn(&T) -> String,
    mut one: impl FnMut(&T) -> Outcome<()>,
    stop: &Stop,
    show: &mut dyn FnMut(&str),
) -> Outcome<bool> {
    for (before, item) in all.iter().enumerate() {
        show(&format!("{} of {}: {}", before + 1, all.len(), words(item)));
        let ended = if stop.is_set() { Ok(()) } else { one(item) };
        // Whatever went wrong then, it went because of that.
        if stop.is_set() {
            return Ok(false);
        }
        ended?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_stopped_does_no_more() {
        let stop = Stop::default();
        let mut done = Vec::new();
        let whole = each(
            &[1, 2, 3],
            |number| format!("number {number}"),
            |number| {
                done.push(*number);
                if *number == 2 {
                    stop.set();
                    return Err("it was interrupted".into());
                }
                Ok(())
            },
            &stop,
            &mut |_| {},
        );
        assert!(matches!(whole, Ok(false)));
        assert_eq!(done, [1, 2]);
    }

    #[test]
    fn what_fails_by_itself_is_told() {
        let failed = each(
            &[1, 2],
            |_| String::new(),
            |_| Err("no".into()),
            &Stop::default(),
            &mut |_| {},
        );
        assert!(failed.is_err());
    }
}
