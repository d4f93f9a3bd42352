//! What a story can ask for and expect.
//!
//! ```text
//! m0 P              the page in m0's cache: {x="a" y=?}, or nothing
//! m0 P version      the position of its last change; `m0 P stamp` the highest stamp contained
//! m0 position       how far it is down the home's stream
//! m0 watermark      what it was promised
//! m0 silent         milliseconds since it last heard of the home
//! m0 position H2    these three, of another home than the first
//! m0 forgot         how often it forgot a home that has gone back
//! H closed          whether it has met another history of itself: yes or no
//! m0 floor          the stamp that its session has been at
//! m0 saw            the last value that its transaction read
//! m0 transaction    what became of its transaction
//! m0 commit 1       how its first commit ended; without a number the last
//! m0 stamp 1        that commit's stamp
//! m0 called         the last answer to a call
//! m0 rejected       the updates of its log that were refused for good
//! m0 shows P.x      an object as committed, with the updates over it that the member shows
//! H lists R for P   whether a parent has a child entered for a page: yes or no
//! m1 behind         whether what the home has answered may not be there yet: yes or no
//! H size changes    the size of a table
//! H log             records of the commit log on its disk
//! H disk            batches that are not durable
//! H stores P        whether a page is durable there: yes or no
//! H log             log records that are durable there
//! m0 heard          when it last heard of the home, in milliseconds since the story began
//! messages          messages under way
//! m0 parents        edges to parents
//! images H->R       images that a link has delivered
//! messages R->m0    messages that are under way there
//! ```

use super::node::HOME;
use super::program::Program;
use super::village::Village;
use super::{effects, names, text, updates};
use std::collections::BTreeMap;
use thorp_model::{Down, Epoch, HomeId, Image, Message, Now, PageId, message};

/// The answer to a question.
pub(crate) fn answer(village: &Village, question: &str) -> String {
    let words: Vec<&str> = question.split_whitespace().collect();
    match words[..] {
        [child, "parents"] => village.parents(child).to_string(),
        ["images", link] => images(village, link),
        ["messages"] => village.under_way().to_string(),
        ["messages", link] => {
            let (from, to) = link.split_once("->").expect("a->b");
            village.queued(from, to).to_string()
        }
        [parent, "lists", child, "for", page] => lists(village, parent, child, page),
        [node, "size", table] => size(village, node, table),
        [node, "closed"] => yes(village.nodes[node].disk.is_closed()),
        [node, "log"] => village.nodes[node].disk.log().to_string(),
        [node, "disk"] => village.nodes[node].disk.pending().to_string(),
        [node, "stores", page] => yes(village.nodes[node].disk.stores(page_of(page))),
        [member, "behind"] => {
            let machine = village.machine(member);
            yes(machine.is_some_and(|machine| machine.is_behind(HOME)))
        }
        [node, "position", ref of @ ..] => {
            let machine = village.machine(node);
            text::position(machine.and_then(|machine| machine.position(home_of(of))))
        }
        [who, ref what @ ..] => of_program(village, who, what),
        [] => panic!("nothing is asked"),
    }
}

fn of_program(village: &Village, who: &str, what: &[&str]) -> String {
    let (name, transaction) = who.split_once('/').unwrap_or((who, ""));
    let program = village.nodes.get(name).and_then(|n| n.program.as_ref());
    let program = program.unwrap_or_else(|| panic!("{name} has no program"));
    match *what {
        ["heard", ref of @ ..] => {
            let heard = program.cache.heard(home_of(of)).unwrap_or_default();
            heard.since(Now::MONO_FIRST).to_string()
        }
        ["watermark", ref of @ ..] => names::stamp(program.cache.watermark(home_of(of))),
        ["silent", ref of @ ..] => {
            let heard = program.cache.heard(home_of(of)).unwrap_or_default();
            village.mono().since(heard).to_string()
        }
        ["lost"] => program.lost.join(" "),
        ["forgot"] => program.went_back.to_string(),
        ["floor"] => names::stamp(program.floor),
        ["saw"] => program.saw(transaction),
        ["transaction"] => program.state(transaction),
        ["called"] => program.called.clone(),
        ["rejected"] => program.rejected.join(", "),
        ["shows", object] => updates::seen(program, object),
        ["commit"] => commit(program, program.commits.len()),
        ["commit", number] => commit(program, number.parse().expect("a number")),
        ["stamp", number] => {
            let number: usize = number.parse().expect("a number");
            let ended = program.commits.get(number - 1).and_then(Option::as_ref);
            ended.map_or_else(|| String::from("none"), effects::stamp_of)
        }
        [page] => match image(program, page) {
            Some((page, image)) => text::content(page, &image),
            None => String::from("nothing"),
        },
        [page, "version"] => {
            let image = image(program, page);
            image.map_or_else(|| String::from("none"), |(_, i)| i.version().to_string())
        }
        [page, "stamp"] => {
            let image = image(program, page);
            image.map_or_else(|| String::from("none"), |(_, i)| names::stamp(i.stamp()))
        }
        _ => panic!("nobody can answer {what:?}"),
    }
}

/// The home that a question ends with; the first one if it does not.
fn home_of(words: &[&str]) -> HomeId {
    let home = words.first().and_then(|name| names::home_id(name));
    home.unwrap_or(HOME)
}

fn image(program: &Program, page: &str) -> Option<(PageId, Image)> {
    let page = page_of(page);
    let image = program.cache.image(program.homes.place(page));
    image.map(|image| (page, image))
}

fn commit(program: &Program, number: usize) -> String {
    match number.checked_sub(1).and_then(|at| program.commits.get(at)) {
        None => String::from("none"),
        Some(None) => String::from("unanswered"),
        Some(Some(outcome)) => text::outcome(outcome),
    }
}

fn lists(village: &Village, parent: &str, child: &str, page: &str) -> String {
    let place = village.nodes[parent].homes.place(page_of(page));
    let edge = village.edge(parent, child);
    let machine = village.machine(parent);
    let listed = edge
        .zip(machine)
        .is_some_and(|(edge, m)| m.holds(edge, place));
    yes(listed)
}

/// How many page images a link has delivered.
fn images(village: &Village, link: &str) -> String {
    let (from, to) = link.split_once("->").expect("images H->R");
    let all = village.delivered(from, to);
    let images = all.filter(|(_, message)| matches!(message, Message::Down(Down::Image(_))));
    images.count().to_string()
}

fn yes(is: bool) -> String {
    String::from(if is { "yes" } else { "no" })
}

fn page_of(name: &str) -> PageId {
    names::page_id(name).unwrap_or_else(|| panic!("{name:?} is no page"))
}

fn size(village: &Village, node: &str, table: &str) -> String {
    let machine = village.machine(node).expect("a running node");
    let sizes = machine.sizes();
    let found = sizes.iter().find(|(name, _)| *name == table);
    found.expect("a table").1.to_string()
}

/// Whether an expectation holds; what was found if not.
pub(crate) fn check(
    village: &Village,
    remembered: &BTreeMap<String, String>,
    line: &str,
) -> Result<(), String> {
    let signs = [" != ", " >= ", " <= ", " = ", " > "];
    let parts = signs.iter().find_map(|sign| {
        let (question, wanted) = line.split_once(sign)?;
        Some((question, sign.trim(), wanted))
    });
    let (question, sign, wanted) = parts.expect("an expectation: question = answer");
    let wanted = remembered.get(wanted).map_or(wanted, String::as_str);
    let found = answer(village, question);
    let holds = match sign {
        "=" => found == wanted,
        "!=" => found != wanted,
        ">" => size_of(&found) > size_of(wanted),
        ">=" => size_of(&found) >= size_of(wanted),
        _ => size_of(&found) <= size_of(wanted),
    };
    if holds { Ok(()) } else { Err(found) }
}

/// A number, or a stamp's.
pub(crate) fn size_of(text: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    match text
        .strip_prefix('@')
        .and_then(|stamp| stamp.split_once('+'))
    {
        Some((ms, counter)) => (number(ms) << 16) | number(counter),
        None => number(text),
    }
}

/// The epoch of a child's stream, as the last message that began it told.
pub(crate) fn epoch(village: &Village, child: &str, parent: &str) -> Epoch {
    let begun = village.delivered(parent, child).rev();
    let mut epochs = begun.filter_map(|(_, message)| match message {
        Message::Down(Down::Begin(message::Begin { epoch, .. })) => Some(*epoch),
        _ => None,
    });
    epochs.next().unwrap_or_default()
}
