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
    fn a_lost_brace_is_no_template() {
        for text in ["a{b", "a}b", "{}", "{a{b}", "a}{b}"] {
            assert_eq!(Template::parse(text), Err(TemplateError(text.to_owned())));
        }
    }
}
