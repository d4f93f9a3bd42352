//! The keeper's name among those for which commits wait.

use super::error::PostgresError;
use super::patience::Names;
use tokio_postgres::Client;

/// Keepers and watchdogs change the names under this lock.
const LOCK: i64 = 0x7468_6f72_7077_6562;

/// A part of a name that nobody has.
const GONE: &str = "\"GONE ";

/// Lets commits wait for a standby. It must be connected: without it, they wait for ever.
pub(super) async fn add(client: &Client, name: &str) -> Result<(), PostgresError> {
    change(client, &only(name), &[String::new(), only(name)]).await
}

/// Lets no commit wait any more. No reader may have a young beat.
pub(super) async fn remove(client: &Client, name: &str) -> Result<(), PostgresError> {
    change(client, "", &[only(name), gone(name)]).await
}

/// A watchdog lets no commit wait any more. It may have hung before: only these names go (trap W38).
pub(super) async fn let_go(
    client: &Client,
    name: &str,
    from: &[Names],
) -> Result<(), PostgresError> {
    change(client, "", &texts(from, name)).await
}

/// Lets commits wait for nobody who is there: whoever has this name is not waited for.
pub(super) async fn end(client: &Client, name: &str, from: &[Names]) -> Result<(), PostgresError> {
    change(client, &gone(name), &texts(from, name)).await
}

/// For whom commits wait.
pub(super) async fn names(client: &Client) -> Result<String, PostgresError> {
    let question = "SELECT current_setting('synchronous_standby_names')";
    Ok(client.query_one(question, &[]).await?.get(0))
}

/// All commits wait for this standby, and for no other one.
pub(super) fn only(name: &str) -> String {
    format!("FIRST 1 ({name})")
}

/// A name that nobody has: no name of a keeper has a capital letter.
pub(super) fn gone(name: &str) -> String {
    format!("FIRST 1 ({GONE}{name}\")")
}

/// As they are in the database.
fn texts(names: &[Names], name: &str) -> Vec<String> {
    let text = |names: &Names| match names {
        Names::Keeper => only(name),
        Names::Gone => gone(name),
        Names::Others => String::new(),
    };
    names.iter().map(text).collect()
}

/// Whether somebody reads the keeper's slot.
pub(super) async fn is_connected(client: &Client, name: &str) -> Result<bool, PostgresError> {
    let question = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1 AND active";
    let row = client.query_one(question, &[&name]).await?;
    Ok(row.get::<_, i64>(0) > 0)
}

/// Sets the names, if they are one of these.
async fn change(client: &Client, names: &str, from: &[String]) -> Result<(), PostgresError> {
    lock(client).await?;
    let changed = change_locked(client, names, from).await;
    unlock(client).await?;
    changed
}

async fn lock(client: &Client) -> Result<(), PostgresError> {
    client
        .execute("SELECT pg_advisory_lock($1)", &[&LOCK])
        .await?;
    Ok(())
}

async fn unlock(client: &Client) -> Result<(), PostgresError> {
    client
        .execute("SELECT pg_advisory_unlock($1)", &[&LOCK])
        .await?;
    Ok(())
}

async fn change_locked(client: &Client, names: &str, from: &[String]) -> Result<(), PostgresError> {
    let found = self::names(client).await?;
    if found == names {
        return Ok(());
    }
    if !from.contains(&found) {
        return Err(match found.contains(GONE) {
            true => PostgresError::BeingLetGo,
            false => PostgresError::Names(found),
        });
    }
    // A name is a word, so it needs no quotes.
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
    client.batch_execute(&set).await?;
    client.batch_execute("SELECT pg_reload_conf()").await?;
    Ok(())
}
