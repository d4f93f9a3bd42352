//! What one Rust file declares, imports, implements and refers to. Tests are left out.

use crate::tokens::{Token, tokens};
use proc_macro2::Delimiter;
use std::collections::BTreeSet;

/// Names with `::` between them: of a module from the crate's root, or as somebody wrote them.
pub(crate) type Path = Vec<String>;

/// What a file of Rust declares, imports and refers to.
#[derive(Default, Debug)]
pub(crate) struct Source {
    /// The modules that it declares and other files hold.
    pub(crate) modules: Vec<Module>,
    /// The modules that it declares and holds itself.
    pub(crate) inline: Vec<Path>,
    pub(crate) uses: Vec<Use>,
    /// Paths in code: at least two names.
    pub(crate) references: Vec<Reference>,
    /// Blocks of methods that belong to no trait.
    pub(crate) inherent: Vec<Reference>,
    /// Names of structs, enums, unions and traits.
    pub(crate) types: BTreeSet<String>,
    /// Public modules at the top of the file.
    pub(crate) public: Vec<(String, usize)>,
}

/// A module in another file.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Module {
    pub(crate) path: Path,
    /// The file that an attribute names.
    pub(crate) file: Option<String>,
}

/// An import of one name, or of all.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Use {
    /// The module that imports.
    pub(crate) module: Path,
    pub(crate) path: Path,
    /// The name here; none for `*` and `_`.
    pub(crate) name: Option<String>,
    pub(crate) all: bool,
    pub(crate) public: bool,
    pub(crate) line: usize,
}

/// A path in code.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The module that refers.
    pub(crate) module: Path,
    pub(crate) path: Path,
    pub(crate) line: usize,
}

impl Source {
    /// Reads the text of a module's file.
    ///
    /// # Errors
    ///
    /// The text is no Rust.
    pub(crate) fn parse(module: &[String], text: &str) -> Result<Self, String> {
        let mut source = Self::default();
        source.walk(module, &tokens(text)?, true);
        Ok(source)
    }

    /// Notes what stands in a group. Items only stand at the top, in braces and in macros.
    fn walk(&mut self, module: &[String], tokens: &[Token], items: bool) {
        let mut index = 0;
        while let Some(token) = tokens.get(index) {
            let (before, rest) = (&tokens[..index], &tokens[index + 1..]);
            index += 1;
            match token {
                Token::Group(delimiter, inner) => {
                    self.walk(module, inner, *delimiter == Delimiter::Brace);
                }
                Token::Name(name, line) => {
                    let place = (module, *line);
                    index += match name.as_str() {
                        "use" if !next_is(rest, '<') => self.take_use(place, before, rest),
                        "mod" => self.take_module(place, before, rest),
                        "impl" if items && begins_item(before) => self.take_impl(place, rest),
                        "struct" | "enum" | "union" | "trait" => self.take_type(rest),
                        _ if items && begins_item(before) && next_is(rest, '!') => {
                            self.take_macro(rest)
                        }
                        _ => self.take_path(place, name, before, rest),
                    };
                }
                _ => {}
            }
        }
    }

    fn take_type(&mut self, rest: &[Token]) -> usize {
        let name = rest.first().and_then(Token::name);
        self.types.extend(name.map(str::to_owned));
        0
    }

    /// Names that a macro may declare: they come first, or after an attribute, a comma or a semicolon.
    fn take_macro(&mut self, rest: &[Token]) -> usize {
        if let [_, Token::Group(_, inner), ..] = rest {
            let begins = |index: usize| match index.checked_sub(1).map(|before| &inner[before]) {
                None | Some(Token::Mark(',' | ';') | Token::Group(Delimiter::Bracket, _)) => true,
                Some(_) => false,
            };
            let names = inner.iter().enumerate();
            let names = names.filter(|(index, _)| begins(*index));
            let names = names.filter_map(|(_, token)| token.name());
            self.types.extend(names.map(str::to_owned));
        }
        0
    }

    /// Returns how many tokens it took.
    fn take_module(
        &mut self,
        (module, line): (&[String], usize),
        before: &[Token],
        rest: &[Token],
    ) -> usize {
        let [Token::Name(name, _), body, ..] = rest else {
            return 0;
        };
        let path = joined(module, name);
        if is_public(before) && module.is_empty() {
            self.public.push((name.clone(), line));
        }
        if let Some(inner) = body.group(Delimiter::Brace) {
            self.walk(&path, inner, true);
            self.inline.push(path);
        } else {
            let file = path_attribute(before);
            self.modules.push(Module { path, file });
        }
        2
    }

    fn take_impl(&mut self, (module, line): (&[String], usize), rest: &[Token]) -> usize {
        let head = rest.split(|token| token.group(Delimiter::Brace).is_some());
        let head = after_generics(head.into_iter().next().unwrap_or_default());
        let mut depth = 0;
        let mut path = Path::new();
        let mut last = None;
        for token in head {
            match token {
                Token::Mark('<') => depth += 1,
                // An arrow closes nothing.
                Token::Mark('>') if last != Some('-') => depth -= 1,
                Token::Name(name, _) if depth == 0 => match name.as_str() {
                    // Of a trait, not of the type.
                    "for" => return 0,
                    "where" => break,
                    "dyn" => {}
                    _ => path.push(name.clone()),
                },
                _ => {}
            }
            last = match token {
                Token::Mark(mark) => Some(*mark),
                _ => None,
            };
        }
        let generic = head.first().is_none_or(|token| token.name().is_none());
        if !generic && !path.is_empty() {
            let module = module.to_vec();
            self.inherent.push(Reference { module, path, line });
        }
        0
    }

    fn take_path(
        &mut self,
        (module, line): (&[String], usize),
        first: &str,
        before: &[Token],
        rest: &[Token],
    ) -> usize {
        let inside = before.ends_with(&[Token::Mark(':'), Token::Mark(':')]);
        let restricts = before.last().is_some_and(|token| token.is_name("in"));
        let mut path = vec![first.to_owned()];
        let mut taken = 0;
        while let [Token::Mark(':'), Token::Mark(':'), Token::Name(name, _), ..] = &rest[taken..] {
            path.push(name.clone());
            taken += 3;
        }
        if taken > 0 && !inside && !restricts {
            let module = module.to_vec();
            self.references.push(Reference { module, path, line });
        }
        taken
    }

    fn take_use(
        &mut self,
        (module, line): (&[String], usize),
        before: &[Token],
        rest: &[Token],
    ) -> usize {
        let end = rest.iter().position(|token| token.is_mark(';'));
        let end = end.unwrap_or(rest.len());
        let public = is_public(before) || is_restricted(before);
        let mut leaves = Vec::new();
        spread(&[], &rest[..end], &mut leaves);
        for (path, name, all) in leaves {
            self.uses.push(Use {
                module: module.to_vec(),
                path,
                name,
                all,
                public,
                line,
            });
        }
        end
    }
}

/// A path of a `use`, its name here, and whether it is everything in there.
type Leaf = (Path, Option<String>, bool);

/// Takes a tree of imports apart.
fn spread(prefix: &[String], tokens: &[Token], leaves: &mut Vec<Leaf>) {
    let mut path = prefix.to_vec();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name, _) if name == "as" => {
                let alias = tokens.get(index + 1).and_then(Token::name);
                let alias = alias.filter(|alias| *alias != "_").map(str::to_owned);
                leaves.push((path, alias, false));
                return;
            }
            // `a::{self}` is `a`.
            Token::Name(name, _) if name == "self" && !path.is_empty() => {}
            Token::Name(name, _) => path.push(name.clone()),
            Token::Mark('*') => {
                leaves.push((path, None, true));
                return;
            }
            Token::Group(Delimiter::Brace, inner) => {
                let parts = inner.split(|token| token.is_mark(','));
                parts
                    .filter(|part| !part.is_empty())
                    .for_each(|part| spread(&path, part, leaves));
                return;
            }
            _ => {}
        }
    }
    let name = path.last().cloned();
    leaves.push((path, name, false));
}

pub(crate) fn joined(module: &[String], name: &str) -> Path {
    let mut path = module.to_vec();
    path.push(name.to_owned());
    path
}

fn next_is(rest: &[Token], mark: char) -> bool {
    rest.first().is_some_and(|token| token.is_mark(mark))
}

/// Whether an item may begin after these tokens; else `impl` is part of a type.
fn begins_item(before: &[Token]) -> bool {
    before.last().is_none_or(|token| {
        token.is_mark(';')
            || token.is_name("unsafe")
            || matches!(
                token,
                Token::Group(Delimiter::Brace | Delimiter::Bracket, _)
            )
    })
}

/// Whether these tokens end with `pub`.
fn is_public(before: &[Token]) -> bool {
    before.last().is_some_and(|token| token.is_name("pub"))
}

/// Whether these tokens end with `pub(crate)` or the like.
fn is_restricted(before: &[Token]) -> bool {
    let [.., public, to] = before else {
        return false;
    };
    public.is_name("pub") && to.group(Delimiter::Parenthesis).is_some()
}

/// The file in a `#[path = ".."]` right before a module, whatever its visibility.
fn path_attribute(before: &[Token]) -> Option<String> {
    let ends = |token: &Token| token.is_mark(';') || token.group(Delimiter::Brace).is_some();
    let attributes = before.iter().rev().take_while(|token| !ends(token));
    let mut groups = attributes.filter_map(|token| token.group(Delimiter::Bracket));
    groups.find_map(|attribute| match attribute {
        [path, equals, Token::Literal(file)] if path.is_name("path") && equals.is_mark('=') => {
            Some(file.trim_matches('"').to_owned())
        }
        _ => None,
    })
}

fn after_generics(tokens: &[Token]) -> &[Token] {
    if !next_is(tokens, '<') {
        return tokens;
    }
    let mut depth = 0;
    let mut last = None;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('<') => depth += 1,
            Token::Mark('>') if last != Some('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &tokens[index + 1..];
        }
        last = match token {
            Token::Mark(mark) => Some(*mark),
            _ => None,
        };
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::parse(&["m".to_owned()], text).expect("Rust")
    }

    fn shown<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
        let paths = paths.into_iter();
        paths.map(|path| path.join("::")).collect()
    }

    #[test]
    fn uses_are_taken_apart() {
        let source = source("use crate::a::{self, b::{C as D, *}, E}; pub(crate) use f::G as _;");
        let uses = source.uses.iter().map(|import| &import.path);
        assert_eq!(
            shown(uses),
            [
                "crate::a",
                "crate::a::b::C",
                "crate::a::b",
                "crate::a::E",
                "f::G"
            ]
        );
        let names = source.uses.iter().map(|import| import.name.as_deref());
        assert!(names.eq([Some("a"), Some("D"), None, Some("E"), None]));
        let all = source.uses.iter().map(|import| (import.all, import.public));
        assert!(all.eq([
            (false, false),
            (false, false),
            (true, false),
            (false, false),
            (false, true)
        ]));
    }

    #[test]
    fn blocks_of_a_trait_are_not_inherent() {
        let source = source(
            "impl A {}\nimpl<T: Fn() -> u8, const N: usize> super::b::B<T, N> where T: C {}\n\
             impl C for A {}\nimpl<T> D<T> for B<T> {}\nimpl dyn C {}\nunsafe impl E for A {}\n\
             fn f(_: impl C) -> impl C { impl A { } }\nimpl F<for<'a> fn(&'a u8)> {}",
        );
        let inherent = source.inherent.iter();
        let paths = shown(inherent.clone().map(|reference| &reference.path));
        assert_eq!(paths, ["A", "super::b::B", "C", "A", "F"]);
        let lines = inherent.map(|reference| reference.line);
        assert!(lines.eq([1, 2, 5, 7, 8]));
    }

    #[test]
    fn paths_are_seen_in_code_and_in_macros() {
        let source = source("fn f() { crate::a::b(); assert!(super::C::D == x::<u8>()); }");
        let paths = source.references.iter().map(|reference| &reference.path);
        assert_eq!(shown(paths), ["crate::a::b", "super::C::D"]);
        let shown = self::source("pub(in crate::a) struct S; fn f(_: Vec::<u8>) {}");
        assert_eq!(shown.references, []);
    }

    #[test]
    fn modules_are_files_or_stand_here() {
        let mut source = Source::parse(
            &[],
            "pub mod a; #[path = \"x/b.rs\"] mod b; mod c { mod d; }",
        )
        .expect("Rust");
        source
            .modules
            .sort_by(|one, other| one.path.cmp(&other.path));
        let paths = source.modules.iter().map(|module| &module.path);
        assert_eq!(shown(paths), ["a", "b", "c::d"]);
        assert_eq!(source.modules[1].file.as_deref(), Some("x/b.rs"));
        assert_eq!(shown(&source.inline), ["c"]);
        assert_eq!(source.public, [("a".to_owned(), 1)]);
    }

    #[test]
    fn types_are_declared_in_macros_too() {
        let source = source("struct A; a! { pub enum B {} }\ntype C = A; b!(/// Doc.\n D(u8));");
        assert!(source.types.iter().eq(["A", "B", "D", "pub"]));
    }
}
