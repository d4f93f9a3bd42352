//! The tokens of a Rust file, without what only tests see.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A token or a group of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    /// A name or a keyword, and its line.
    Name(String, usize),
    /// One character of punctuation.
    Mark(char),
    /// What stands between brackets of one kind.
    Group(Delimiter, Vec<Token>),
    /// A literal, as it is written.
    Literal(String),
}

impl Token {
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name, _) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn is_name(&self, wanted: &str) -> bool {
        self.name() == Some(wanted)
    }

    pub(crate) fn is_mark(&self, wanted: char) -> bool {
        matches!(self, Self::Mark(mark) if *mark == wanted)
    }

    pub(crate) fn group(&self, wanted: Delimiter) -> Option<&[Token]> {
        match self {
            Self::Group(delimiter, tokens) if *delimiter == wanted => Some(tokens),
            _ => None,
        }
    }
}

/// The tokens of a text, without items that only tests see.
///
/// # Errors
///
/// The text is no Rust.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let stream: TokenStream = text
        .parse()
        .map_err(|error: proc_macro2::LexError| error.to_string())?;
    Ok(without_tests(taken(stream)))
}

fn taken(stream: TokenStream) -> Vec<Token> {
    let tokens = stream.into_iter().map(|tree| match tree {
        TokenTree::Ident(name) => Token::Name(name.to_string(), name.span().start().line),
        TokenTree::Punct(mark) => Token::Mark(mark.as_char()),
        TokenTree::Literal(literal) => Token::Literal(literal.to_string()),
        TokenTree::Group(group) => Token::Group(group.delimiter(), taken(group.stream())),
    });
    tokens.collect()
}

fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut stays = vec![true; tokens.len()];
    let mut index = 0;
    while index < tokens.len() {
        let rest = &tokens[index..];
        let taken = match is_test_attribute(rest) {
            true => rest.len() - after_item(&rest[2..]).len(),
            false => 0,
        };
        stays[index..index + taken].fill(false);
        index += taken.max(1);
    }
    let tokens = tokens.into_iter().zip(stays);
    let tokens = tokens.filter_map(|(token, stays)| stays.then_some(token));
    tokens
        .map(|token| match token {
            Token::Group(delimiter, inner) => Token::Group(delimiter, without_tests(inner)),
            token => token,
        })
        .collect()
}

/// Whether these tokens begin with `#[cfg(test)]` or `#[cfg(all(.., test, ..))]`.
fn is_test_attribute(tokens: &[Token]) -> bool {
    let [hash, attribute, ..] = tokens else {
        return false;
    };
    let Some([cfg, condition]) = attribute.group(Delimiter::Bracket) else {
        return false;
    };
    hash.is_mark('#') && cfg.is_name("cfg") && needs_test(condition)
}

fn needs_test(condition: &Token) -> bool {
    let Some(condition) = condition.group(Delimiter::Parenthesis) else {
        return false;
    };
    match condition {
        [all, of] if all.is_name("all") => needs_test(of),
        _ => {
            let mut conditions = condition.split(|token| token.is_mark(','));
            conditions.any(|part| match part {
                [one] => one.is_name("test"),
                [all, of] => all.is_name("all") && needs_test(of),
                _ => false,
            })
        }
    }
}

/// What comes after the item, the field or the arm with which these tokens begin.
fn after_item(mut tokens: &[Token]) -> &[Token] {
    while let [hash, Token::Group(Delimiter::Bracket, _), rest @ ..] = tokens {
        if !hash.is_mark('#') {
            break;
        }
        tokens = rest;
    }
    let keyword = keyword(tokens);
    let end = tokens.iter().position(|token| match token {
        Token::Mark(';') => true,
        Token::Mark(',') => keyword.is_none(),
        Token::Group(Delimiter::Brace, _) => !keyword.is_some_and(|name| UNBRACED.contains(&name)),
        _ => false,
    });
    end.map_or(&[], |end| &tokens[end + 1..])
}

/// What says which kind of item begins here; none for a field or an arm.
fn keyword(tokens: &[Token]) -> Option<&str> {
    let names = tokens
        .iter()
        .take_while(|token| !matches!(token, Token::Mark(_)));
    let mut names = names.filter_map(Token::name);
    let first = names.find(|name| !QUALIFIERS.contains(name))?;
    if first == "const" && names.next() == Some("fn") {
        return Some("fn");
    }
    KEYWORDS.contains(&first).then_some(first)
}

/// What may stand before the keyword of an item.
const QUALIFIERS: &[&str] = &["pub", "unsafe", "async", "extern", "default"];

const KEYWORDS: &[&str] = &[
    "mod", "fn", "impl", "struct", "enum", "union", "trait", "use", "const", "static", "type",
    "let",
];

/// Items that end with a semicolon, whatever stands in braces.
const UNBRACED: &[&str] = &["use", "const", "static", "type", "let"];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        fn collect(tokens: &[Token], names: &mut Vec<String>) {
            for token in tokens {
                match token {
                    Token::Name(name, _) => names.push(name.clone()),
                    Token::Group(_, inner) => collect(inner, names),
                    _ => {}
                }
            }
        }
        let mut all = Vec::new();
        collect(&tokens(text).expect("Rust"), &mut all);
        all.join(" ")
    }

    #[test]
    fn what_only_tests_see_is_left_out() {
        for (text, left) in [
            ("a; #[cfg(test)] mod tests { use b; } c;", "a c"),
            ("#[cfg(test)]\nmod tests;\nc;", "c"),
            (
                "#[cfg(all(test, not(loom)))] #[path = \"x\"] mod tests { a } c;",
                "c",
            ),
            ("#[cfg(test)] use a::{b, d}; c;", "c"),
            ("#[cfg(test)] pub(crate) const A: B = B { d }; c;", "c"),
            ("#[cfg(test)] fn a<B, D>() { b } c;", "c"),
            ("#[cfg(test)] pub(crate) const fn a<B, D>() { b } c;", "c"),
            (
                "match a { #[cfg(test)] b => d, e => { let f; } }",
                "match a e let f",
            ),
            ("#[cfg(test)] impl<A, B> D for E<A, B> { b } c;", "c"),
            ("impl A { #[cfg(test)] fn b() {} fn c() {} }", "impl A fn c"),
            ("struct A { #[cfg(test)] b: B, c: C }", "struct A c C"),
        ] {
            assert_eq!(names(text), left, "{text}");
        }
    }

    #[test]
    fn what_others_see_stays() {
        for text in [
            "#[cfg(not(test))] mod c;",
            "#[cfg(any(test, loom))] mod c;",
            "#[cfg(unix)] mod c;",
        ] {
            assert!(names(text).ends_with("mod c"), "{text}");
        }
    }

    #[test]
    fn names_have_lines_and_comments_and_strings_have_no_names() {
        let tokens = tokens("// a\n\n/* b */ let c = \"d\";").expect("Rust");
        assert_eq!(tokens[0], Token::Name("let".to_owned(), 3));
        assert_eq!(tokens[1], Token::Name("c".to_owned(), 3));
        assert!(super::tokens("a }").is_err());
    }
}
