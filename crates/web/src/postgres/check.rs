//! Whether a database and a recipe are as a keeper needs them.

use super::config::Postgres;
use super::error::PostgresError;
use super::finding::Finding;
use super::schema::{self, Kind, Relation};
use super::{rights, sessions, standby, watchdog};
use crate::recipe::{Recipe, Table};
use std::collections::BTreeMap;
use thorp_versions::BEAT_MS_MAX;
use tokio_postgres::Client;

/// So many names are told in one finding.
const NAMES_MAX: usize = 8;

const SET_UP: &str = "run `thorp web setup --postgres URL --recipe FILE --apply`, with a URL of a superuser of the database";

/// Looks at everything. It changes nothing.
///
/// # Errors
///
/// The database does not answer.
pub async fn check(source: &Postgres, recipe: &Recipe) -> Result<Vec<Finding>, PostgresError> {
    // It has the settings of any session, so it writes nothing.
    let client = source.connect_as_any("thorp web check").await?;
    let name = source.name();
    let relations = schema::relations(&client, &schema::schema_of(name)).await?;
    let mut found = named_tables(&relations, recipe);
    found.push(unnamed_tables(&relations, recipe));
    found.push(identities(&relations, recipe));
    found.push(wal_level(&client).await?);
    found.push(restart_after_crash(&client).await?);
    found.push(role(&client, name, source.user()).await?);
    found.push(publication(&client, name).await?);
    found.push(triggers(&client, name).await?);
    found.push(slot(&client, name).await?);
    found.push(names(&client, name).await?);
    found.push(same_name(&client, name).await?);
    found.push(synchronous_commit(&client).await?);
    found.push(old_snapshots(&client).await?);
    found.push(watched(&client, name).await?);
    Ok(found)
}

// --- The recipe ---

/// What the recipe names has to be there, and has to be decoded.
fn named_tables(relations: &BTreeMap<String, Relation>, recipe: &Recipe) -> Vec<Finding> {
    let named = recipe.tables().map(|(name, table)| {
        let Some(relation) = relations.get(name) else {
            return Some(Finding::problem(
                "recipe",
                format!("the recipe names {name}, which is not in the database"),
                "mend the name in the recipe, with its schema; or take it out",
            ));
        };
        match table {
            Table::Ignored => None,
            Table::Keys(_) if relation.kind != Kind::Table => Some(Finding::problem(
                "recipe",
                format!("{name} is a {}: its changes are not decoded", relation.kind.word()),
                "make it a table that is logged, or let no route rest on it",
            )),
            Table::Keys(keys) => {
                let holes = keys.iter().flat_map(|key| key.holes());
                let missing = holes.filter(|hole| !relation.columns.contains(*hole));
                let missing: Vec<String> = missing.map(str::to_owned).collect();
                let mut holes = keys.iter().flat_map(|key| key.holes());
                if let Some(loose) = holes.find(|hole| relation.loose.contains(*hole)) {
                    return Some(Finding::problem(
                        "recipe",
                        format!("equal values of column {loose} of {name} may have several texts: citext, a collation that is not deterministic, or a domain over character(n)"),
                        "let no key rest on it: what an address calls otherwise than the row stays in the cache",
                    ));
                }
                (!missing.is_empty()).then(|| {
                    Finding::problem(
                        "recipe",
                        format!("{name} has no column {}", listed(&missing)),
                        "mend the key in the recipe: until then each change of the table ends all answers",
                    )
                })
            }
        }
    });
    let wrong: Vec<Finding> = named.flatten().collect();
    match wrong.is_empty() {
        true => vec![Finding::good(
            "recipe",
            "all that it names is in the database",
        )],
        false => wrong,
    }
}

fn unnamed_tables(relations: &BTreeMap<String, Relation>, recipe: &Recipe) -> Finding {
    let tables = relations.values().filter(|it| it.kind == Kind::Table);
    let unnamed = tables.filter(|it| recipe.table(&it.root).is_none());
    let unnamed: Vec<String> = unnamed.map(|it| it.name.clone()).collect();
    match unnamed.is_empty() {
        true => Finding::good("tables", "the recipe names all tables"),
        false => Finding::warning(
            "tables",
            format!("the recipe does not name {}", listed(&unnamed)),
            "name their keys, or call them \"ignored\" if no answer shows them: each change of them ends all answers",
        ),
    }
}

fn identities(relations: &BTreeMap<String, Relation>, recipe: &Recipe) -> Finding {
    let bare = relations.values().filter(|it| it.needs_full(Some(recipe)));
    let bare: Vec<String> = bare.map(|it| it.name.clone()).collect();
    match bare.is_empty() {
        true => Finding::good("identities", "old rows have what their keys need"),
        false => Finding::problem(
            "identities",
            format!(
                "old rows lack columns: {}. UPDATE and DELETE fail there without a key, or end all answers",
                listed(&bare)
            ),
            SET_UP,
        ),
    }
}

// --- The server ---

async fn setting(client: &Client, name: &str) -> Result<String, PostgresError> {
    let question = "SELECT current_setting($1)";
    Ok(client.query_one(question, &[&name]).await?.get(0))
}

async fn wal_level(client: &Client) -> Result<Finding, PostgresError> {
    let level = setting(client, "wal_level").await?;
    Ok(match level.as_str() {
        "logical" => Finding::good("wal_level", level),
        _ => Finding::problem(
            "wal_level",
            level,
            "set it to logical, and restart the database",
        ),
    })
}

/// Trap W27.
async fn restart_after_crash(client: &Client) -> Result<Finding, PostgresError> {
    let restarts = setting(client, "restart_after_crash").await?;
    Ok(match restarts.as_str() {
        "off" => Finding::good("restart_after_crash", restarts),
        _ => Finding::problem(
            "restart_after_crash",
            format!(
                "{restarts}: after a crash the database shows at once what the cache does not know"
            ),
            "set it to off, and let the unit of the database wait four seconds before each start",
        ),
    })
}

async fn role(client: &Client, name: &str, role: &str) -> Result<Finding, PostgresError> {
    let lacking = rights::lacking(client, name).await?;
    Ok(match lacking.is_empty() {
        true => Finding::good("role", format!("{role} may do what a keeper does")),
        false => Finding::problem("role", format!("{role} lacks {}", listed(&lacking)), SET_UP),
    })
}

async fn publication(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    Ok(match schema::publishes_all(client, name).await? {
        Some(true) => Finding::good("publication", format!("{name} has all tables")),
        Some(false) => Finding::problem(
            "publication",
            format!("{name} has not all changes of all tables and partitions"),
            format!("{SET_UP}. If that does not help, DROP PUBLICATION {name} first"),
        ),
        None => Finding::problem("publication", format!("there is no {name}"), SET_UP),
    })
}

/// Trap W14.
async fn triggers(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    let names = [format!("{name}_ddl"), format!("{name}_drop")];
    let question =
        "SELECT count(*) FROM pg_event_trigger WHERE evtname = ANY ($1) AND evtenabled = 'A'";
    let row = client.query_one(question, &[&names.as_slice()]).await?;
    Ok(match row.get::<_, i64>(0) {
        2 => Finding::good(
            "event_triggers",
            "a table that changes its form ends all answers",
        ),
        _ => Finding::problem(
            "event_triggers",
            "nobody notes when a table changes its form, or some sessions do not",
            SET_UP,
        ),
    })
}

async fn slot(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    let question = "SELECT slot.active_pid, coalesce(slot.wal_status, ''), slot.plugin::text, slot.database = current_database(),
            coalesce(standby.application_name, '')
        FROM pg_replication_slots AS slot LEFT JOIN pg_stat_replication AS standby ON standby.pid = slot.active_pid
        WHERE slot.slot_name = $1";
    let Some(row) = client.query_opt(question, &[&name]).await? else {
        let found = format!(
            "there is no {name}: a keeper makes it, which may take as long as open transactions"
        );
        return Ok(Finding::warning("slot", found, SET_UP));
    };
    let (process, status, plugin): (Option<i32>, &str, Option<&str>) =
        (row.get(0), row.get(1), row.get(2));
    let (is_here, reader): (Option<bool>, &str) = (row.get(3), row.get(4));
    if plugin != Some("pgoutput") || is_here != Some(true) || status == "lost" {
        let found = format!("{name} is of another database or program, or the log is gone");
        let advice =
            format!("drop it if nobody needs it: SELECT pg_drop_replication_slot('{name}')");
        return Ok(Finding::problem("slot", found, advice));
    }
    Ok(match process {
        None => Finding::warning(
            "slot",
            format!("nobody reads {name}: the database keeps its log until somebody does"),
            "start a keeper, or run `thorp web setup --postgres URL --undo --apply`, with a URL of a superuser of the database",
        ),
        Some(_) if reader == name => Finding::good("slot", format!("a keeper reads {name}")),
        Some(process) => Finding::problem(
            "slot",
            format!(
                "process {process} of the database reads {name}, for {reader}, which is no keeper"
            ),
            "stop that, or give the keeper another --name",
        ),
    })
}

// --- For whom commits wait ---

/// Trap W26: no other standby may stand in.
async fn names(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    let names = standby::names(client).await?;
    let found = format!("synchronous_standby_names is {names:?}");
    Ok(match names.as_str() {
        "" => Finding::good("names", format!("{found}: a keeper puts its name there")),
        _ if names == standby::only(name) => Finding::good("names", found),
        _ if names == standby::gone(name) => Finding::warning(
            "names",
            format!("{found}: a watchdog is letting commits go on"),
            "wait four seconds; if no watchdog runs, set it to ''",
        ),
        _ => Finding::problem(
            "names",
            format!("{found}: another standby could stand in for the keeper"),
            "set it to ''. A cluster that needs another synchronous standby can have no web cache yet",
        ),
    })
}

/// Trap W26: two of one name stand in for each other.
async fn same_name(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    let question = "SELECT count(*) FROM pg_stat_replication WHERE application_name = $1";
    let count: i64 = client.query_one(question, &[&name]).await?.get(0);
    Ok(match count {
        0 | 1 => Finding::good("same_name", "no two standbys have the keeper's name"),
        _ => Finding::problem(
            "same_name",
            format!("{count} standbys are called {name}, and stand in for each other"),
            "give the others another application_name",
        ),
    })
}

/// Commits that do not wait are seen before the keeper knows them.
async fn synchronous_commit(client: &Client) -> Result<Finding, PostgresError> {
    let question = "
        SELECT 'the server (' || setting || ')' FROM pg_settings
            WHERE name = 'synchronous_commit' AND source NOT IN ('user', 'database', 'database user') AND setting NOT IN ('on', 'remote_apply')
        UNION ALL
        SELECT coalesce('role ' || rolname, 'all roles') || coalesce(' in database ' || datname, '') || ' (' || setting || ')'
            FROM pg_db_role_setting LEFT JOIN pg_roles ON pg_roles.oid = setrole LEFT JOIN pg_database ON pg_database.oid = setdatabase,
                unnest(setconfig) AS setting
            WHERE setting LIKE 'synchronous_commit=%' AND setting !~ '=(on|remote_apply)$'
        UNION ALL
        SELECT 'subscription ' || subname || ' (' || subsynccommit || ')' FROM pg_subscription
            WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND subsynccommit NOT IN ('on', 'remote_apply')
        UNION ALL
        SELECT 'function ' || oid::regprocedure || ' (' || setting || ')' FROM pg_proc, unnest(proconfig) AS setting
            WHERE setting LIKE 'synchronous_commit=%' AND setting !~ '=(on|remote_apply)$'";
    let rows = client.query(question, &[]).await?;
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(match found.is_empty() {
        true => Finding::good("synchronous_commit", "no setting lets commits go on alone"),
        false => Finding::problem(
            "synchronous_commit",
            format!("commits do not wait by the setting of {}", listed(&found)),
            "set it to on there (ALTER SUBSCRIPTION … SET (synchronous_commit = on)), or let these change nothing that an answer shows",
        ),
    })
}

/// Trap W17.
async fn old_snapshots(client: &Client) -> Result<Finding, PostgresError> {
    let seconds = BEAT_MS_MAX as f64 / 1_000.0;
    let old = sessions::reading_since(client, seconds).await?;
    Ok(match old.is_empty() {
        true => Finding::good("snapshots", "no session reads from an old snapshot"),
        false => Finding::warning(
            "snapshots",
            format!("sessions read from old snapshots: {}", listed(&old)),
            "if one of them answers requests, its answers are old: let it end its transaction after each request",
        ),
    })
}

async fn watched(client: &Client, name: &str) -> Result<Finding, PostgresError> {
    let question = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
    let program = watchdog::program(name);
    let count: i64 = client.query_one(question, &[&program]).await?.get(0);
    Ok(match count {
        0 => Finding::warning(
            "watchdog",
            "there is none: if the keeper is killed or hangs, commits wait until it is back",
            format!(
                "run `thorp web watchdog --postgres URL --name {name}` on the machine of the database"
            ),
        ),
        _ => Finding::good("watchdog", "it lets commits go on after six seconds"),
    })
}

/// The first names of a list, and how many more there are.
fn listed(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    let first = first.join(", ");
    match names.len().checked_sub(NAMES_MAX) {
        None | Some(0) => first,
        Some(more) => format!("{first}, and {more} more"),
    }
}
