//! What the keeper's role has to be allowed.

use super::error::PostgresError;
use super::standby;
use std::fmt;
use tokio_postgres::Client;

/// Since this version, a role that is no superuser may be allowed to set one setting of the server.
const GRANTS_SETTINGS: i32 = 150_000;

/// A right of a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Right {
    /// All of them: before PostgreSQL 15 no less will do.
    Superuser,
    /// To read the stream.
    Replication,
    /// To set for whom commits wait.
    Names,
    /// To let that count.
    Reload,
    /// To see which commits wait, and who else is there.
    Stats,
}

impl Right {
    /// The statement that gives it.
    pub(super) fn grant(self, role: &str) -> String {
        match self {
            Right::Superuser | Right::Replication => format!("ALTER ROLE {role} {self}"),
            _ => format!("GRANT {self} TO {role}"),
        }
    }

    /// The statement that takes it back.
    pub(super) fn revoke(self, role: &str) -> String {
        match self {
            Right::Superuser | Right::Replication => format!("ALTER ROLE {role} NO{self}"),
            _ => format!("REVOKE {self} FROM {role}"),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Right::Superuser => "SUPERUSER",
            Right::Replication => "REPLICATION",
            Right::Names => "ALTER SYSTEM ON PARAMETER synchronous_standby_names",
            Right::Reload => "EXECUTE ON FUNCTION pg_reload_conf()",
            Right::Stats => "pg_read_all_stats",
        })
    }
}

/// All that a role needs that is no superuser.
pub(super) async fn all(client: &Client) -> Result<Vec<Right>, PostgresError> {
    let question = "SELECT current_setting('server_version_num')::int";
    let version: i32 = client.query_one(question, &[]).await?.get(0);
    Ok(match version < GRANTS_SETTINGS {
        true => vec![Right::Superuser],
        false => vec![
            Right::Replication,
            Right::Names,
            Right::Reload,
            Right::Stats,
        ],
    })
}

/// What the role of this session lacks to be a keeper of this name.
pub(super) async fn lacking(client: &Client, name: &str) -> Result<Vec<String>, PostgresError> {
    let row = client.query_one("SELECT current_user::text", &[]).await?;
    let role: &str = row.get(0);
    let lacking = lacking_of(client, role).await?;
    let mut lacking: Vec<String> = lacking.iter().map(ToString::to_string).collect();
    if !standby::may_lock(client, name, role).await? {
        lacking.push(format!("UPDATE ON TABLE {}", standby::table(name)));
    }
    Ok(lacking)
}

/// What a role lacks.
pub(super) async fn lacking_of(client: &Client, role: &str) -> Result<Vec<Right>, PostgresError> {
    let question = "SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = $1";
    let row = client.query_one(question, &[&role]).await?;
    if row.get(0) {
        return Ok(Vec::new());
    }
    let needed = all(client).await?;
    if needed == [Right::Superuser] {
        return Ok(needed);
    }
    let question = "SELECT has_parameter_privilege($1, 'synchronous_standby_names', 'ALTER SYSTEM'),
        has_function_privilege($1, 'pg_reload_conf()', 'EXECUTE'), pg_has_role($1, 'pg_read_all_stats', 'USAGE')";
    let granted = client.query_one(question, &[&role]).await?;
    let has = |right: &Right| match right {
        Right::Superuser => false,
        Right::Replication => row.get(1),
        Right::Names => granted.get(0),
        Right::Reload => granted.get(1),
        Right::Stats => granted.get(2),
    };
    Ok(needed.into_iter().filter(|right| !has(right)).collect())
}
