//! The keeper's name among those for which commits wait.

use super::config::Postgres;
use super::error::PostgresError;
use super::patience::Names;
use super::schema;
use std::time::Duration;
use thorp_versions::BEAT_MS_MAX;
use tokio_postgres::Client;

/// A part of a name that nobody has.
const GONE: &str = "\"GONE ";

/// How long commits wait for nobody before the name goes: then no reader has a young beat.
const GONE_FOR: Duration = Duration::from_millis(2 * BEAT_MS_MAX);

/// How long one who changes the names waits for another who does. In milliseconds.
const LOCK_MS_MAX: u64 = BEAT_MS_MAX;

/// Changes for whom commits wait.
///
/// Keepers and watchdogs do so under the lock of a table, which only their role may take. `ALTER SYSTEM` goes into no transaction, so a
/// second session has the lock meanwhile. Both sessions are there from the beginning: later the database may have none left.
pub(super) struct Standby {
    name: String,
    client: Client,
    lock: Client,
    /// It goes on without the lock if it does not get it: one who hangs may have it.
    insists: bool,
}

impl Standby {
    /// Sessions of a keeper.
    pub(super) async fn of(source: &Postgres, program: &str) -> Result<Self, PostgresError> {
        Ok(Standby {
            name: source.name().to_owned(),
            client: source.connect_as(program).await?,
            lock: source.connect_as(program).await?,
            insists: true,
        })
    }

    /// The same for a watchdog, or for a person. Commits must not wait for ever because a keeper hangs with the lock.
    pub(super) fn without_insisting(self) -> Self {
        Standby {
            insists: false,
            ..self
        }
    }

    /// Its session, for questions.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether its sessions have ended.
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.lock.is_closed()
    }

    /// Lets commits wait for a keeper. It must be connected: without it, they wait for ever.
    pub(super) async fn add(&self) -> Result<(), PostgresError> {
        let only = only(&self.name);
        self.change(&only, &[String::new(), only.clone()]).await
    }

    /// A watchdog lets no commit wait any more. It may have hung before: only these names go (trap W38).
    pub(super) async fn let_go(&self, from: &[Names]) -> Result<(), PostgresError> {
        self.change("", &texts(from, &self.name)).await
    }

    /// Lets commits wait for nobody who is there: whoever has this name is not waited for.
    pub(super) async fn end(&self, from: &[Names]) -> Result<(), PostgresError> {
        self.change(&gone(&self.name), &texts(from, &self.name))
            .await
    }

    /// A keeper that reads the slot in this process of the database, and beats no more, lets no commit wait. False: it has the slot no
    /// longer, so another one may beat by now (trap W39). While it has the lock, no other one puts its name in.
    pub(super) async fn leave(&self, own: i32) -> Result<bool, PostgresError> {
        self.lock().await?;
        let left = match reader(&self.client, &self.name).await {
            Ok(found) if found == Some(own) => {
                let from = [only(&self.name), gone(&self.name)];
                self.change_locked("", &from).await.map(|()| true)
            }
            found => found.map(|_| false),
        };
        self.unlock().await?;
        left
    }

    /// Lets no commit wait for a keeper that is lost. First the answer to *do you wait for me* is no, and every beat grows old: whoever has
    /// the name by then, nobody serves a hit of it (trap W39). If another process than this one reads the slot, that is a keeper that goes on.
    pub(super) async fn withdraw(&self, own: Option<i32>) -> Result<(), PostgresError> {
        self.lock().await?;
        let ended = self.end_unless_read(own).await;
        self.unlock().await?;
        if !ended? {
            return Ok(());
        }
        tokio::time::sleep(GONE_FOR).await;
        match self.let_go(&[Names::Gone]).await {
            // Another keeper has put its name in again.
            Err(PostgresError::Names(found)) if found == only(&self.name) => Ok(()),
            gone => gone,
        }
    }

    /// Whether commits wait for nobody who is there now.
    async fn end_unless_read(&self, own: Option<i32>) -> Result<bool, PostgresError> {
        let reader = reader(&self.client, &self.name).await?;
        let is_read = reader.is_some() && reader != own;
        if is_read || names(&self.client).await?.is_empty() {
            return Ok(false);
        }
        let gone = gone(&self.name);
        self.change_locked(&gone, &[only(&self.name)]).await?;
        Ok(true)
    }

    /// Sets the names, if they are one of these.
    async fn change(&self, names: &str, from: &[String]) -> Result<(), PostgresError> {
        self.lock().await?;
        let changed = self.change_locked(names, from).await;
        self.unlock().await?;
        changed
    }

    async fn lock(&self) -> Result<(), PostgresError> {
        let table = table(&self.name);
        let lock = format!(
            "BEGIN; SET LOCAL lock_timeout = {LOCK_MS_MAX}; LOCK TABLE {table} IN EXCLUSIVE MODE"
        );
        let Err(error) = self.lock.batch_execute(&lock).await else {
            return Ok(());
        };
        self.lock.batch_execute("ROLLBACK").await?;
        match self.insists {
            true => Err(error.into()),
            false => Ok(()),
        }
    }

    async fn unlock(&self) -> Result<(), PostgresError> {
        Ok(self.lock.batch_execute("COMMIT").await?)
    }

    async fn change_locked(&self, names: &str, from: &[String]) -> Result<(), PostgresError> {
        let found = self::names(&self.client).await?;
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
        self.client.batch_execute(&set).await?;
        self.client.batch_execute("SELECT pg_reload_conf()").await?;
        Ok(())
    }
}

/// The table that is locked while names are changed. It has no rows.
pub(super) fn table(name: &str) -> String {
    format!("{}.lock", schema::schema_of(name))
}

/// Whether a role may lock it.
pub(super) async fn may_lock(
    client: &Client,
    name: &str,
    role: &str,
) -> Result<bool, PostgresError> {
    let question = "SELECT count(*) FROM pg_class AS class JOIN pg_namespace AS space ON space.oid = class.relnamespace, pg_roles AS role
        WHERE space.nspname = $1 AND class.relname = 'lock' AND role.rolname = $2
            AND has_schema_privilege(role.oid, space.oid, 'USAGE') AND has_table_privilege(role.oid, class.oid, 'UPDATE')";
    let row = client
        .query_one(question, &[&schema::schema_of(name), &role])
        .await?;
    Ok(row.get::<_, i64>(0) > 0)
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

/// The process of the database that reads the keeper's slot for somebody.
pub(super) async fn reader(client: &Client, name: &str) -> Result<Option<i32>, PostgresError> {
    let question = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = $1";
    let row = client.query_opt(question, &[&name]).await?;
    Ok(row.and_then(|row| row.get(0)))
}
