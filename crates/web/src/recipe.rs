//! What an operator says of an application: which keys a row stands for, and which answers rest on which keys.

use crate::key_field::KeyField;
use crate::noise::{Noise, NoiseError};
use crate::route::{Pattern, PatternError, has_another_reading};
use crate::template::{Template, TemplateError};
use hyper::header::{self, HeaderName};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use thorp_versions::Terms;

/// A recipe as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    others: Others,
    #[serde(default)]
    known: Vec<String>,
    #[serde(default)]
    tables: BTreeMap<String, WrittenTable>,
    #[serde(default)]
    routes: Vec<WrittenRoute>,
}

/// What becomes of answers that no route names.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "lowercase")]
enum Others {
    /// They are cached as the origin says.
    #[default]
    Cache,
    /// They pass through.
    Pass,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenTable {
    Keys(Vec<String>),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRoute {
    path: String,
    keys: Option<Vec<String>>,
    changes: Option<Vec<String>>,
    #[serde(default)]
    keys_from: Vec<String>,
    #[serde(default)]
    cookies: Vec<String>,
    #[serde(default)]
    query: Vec<String>,
    #[serde(default)]
    vary: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    also: Vec<WrittenAlso>,
    #[serde(default)]
    noise: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAlso {
    contains: Option<String>,
    status: Option<u16>,
    keys: Vec<String>,
}

/// What a change of a row changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Table {
    /// Nothing that an answer shows.
    Ignored,
    /// These keys.
    Keys(Vec<Template>),
}

/// Answers that rest on declared keys only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    path: Pattern,
    keys: Option<Vec<Template>>,
    /// Fields in which its answers name more keys.
    keys_from: Vec<KeyField>,
    /// What an unsafe request changes. None: nobody can say.
    changes: Option<Vec<Template>>,
    cookies: Vec<String>,
    query: Vec<String>,
    /// Fields of requests by which its answers may vary.
    vary: Vec<HeaderName>,
    /// No hole has such a text in it.
    without: Vec<String>,
    also: Vec<Also>,
    /// What an audit overlooks.
    noise: Vec<Noise>,
}

/// Keys of answers that contain a text, or have a status, or both.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Also {
    /// Empty: any body.
    contains: String,
    /// None: any status.
    status: Option<u16>,
    keys: Vec<Template>,
}

/// On what an answer rests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rests {
    /// On any change of the source.
    OnEverything,
    /// On these keys.
    On(Vec<String>),
}

/// A recipe (rule W9: what it does not name counts as unknown).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recipe {
    others: Others,
    /// Keys that answers may name, and that nothing else here changes.
    known: Vec<Template>,
    tables: BTreeMap<String, Table>,
    routes: Vec<Route>,
}

/// Why a recipe cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecipeError {
    /// It is not the TOML of a recipe.
    Form(toml::de::Error),
    /// A key cannot be read.
    Key(TemplateError),
    /// A path cannot be read.
    Path(PatternError),
    /// What is overlooked cannot be read: the path of the route, and why.
    Noise(String, NoiseError),
    /// A table is neither a list of keys nor *ignored*: the table, and what it is.
    Table(String, String),
    /// A key of a route has a hole that its path does not have: the path, and the hole.
    Hole(String, String),
    /// A route's answers may not vary by such a field: the path, and the field.
    Vary(String, String),
    /// Keys of some answers of a route, and nothing says of which: the path.
    Also(String),
    /// No answer has such a status: the path of the route, and the status.
    Status(String, u16),
    /// No such field names keys: the path, and the field.
    KeysFrom(String, String),
}

impl fmt::Display for RecipeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecipeError::Form(error) => write!(f, "{error}"),
            RecipeError::Key(error) => write!(f, "{error}"),
            RecipeError::Path(error) => write!(f, "{error}"),
            RecipeError::Noise(path, error) => write!(f, "route {path}: {error}"),
            RecipeError::Table(table, found) => write!(
                f,
                "table {table} is {found:?}: write \"ignored\", or a list of keys"
            ),
            RecipeError::Hole(path, hole) => {
                write!(
                    f,
                    "a key of route {path} needs {{{hole}}}, which the path does not have"
                )
            }
            RecipeError::Vary(path, field) => write!(
                f,
                "the answers of route {path} cannot vary by {field:?}: name another field of requests"
            ),
            RecipeError::Also(path) => write!(
                f,
                "an `also` of route {path} fits each answer: give it `contains` or `status`, or name its keys under `keys`"
            ),
            RecipeError::Status(path, status) => write!(
                f,
                "an `also` of route {path} has the status {status}: write one from 200 to 599"
            ),
            RecipeError::KeysFrom(path, field) => write!(
                f,
                "the answers of route {path} name no keys in {field:?}: write \"surrogate-key\", \"xkey\", \"cache-tag\" or \"cache-groups\""
            ),
        }
    }
}

impl std::error::Error for RecipeError {}

/// Fields by which no shared answer varies: credentials, and what the proxy itself sets or answers. Conditions are others.
const NEVER_IN_A_NAME: [HeaderName; 10] = [
    header::ACCEPT_ENCODING,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::HOST,
    header::RANGE,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The statuses of whole answers (RFC 9110, section 15).
const STATUSES: RangeInclusive<u16> = 200..=599;

/// Recipes that come with Thorp.
const SHIPPED: [(&str, &str); 2] = [
    ("mediawiki", include_str!("../recipes/mediawiki.toml")),
    ("wagtail", include_str!("../recipes/wagtail.toml")),
];

impl Recipe {
    /// The text of a recipe that comes with Thorp: `mediawiki` or `wagtail`.
    pub fn shipped(name: &str) -> Option<&'static str> {
        let mut shipped = SHIPPED.iter();
        shipped
            .find(|(known, _)| *known == name)
            .map(|(_, text)| *text)
    }

    /// Reads a recipe.
    ///
    /// # Errors
    ///
    /// See [`RecipeError`].
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        let written: Written = toml::from_str(text).map_err(RecipeError::Form)?;
        let tables = written.tables.into_iter().map(|(name, table)| {
            let table = Table::read(&name, table)?;
            Ok((qualified(name), table))
        });
        let tables = tables.collect::<Result<_, RecipeError>>()?;
        let routes = written.routes.into_iter().map(Route::read);
        let routes = routes.collect::<Result<_, RecipeError>>()?;
        Ok(Recipe {
            others: written.others,
            known: templates(&written.known)?,
            tables,
            routes,
        })
    }

    /// What is said of a table, `schema.name`. None: nothing.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// What its keeper and its proxies have to agree on: a keeper of this name changes these keys.
    pub fn terms(&self, name: &str) -> Terms {
        Terms::of(&format!("{name} {:?}", self.tables))
    }

    /// All tables that it names.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        let tables = self.tables.iter();
        tables.map(|(name, table)| (name.as_str(), table))
    }

    /// The tables whose changes count.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        let keyed = self.tables.iter();
        let keyed = keyed.filter(|(_, table)| **table != Table::Ignored);
        keyed.map(|(name, _)| name.as_str())
    }

    /// Whether something that this recipe names changes a key. A key of which it knows nothing may change at any time (rule W9).
    pub fn may_name(&self, key: &str) -> bool {
        let of_tables = self.tables.values().flat_map(Table::templates);
        let changes = self.routes.iter().flat_map(|route| &route.changes);
        let mut all = of_tables.chain(changes.flatten()).chain(&self.known);
        all.any(|template| template.makes(key))
    }

    /// Whether it says what rows of tables stand for.
    pub fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Whether it says what unsafe requests change.
    pub fn has_changes(&self) -> bool {
        self.routes.iter().any(|route| route.changes.is_some())
    }

    /// The keys of routes that nothing here changes: an answer that rests on one would never end.
    pub fn unchanged(&self) -> impl Iterator<Item = String> {
        let keys = self.routes.iter().flat_map(Route::keys);
        let filled = |key: &Template| key.fill(|_| Some("1")).unwrap_or_default();
        keys.filter(move |key| !self.may_name(&filled(key)))
            .map(Template::to_string)
    }

    /// Whether answers that no route names are cached as the origin says.
    pub fn caches_others(&self) -> bool {
        self.others == Others::Cache
    }

    /// Whether it calls any answers coherent. Without that nobody needs a source.
    pub fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Whether it names any keys. Where answers name them themselves, it must not.
    pub fn names_keys(&self) -> bool {
        let has = |route: &Route| {
            let says = route.keys.is_some() || route.changes.is_some();
            says || !route.also.is_empty() || !route.keys_from.is_empty()
        };
        !self.tables.is_empty() || !self.known.is_empty() || self.routes.iter().any(has)
    }

    /// The keys on which an answer rests beside those of its route, as its status and its body show.
    pub fn also(&self, path: &str, status: u16, body: &[u8]) -> Vec<String> {
        let mut routes = self.routes.iter();
        let found = routes.find_map(|route| Some((route, route.found(path)?)));
        let Some((route, found)) = found else {
            return Vec::new();
        };
        let also = route.also.iter().filter(|also| also.fits(status, body));
        let keys = also.flat_map(|also| &also.keys);
        keys.filter_map(|key| fill(key, &found)).collect()
    }

    /// The keys that an unsafe request to a path changes, as the first route says that takes the path. None: nobody can say (rule W9). A
    /// path that an origin may read as another one is of that kind.
    pub fn changes(&self, path: &str) -> Option<Vec<String>> {
        if has_another_reading(path) {
            return None;
        }
        let mut routes = self.routes.iter();
        let (route, found) = routes.find_map(|route| Some((route, route.found(path)?)))?;
        let changes = route.changes.as_ref()?.iter();
        changes.map(|key| fill(key, &found)).collect()
    }

    /// The first route that a path belongs to, and on what its answers rest. None: the answers are not coherent.
    pub fn route(&self, path: &str) -> Option<(&Route, Rests)> {
        let found = |route: &'_ Route| route.rests(path);
        self.routes
            .iter()
            .find_map(|route| Some((route, found(route)?)))
    }
}

impl Table {
    fn read(name: &str, written: WrittenTable) -> Result<Self, RecipeError> {
        match written {
            WrittenTable::Word(word) if word == "ignored" => Ok(Table::Ignored),
            WrittenTable::Word(word) => Err(RecipeError::Table(name.to_owned(), word)),
            WrittenTable::Keys(keys) => templates(&keys).map(Table::Keys),
        }
    }

    fn templates(&self) -> &[Template] {
        match self {
            Table::Ignored => &[],
            Table::Keys(keys) => keys,
        }
    }
}

impl Route {
    fn read(written: WrittenRoute) -> Result<Self, RecipeError> {
        let path = Pattern::parse(&written.path).map_err(RecipeError::Path)?;
        let keys = written.keys.as_deref().map(templates).transpose()?;
        let changes = written.changes.as_deref().map(templates).transpose()?;
        let also = written.also.into_iter();
        let also = also.map(|also| Also::read(&written.path, also));
        let also: Vec<Also> = also.collect::<Result<_, _>>()?;
        let learned = also.iter().flat_map(|also| &also.keys);
        let all = keys.iter().chain(&changes).flatten().chain(learned);
        for template in all {
            let missing = template.holes().find(|hole| !path.has(hole));
            if let Some(hole) = missing {
                return Err(RecipeError::Hole(written.path, hole.to_owned()));
            }
        }
        let vary = written.vary.into_iter().map(|field| {
            let name = field.parse().ok();
            let name = name.filter(may_be_in_a_name);
            name.ok_or_else(|| RecipeError::Vary(written.path.clone(), field))
        });
        let vary = vary.collect::<Result<_, _>>()?;
        let keys_from = written.keys_from.into_iter().map(|name| {
            let field = KeyField::of(&name);
            field.ok_or_else(|| RecipeError::KeysFrom(written.path.clone(), name))
        });
        let keys_from = keys_from.collect::<Result<_, _>>()?;
        let noise = written.noise.iter().map(|text| Noise::parse(text));
        let noise = noise.collect::<Result<_, _>>();
        let noise = noise.map_err(|error| RecipeError::Noise(written.path.clone(), error))?;
        Ok(Route {
            noise,
            path,
            keys,
            keys_from,
            changes,
            vary,
            cookies: written.cookies,
            query: written.query,
            without: written.without,
            also,
        })
    }

    /// The keys on which its answers may rest, beside those that they name.
    fn keys(&self) -> impl Iterator<Item = &Template> {
        let also = self.also.iter().flat_map(|also| &also.keys);
        self.keys.iter().flatten().chain(also)
    }

    /// The fields of requests by which its answers may vary.
    pub fn vary(&self) -> &[HeaderName] {
        &self.vary
    }

    /// The fields in which its answers name keys.
    pub fn keys_from(&self) -> &[KeyField] {
        &self.keys_from
    }

    /// What differs between two of its answers without a change.
    pub fn noise(&self) -> &[Noise] {
        &self.noise
    }

    /// What stands in the holes of its path. None: it is another path.
    fn found(&self, path: &str) -> Option<BTreeMap<String, String>> {
        let found = self.path.matches(path)?;
        let has = |text: &String| found.values().any(|value| value.contains(text.as_str()));
        (!self.without.iter().any(has)).then_some(found)
    }

    /// Whether a cookie has no meaning for the answers.
    pub fn ignores_cookie(&self, name: &str) -> bool {
        self.cookies.iter().any(|cookie| cookie == name)
    }

    /// Whether the answers rest on the same keys with such a query. Each of its parameters has to be named.
    pub fn takes_query(&self, query: &str) -> bool {
        let mut parameters = query.split('&').filter(|part| !part.is_empty());
        parameters.all(|part| {
            let name = part.split_once('=').map_or(part, |(name, _)| name);
            self.query.iter().any(|named| named == name)
        })
    }

    fn rests(&self, path: &str) -> Option<Rests> {
        let found = self.found(path)?;
        let Some(keys) = &self.keys else {
            return Some(match self.keys_from.is_empty() {
                true => Rests::OnEverything,
                // Its answers say the rest.
                false => Rests::On(Vec::new()),
            });
        };
        let keys = keys.iter().map(|key| fill(key, &found));
        keys.collect::<Option<_>>().map(Rests::On)
    }
}

impl Also {
    fn read(path: &str, written: WrittenAlso) -> Result<Self, RecipeError> {
        if written.contains.is_none() && written.status.is_none() {
            return Err(RecipeError::Also(path.to_owned()));
        }
        if let Some(status) = written.status.filter(|of| !STATUSES.contains(of)) {
            return Err(RecipeError::Status(path.to_owned(), status));
        }
        Ok(Also {
            keys: templates(&written.keys)?,
            contains: written.contains.unwrap_or_default(),
            status: written.status,
        })
    }

    fn fits(&self, status: u16, body: &[u8]) -> bool {
        let text = self.contains.as_bytes();
        let has = || text.is_empty() || body.windows(text.len()).any(|part| part == text);
        self.status.is_none_or(|named| named == status) && has()
    }
}

fn may_be_in_a_name(field: &HeaderName) -> bool {
    !NEVER_IN_A_NAME.contains(field) && !field.as_str().starts_with("if-")
}

fn fill(key: &Template, found: &BTreeMap<String, String>) -> Option<String> {
    key.fill(|name| found.get(name).map(String::as_str))
}

fn templates(keys: &[String]) -> Result<Vec<Template>, RecipeError> {
    let keys = keys.iter().map(|key| Template::parse(key));
    keys.collect::<Result<_, _>>().map_err(RecipeError::Key)
}

/// A table without a schema is in `public`.
fn qualified(name: String) -> String {
    match name.contains('.') {
        true => name,
        false => format!("public.{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = r#"
        [tables]
        session = "ignored"
        item = ["item:{id}", "shelf:{shelf}"]

        [[routes]]
        path = "/items/{id}"
        keys = ["item:{id}"]
        cookies = ["theme"]
        query = ["lang"]
        without = [":"]
        also = [
          { contains = "sold out", keys = ["stock", "stock:{id}"] },
          { status = 301, keys = ["moved"] },
          { status = 404, contains = "gone", keys = ["gone"] },
        ]

        [[routes]]
        path = "/report"
    "#;

    #[test]
    fn a_recipe_says_what_tables_and_routes_stand_for() {
        let recipe = Recipe::parse(RECIPE).expect("a recipe");
        assert_eq!(recipe.table("public.session"), Some(&Table::Ignored));
        assert_eq!(recipe.table("public.other"), None);
        assert_eq!(recipe.named().collect::<Vec<_>>(), ["public.item"]);
        let (route, rests) = recipe.route("/items/7").expect("a route");
        assert_eq!(rests, Rests::On(vec![String::from("item:7")]));
        assert!(route.ignores_cookie("theme") && !route.ignores_cookie("session"));
        assert!(route.takes_query("") && route.takes_query("lang=de"));
        assert!(!route.takes_query("lang=de&with=8") && !route.takes_query("lang%3Dde"));
        let (_, rests) = recipe.route("/report").expect("a route");
        assert_eq!(rests, Rests::OnEverything);
        assert_eq!(recipe.route("/items/7/edit"), None);
        assert_eq!(recipe.route("/items/shelf:7"), None);
        let also = |status, body: &str| recipe.also("/items/7", status, body.as_bytes());
        assert_eq!(also(200, "it is sold out."), ["stock", "stock:7"]);
        assert_eq!(also(301, ""), ["moved"]);
        assert_eq!(also(404, "it is gone"), ["gone"]);
        for (status, body) in [(200, "sold"), (404, ""), (200, "gone")] {
            assert_eq!(also(status, body), Vec::<String>::new());
        }
    }

    #[test]
    fn a_key_in_a_field_has_to_be_one_that_the_recipe_knows() {
        let recipe = "known = [\"html\"]\n[tables]\nitem = [\"item:{id}\"]\nlog = \"ignored\"\n\
            [[routes]]\npath = \"/a\"\nkeys_from = [\"Surrogate-Key\", \"cache-groups\"]";
        let recipe = Recipe::parse(recipe).expect("a recipe");
        assert!(recipe.may_name("item:7") && recipe.may_name("html"));
        assert!(!recipe.may_name("shelf:7") && !recipe.may_name("log"));
        let (route, rests) = recipe.route("/a").expect("a route");
        assert_eq!(rests, Rests::On(Vec::new()));
        let fields = [KeyField::SurrogateKey, KeyField::CacheGroups];
        assert_eq!(route.keys_from(), fields);
    }

    #[test]
    fn a_route_says_what_unsafe_requests_change() {
        let recipe = "[[routes]]\npath = \"/items/{id}\"\nkeys = [\"item:{id}\"]\nchanges = [\"item:{id}\", \"all\"]\n\
            [[routes]]\npath = \"/search\"\nchanges = []\n[[routes]]\npath = \"/cart\"";
        let recipe = Recipe::parse(recipe).expect("a recipe");
        let keys = |path| recipe.changes(path);
        assert_eq!(
            keys("/items/7"),
            Some(vec!["item:7".to_owned(), "all".to_owned()])
        );
        assert_eq!(keys("/search"), Some(Vec::new()));
        assert_eq!((keys("/cart"), keys("/other")), (None, None));
        assert!(recipe.may_name("item:9") && !recipe.may_name("cart"));
        assert_eq!(keys("/items/%37"), None, "it may be item 7, too");
        let hole = "[[routes]]\npath = \"/a\"\nchanges = [\"{id}\"]";
        assert!(Recipe::parse(hole).is_err());
    }

    #[test]
    fn a_key_of_a_route_that_nothing_changes_is_found() {
        let recipe = "known = [\"html\"]\n[[routes]]\npath = \"/items/{id}\"\nkeys = [\"item:{id}\", \"html\", \"shelf\"]\n\
            also = [{ contains = \"a\", keys = [\"stock:{id}\"] }]\n\
            [[routes]]\npath = \"/edit/{item}\"\nchanges = [\"item:{item}\"]";
        let recipe = Recipe::parse(recipe).expect("a recipe");
        let found: Vec<String> = recipe.unchanged().collect();
        assert_eq!(found, ["shelf", "stock:{id}"]);
    }

    #[test]
    fn the_recipes_that_come_with_thorp_can_be_read() {
        for (name, text) in SHIPPED {
            let recipe = Recipe::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Recipe::shipped(name), Some(text));
            assert!(
                recipe.named().count() > 0 && !recipe.routes.is_empty(),
                "{name}"
            );
        }
        let recipe = Recipe::parse(SHIPPED[0].1).expect("a recipe");
        assert!(!recipe.caches_others() && Recipe::default().caches_others());
        let (_, rests) = recipe.route("/wiki/Main_Page").expect("an article");
        let Rests::On(keys) = rests else {
            panic!("it rests on keys");
        };
        assert_eq!(keys[0], "page:0:Main_Page");
        assert_eq!(recipe.route("/wiki/Template:Note"), None);
        let sent_on = recipe.also(
            "/wiki/Old_name",
            200,
            b"{\"wgRedirectedFrom\":\"Old_name\"}",
        );
        assert_eq!(sent_on, ["pages", "props"]);
        let recipe = Recipe::parse(SHIPPED[1].1).expect("a recipe");
        for path in ["/", "/news/today/"] {
            let (_, rests) = recipe.route(path).expect("a page");
            assert_eq!(rests, Rests::OnEverything, "{path}");
        }
        for path in ["/admin/login/", "/documents/1/a.pdf", "/media/a.png"] {
            assert_eq!(recipe.route(path), None, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_right_is_refused_with_the_reason() {
        let errors = [
            ("[tables]\na = \"ignore\"", "write \"ignored\""),
            ("[tables]\na = [\"x{\"]", "brace"),
            ("[[routes]]\npath = \"/a\"\nkeys = [\"{id}\"]", "{id}"),
            ("[[routes]]\npath = \"a\"", "begins with /"),
            ("[route]\n", "unknown field"),
            (
                "[[routes]]\npath = \"/a\"\nalso = [{ keys = [\"b\"] }]",
                "fits each answer",
            ),
            (
                "[[routes]]\npath = \"/a\"\nalso = [{ status = 30, keys = [\"b\"] }]",
                "status 30:",
            ),
            ("[[routes]]\npath = \"/a\"\nnoise = [\"b\"]", "write one *"),
            ("others = \"keep\"", "unknown variant"),
            ("[[routes]]\npath = \"/a\"\nvary = [\"cookie\"]", "vary by"),
            (
                "[[routes]]\npath = \"/a\"\nvary = [\"if-match\"]",
                "vary by",
            ),
            ("[[routes]]\npath = \"/a\"\nvary = [\"a b\"]", "vary by"),
            (
                "[[routes]]\npath = \"/a\"\nkeys_from = [\"etag\"]",
                "name no keys in",
            ),
            ("known = [\"a{\"]", "brace"),
        ];
        for (text, words) in errors {
            let error = Recipe::parse(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
