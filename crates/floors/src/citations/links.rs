//! Links of pages: the file exists, and so does the heading in it.

use super::{Found, citing};
use crate::complaint::Complaint;
use crate::tree::Tree;
use std::collections::BTreeSet;

pub(super) fn check(tree: &Tree) -> Found {
    let mut found = Found::default();
    let mut count = 0;
    for (page, text) in citing(tree).filter(|(page, _)| page.ends_with(".md")) {
        for (line, target) in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let wrong = judge(tree, page, &target);
            found.complaints.extend(
                wrong.map(|wrong| Complaint::new((page, line), wrong, "link to what exists")),
            );
        }
    }
    found.seen = vec![("links", count)];
    found
}

fn judge(tree: &Tree, page: &str, target: &str) -> Option<String> {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        _ => resolved(page, path),
    };
    if !tree.has(&file) {
        return Some(format!("the link leads to {file}, which is not there"));
    }
    let text = tree.text(&file).filter(|_| !heading.is_empty())?;
    (!places(text).contains(heading)).then(|| format!("{file} has no heading `#{heading}`"))
}

/// The path from the root of a link in a page.
fn resolved(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The targets of all links in a page, with their lines. Code links nowhere.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let prose = prose(text);
    for (line, text) in &prose {
        for (index, opening) in text.match_indices("](") {
            let inside = &text[index + opening.len()..];
            let target = inside.split([')', ' ']).next().unwrap_or_default();
            links.push((*line, target.trim_matches(['<', '>']).to_owned()));
        }
        for attribute in ["src=\"", "href=\""] {
            for (index, _) in text.match_indices(attribute) {
                let inside = &text[index + attribute.len()..];
                links.extend(
                    inside
                        .split_once('"')
                        .map(|(target, _)| (*line, target.to_owned())),
                );
            }
        }
        if let Some((_, target)) = text.split_once("]: ").filter(|_| text.starts_with('[')) {
            links.push((*line, target.trim().to_owned()));
        }
    }
    links
}

/// The lines of a page without code.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, without_code(line)));
        }
    }
    lines
}

fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let (whole, open) = match parts.len() % 2 {
        0 => parts.split_at(parts.len() - 1),
        _ => (&parts[..], &[][..]),
    };
    let prose = whole.iter().step_by(2).chain(open);
    prose.copied().collect::<Vec<_>>().concat()
}

/// Where links into a page may lead: to its headings, and to places that it names itself.
fn places(text: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !fenced && heading.len() < line.len() && heading.starts_with(' ') {
            let place = slug(heading.trim());
            let again = (1..).map(|number| format!("{place}-{number}"));
            let free = [place.clone()].into_iter().chain(again);
            let free = free.into_iter().find(|place| !places.contains(place));
            places.extend(free);
        }
        for attribute in ["id=\"", "name=\""] {
            let named = line.split(attribute).skip(1);
            let named = named.filter_map(|rest| rest.split_once('"'));
            places.extend(named.map(|(name, _)| name.to_owned()));
        }
    }
    places
}

/// What a heading is called in links.
fn slug(heading: &str) -> String {
    let mut slug = String::new();
    let mut in_target = false;
    let mut letters = heading.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ']' if letters.peek() == Some(&'(') => in_target = true,
            ')' if in_target => in_target = false,
            _ if in_target => {}
            ' ' => slug.push('-'),
            '-' | '_' => slug.push(letter),
            _ if letter.is_alphanumeric() => slug.extend(letter.to_lowercase()),
            _ => {}
        }
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let other = "# Rule 9a: *fetching* (`Fetch`)\n## Why\n## Why\n```\n# no heading\n```\n<a id=\"here\"></a>";
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("docs/b/c.md", other),
            ("README.md", ""),
        ]);
        let complaints = check(&tree).complaints;
        complaints.iter().map(Complaint::to_string).collect()
    }

    #[test]
    fn links_to_what_exists_are_good() {
        let text = "# Top\n[a](b/c.md), [`b`](../README.md \"title\") and [c](b/c.md#rule-9a-fetching-fetch) \
                    [d](#top) [e](b) [f](b/c.md#why-1) [g](b/c.md#here) [h](https://x.y/z)\n`[i](j.md)`\n\
                    ```\n[k](l.md)\n```\n<img src=\"../README.md\">\n[m]: b/c.md";
        assert_eq!(complaints(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_complaint() {
        for (text, wrong) in [
            (
                "[a](c.md)",
                "the link leads to docs/c.md, which is not there",
            ),
            (
                "![a](../x.svg)",
                "the link leads to x.svg, which is not there",
            ),
            (
                "<img src=\"x.svg\">",
                "the link leads to docs/x.svg, which is not there",
            ),
            (
                "[a]: c.md",
                "the link leads to docs/c.md, which is not there",
            ),
            ("[a](b/c.md#how)", "docs/b/c.md has no heading `#how`"),
            (
                "[a](b/c.md#no-heading)",
                "docs/b/c.md has no heading `#no-heading`",
            ),
            ("[a](#top)", "docs/a.md has no heading `#top`"),
        ] {
            assert_eq!(
                complaints(&format!("\n{text}")),
                [format!("docs/a.md:2: {wrong} -> link to what exists")]
            );
        }
    }
}
