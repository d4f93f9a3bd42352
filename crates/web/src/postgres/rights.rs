//! What the keeper's role has to be allowed.

use super::error::PostgresError;
use tokio_postgres::Client;

/// Since this version, a role that is no superuser may be allowed to set one setting of the server.
const GRANTS_SETTINGS: i32 = 150_000;

/// What the role of this session lacks. None: nothing.
pub(super) async fn lacking(client: &Client) -> Result<Vec<String>, PostgresError> {
    let question = "SELECT current_setting('server_version_num')::int, rolsuper, rolreplication
        FROM pg_roles WHERE rolname = current_user";
    let row = client.query_one(question, &[]).await?;
    let (version, is_superuser): (i32, bool) = (row.get(0), row.get(1));
    if is_superuser {
        return Ok(Vec::new());
    }
    if version < GRANTS_SETTINGS {
        return Ok(vec![String::from("SUPERUSER (before PostgreSQL 15)")]);
    }
    let question = "SELECT has_parameter_privilege('synchronous_standby_names', 'ALTER SYSTEM'),
        has_function_privilege('pg_reload_conf()', 'EXECUTE'), pg_has_role('pg_read_all_stats', 'USAGE')";
    let granted = client.query_one(question, &[]).await?;
    let rights: [(bool, &str); 4] = [
        (row.get(2), "REPLICATION"),
        (
            granted.get(0),
            "ALTER SYSTEM ON PARAMETER synchronous_standby_names",
        ),
        (granted.get(1), "EXECUTE ON FUNCTION pg_reload_conf()"),
        (granted.get(2), "pg_read_all_stats"),
    ];
    let lacking = rights.into_iter().filter(|(has, _)| !has);
    Ok(lacking.map(|(_, right)| right.to_owned()).collect())
}
