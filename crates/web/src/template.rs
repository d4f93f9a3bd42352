//! The text of a key, with holes: `page:{page_namespace}:{page_title}`.

use std::fmt;

/// One part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Hole(String),
}

/// A text with holes, each of which has a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(Vec<Part>);

/// A template that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} has an open brace without a closing one, or nothing between them: write {{name}}",
            self.0
        )
    }
}

impl std::error::Error for TemplateError {}

/// As it was written.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(words) => f.write_str(words),
            Part::Hole(name) => write!(f, "{{{name}}}"),
        })
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// A brace is open, or has no name in it.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let error = || TemplateError(text.to_owned());
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').ok_or_else(error)?;
            if name.is_empty() || name.contains('{') || before.contains('}') {
                return Err(error());
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Hole(name.to_owned()));
            rest = after;
        }
        if rest.contains('}') {
            return Err(error());
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Template(parts))
    }

    /// The names of the holes.
    pub fn holes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Hole(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The text, with what is found for each hole. None: nothing was found for one of them.
    pub fn fill<'a>(&self, find: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Hole(name) => text.push_str(find(name)?),
            }
        }
        Some(text)
    }

    /// Whether this text comes out with something in the holes.
    pub(crate) fn makes(&self, text: &str) -> bool {
        let mut rest = text;
        let mut is_open = false;
        for (at, part) in self.0.iter().enumerate() {
            let Part::Text(words) = part else {
                is_open = true;
                continue;
            };
            if is_open && at + 1 == self.0.len() {
                return rest.ends_with(words.as_str());
            }
            let found = match is_open {
                true => rest.split_once(words.as_str()).map(|(_, behind)| behind),
                false => rest.strip_prefix(words.as_str()),
            };
            let Some(behind) = found else {
                return false;
            };
            rest = behind;
            is_open = false;
        }
        is_open || rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_or_the_whole_is_unknown() {
        let template = Template::parse("page:{ns}:{title}").expect("a template");
        assert_eq!(template.holes().collect::<Vec<_>>(), ["ns", "title"]);
        let find = |name: &str| (name == "ns").then_some("0");
        assert_eq!(template.fill(find), None);
        let filled = template.fill(|name| Some(if name == "ns" { "0" } else { "A:b" }));
        assert_eq!(filled.as_deref(), Some("page:0:A:b"));
        let plain = Template::parse("all").expect("a template");
        assert_eq!(plain.fill(|_| None).as_deref(), Some("all"));
    }

    #[test]
    fn a_template_knows_what_it_makes() {
        let makes = |template: &str, text: &str| {
            let template = Template::parse(template).expect("a template");
            template.makes(text)
        };
        for (template, text) in [
            ("all", "all"),
            ("item:{id}", "item:7"),
            ("item:{id}", "item:"),
            ("page:{ns}:{title}", "page:0:A:b"),
            ("{a}:{b}x", ":xx"),
            ("{a}{b}", ""),
        ] {
            assert!(makes(template, text), "{template} {text}");
        }
        for (template, text) in [
            ("all", "alls"),
            ("item:{id}", "items:7"),
            ("page:{ns}:{title}", "page:0"),
            ("{a}:{b}x", "x:y"),
            ("a{b}a", "a"),
        ] {
            assert!(!makes(template, text), "{template} {text}");
        }
    }

    #[test]
    fn a_lost_brace_is_no_template() {
        for text in ["a{b", "a}b", "{}", "{a{b}", "a}{b}"] {
            assert_eq!(Template::parse(text), Err(TemplateError(text.to_owned())));
        }
    }
}
