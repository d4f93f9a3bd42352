//! What a database needs before a keeper can follow it: made in an order that breaks no application (trap W15), and taken back.

use super::config::Postgres;
use super::error::PostgresError;
use super::life::PREFIX;
use super::rights;
use super::schema::{self, Relation};
use super::standby::{self, Standby};
use crate::recipe::Recipe;
use std::collections::BTreeMap;
use tokio_postgres::Client;

/// A statement of set-up that waits longer for a lock, or takes longer, ends: others would queue behind it.
const SESSION: &str = "SET lock_timeout = '5s'; SET statement_timeout = '60s'";

/// Not just a statement: first the keeper has to know.
const NAME_OUT: &str = "ALTER SYSTEM SET synchronous_standby_names = ''";

/// One thing that set-up does, or takes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it is good for.
    pub what: String,
    /// The statements, one by one.
    pub sql: Vec<String>,
    undo: Vec<String>,
}

/// What set-up would do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// In this order. Empty: all is done.
    pub steps: Vec<Step>,
    /// What a person does behind it.
    pub by_hand: Vec<String>,
    /// What the cache will not see: kind and name.
    pub not_captured: Vec<(String, String)>,
}

/// A database, and what is to be made in it.
pub struct SetUp<'a> {
    source: &'a Postgres,
    client: Client,
    /// The schema of what set-up makes.
    schema: String,
    role: &'a str,
}

impl Step {
    fn new(what: impl Into<String>, sql: &[String], undo: &[String]) -> Self {
        Step {
            what: what.into(),
            sql: sql.to_vec(),
            undo: undo.to_vec(),
        }
    }
}

impl<'a> SetUp<'a> {
    /// Connects. The keeper will connect as this role.
    ///
    /// # Errors
    ///
    /// The database cannot be reached, or the session is none of a superuser.
    pub async fn of(source: &'a Postgres, role: &'a str) -> Result<Self, PostgresError> {
        let client = source.connect().await?;
        let question = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
        if !client.query_one(question, &[]).await?.get::<_, bool>(0) {
            return Err(PostgresError::NoSuperuser(source.user().to_owned()));
        }
        client.batch_execute(SESSION).await?;
        Ok(SetUp {
            source,
            client,
            schema: schema::schema_of(source.name()),
            role,
        })
    }

    /// What is not as it has to be.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn plan(&self, recipe: Option<&Recipe>) -> Result<Plan, PostgresError> {
        self.is_own().await?;
        let relations = schema::relations(&self.client, &self.schema).await?;
        let mut plan = Plan {
            not_captured: schema::not_captured(&self.client, &relations).await?,
            ..Plan::default()
        };
        plan.steps.extend(self.notes().await?);
        plan.steps.extend(self.settings().await?);
        plan.steps.extend(self.rights(&mut plan.by_hand).await?);
        plan.steps.extend(self.triggers().await?);
        plan.steps.extend(identities(&relations, recipe));
        plan.steps.extend(self.publication().await?);
        let is_logical = self.setting("wal_level").await? == "logical";
        match is_logical {
            true => plan.steps.extend(self.slot().await?),
            false => plan.by_hand.push(String::from(
                "restart the database, so that wal_level counts, and run `thorp web setup --apply` again: it makes the slot",
            )),
        }
        Ok(plan)
    }

    /// What set-up has made and noted, the last first. Empty: nothing is left.
    ///
    /// # Errors
    ///
    /// The database does not answer, or a keeper runs.
    pub async fn plan_undo(&self) -> Result<Plan, PostgresError> {
        self.is_own().await?;
        let mut plan = Plan::default();
        let name = self.source.name();
        if let Some(process) = standby::reader(&self.client, name).await? {
            return Err(PostgresError::KeeperRuns(process));
        }
        let names = standby::names(&self.client).await?;
        if names == standby::only(name) || names == standby::gone(name) {
            let words = "let commits wait for no keeper: first nobody serves hits, which takes four seconds";
            plan.steps
                .push(Step::new(words, &[NAME_OUT.to_owned()], &[]));
        }
        if !self.has_schema().await? {
            return Ok(plan);
        }
        // The triggers go first: they would give tables their identities again.
        let question = format!(
            "SELECT what, statement FROM {}.undo ORDER BY statement LIKE 'DROP EVENT TRIGGER%' DESC, step DESC",
            self.schema
        );
        for row in self.client.query(&question, &[]).await? {
            let (what, statement): (&str, String) = (row.get(0), row.get(1));
            let statement = past_dropped_tables(statement);
            plan.steps
                .push(Step::new(format!("undo: {what}"), &[statement], &[]));
        }
        let drop = format!("DROP SCHEMA {} CASCADE", self.schema);
        plan.steps
            .push(Step::new("forget how to take it back", &[drop], &[]));
        Ok(plan)
    }

    /// Does what a plan says, and notes how to take it back.
    ///
    /// # Errors
    ///
    /// A statement fails. What was done before stays, and both set-up and undo go on from there.
    pub async fn apply(&self, plan: &Plan) -> Result<(), PostgresError> {
        for step in &plan.steps {
            for statement in &step.sql {
                let done = self.run(statement).await;
                done.map_err(|error| PostgresError::Step(statement.clone(), Box::new(error)))?;
            }
            self.note(step).await?;
        }
        Ok(())
    }

    async fn run(&self, statement: &str) -> Result<(), PostgresError> {
        if statement == NAME_OUT {
            let standby = Standby::of(self.source, "thorp web setup").await?;
            return standby.without_insisting().withdraw(None).await;
        }
        self.client.batch_execute(statement).await?;
        Ok(())
    }

    async fn note(&self, step: &Step) -> Result<(), PostgresError> {
        let note = format!(
            "INSERT INTO {}.undo (what, statement) VALUES ($1, $2)",
            self.schema
        );
        // They are read from the last one on.
        for undo in step.undo.iter().rev() {
            self.client.execute(&note, &[&step.what, undo]).await?;
        }
        Ok(())
    }

    async fn notes(&self) -> Result<Option<Step>, PostgresError> {
        let schema = &self.schema;
        let sql = [
            format!("CREATE SCHEMA {schema}"),
            format!(
                "CREATE TABLE {schema}.undo (step int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text NOT NULL, statement text NOT NULL)"
            ),
        ];
        let step = Step::new("note how to take everything back", &sql, &[]);
        Ok((!self.has_schema().await?).then_some(step))
    }

    /// What is noted there runs as a superuser. So nobody else may have written it.
    async fn is_own(&self) -> Result<(), PostgresError> {
        let found = strangers(&self.client, &self.schema).await?;
        match found.is_empty() {
            true => Ok(()),
            false => Err(PostgresError::Strangers(self.schema.clone(), found)),
        }
    }

    async fn has_schema(&self) -> Result<bool, PostgresError> {
        let question = "SELECT count(*) FROM pg_namespace WHERE nspname = $1";
        self.is_there(question, &self.schema).await
    }

    async fn settings(&self) -> Result<Vec<Step>, PostgresError> {
        let wanted = [
            ("wal_level", "logical", "log what rows have changed"),
            (
                "restart_after_crash",
                "off",
                "start again after a crash only when no proxy serves hits of before",
            ),
        ];
        let mut steps = Vec::new();
        for (setting, value, what) in wanted {
            if self.setting(setting).await? == value {
                continue;
            }
            let reload = String::from("SELECT pg_catalog.pg_reload_conf()");
            let set = format!("ALTER SYSTEM SET {setting} = {value}");
            let reset = format!("ALTER SYSTEM RESET {setting}");
            steps.push(Step::new(what, &[set, reload.clone()], &[reset, reload]));
        }
        Ok(steps)
    }

    /// The setting, also one that counts only after a restart.
    async fn setting(&self, name: &str) -> Result<String, PostgresError> {
        let question = "SELECT current_setting($1)";
        Ok(self.client.query_one(question, &[&name]).await?.get(0))
    }

    async fn rights(&self, by_hand: &mut Vec<String>) -> Result<Vec<Step>, PostgresError> {
        let role = format!("\"{}\"", self.role);
        let mut steps = Vec::new();
        let question = "SELECT count(*) FROM pg_roles WHERE rolname = $1";
        let is_there = self.is_there(question, self.role).await?;
        if !is_there {
            let make = format!("CREATE ROLE {role} LOGIN");
            let undo = [format!("DROP OWNED BY {role}"), format!("DROP ROLE {role}")];
            steps.push(Step::new("a role for the keeper", &[make], &undo));
            by_hand.push(format!(
                "let role {role} connect. By a socket with peer authentication, the system user of this name may. Else give it a password (\\password in psql), and a line in pg_hba.conf"
            ));
        }
        let lacking = match is_there {
            true => rights::lacking_of(&self.client, self.role).await?,
            false => rights::all(&self.client).await?,
        };
        for right in lacking {
            let (grant, revoke) = (right.grant(&role), right.revoke(&role));
            steps.push(Step::new(
                format!("the role may: {right}"),
                &[grant],
                &[revoke],
            ));
        }
        if !standby::may_lock(&self.client, self.source.name(), self.role).await? {
            let (schema, table) = (&self.schema, standby::table(self.source.name()));
            let sql = [
                format!("CREATE TABLE IF NOT EXISTS {table} ()"),
                format!("GRANT USAGE ON SCHEMA {schema} TO {role}"),
                format!("GRANT UPDATE ON TABLE {table} TO {role}"),
            ];
            let what =
                "a table that only the role may lock, while it changes for whom commits wait";
            steps.push(Step::new(what, &sql, &[]));
        }
        Ok(steps)
    }

    async fn triggers(&self) -> Result<Vec<Step>, PostgresError> {
        let (name, schema) = (self.source.name(), &self.schema);
        // As they are without ALWAYS, a session with session_replication_role = replica fires none.
        let question = "SELECT evtenabled = 'A' FROM pg_event_trigger WHERE evtname = $1";
        let made = [
            (
                "ddl",
                "ddl_command_end",
                DDL,
                "end all answers when a table changes its form; give new tables an identity",
            ),
            (
                "drop",
                "sql_drop",
                DROP,
                "end all answers when something is dropped",
            ),
        ];
        let mut steps = Vec::new();
        for (ending, event, body, what) in made {
            let trigger = format!("{name}_{ending}");
            let always = format!("ALTER EVENT TRIGGER {trigger} ENABLE ALWAYS");
            let row = self.client.query_opt(question, &[&trigger]).await?;
            match row.map(|row| row.get(0)) {
                Some(true) => continue,
                Some(false) => {
                    steps.push(Step::new(what, &[always], &[]));
                    continue;
                }
                None => {}
            }
            let function = format!(
                "CREATE OR REPLACE FUNCTION {schema}.{event}() RETURNS event_trigger LANGUAGE plpgsql
                    SET search_path = pg_catalog, pg_temp AS $thorp${}$thorp$",
                body.replace("PREFIX", PREFIX)
            );
            let make = format!(
                "CREATE EVENT TRIGGER {trigger} ON {event} EXECUTE FUNCTION {schema}.{event}()"
            );
            let undo = format!("DROP EVENT TRIGGER IF EXISTS {trigger}");
            steps.push(Step::new(what, &[function, make, always], &[undo]));
        }
        Ok(steps)
    }

    async fn publication(&self) -> Result<Option<Step>, PostgresError> {
        let name = self.source.name();
        Ok(match schema::publishes_all(&self.client, name).await? {
            None => Some(Step::new(
                "publish what changes",
                &[format!("CREATE PUBLICATION {name} FOR ALL TABLES")],
                &[format!("DROP PUBLICATION IF EXISTS {name}")],
            )),
            // Earlier set-ups have published the changes of partitions as those of their roots.
            Some(false) => {
                let set = "publish = 'insert, update, delete, truncate', publish_via_partition_root = false";
                let sql = format!("ALTER PUBLICATION {name} SET ({set})");
                Some(Step::new(
                    "publish also that a partition is emptied",
                    &[sql],
                    &[],
                ))
            }
            Some(true) => None,
        })
    }

    async fn slot(&self) -> Result<Option<Step>, PostgresError> {
        let name = self.source.name();
        let question = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = $1";
        let sql =
            format!("SELECT pg_catalog.pg_create_logical_replication_slot('{name}', 'pgoutput')");
        let undo = format!(
            "SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots WHERE slot_name = '{name}'"
        );
        let step = Step::new(
            "keep the log for the keeper, also while it is away",
            &[sql],
            &[undo],
        );
        Ok((!self.is_there(question, name).await?).then_some(step))
    }

    async fn is_there(&self, question: &str, name: &str) -> Result<bool, PostgresError> {
        let row = self.client.query_one(question, &[&name]).await?;
        Ok(row.get::<_, i64>(0) > 0)
    }
}

/// What is not set-up's own in its schema: somebody who is no superuser owns it or has rights to it, or it runs something.
async fn strangers(client: &Client, schema: &str) -> Result<Vec<String>, PostgresError> {
    // A keeper's role may use the schema, and change the table that keepers lock. That one has no rows.
    let question = "
        WITH space AS (SELECT * FROM pg_namespace WHERE nspname = $1),
        things AS (
            SELECT 'the schema' AS thing, nspowner AS owner, nspacl AS rights, 'USAGE' AS allowed FROM space
            UNION ALL SELECT 'table ' || quote_ident(relname), relowner, relacl, CASE relname WHEN 'lock' THEN 'UPDATE' END
                FROM pg_class WHERE relnamespace = (SELECT oid FROM space)
            UNION ALL SELECT 'function ' || quote_ident(proname), proowner, NULL, NULL
                FROM pg_proc WHERE pronamespace = (SELECT oid FROM space)
        )
        SELECT format('%s belongs to role %I', thing, rolname) FROM things JOIN pg_roles ON pg_roles.oid = owner WHERE NOT rolsuper
        UNION ALL
        SELECT format('%s lets %I do %s', thing, coalesce(rolname, 'public'), privilege_type)
            FROM things, aclexplode(rights) LEFT JOIN pg_roles ON pg_roles.oid = grantee
            WHERE rolsuper IS NOT TRUE AND privilege_type IS DISTINCT FROM allowed
        UNION ALL
        SELECT format('table %I has triggers or rules', relname)
            FROM pg_class WHERE relnamespace = (SELECT oid FROM space) AND (relhastriggers OR relhasrules)
        LIMIT 32";
    let rows = client.query(question, &[&schema]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Old rows that are whole where that is needed. It comes before the publication: without identity, UPDATE and DELETE fail there.
fn identities(relations: &BTreeMap<String, Relation>, recipe: Option<&Recipe>) -> Vec<Step> {
    let bare = relations.values().filter(|it| it.needs_full(recipe));
    let steps = bare.map(|it| {
        let set = |identity: &str| format!("ALTER TABLE {} REPLICA IDENTITY {identity}", it.quoted);
        let what = format!("whole old rows of {}", it.name);
        let back = past_dropped_tables(set(&it.identity_sql));
        Step::new(what, &[set("FULL")], &[back])
    });
    steps.collect()
}

/// A table that was dropped since needs no identity back. Earlier set-ups have noted statements that fail without their table.
fn past_dropped_tables(statement: String) -> String {
    match statement.strip_prefix("ALTER TABLE ") {
        Some(rest) if !rest.starts_with("IF EXISTS ") => format!("ALTER TABLE IF EXISTS {rest}"),
        _ => statement,
    }
}

/// Says in the stream that something has changed its form, and lets no new table fail because it has no identity.
const DDL: &str = "
DECLARE bare regclass;
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE schema_name IS DISTINCT FROM 'pg_temp') THEN
        PERFORM pg_logical_emit_message(true, 'PREFIX', 'ddl');
    END IF;
    FOR bare IN
        SELECT class.oid FROM pg_event_trigger_ddl_commands() AS command
        JOIN pg_class AS class ON command.classid = 'pg_class'::regclass AND class.oid = command.objid
        WHERE class.relkind IN ('r', 'p') AND class.relpersistence = 'p' AND class.relreplident = 'd'
            AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = class.oid AND indisprimary)
    LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', bare);
    END LOOP;
END
";

/// Says in the stream that something was dropped.
const DROP: &str = "
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE NOT is_temporary) THEN
        PERFORM pg_logical_emit_message(true, 'PREFIX', 'drop');
    END IF;
END
";
