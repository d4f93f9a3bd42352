//! `docs/limits.md` has the values that the code has.

use super::docs;
use std::fs;
use std::time::Duration;
use thorp_client::collections::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use thorp_client::{
    ATTEMPTS_MAX, COMMIT_TIMEOUT, EARLY_PER_HOME_MAX, FETCH_TIMEOUT, JOIN_TIMEOUT, LEAVE_TIMEOUT,
    MAX_STALENESS, NodeRole, ROOT_NAME_BYTES_MAX,
};
use thorp_model::limits as model;
use thorp_net::{ADDRESSES_MAX, CertificateAuthority, Grant, HANDSHAKES_MAX, SILENT_CALLERS_MAX};
use thorp_server::{Bytes, HomeConfigFile, SiteConfigFile};
use thorp_web as web;

#[test]
fn the_page_of_limits_has_the_values_of_the_code() {
    let page = fs::read_to_string(docs().join("limits.md")).unwrap();
    let rows = page.lines().filter_map(row).collect::<Vec<_>>();
    let mut expected = Vec::new();
    expected.extend(of_data());
    expected.extend(of_visits());
    expected.extend(of_time());
    expected.extend(of_nodes());
    expected.extend(of_a_name());
    expected.extend(of_certificates());
    expected.extend(of_web());
    let expected: Vec<_> = expected.iter().map(|(name, of)| (*name, &**of)).collect();
    assert_eq!(rows, expected);
}

/// Name and value of a row, but of no head.
fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let row = (cells.next()?, cells.next()?);
    (row != ("limit", "value")).then_some(row)
}

fn of_web() -> Rows {
    vec![
        (
            "keys that the fields of an answer name",
            count(web::KEYS_OF_ANSWER_MAX),
        ),
        (
            "bytes of the fields of an answer that name keys",
            bytes(web::KEY_FIELD_BYTES_MAX),
        ),
        (
            "keys of an update, in bytes",
            bytes(web::KEY_BYTES_OF_UPDATE_MAX),
        ),
        ("keys of a call", count(web::KEYS_OF_CALL_MAX)),
        (
            "updates that calls have open at a proxy",
            count(web::CALLS_OPEN_MAX),
        ),
        (
            "unsafe requests under way at a proxy",
            count(web::FOLLOWED_MAX),
        ),
        (
            "requests of a proxy whose end nobody learns",
            count(web::LINGERING_MAX),
        ),
        (
            "open updates of a proxy at its keeper",
            count(web::UPDATES_OF_PROXY_MAX),
        ),
        ("proxies of a keeper of requests", count(web::PROXIES_MAX)),
        (
            "body of an unsafe request that is read before it is sent on",
            bytes(web::UPLOAD_BYTES_MAX),
        ),
        (
            "such bodies of all clients together",
            bytes(web::UPLOADS_BYTES_MAX as usize),
        ),
    ]
}

type Rows = Vec<(&'static str, String)>;

fn of_data() -> Rows {
    vec![
        ("path of a segment", bytes(model::SEGMENT_PATH_BYTES_MAX)),
        ("name of a root", bytes(ROOT_NAME_BYTES_MAX)),
        ("name of a node", bytes(model::HOME_NAME_BYTES_MAX)),
        // `thorp_net` has it to itself. Another test reads it.
        ("part of a node's name between full stops", bytes(LABEL)),
        ("bytes of an object", bytes(model::OBJECT_BYTES_MAX)),
        // The command has it to itself. The test of large values meets it.
        (
            "bytes of an object in a document of `thorp get --json`",
            String::from("64 MiB"),
        ),
        (
            "bytes of an object on a page with others",
            bytes(model::INLINE_VALUE_BYTES_MAX),
        ),
        ("key of a `TreeMap`, encoded", bytes(KEY_BYTES_MAX)),
        ("value of a `TreeMap`, encoded", bytes(VALUE_BYTES_MAX)),
        ("rights list of a segment", bytes(model::RIGHTS_BYTES_MAX)),
        ("groups in a rights list", count(model::GROUPS_PER_LIST_MAX)),
        (
            "reads and writes of a transaction, at all its homes",
            bytes(model::COMMIT_BYTES_MAX),
        ),
        (
            "procedures of a transaction; each counts as 32 KiB of the line above",
            count(model::COMMIT_BYTES_MAX / model::PROCEDURE_CHARGE_BYTES),
        ),
        (
            "procedures that it runs on one object",
            count(model::PROCEDURES_OF_OBJECT_MAX),
        ),
        (
            "bytes of an object on which a procedure runs, before and after",
            bytes(model::INLINE_VALUE_BYTES_MAX),
        ),
        (
            "pages that it changes at a home",
            count(model::COMMIT_PAGES_MAX),
        ),
        (
            "values above 8,160 B that it writes at a home",
            count(model::STAGED_PER_MEMBER_MAX),
        ),
        ("homes that it touches", count(model::PARTICIPANTS_MAX)),
        (
            "commits of a program that wait for their outcome",
            count(model::COMMITS_IN_FLIGHT_MAX),
        ),
        ("of these early ones to one home", count(EARLY_PER_HOME_MAX)),
        ("runs of a transaction by `transact`", count(ATTEMPTS_MAX)),
        (
            "outcomes that a home remembers of a program",
            count(home().limits.outcomes_per_member),
        ),
        (
            "programs whose outcomes a home remembers",
            count(home().limits.registrations_max),
        ),
        (
            "silence until staged large values are forgotten",
            format!("{} h", model::STAGED_SILENT_MS_MAX / 3_600_000),
        ),
    ]
}

fn of_visits() -> Rows {
    vec![
        ("segments of a visit", count(model::PULL_SEGMENTS_MAX)),
        (
            "updates that the log of a program keeps",
            count(model::LOG_UPDATES_MAX),
        ),
        ("bytes of these updates", bytes(model::LOG_BYTES_MAX)),
        (
            "bytes of updates on their way into the log of a site",
            bytes(model::KEEP_BYTES_MAX),
        ),
        (
            "times that a conflict routine sends a refused update again",
            count(model::CONFLICT_ATTEMPTS_MAX as usize),
        ),
    ]
}

fn of_time() -> Rows {
    let link = home().link;
    let silence = link.alive_ms * u64::from(link.alive_missed_max);
    vec![
        ("a command, from joining to its end", timeout_of_commands()),
        (
            "the same of `put` and `get` with a value above 1 MiB, for each half of a megabyte",
            timeout_of_commands(),
        ),
        ("joining", seconds(JOIN_TIMEOUT)),
        (
            "waiting for a page or for pages to create in",
            seconds(FETCH_TIMEOUT),
        ),
        (
            "waiting for the outcome of a commit",
            seconds(COMMIT_TIMEOUT),
        ),
        (
            "age of cached pages that are read while a home is silent",
            seconds(MAX_STALENESS),
        ),
        ("leaving, while outcomes are open", seconds(LEAVE_TIMEOUT)),
        (
            "silence of a neighbour",
            seconds(Duration::from_millis(silence)),
        ),
        (
            "a read lease",
            format!(
                "{}, or `lease_ms` if that is less",
                seconds(Duration::from_millis(model::READ_LEASE_MS_MAX.into()))
            ),
        ),
        (
            "a lock that somebody else waits for",
            seconds(Duration::from_millis(model::LOCK_WANTED_MS_MAX)),
        ),
        (
            "a lease to write what the home has not seen",
            seconds(Duration::from_millis(home().limits.lease_ms.into())),
        ),
    ]
}

fn of_nodes() -> Rows {
    let (home, site) = (home(), SiteConfigFile::default());
    assert!(home.store.limit.is_none());
    assert_eq!(home.link.handshakes_max, HANDSHAKES_MAX);
    assert_eq!(home.link.silent_callers_max, SILENT_CALLERS_MAX);
    vec![
        // The configuration that a home prints explains it.
        ("least volume of a new home", least_volume()),
        ("bytes in the store", "none".to_owned()),
        ("segments of a home", count(model::SEGMENTS_MAX)),
        (
            "segments made in one incarnation",
            count(model::SEGMENT_IDS_MAX),
        ),
        (
            "pages of a segment for objects",
            count(thorp_model::PageNo::SYSTEM_FIRST.0),
        ),
        ("incarnations of a home", count(model::INCARNATIONS_MAX)),
        (
            "other homes that a home names",
            count(model::OTHER_HOMES_MAX),
        ),
        ("members and sites below a node", count(model::CHILDREN_MAX)),
        ("connections of a node", count(home.link.edges_max)),
        ("callers in their handshake", count(HANDSHAKES_MAX)),
        ("callers that have sent nothing", count(SILENT_CALLERS_MAX)),
        ("addresses of one site or home", count(ADDRESSES_MAX)),
        (
            "watched segments of a program",
            count(model::WATCHES_PER_CHILD_MAX),
        ),
        ("page cache of a program", bytes(model::MEMBER_CACHE_BYTES)),
        ("page cache of a site", site.limits.cache.to_string()),
    ]
}

fn of_a_name() -> Rows {
    let shares = home().shares;
    vec![
        ("segments that it made", count(shares.segments_max)),
        ("page numbers of a segment", count(shares.page_numbers_max)),
        (
            "its part of its own pages and the free space of the store",
            format!("{} %", shares.store_percent_max),
        ),
        ("commits under way", count(shares.commits_max)),
        ("calls under way", count(shares.calls_max)),
        ("pages that it waits for", count(shares.fetches_max)),
        (
            "locks that it holds or waits for at a home",
            count(model::LOCKS_OF_NAME_MAX),
        ),
        (
            "leases to write that it holds at a home or site",
            count(model::LEASES_PER_CHILD_MAX),
        ),
        (
            "process starts of it that hold such leases there",
            count(model::LEASE_STARTS_OF_NAME_MAX),
        ),
        (
            "logs and segments of which a home knows how far they are",
            count(model::LOGS_OF_NAME_MAX),
        ),
    ]
}

fn of_certificates() -> Rows {
    let [invite, issue] = [&["invite"][..], &["ca", "issue"]].map(help);
    assert!(invite.contains("[default: 24]"), "{invite}");
    assert!(issue.contains("30 for members and operators, 365 for sites and homes"));
    let refused = |arguments: &[&str]| crate::common::thorp().run(arguments).code == 2;
    assert!(refused(&["invite", "anna", "--hours=721"]));
    assert!(refused(&[
        "ca",
        "issue",
        "--name=anna",
        "--out=x",
        "--days=3654"
    ]));
    vec![
        (
            "life of a member's or an operator's certificate",
            life(&[NodeRole::Member, NodeRole::Operator]),
        ),
        (
            "life of a site's or a home's certificate",
            life(&[NodeRole::Site, NodeRole::Home]),
        ),
        ("the longest life that can be chosen", "3,653 days".into()),
        ("life of a token", "24 h".into()),
        ("the longest life of a token", "720 h".into()),
    ]
}

/// How long certificates of these roles live, if nobody says otherwise.
fn life(roles: &[NodeRole]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::init(dir.path().join("authority")).unwrap();
    for role in roles {
        let grant = Grant::new(*role, role.as_str());
        authority
            .issue(&grant, dir.path().join(role.as_str()))
            .unwrap();
    }
    let mut days: Vec<_> = authority
        .issued()
        .unwrap()
        .iter()
        .map(|one| one.days)
        .collect();
    days.dedup();
    assert_eq!(days.len(), 1, "{days:?}");
    format!("{} days", days[0].unwrap())
}

fn timeout_of_commands() -> String {
    let help = help(&["ls"]);
    let (_, after) = help.split_once("--timeout").unwrap();
    let (_, after) = after.split_once("[default: ").unwrap();
    let (default, _) = after.split_once(']').unwrap();
    format!("{default} s")
}

fn least_volume() -> String {
    let (_, after) = HomeConfigFile::EXAMPLE
        .split_once("The volume must have ")
        .unwrap();
    let (least, _) = after.split_once(',').unwrap();
    least.to_owned()
}

fn help(command: &[&str]) -> String {
    let said = crate::common::thorp().run(&[command, &["--help"]].concat());
    let words = said.out.split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

fn home() -> HomeConfigFile {
    HomeConfigFile::default()
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

fn bytes(bytes: impl TryInto<u64>) -> String {
    let bytes = Bytes(bytes.try_into().ok().unwrap()).to_string();
    let (number, unit) = bytes.split_once(' ').unwrap();
    format!("{} {unit}", count(number.parse::<u64>().unwrap()))
}

/// With commas, as people write large numbers.
fn count(count: impl TryInto<u64>) -> String {
    let digits = count.try_into().ok().unwrap().to_string();
    let mut written = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// As the refusal of a bad name says it.
const LABEL: usize = 63;

#[test]
fn a_label_of_a_name_is_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::init(dir.path().join("authority")).unwrap();
    let issue = |bytes: usize| {
        let grant = Grant::new(NodeRole::Member, "a".repeat(bytes));
        authority.issue(&grant, dir.path().join(bytes.to_string()))
    };
    assert!(issue(LABEL).is_ok());
    assert!(issue(LABEL + 1).is_err());
}
