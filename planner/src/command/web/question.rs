//! What is asked, out of flags and files.

use super::range::{Sweep, WHOLE_MAX, names, sweep};
use crate::command::failure::{Code, Failure};
use crate::command::given::{Given, Usual, refused};
use crate::report::Assumption;
use crate::web::change::Spacing;
use crate::web::finite::{Stale, Store};
use crate::web::schemes::{Level, Sites};
use crate::web::{DAY_S, Workload};
use crate::{Invalid, at_least, fraction, positive};

/// What is asked.
pub(super) struct Question {
    pub(super) workload: Workload,
    pub(super) sites: Sites,
    /// As it was told; nothing for a root above all caches.
    pub(super) tree: Option<Vec<Level>>,
    /// For which scheme; nothing for the best.
    pub(super) scheme: Option<Scheme>,
    pub(super) sweep: Option<Sweep>,
    /// What was told and changes nothing.
    pub(super) in_vain: Vec<Assumption>,
}

/// A way to cooperate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scheme {
    Hierarchical,
    Hashed,
    Directory,
}

impl Scheme {
    pub(super) const ALL: [Scheme; 3] = [Scheme::Hierarchical, Scheme::Hashed, Scheme::Directory];

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Hierarchical => "hierarchical",
            Scheme::Hashed => "hashed",
            Scheme::Directory => "directory",
        }
    }
}

impl Question {
    pub(super) fn of(given: &mut Given) -> Result<Self, Failure> {
        let tree = told_tree(given)?;
        let sites = sites(given, tree.as_deref())?;
        let workload = workload(given)?;
        let store = store(given, &workload)?;
        let scheme = scheme(given, &sites, tree.as_deref(), store)?;
        let sites = Sites { store, ..sites };
        let question = Question {
            in_vain: in_vain(given, &workload, &sites),
            sweep: told_sweep(given)?,
            workload,
            sites,
            tree,
            scheme,
        };
        question.check().map_err(|invalid| refused(&invalid))?;
        Ok(question)
    }

    /// The tree above these caches: a root is as far from them as they are from each other, unless it was told otherwise.
    pub(super) fn tree_of(&self, sites: &Sites) -> Vec<Level> {
        let level = |fanout, hit_s| Level { fanout, hit_s };
        self.tree
            .clone()
            .unwrap_or_else(|| vec![level(1, sites.between_s), level(sites.caches, sites.near_s)])
    }

    /// What flags do not tell one by one.
    fn check(&self) -> Result<(), Invalid> {
        self.workload.check()?;
        self.sites.check()
    }
}

fn word(given: &mut Given, key: &'static str, words: &str, value: &str, why: &str) -> String {
    given.word(&Usual {
        key,
        words,
        unit: "",
        value,
        why,
    })
}

fn sites(given: &mut Given, tree: Option<&[Level]>) -> Result<Sites, Failure> {
    let clients = given.number_or("clients", "clients of all caches", "", 5e5, "a city");
    let (lowest, why) = match tree {
        Some(levels) => (lowest(levels), "the lowest of the tree"),
        None => (10.0, "50,000 clients each"),
    };
    let caches = given.number_or("caches", "caches", "", lowest, why);
    let near_ms = given.number_or(
        "near_ms",
        "a document from a client's own cache",
        "ms",
        10.0,
        NEAR,
    );
    // One cache has no other.
    let between_ms = match caches == 1.0 && !given.is_told("between_ms") {
        true => BETWEEN_MS,
        false => given.number_or(
            "between_ms",
            "a document from another cache",
            "ms",
            BETWEEN_MS,
            NEAR,
        ),
    };
    checked(positive("clients", clients))?;
    let clients = whole("clients", clients, 1)? as f64;
    let caches = whole("caches", caches, 1)?;
    for (key, ms) in [("near_ms", near_ms), ("between_ms", between_ms)] {
        checked(at_least(key, ms, 0.0))?;
        checked(at_most(key, ms, MS_MAX))?;
    }
    if tree.is_some() && caches as f64 != lowest {
        let what = format!("--tree has {lowest} lowest caches, --caches is {caches}");
        return Err(usage(what, "leave --caches out, or make them agree"));
    }
    Ok(Sites {
        clients,
        caches,
        near_s: near_ms / 1000.0,
        between_s: between_ms / 1000.0,
        store: None,
    })
}

fn workload(given: &mut Given) -> Result<Workload, Failure> {
    let usual = Workload::washington();
    let documents = given.number_or("documents", "documents", "", usual.documents as f64, TRACE);
    let documents = whole("documents", documents, 1)?;
    let part = usual.popular_documents as f64 / usual.documents as f64;
    let popular = (documents as f64 * part).round();
    let popular = given.number_or(
        "popular_documents",
        "of these, popular",
        "",
        popular,
        "0.3 %, as there",
    );
    let popular_documents = whole("popular_documents", popular, 0)?;
    let alpha = given.number_or("alpha", "exponent of popularity", "", usual.alpha, TRACE);
    let requests = given.number_or(
        "requests_per_day",
        "requests of a client",
        "a day",
        590.0,
        TRACE,
    );
    checked(positive("requests_per_day", requests))?;
    checked(at_most("requests_per_day", requests, REQUESTS_MAX))?;
    let popular_days = given.number_or(
        "popular_change_days",
        "popular documents change every",
        "days",
        1.0,
        CHANGES,
    );
    let other_days = given.number_or(
        "other_change_days",
        "other documents change every",
        "days",
        186.0,
        CHANGES,
    );
    checked(days("popular_change_days", popular_days))?;
    checked(days("other_change_days", other_days))?;
    let spacing = spacing(given)?;
    let cacheable = given.number_or(
        "cacheable",
        "part of the requests that caches may answer",
        "",
        usual.cacheable,
        TRACE,
    );
    checked(fraction("cacheable", cacheable))?;
    let document_kb = given.number_or("document_kb", "a document's size", "KB", 7.7, TRACE);
    checked(positive("document_kb", document_kb))?;
    checked(at_most("document_kb", document_kb, DOCUMENT_MAX_KB))?;
    let server_ms = given.number_or(
        "server_ms",
        "a document from its server",
        "ms",
        1900.0,
        TRACE,
    );
    checked(positive("server_ms", server_ms))?;
    checked(at_most("server_ms", server_ms, MS_MAX))?;
    Ok(Workload {
        documents,
        popular_documents,
        alpha,
        requests_per_client_s: requests / DAY_S,
        popular_change_s: popular_days * DAY_S,
        unpopular_change_s: other_days * DAY_S,
        spacing,
        cacheable,
        document_bytes: document_kb * 1000.0,
        server_s: server_ms / 1000.0,
    })
}

fn spacing(given: &mut Given) -> Result<Spacing, Failure> {
    let name = word(
        given,
        "spacing",
        "times between changes",
        "exponential",
        "changes at random",
    );
    let spacing = match &*name {
        "exponential" => Spacing::Exponential,
        "regular" => Spacing::Regular,
        "pareto" => Spacing::Pareto {
            shape: given.number_or("shape", "shape of pareto", "", 1.5, "a heavy tail"),
        },
        "lognormal" => Spacing::Lognormal {
            sigma: given.number_or("sigma", "sigma of lognormal", "", 1.5, "a heavy tail"),
        },
        other => {
            let what =
                format!("--spacing is exponential, pareto, lognormal or regular, not {other}");
            return Err(usage(what, "exponential is what the model was made with"));
        }
    };
    checked(spacing.check())?;
    for (key, spacing) in [("shape", "pareto"), ("sigma", "lognormal")] {
        if given.is_told(key) && name != spacing {
            let what = format!("--{key} is for --spacing {spacing}, and that is {name}");
            return Err(usage(what, "leave one of them out, or make them agree"));
        }
    }
    Ok(spacing)
}

fn store(given: &mut Given, workload: &Workload) -> Result<Option<Store>, Failure> {
    let room_gb = given.number_or(
        "room_gb",
        "room of each cache",
        "GB",
        f64::INFINITY,
        "for all documents",
    );
    let has_room = room_gb == f64::INFINITY;
    if !has_room {
        checked(positive("room_gb", room_gb))?;
        checked(at_most("room_gb", room_gb, ROOM_MAX_GB))?;
    }
    if has_room && !given.is_told("stale") {
        return Ok(None);
    }
    let stale = stale(given)?;
    if has_room {
        let what = "--stale is for caches that fill up, and these have room for all documents";
        return Err(usage(what, "tell --room-gb too, or leave it out"));
    }
    let documents = room_gb * 1e9 / workload.document_bytes;
    Ok(Some(Store { documents, stale }))
}

fn stale(given: &mut Given) -> Result<Stale, Failure> {
    let stale = word(
        given,
        "stale",
        "copies whose document changed",
        "lingers",
        "nobody tells a web cache",
    );
    match &*stale {
        "lingers" => Ok(Stale::Lingers),
        "dropped" => Ok(Stale::IsDropped),
        other => {
            let what = format!("--stale is lingers or dropped, not {other}");
            Err(usage(what, "dropped needs servers that tell of changes"))
        }
    }
}

/// What was told, but changes nothing beside what else was.
fn in_vain(given: &Given, workload: &Workload, sites: &Sites) -> Vec<Assumption> {
    let alone = (sites.caches > 1, "one cache has no other");
    let popular = (
        workload.popular_documents > 0,
        "no documents are popular ones",
    );
    let others = (
        workload.popular_documents < workload.documents,
        "all documents are popular ones",
    );
    let reasons = [
        ("between_ms", alone),
        ("scheme", alone),
        ("popular_change_days", popular),
        ("other_change_days", others),
    ];
    reasons
        .into_iter()
        .filter(|(key, (counts, _))| !counts && given.is_told(key))
        .map(|(key, (_, why))| {
            let flag = format!("--{}", key.replace('_', "-"));
            Assumption::new("without effect", flag, why)
        })
        .collect()
}

fn told_sweep(given: &mut Given) -> Result<Option<Sweep>, Failure> {
    if !given.is_told("sweep") {
        return Ok(None);
    }
    let text = word(given, "sweep", "what is varied, from and to", "", "");
    let Some(sweep) = sweep(&text) else {
        let what = format!("--sweep is a parameter and its range, as alpha=0.5:1.2, not {text}");
        let todo = format!("what can be varied, upwards, where it can be: {}", names());
        return Err(usage(what, &todo));
    };
    Ok(Some(sweep))
}

fn scheme(
    given: &mut Given,
    sites: &Sites,
    tree: Option<&[Level]>,
    store: Option<Store>,
) -> Result<Option<Scheme>, Failure> {
    if sites.caches > 1 && tree.is_none() {
        word(
            given,
            "tree",
            "tree, from the top",
            "a root above all caches",
            "two levels",
        );
    }
    if sites.caches == 1 && !given.is_told("scheme") {
        return tree_fits(tree.is_some(), store).map(|()| None);
    }
    let name = word(
        given,
        "scheme",
        "the scheme that is answered for",
        "best",
        "the least waiting",
    );
    let scheme = match &*name {
        "best" => None,
        name => match Scheme::ALL.into_iter().find(|scheme| scheme.name() == name) {
            Some(scheme) => Some(scheme),
            None => {
                let what =
                    format!("--scheme is hierarchical, hashed, directory or best, not {name}");
                return Err(usage(what, "best takes the one with the least waiting"));
            }
        },
    };
    tree_fits(
        scheme == Some(Scheme::Hierarchical) || tree.is_some(),
        store,
    )?;
    Ok(scheme)
}

fn tree_fits(is_asked_for: bool, store: Option<Store>) -> Result<(), Failure> {
    match is_asked_for && store.is_some() {
        true => {
            let what = "a tree of caches with limited room cannot be computed";
            let todo = "leave --room-gb out, or --tree and --scheme hierarchical";
            Err(usage(what, todo))
        }
        false => Ok(()),
    }
}

/// `1:100,10:50,10:10`.
fn told_tree(given: &mut Given) -> Result<Option<Vec<Level>>, Failure> {
    if !given.is_told("tree") {
        return Ok(None);
    }
    let text = word(given, "tree", "tree, from the top", "", "");
    let levels: Option<Vec<Level>> = text.split(',').map(level).collect();
    match levels {
        Some(levels) if lowest(&levels) < WHOLE_MAX => Ok(Some(levels)),
        _ => {
            let what = format!("--tree is levels from the top, as 1:50,10:10, not \"{text}\"");
            Err(usage(
                what,
                "each is how many caches are below one of the level above, and milliseconds for a hit there",
            ))
        }
    }
}

fn level(text: &str) -> Option<Level> {
    let (fanout, hit_ms) = text.split_once(':')?;
    let fanout: u64 = fanout.trim().parse().ok()?;
    let hit_ms: f64 = hit_ms.trim().parse().ok()?;
    let can_be = fanout > 0 && (0.0..=MS_MAX).contains(&hit_ms);
    can_be.then_some(Level {
        fanout,
        hit_s: hit_ms / 1000.0,
    })
}

fn lowest(levels: &[Level]) -> f64 {
    levels.iter().map(|level| level.fanout as f64).product()
}

fn whole(parameter: &'static str, value: f64, least: u32) -> Result<u64, Failure> {
    checked(at_least(parameter, value, least.into()))?;
    if value.fract() != 0.0 || value > WHOLE_MAX {
        let why = format!(
            "must be a whole number up to {WHOLE_MAX:e}, not {}",
            given_as(value)
        );
        return Err(refused(&Invalid::new(parameter, why)));
    }
    Ok(value as u64)
}

fn at_most(parameter: &'static str, value: f64, bound: f64) -> Result<(), Invalid> {
    match value <= bound {
        true => Ok(()),
        false => {
            let why = format!(
                "must be a number not above {bound:e}, not {}",
                given_as(value)
            );
            Err(Invalid::new(parameter, why))
        }
    }
}

/// Without hundreds of zeros.
fn given_as(value: f64) -> String {
    match value >= 1e12 {
        true => format!("{value:e}"),
        false => value.to_string(),
    }
}

fn days(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    match value >= 0.0 {
        true => Ok(()),
        false => Err(Invalid::new(
            parameter,
            format!("must be a time, or inf, not {value}"),
        )),
    }
}

fn checked(outcome: Result<(), Invalid>) -> Result<(), Failure> {
    outcome.map_err(|invalid| refused(&invalid))
}

fn usage(what: impl Into<String>, todo: &str) -> Failure {
    Failure::new(what, todo).with(Code::Usage)
}

const TRACE: &str = "University of Washington, 1999 (thesis, table 5.1)";
const CHANGES: &str = "closest to that trace (mid slow)";
const BETWEEN_MS: f64 = 50.0;
const NEAR: &str = "within a city (thesis, section 5.3)";

/// Eleven days: nobody waits as long for a document.
const MS_MAX: f64 = 1e9;

/// More than a machine could send.
const REQUESTS_MAX: f64 = 1e12;

/// A petabyte.
const DOCUMENT_MAX_KB: f64 = 1e12;

/// No cache is as large, and its documents can still be counted.
const ROOM_MAX_GB: f64 = 1e15;
