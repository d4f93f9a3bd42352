//! The keeper's name among those for which commits wait.

use super::error::PostgresError;
use tokio_postgres::Client;

/// Keepers and watchdogs change the names under this lock.
const LOCK: i64 = 0x7468_6f72_7077_6562;

/// Lets commits wait for a standby. It must be connected: without it, they wait for ever.
pub(super) async fn add(client: &Client, name: &str) -> Result<(), PostgresError> {
    change(client, &only(name), &["", &only(name)]).await
}

/// Lets no commit wait any more.
pub(super) async fn remove(client: &Client, name: &str) -> Result<(), PostgresError> {
    change(client, "", &[&only(name)]).await
}

/// All commits wait for this standby, and for no other one.
pub(super) fn only(name: &str) -> String {
    format!("FIRST 1 ({name})")
}

/// Sets the names, if they are one of these.
async fn change(client: &Client, names: &str, from: &[&str]) -> Result<(), PostgresError> {
    client
        .execute("SELECT pg_advisory_lock($1)", &[&LOCK])
        .await?;
    let changed = change_locked(client, names, from).await;
    client
        .execute("SELECT pg_advisory_unlock($1)", &[&LOCK])
        .await?;
    changed
}

async fn change_locked(client: &Client, names: &str, from: &[&str]) -> Result<(), PostgresError> {
    let row = client
        .query_one("SELECT current_setting('synchronous_standby_names')", &[])
        .await?;
    let found: &str = row.get(0);
    if found == names {
        return Ok(());
    }
    if !from.contains(&found) {
        return Err(PostgresError::Names(found.to_owned()));
    }
    // A name is a word, so it needs no quotes.
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
    client.batch_execute(&set).await?;
    client.batch_execute("SELECT pg_reload_conf()").await?;
    Ok(())
}
