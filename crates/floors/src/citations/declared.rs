//! What a file of Rust declares, and what belongs to what there.

use crate::tokens::{Token, tokens};
use proc_macro2::Delimiter;
use std::collections::BTreeSet;

/// The names that one file declares. What comments, strings, tests and bodies of functions name is none of them.
#[derive(Default)]
pub(super) struct Declared {
    /// Every name that is declared.
    names: BTreeSet<String>,
    /// A type, trait or module of the file, and a name that is declared in it.
    owned: BTreeSet<(String, String)>,
    /// Names that stand at the top of the file.
    at_top: BTreeSet<String>,
    /// What paths call the file as a module.
    module: String,
}

impl Declared {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The text is no Rust.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, String> {
        let mut declared = Self {
            module: module(path).to_owned(),
            ..Self::default()
        };
        declared.walk(None, &tokens(text)?);
        Ok(declared)
    }

    /// Whether the file declares what a path names. Its last part belongs to the part before, if there is one.
    pub(super) fn has(&self, path: &str) -> bool {
        match path.rsplit_once("::") {
            None => self.names.contains(path),
            Some((before, name)) => {
                let owner = before.rsplit("::").next().unwrap_or(before);
                let is_owned = self.owned.contains(&(owner.to_owned(), name.to_owned()));
                is_owned || (owner == self.module && self.at_top.contains(name))
            }
        }
    }

    fn declare(&mut self, owner: Option<&str>, name: &str) {
        self.names.insert(name.to_owned());
        match owner {
            Some(owner) => {
                self.owned.insert((owner.to_owned(), name.to_owned()));
            }
            None => {
                self.at_top.insert(name.to_owned());
            }
        }
    }

    /// Notes the items that stand here.
    fn walk(&mut self, owner: Option<&str>, mut tokens: &[Token]) {
        while let [first, rest @ ..] = tokens {
            tokens = match first.name() {
                Some("fn") => self.take_function(owner, rest),
                Some("impl") => self.take_impl(rest),
                Some("trait" | "mod") => self.take_owner(owner, rest, Self::walk_inside),
                Some("struct" | "union") => self.take_owner(owner, rest, Self::take_fields),
                Some("enum") => self.take_owner(owner, rest, Self::take_variants),
                Some("const" | "static" | "type") => self.take_value(owner, rest),
                Some(_) if rest.first().is_some_and(|next| next.is_mark('!')) => {
                    self.take_macro(owner, &rest[1..])
                }
                _ => rest,
            };
        }
    }

    fn take_function<'a>(&mut self, owner: Option<&str>, rest: &'a [Token]) -> &'a [Token] {
        if let Some(name) = rest.first().and_then(Token::name) {
            self.declare(owner, name);
        }
        after_body(rest)
    }

    /// A block of methods belongs to its type, whichever trait asks for them.
    fn take_impl<'a>(&mut self, rest: &'a [Token]) -> &'a [Token] {
        let Some(end) = rest.iter().position(is_body) else {
            return &[];
        };
        if let Some(name) = implemented(&rest[..end]) {
            self.walk(Some(name), inside(&rest[end]));
        }
        &rest[end + 1..]
    }

    fn take_owner<'a>(
        &mut self,
        owner: Option<&str>,
        rest: &'a [Token],
        take: impl FnOnce(&mut Self, &str, &[Token]),
    ) -> &'a [Token] {
        let Some(name) = rest.first().and_then(Token::name) else {
            return rest;
        };
        self.declare(owner, name);
        let end = rest.iter().position(ends_item).unwrap_or(rest.len() - 1);
        take(self, name, inside(&rest[end]));
        &rest[end + 1..]
    }

    fn walk_inside(&mut self, owner: &str, tokens: &[Token]) {
        self.walk(Some(owner), tokens);
    }

    fn take_fields(&mut self, owner: &str, tokens: &[Token]) {
        for pair in tokens.windows(2) {
            if let [Token::Name(name, _), Token::Mark(':')] = pair {
                self.declare(Some(owner), name);
            }
        }
    }

    fn take_variants(&mut self, owner: &str, tokens: &[Token]) {
        for name in beginning(tokens) {
            self.declare(Some(owner), name);
        }
    }

    fn take_value<'a>(&mut self, owner: Option<&str>, rest: &'a [Token]) -> &'a [Token] {
        match rest.first().and_then(Token::name) {
            // Of a function that can be constant.
            Some("fn" | "unsafe" | "extern") | None => rest,
            Some(name) => {
                self.declare(owner, name);
                let end = rest.iter().position(|token| token.is_mark(';'));
                end.map_or(&[], |end| &rest[end + 1..])
            }
        }
    }

    /// A macro declares what its items do, and names that come first in it or after a comma or a semicolon.
    fn take_macro<'a>(&mut self, owner: Option<&str>, rest: &'a [Token]) -> &'a [Token] {
        let named = rest.first().and_then(Token::name);
        named.into_iter().for_each(|name| self.declare(owner, name));
        let (name, rest) = rest.split_at(usize::from(named.is_some()));
        let [group, rest @ ..] = rest else {
            return rest;
        };
        // What `macro_rules!` declares, it declares where it is called.
        if let (true, Token::Group(_, inner)) = (name.is_empty(), group) {
            self.walk(owner, inner);
            for name in beginning(inner) {
                self.declare(owner, name);
            }
        }
        rest
    }
}

/// What paths call a file: `b` for `a/b.rs` and for `b/mod.rs`.
fn module(path: &str) -> &str {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or(path)
}

fn is_body(token: &Token) -> bool {
    token.group(Delimiter::Brace).is_some()
}

fn ends_item(token: &Token) -> bool {
    token.is_mark(';') || is_body(token)
}

fn inside(token: &Token) -> &[Token] {
    token.group(Delimiter::Brace).unwrap_or_default()
}

fn after_body(rest: &[Token]) -> &[Token] {
    let end = rest.iter().position(ends_item);
    end.map_or(&[], |end| &rest[end + 1..])
}

/// The name of the type to which a block of methods belongs: the last at the top of its path.
fn implemented(head: &[Token]) -> Option<&str> {
    let mut depth = 0;
    let mut last_mark = None;
    let mut implemented = None;
    for token in head {
        match token {
            Token::Mark('<') => depth += 1,
            // An arrow closes nothing.
            Token::Mark('>') if last_mark != Some('-') => depth -= 1,
            Token::Name(name, _) if depth == 0 => match name.as_str() {
                "where" => break,
                "for" | "dyn" | "mut" => {}
                name => implemented = Some(name),
            },
            _ => {}
        }
        last_mark = match token {
            Token::Mark(mark) => Some(*mark),
            _ => None,
        };
    }
    implemented
}

/// Names that come first, or after an attribute, a comma or a semicolon.
fn beginning(tokens: &[Token]) -> impl Iterator<Item = &str> {
    let begins = |index: usize| match index.checked_sub(1).map(|before| &tokens[before]) {
        None | Some(Token::Mark(',' | ';') | Token::Group(Delimiter::Bracket, _)) => true,
        Some(_) => false,
    };
    let names = tokens.iter().enumerate();
    let names = names.filter(move |(index, _)| begins(*index));
    names.filter_map(|(_, token)| token.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        //! Comment::in_comment and gone.
        use other::Imported;
        pub(crate) const LIMIT: usize = [0; 3].len();
        struct Log<T> where T: Fn() -> u8 { first: T, pub last: Other }
        enum Kind { #[default] One, Two { field: u8 }, Three(u8) }
        trait Sink { const MAX: u8; fn take(&self); }
        impl<T: Fn() -> u8> Log<T> { pub const fn trim(&self) { let local = call(); fn nested() {} } }
        impl<T> Sink for a::Log<T> { type Item = u8; fn take(&self) { \"in_string\" } }
        mod inner { pub fn deep() {} }
        fn free() {}
        notes! { /// Doc.
            Began, Ended }
        macro_rules! notes { ($name:ident) => { enum Hidden {} }; }
        #[cfg(test)] mod tests { fn tested() {} }";

    fn declared() -> Declared {
        Declared::parse("a/log.rs", TEXT).expect("Rust")
    }

    #[test]
    fn what_is_declared_is_found() {
        for name in [
            "LIMIT",
            "Log",
            "Log::first",
            "Log::last",
            "Kind::One",
            "Kind::Two",
            "Kind::Three",
            "Sink::take",
            "Sink::MAX",
            "Log::trim",
            "trim",
            "x::Log::take",
            "Log::Item",
            "inner::deep",
            "log::free",
            "free",
            "Began",
            "Ended",
            "notes",
        ] {
            assert!(declared().has(name), "{name}");
        }
    }

    #[test]
    fn what_is_only_mentioned_is_not() {
        for name in [
            "gone",
            "Comment",
            "Imported",
            "Other",
            "local",
            "call",
            "nested",
            "in_string",
            "Hidden",
            "tested",
            "tests",
            "Kind::trim",
            "Sink::trim",
            "log::trim",
            "Log::free",
            "Gone::trim",
        ] {
            assert!(!declared().has(name), "{name}");
        }
    }

    #[test]
    fn a_folder_is_the_module_of_its_first_file() {
        let declared = Declared::parse("a/log/mod.rs", "fn free() {}").expect("Rust");
        assert!(declared.has("log::free") && !declared.has("mod::free"));
        assert!(Declared::parse("a.rs", "fn a( {}").is_err());
    }
}
