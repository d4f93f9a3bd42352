//! What is asked: who there is, with how much memory, and how requests are dealt.

use crate::command::failure::{Code, Failure};
use crate::command::given::{Given, Usual, refused};
use crate::evict;
use crate::replay::{Kind, Knobs, Server, Times, Village};
use crate::trace::{Dealing, Trace, dealt};
use crate::{Invalid, fraction, within};
use clap::Args;
use serde::Serialize;
use std::str::FromStr;

#[derive(Args, Debug, Default, Serialize)]
pub(super) struct Parameters {
    /// Members that ask; if the trace names them, at least as many as it does
    #[arg(long, value_name = "N")]
    clients: Option<f64>,
    /// Who asks for what: named (as the trace tells), by-file (each is a member's), round-robin, random, by-object, runs=REQUESTS (of that mean length), slices=SECONDS
    #[arg(long, value_name = "RULE")]
    deal: Option<String>,
    /// Each member's memory
    #[arg(long, value_name = "SIZE")]
    client_pages: Option<String>,
    /// Nodes that ask for nothing and lend memory
    #[arg(long, value_name = "N")]
    servers: Option<f64>,
    /// What each of them lends
    #[arg(long, value_name = "SIZE")]
    server_pages: Option<String>,
    /// The home's memory, in front of its disk
    #[arg(long, value_name = "SIZE")]
    home_pages: Option<String>,
    /// How members share: a policy of those below, or all
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// What a member lets go of: lru, fifo, clock, s3-fifo, sieve, w-tinylfu (not for weighted and global-lru, which are orders of all pages themselves)
    #[arg(long, value_name = "EVICTOR")]
    local: Option<String>,
    /// A page of one's own memory
    #[arg(long, value_name = "MS")]
    local_ms: Option<f64>,
    /// A page of another's
    #[arg(long, value_name = "MS")]
    remote_ms: Option<f64>,
    /// A page of the home's
    #[arg(long, value_name = "MS")]
    home_ms: Option<f64>,
    /// A page from disk
    #[arg(long, value_name = "MS")]
    disk_ms: Option<f64>,
    /// A member's own work between two requests (for the epochs of gms and the bounds of balanced)
    #[arg(long, value_name = "MS")]
    think_ms: Option<f64>,
    /// How long a server works for a request (for the bounds of balanced)
    #[arg(long, value_name = "MS")]
    service_ms: Option<f64>,
    /// balanced: the part of its time that a server may spend for others
    #[arg(long, value_name = "PART")]
    busy_most: Option<f64>,
    /// n-chance: how often the last copy of a page is sent on
    #[arg(long, value_name = "N")]
    chances: Option<f64>,
    /// central, hashed: the part of members' memory that is for all
    #[arg(long, value_name = "PART")]
    shared: Option<f64>,
    /// gms, balanced: how long an epoch is at most; it takes as many requests as there are nodes, at least
    #[arg(long, value_name = "MS")]
    epoch_ms: Option<f64>,
    /// gms, balanced: the part of all pages that counts as the oldest
    #[arg(long, value_name = "PART")]
    oldest: Option<f64>,
    /// balanced: from 0, where only ages count, to 1, where only the load does
    #[arg(long, value_name = "RATE")]
    balance: Option<f64>,
    /// What is drawn is drawn from this
    #[arg(long, value_name = "N")]
    seed: Option<f64>,
}

/// A village, a trace dealt to its members, and the policies that are asked about.
pub(super) struct Question<'a> {
    pub(super) trace: &'a Trace,
    pub(super) rule: Dealing,
    pub(super) dealt: Vec<u16>,
    pub(super) village: Village,
    pub(super) knobs: Knobs,
    /// One, or all.
    pub(super) policy: Option<Kind>,
}

impl<'a> Question<'a> {
    pub(super) fn of(given: &mut Given, trace: &'a Trace) -> Result<Self, Failure> {
        let policy = word(given, "policy", "how members share", "all", "each is tried")?;
        let policy = match &*policy {
            "all" => None,
            name => Some(parsed("policy", name)?),
        };
        let (village, rule) = village(given, trace, policy)?;
        check_local(village.local, policy)?;
        let knobs = knobs(given, policy)?;
        let dealt = dealt(trace, rule, village.clients, village.seed)
            .map_err(|invalid| refused(&invalid))?;
        Ok(Question {
            trace,
            rule,
            dealt,
            village,
            knobs,
            policy,
        })
    }
}

/// Where a policy is itself the order in which pages go, a member has none of its own.
fn check_local(local: evict::Kind, policy: Option<Kind>) -> Result<(), Failure> {
    match policy.and_then(|kind| Some((kind, kind.why_no_evictor()?))) {
        Some((kind, why)) if local != evict::Kind::Lru => Err(usage(format!(
            "--local cannot be {local} with --policy {kind}: {why}"
        ))),
        _ => Ok(()),
    }
}

fn village(
    given: &mut Given,
    trace: &Trace,
    policy: Option<Kind>,
) -> Result<(Village, Dealing), Failure> {
    let (clients, why, deal, rule_why) = match trace.client_count() {
        _ if is_by_file(given, trace) => (
            trace.files.len(),
            "each file is a member",
            "by-file",
            match trace.is_of_commands() {
                true => "one member ran the commands that recorded a file",
                false => "no file tells members apart",
            },
        ),
        0 => (
            8,
            "a small group",
            "runs=50",
            "the trace does not tell who asks",
        ),
        named => (
            named,
            "as many as the trace names",
            "named",
            "the trace tells",
        ),
    };
    let clients = whole(given, "clients", "members that ask", clients as f64, why)?;
    let deal = word(given, "deal", "who asks for what", deal, rule_why)?;
    let client_pages = size(
        given,
        "client_pages",
        "each member's memory, pages",
        "5%",
        "a part of all pages",
        trace.footprint,
    )?;
    let as_member = client_pages.to_string();
    let home_pages = size(
        given,
        "home_pages",
        "the home's memory, pages",
        &as_member,
        "as much as a member's",
        trace.footprint,
    )?;
    let servers = whole(
        given,
        "servers",
        "nodes that lend memory",
        0.0,
        "members only",
    )?;
    if servers >= usize::from(u16::MAX) {
        let why = format!("must be below {}, not {servers}", u16::MAX);
        return Err(refused(&Invalid::new("servers", why)));
    }
    let is_bounded = is_for(policy, &[Kind::Balanced]);
    if is_bounded && given.is_told("busy_most") && servers == 0 {
        busy_most(given)?;
    }
    let servers = match servers {
        0 => Vec::new(),
        count => {
            let pages = size(
                given,
                "server_pages",
                "what each of them lends, pages",
                &as_member,
                "as much as a member's",
                trace.footprint,
            )?;
            let busy_most = match is_bounded {
                true => busy_most(given)?,
                false => 1.0,
            };
            vec![Server { pages, busy_most }; count]
        }
    };
    let local = word(
        given,
        "local",
        "what members let go of",
        "lru",
        "the papers' choice",
    )?;
    let village = Village {
        clients,
        client_pages,
        servers,
        home_pages,
        footprint: trace.footprint,
        local: parsed::<evict::Kind>("local", &local)?,
        times: times(given, policy)?,
        seed: whole(
            given,
            "seed",
            "what is drawn is drawn from",
            1.0,
            "any will do",
        )? as u64,
    };
    Ok((village, parsed("deal", &deal)?))
}

/// Each file is a member's: somebody said so, or nobody said that it is not.
fn is_by_file(given: &Given, trace: &Trace) -> bool {
    match given.told_word("deal") {
        Some((rule, _)) => rule == "by-file",
        None => trace.is_of_commands() || trace.is_by_file() && !given.is_told("clients"),
    }
}

fn busy_most(given: &mut Given) -> Result<f64, Failure> {
    let told = given.number_or(
        "busy_most",
        "the part of its time that one may spend for others",
        "",
        1.0,
        "they are idle",
    );
    fraction("busy_most", told).map_err(|invalid| refused(&invalid))?;
    Ok(told)
}

fn times(given: &mut Given, policy: Option<Kind>) -> Result<Times, Failure> {
    let times = told_times(given, policy);
    let slower = times.remote_ms.max(times.local_ms);
    let is_slower = (0.0..slower).contains(&times.disk_ms);
    times.check().map_err(|invalid| match invalid.parameter() {
        "disk_ms" if is_slower && is_only_disk_told(given) => refused(&quicker_than_memory(&times)),
        "disk_ms" if is_slower => refused(&slower_than_disk(&times, given.is_told("disk_ms"))),
        _ => refused(&invalid),
    })?;
    Ok(times)
}

fn is_only_disk_told(given: &Given) -> bool {
    given.is_told("disk_ms") && !given.is_told("remote_ms") && !given.is_told("local_ms")
}

/// What was told of the disk is less than what memory usually takes.
fn quicker_than_memory(times: &Times) -> Invalid {
    let (flag, ms) = match times.remote_ms >= times.local_ms {
        true => ("--remote-ms", times.remote_ms),
        false => ("--local-ms", times.local_ms),
    };
    let why = format!(
        "must not be below {flag}, {ms} by default, but is {}: tell {flag} too, if memory is quicker",
        times.disk_ms
    );
    Invalid::new("disk_ms", why)
}

/// What was told of memory is more than what the disk takes, as that was told or is usual.
fn slower_than_disk(times: &Times, is_disk_told: bool) -> Invalid {
    let (key, told_ms) = match times.remote_ms > times.disk_ms {
        true => ("remote_ms", times.remote_ms),
        false => ("local_ms", times.local_ms),
    };
    let disk_ms = times.disk_ms;
    let why = match is_disk_told {
        true => format!("must not be above --disk-ms, {disk_ms}, but is {told_ms}"),
        false => format!(
            "must not be above the {disk_ms} ms that the disk takes by default, but is {told_ms}: tell --disk-ms too, if it takes longer"
        ),
    };
    Invalid::new(key, why)
}

/// What a policy does not heed is not asked for.
fn told_times(given: &mut Given, policy: Option<Kind>) -> Times {
    let usual = Times::default();
    let mut ms = |key, words, value, why| given.number_or(key, words, "ms", value, why);
    Times {
        local_ms: ms(
            "local_ms",
            "a page of one's own memory",
            usual.local_ms,
            "next to nothing",
        ),
        remote_ms: ms(
            "remote_ms",
            "a page of another's memory",
            usual.remote_ms,
            "measured in 1995: thesis, section 3.3.2",
        ),
        home_ms: ms(
            "home_ms",
            "a page of the home's memory",
            usual.home_ms,
            "measured in 1995: thesis, section 3.3.2",
        ),
        disk_ms: ms(
            "disk_ms",
            "a page from disk",
            usual.disk_ms,
            "the quickest of 1995: thesis, section 3.3.2",
        ),
        think_ms: match is_for(policy, &[Kind::Gms, Kind::Balanced]) {
            true => ms(
                "think_ms",
                "a member's work between two requests",
                usual.think_ms,
                "none of the papers tells",
            ),
            false => usual.think_ms,
        },
        service_ms: match is_for(policy, &[Kind::Balanced]) {
            true => ms(
                "service_ms",
                "a server's work for a request",
                usual.service_ms,
                "measured in 1995: thesis, section 3.3.2",
            ),
            false => usual.service_ms,
        },
    }
}

/// Whether any of these is what is asked about.
fn is_for(policy: Option<Kind>, kinds: &[Kind]) -> bool {
    policy.is_none_or(|policy| kinds.contains(&policy))
}

/// What the policies can be told, or the one that is asked about: what others are told says nothing there.
fn knobs(given: &mut Given, policy: Option<Kind>) -> Result<Knobs, Failure> {
    let is_for = |kinds: &[Kind]| is_for(policy, kinds);
    let mut told = Knobs::default();
    if is_for(&[Kind::NChance]) {
        let words = "n-chance: how often the last copy is sent on";
        let chances = f64::from(told.chances);
        let chances = whole(given, "chances", words, chances, "Dahlin and others")?;
        told.chances = u8::try_from(chances)
            .map_err(|_| usage(format!("--chances is at most 255, not {chances}")))?;
    }
    if is_for(&[Kind::Central, Kind::Hashed]) {
        let words = "central, hashed: part of members' memory for all";
        told.shared = part(given, "shared", words, told.shared, "Dahlin and others")?;
    }
    if is_for(&[Kind::Gms, Kind::Balanced]) {
        let words = "gms, balanced: part of all pages that counts as the oldest";
        told.oldest = part(given, "oldest", words, told.oldest, "it matters little")?;
        let words = "gms, balanced: an epoch lasts at most";
        let usual = told.epoch_ms;
        told.epoch_ms = given.number_or("epoch_ms", words, "ms", usual, "it matters little");
        within("epoch_ms", told.epoch_ms, EPOCHS_MS).map_err(|invalid| refused(&invalid))?;
    }
    if is_for(&[Kind::Balanced]) {
        let words = "balanced: load balancing rate";
        told.balance = part(given, "balance", words, told.balance, "between both ends")?;
    }
    Ok(told)
}

fn part(
    given: &mut Given,
    key: &'static str,
    words: &str,
    value: f64,
    why: &str,
) -> Result<f64, Failure> {
    let part = given.number_or(key, words, "", value, why);
    fraction(key, part).map_err(|invalid| refused(&invalid))?;
    Ok(part)
}

/// From epochs of a few requests to one that outlasts any trace.
const EPOCHS_MS: (f64, f64) = (1.0, 1e9);

fn whole(
    given: &mut Given,
    key: &'static str,
    words: &str,
    value: f64,
    why: &str,
) -> Result<usize, Failure> {
    let told = given.number_or(key, words, "", value, why);
    match told.fract() == 0.0 && (0.0..=1e15).contains(&told) {
        true => Ok(told as usize),
        false => Err(usage(format!(
            "--{} is a whole number from 0 on, not {told}",
            key.replace('_', "-")
        ))),
    }
}

fn word(
    given: &mut Given,
    key: &'static str,
    words: &str,
    value: &str,
    why: &str,
) -> Result<String, Failure> {
    Ok(given.word(&Usual {
        key,
        words,
        unit: "",
        value,
        why,
    }))
}

/// Eight terabytes: more memory nobody has.
const PAGES_MAX: usize = 1_000_000_000;

/// Pages, or a part of all pages.
fn size(
    given: &mut Given,
    key: &'static str,
    words: &str,
    value: &str,
    why: &str,
    footprint: usize,
) -> Result<usize, Failure> {
    let pages = size_told(given, key, words, value, why, footprint)?;
    if pages > footprint && given.is_told(key) {
        given.remark(format!(
            "--{} is more than all {footprint} pages that are asked for: the rest stays empty.",
            key.replace('_', "-")
        ));
    }
    Ok(pages)
}

fn size_told(
    given: &mut Given,
    key: &'static str,
    words: &str,
    value: &str,
    why: &str,
    footprint: usize,
) -> Result<usize, Failure> {
    let told = given.word(&Usual {
        key,
        words,
        unit: "",
        value,
        why,
    });
    let flag = key.replace('_', "-");
    let wrong = || {
        usage(format!(
            "--{flag} is a number of pages, or a part of all pages like 5%, not {told}"
        ))
    };
    // Only the home may have no memory.
    let is_none = told.trim_end_matches('%').trim().parse() == Ok(0.0);
    if is_none && key != "home_pages" {
        return Err(usage(format!(
            "--{flag} must be a number not below 1, or a part of all pages above 0%, not {told}"
        )));
    }
    let Some(percent) = told.strip_suffix('%') else {
        let pages: f64 = told.trim().parse().map_err(|_| wrong())?;
        if !(pages >= 0.0 && (pages.fract() == 0.0 || pages.is_infinite())) {
            return Err(wrong());
        }
        return match pages <= PAGES_MAX as f64 {
            true => Ok(pages as usize),
            false => Err(usage(format!(
                "--{flag} must be at most {PAGES_MAX} pages, not {told}"
            ))),
        };
    };
    let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
    match (0.0..=1000.0).contains(&percent) {
        true => {
            Ok(((footprint as f64 * percent / 100.0).round() as usize)
                .max(usize::from(percent > 0.0)))
        }
        false => Err(wrong()),
    }
}

fn parsed<T: FromStr<Err = String>>(flag: &str, text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|why| usage(format!("--{flag}: {why}")))
}

fn usage(what: String) -> Failure {
    Failure::new(what, "--help tells what each parameter means").with(Code::Usage)
}
