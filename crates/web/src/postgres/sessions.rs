//! Sessions of the database, as a person has to find them.

use super::error::PostgresError;
use super::xid;
use tokio_postgres::{Client, Row};

/// The columns that [`told`] reads.
const COLUMNS: &str =
    "pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(state, ''),
    coalesce(extract(epoch FROM now() - xact_start)::int8, 0)";

/// The sessions with a transaction that has written, and whose number is before this one; and such transactions that are prepared.
pub(super) async fn writing_since(
    client: &Client,
    first_new: u64,
) -> Result<Vec<String>, PostgresError> {
    let question = format!(
        "SELECT {COLUMNS}, backend_xid::text FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY xact_start"
    );
    let rows = client.query(&question, &[]).await?;
    let is_old = |low: &str| {
        let low = low.parse();
        low.is_ok_and(|low| xid::whole(low, first_new) < first_new)
    };
    let sessions = rows.iter().filter(|row| is_old(row.get(5))).map(told);
    // Those have no session any more.
    let question = "SELECT gid, owner::text, database::text, extract(epoch FROM now() - prepared)::int8, transaction::text
        FROM pg_prepared_xacts ORDER BY prepared";
    let rows = client.query(question, &[]).await?;
    let prepared = rows.iter().filter(|row| is_old(row.get(4)));
    let prepared = prepared.map(|row| {
        let (gid, owner, database, seconds): (&str, &str, &str, i64) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        format!("{owner}, prepared as '{gid}' (in {database}), for {seconds} s: COMMIT or ROLLBACK PREPARED ends it")
    });
    Ok(sessions.chain(prepared).collect())
}

/// The sessions whose snapshot is older than so many seconds (trap W17).
pub(super) async fn reading_since(
    client: &Client,
    seconds: f64,
) -> Result<Vec<String>, PostgresError> {
    let question = format!(
        "SELECT {COLUMNS} FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend'
            AND pid <> pg_backend_pid() AND now() - xact_start > make_interval(secs => $1) ORDER BY xact_start"
    );
    let rows = client.query(&question, &[&seconds]).await?;
    Ok(rows.iter().map(told).collect())
}

fn told(row: &Row) -> String {
    let (process, role, program, state): (i32, &str, &str, &str) =
        (row.get(0), row.get(1), row.get(2), row.get(3));
    let seconds: i64 = row.get(4);
    format!("process {process} of {role} ({program}, {state}), for {seconds} s")
}
