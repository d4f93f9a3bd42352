//! Stories that code and pages cite by name.

use super::words::words;
use super::{Found, citing};
use crate::complaint::Complaint;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Where the stories lie, one in each file.
pub(super) const FOLDER: &str = "crates/sim/stories/";

pub(super) fn check(tree: &Tree) -> Found {
    let files = tree
        .below(FOLDER)
        .filter_map(|path| path.rsplit('/').next());
    let stories: BTreeSet<&str> = files.filter_map(|file| file.strip_suffix(".txt")).collect();
    let mut found = Found::default();
    let mut count = 0;
    for (path, text) in citing(tree) {
        for (story, line) in cited(&text) {
            count += 1;
            if !stories.contains(story) {
                let wrong = format!("there is no story `{story}`");
                let remedy = format!("cite one of {FOLDER}");
                found
                    .complaints
                    .push(Complaint::new((path, line), wrong, remedy));
            }
        }
    }
    found.seen = vec![("stories", count)];
    found
}

/// Each cited story, with the line: names like `trap-07-blind-patch`, and what follows the word *story* or *stories*.
fn cited(text: &str) -> BTreeSet<(&str, usize)> {
    let mut cited: BTreeSet<(&str, usize)> = BTreeSet::new();
    let words = words(text);
    for (index, word) in words.iter().enumerate() {
        cited.extend(trap_stories(word.text).map(|story| (story, word.line)));
        let name = word.text.trim_matches(['*', '_', '(', ':', ',', '-']);
        if name.eq_ignore_ascii_case("story") || name.eq_ignore_ascii_case("stories") {
            let mut rest = words[index + 1..].iter();
            while let Some(word) = rest.next() {
                let Some((name, after)) = in_backticks(word.text) else {
                    break;
                };
                if !name.contains('/') {
                    let story = name.strip_suffix(".txt").unwrap_or(name);
                    if !story.chars().all(is_of_a_story) {
                        break;
                    }
                    cited.insert((story, word.line));
                }
                let mut ahead = rest.clone();
                let goes_on = after.ends_with([',', ':']) && !after.contains('.');
                if ahead
                    .next()
                    .is_some_and(|word| ["and", "or"].contains(&word.text))
                {
                    rest = ahead;
                } else if !goes_on {
                    break;
                }
            }
        }
    }
    cited
}

/// What stands in backticks at the beginning of a word, and what follows it.
fn in_backticks(word: &str) -> Option<(&str, &str)> {
    let inside = word.trim_start_matches(['(', '[', '*']).strip_prefix('`')?;
    inside.split_once('`')
}

/// The names in a word that begin like `trap-07-`. A place in a page, after `#`, is none.
fn trap_stories(word: &str) -> impl Iterator<Item = &str> {
    let starts = word.match_indices("trap-").map(|(start, _)| start);
    starts.filter_map(move |start| {
        let (before, name) = word.split_at(start);
        let end = name
            .find(|letter| !is_of_a_story(letter))
            .unwrap_or(name.len());
        let name = name[..end].trim_end_matches('-');
        let number = name.strip_prefix("trap-")?.get(..3)?;
        let is_numbered = number.ends_with('-') && number[..2].parse::<u8>().is_ok();
        (is_numbered && !before.ends_with('#')).then_some(name)
    })
}

fn is_of_a_story(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stories_are_found_by_name_and_after_the_word() {
        for (text, found) in [
            ("// As `trap-07-blind-patch` shows", "trap-07-blind-patch"),
            ("x/trap-07-blind-patch.txt;", "trap-07-blind-patch"),
            ("[7](traps.md#trap-07-blind), trap-7, a trap-door", ""),
            ("(story `spill`, bug `Spilled`)", "spill"),
            (
                "- **Stories** (`crates/sim/stories`): `busy.txt`,\n  `full`, and `hints`. `x`",
                "busy full hints",
            ),
            ("stories `busy` and `full` of `x`", "busy full"),
            (
                "Each has stories (`crates/sim/stories`), checkers in `x`",
                "",
            ),
            ("the story `make story`", ""),
        ] {
            let names = cited(text).into_iter().map(|(story, _)| story);
            assert_eq!(names.collect::<Vec<_>>().join(" "), found, "{text}");
        }
    }

    #[test]
    fn a_story_that_is_not_there_is_a_complaint() {
        let tree = Tree::of(&[
            ("crates/sim/stories/spill.txt", ""),
            ("docs/a.md", "Stories: `spill`,\n`spilt`."),
        ]);
        let found = check(&tree);
        let complaints = found.complaints.iter().map(Complaint::to_string);
        let wanted = "docs/a.md:2: there is no story `spilt` -> cite one of crates/sim/stories/";
        assert!(complaints.eq([wanted]));
    }
}
