//! What somebody meant who wrote something like it.

/// The name nearest to what was written, if any is near.
pub(super) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (edits(written, name), name));
    let (edits, name) = near.min_by_key(|&(edits, _)| edits)?;
    let length = written.chars().count().max(name.chars().count());
    (edits * 3 <= length).then_some(name)
}

/// How many letters are to be put in, left out or changed to make one word of another.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut now = vec![at + 1];
        for (place, other) in to.iter().enumerate() {
            let changed = before[place] + usize::from(letter != *other);
            now.push(changed.min(before[place + 1] + 1).min(now[place] + 1));
        }
        before = now;
    }
    before[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let names = ["members", "round_trip_ms", "fetch_ms", "fetch_by_site_ms"];
        for (written, meant) in [
            ("member", Some("members")),
            ("memebrs", Some("members")),
            ("round_tripms", Some("round_trip_ms")),
            ("fetch_us", Some("fetch_ms")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, names.into_iter()), meant, "{written}");
        }
        assert_eq!(nearest("members", std::iter::empty()), None);
    }
}
