//! What set-up makes in a database, what it takes back, and what a check finds.

use crate::database::Database;
use crate::kept::{Kept, PATIENCE, item, run};
use std::time::Duration;
use thorp_versions::{Denied, Place};
use thorp_web::{Finding, Plan, Postgres, Recipe, SetUp, Severity, check};
use tokio_postgres::Client;

const SHOP: &str = "
    CREATE TABLE item (id int PRIMARY KEY, shelf int NOT NULL, price int NOT NULL);
    CREATE TABLE visit (at int NOT NULL);
    CREATE TABLE part (id int PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE part_a PARTITION OF part FOR VALUES FROM (0) TO (10);
    CREATE UNLOGGED TABLE basket (id int PRIMARY KEY);
    CREATE SEQUENCE number;
    CREATE MATERIALIZED VIEW report AS SELECT count(*) FROM item;
";

const RECIPE: &str = r#"
    [tables]
    item = ["item:{id}", "shelf:{shelf}"]
    visit = "ignored"
    part = ["part:{id}"]
"#;

fn source(address: &str) -> Postgres {
    Postgres::new(address, "thorp").expect("an address")
}

fn recipe(text: &str) -> Recipe {
    Recipe::parse(text).expect("a recipe")
}

async fn set_up(database: &Database) -> Plan {
    let source = source(&database.address());
    let set_up = SetUp::of(&source, "keeper").await.expect("a session");
    let plan = set_up.plan(Some(&recipe(RECIPE))).await.expect("a plan");
    set_up.apply(&plan).await.expect("it is done");
    plan
}

async fn checked(database: &Database, role: &str, text: &str) -> Vec<Finding> {
    let source = source(&database.address_of(role));
    let found = check(&source, &recipe(text)).await;
    found.expect("it answers")
}

fn severity(found: &[Finding], name: &str) -> Severity {
    let of = found.iter().filter(|finding| finding.check == name);
    of.map(|finding| finding.severity).max().expect(name)
}

/// The state of the database that set-up changes.
async fn state(client: &Client) -> String {
    let question = "SELECT string_agg(what, ' ' ORDER BY what) FROM (
        SELECT relname || relreplident::text AS what FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname !~ '^pg_'
        UNION ALL SELECT 'event ' || evtname FROM pg_event_trigger
        UNION ALL SELECT 'publication ' || pubname FROM pg_publication
        UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots
        UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_'
        UNION ALL SELECT 'names ' || setting FROM pg_settings WHERE name = 'synchronous_standby_names'
        UNION ALL SELECT 'in file ' || name FROM pg_file_settings WHERE sourcefile ~ 'auto.conf') AS all_of_it";
    let row = client.query_one(question, &[]).await.expect("a state");
    row.get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn set_up_makes_what_is_missing_and_takes_it_back() {
    let Some(database) = Database::start_with(&["wal_level=logical"]).await else {
        return;
    };
    let client = database.connect().await;
    run(&client, SHOP).await;
    let before = state(&client).await;
    let plan = set_up(&database).await;
    let not_captured = [
        ("unlogged table", "public.basket"),
        ("sequence", "public.number"),
        ("materialized view", "public.report"),
    ];
    for (kind, name) in not_captured {
        let kind = (kind.to_owned(), name.to_owned());
        assert!(plan.not_captured.contains(&kind), "{kind:?}");
    }
    // An identity comes before the publication.
    let at = |part: &str| {
        let has = |sql: &String| sql.contains(part);
        let found = plan.steps.iter().position(|step| step.sql.iter().any(has));
        found.expect(part)
    };
    assert!(at("public.visit REPLICA IDENTITY FULL") < at("CREATE PUBLICATION"));
    assert!(at("CREATE PUBLICATION") < at("pg_create_logical_replication_slot"));
    run(
        &client,
        "INSERT INTO visit VALUES (1); UPDATE visit SET at = 2",
    )
    .await;
    // A table without a key that is made later can be changed, too.
    run(&client, "CREATE TABLE late AS SELECT 1 AS a").await;
    run(&client, "UPDATE late SET a = 2; DROP TABLE late").await;
    let source = source(&database.address());
    let again = SetUp::of(&source, "keeper").await.expect("a session");
    let rest = again.plan(Some(&recipe(RECIPE))).await.expect("a plan");
    assert_eq!(rest.steps, [], "it is done");
    let undo = again.plan_undo().await.expect("a plan");
    again.apply(&undo).await.expect("it is undone");
    assert_eq!(state(&client).await, before);
    assert_eq!(again.plan_undo().await.expect("a plan").steps, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_passes_over_tables_that_were_dropped_since() {
    let Some(database) = Database::start_with(&["wal_level=logical"]).await else {
        return;
    };
    let client = database.connect().await;
    run(&client, SHOP).await;
    set_up(&database).await;
    run(&client, "DROP TABLE visit").await;
    // As earlier set-ups have noted it.
    let earlier = "INSERT INTO thorp_web.undo (what, statement)
        VALUES ('whole old rows', 'ALTER TABLE public.visit REPLICA IDENTITY DEFAULT')";
    run(&client, earlier).await;
    let source = source(&database.address());
    let set_up = SetUp::of(&source, "keeper").await.expect("a session");
    let undo = set_up.plan_undo().await.expect("a plan");
    set_up.apply(&undo).await.expect("it is undone");
    assert_eq!(set_up.plan_undo().await.expect("a plan").steps, []);
}

/// What the owner of a database makes there, who is no superuser: functions that fit better than PostgreSQL's own, and settings.
const TRAP: &str = "
    CREATE TABLE item (id int PRIMARY KEY, shelf int, price int);
    CREATE FUNCTION public.grab() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ALTER ROLE evil SUPERUSER; END IF;
    END $$;
    CREATE FUNCTION public.format(text, name, name) RETURNS text LANGUAGE sql AS $$ SELECT grab(); SELECT 'x' $$;
    CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT grab(); SELECT 'x' $$;
    ALTER DATABASE victim SET search_path = public, pg_catalog;
    ALTER DATABASE victim SET statement_timeout = '1ms';
    ALTER DATABASE victim SET role = evil;
";

/// The schema of another set-up, made beforehand.
const PLANTED: &str = "
    CREATE SCHEMA second_web;
    CREATE TABLE second_web.undo (step int, what text, statement text);
    CREATE FUNCTION second_web.grab() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM grab(); RETURN new; END $$;
    CREATE TRIGGER grab BEFORE INSERT ON second_web.undo FOR EACH ROW EXECUTE FUNCTION second_web.grab();
    GRANT INSERT ON second_web.undo TO PUBLIC;
";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_owner_of_a_database_makes_there_is_not_run() {
    let Some(database) = Database::start_with(&["wal_level=logical"]).await else {
        return;
    };
    let client = database.connect().await;
    run(&client, "CREATE ROLE evil LOGIN").await;
    run(&client, "CREATE DATABASE victim OWNER evil").await;
    let address = database
        .address()
        .replace("dbname=postgres", "dbname=victim");
    let evil = database.address_of("evil");
    let evil = evil.replace("dbname=postgres", "dbname=victim");
    let (evil, connection) = tokio_postgres::connect(&evil, tokio_postgres::NoTls)
        .await
        .expect("a session");
    tokio::spawn(connection);
    run(&evil, TRAP).await;
    let source = source(&address);
    let set_up = SetUp::of(&source, "keeper").await.expect("a session");
    let plan = set_up.plan(Some(&recipe(RECIPE))).await.expect("a plan");
    set_up.apply(&plan).await.expect("it is done");
    check(&source, &recipe(RECIPE)).await.expect("it answers");
    let question = "SELECT rolsuper FROM pg_roles WHERE rolname = 'evil'";
    let row = client.query_one(question, &[]).await.expect("a role");
    assert!(!row.get::<_, bool>(0));
    // What would run as a superuser is not taken from another hand.
    run(&evil, PLANTED).await;
    let second = Postgres::new(&address, "second").expect("an address");
    let set_up = SetUp::of(&second, "keeper").await.expect("a session");
    let refused = [set_up.plan(None).await, set_up.plan_undo().await];
    for refused in refused.map(|plan| plan.expect_err("it is evil's").to_string()) {
        for words in [
            "the schema belongs to role evil",
            "lets public do INSERT",
            "has triggers",
        ] {
            assert!(refused.contains(words), "{refused}");
        }
    }
}

/// Set-up needs a superuser, the keeper does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_with_the_role_of_set_up_goes_live() {
    let Some(database) = Database::start_with(&["wal_level=logical"]).await else {
        return;
    };
    let client = database.connect().await;
    run(&client, SHOP).await;
    run(&client, "INSERT INTO item VALUES (1, 1, 100)").await;
    set_up(&database).await;
    let found = checked(&database, "keeper", RECIPE).await;
    let problems = found.iter().filter(|it| it.severity == Severity::Problem);
    assert_eq!(problems.collect::<Vec<_>>(), Vec::<&Finding>::new());
    assert_eq!(severity(&found, "watchdog"), Severity::Warning);
    // The owner of the database may set this. It does not count for the keeper.
    run(
        &client,
        "ALTER DATABASE postgres SET statement_timeout = '1ms'",
    )
    .await;
    let kept = Kept::beside(database, "keeper", RECIPE).await;
    run(&client, "ALTER DATABASE postgres RESET ALL").await;
    let client = kept.database.connect().await;
    let evidence = kept.reader.evidence();
    assert_eq!(kept.check(evidence, &item(1)), Ok(()));
    // Tables that change their form end all answers.
    for statement in [
        "ALTER TABLE item ADD COLUMN name text",
        "REFRESH MATERIALIZED VIEW report",
        "DROP SEQUENCE number",
        "SET session_replication_role = replica; ALTER TABLE item ADD COLUMN more text; RESET session_replication_role",
    ] {
        let evidence = kept.until_passes(&item(1)).await;
        run(&client, statement).await;
        let denied = Err(Denied::Changed(Place::UNKNOWN));
        assert_eq!(kept.check(evidence, &item(1)), denied, "{statement}");
    }
    // A partition has the keys of its root. That it is emptied ends all answers, too.
    let part = [Place::of("part:5")];
    let evidence = kept.until_passes(&part).await;
    run(&client, "INSERT INTO part VALUES (5)").await;
    assert_eq!(kept.check(evidence, &part), Err(Denied::Changed(part[0])));
    let evidence = kept.until_passes(&part).await;
    run(&client, "TRUNCATE part_a").await;
    let denied = Err(Denied::Changed(Place::UNKNOWN));
    assert_eq!(kept.check(evidence, &part), denied);
    // What only one session sees does not.
    let evidence = kept.until_passes(&item(1)).await;
    run(&client, "CREATE TEMPORARY TABLE own (id int)").await;
    run(&client, "DROP TABLE own").await;
    assert_eq!(kept.check(evidence, &item(1)), Ok(()));
    let found = checked(&kept.database, "keeper", RECIPE).await;
    // Nobody else may hold up who changes for whom commits wait.
    let lock = "CREATE ROLE app; SET ROLE app; LOCK TABLE thorp_web.lock IN ACCESS SHARE MODE";
    assert!(client.batch_execute(lock).await.is_err());
    assert_eq!(severity(&found, "slot"), Severity::Good);
    assert_eq!(severity(&found, "names"), Severity::Good);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_names_what_is_wrong_and_what_to_do() {
    let Some(database) = Database::start_with(&["wal_level=replica"]).await else {
        return;
    };
    let client = database.connect().await;
    run(&client, SHOP).await;
    run(
        &client,
        "CREATE COLLATION loose (provider = icu, locale = 'und', deterministic = false); CREATE DOMAIN short AS char(4);
        CREATE TABLE code (id int PRIMARY KEY, a text COLLATE loose, b short, c char(4));
        CREATE SUBSCRIPTION writes CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false)",
    )
    .await;
    run(
        &client,
        "CREATE ROLE reader LOGIN; ALTER ROLE reader SET synchronous_commit = local",
    )
    .await;
    run(
        &client,
        "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (thorp, replica)'",
    )
    .await;
    run(&client, "SELECT pg_reload_conf()").await;
    let old = database.connect().await;
    run(
        &old,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM item",
    )
    .await;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let text = r#"
        [tables]
        item = ["item:{id}", "name:{nme}"]
        goods = ["goods:{id}"]
        basket = ["basket:{id}"]
        code = ["code:{KEY}"]
    "#;
    let text = &text.replace("KEY", "a");
    let found = checked(&database, "reader", text).await;
    let wrong = [
        "wal_level",
        "role",
        "publication",
        "event_triggers",
        "names",
        "recipe",
        "identities",
        "restart_after_crash",
        "synchronous_commit",
    ];
    for name in wrong {
        assert_eq!(
            severity(&found, name),
            Severity::Problem,
            "{name}: {found:#?}"
        );
    }
    // Only who may see other sessions finds those.
    let found = checked(&database, "postgres", text).await;
    for name in ["snapshots", "watchdog", "slot", "tables"] {
        assert_eq!(
            severity(&found, name),
            Severity::Warning,
            "{name}: {found:#?}"
        );
    }
    let of_recipe: Vec<&str> = found
        .iter()
        .filter(|it| it.check == "recipe")
        .map(|it| it.found.as_str())
        .collect();
    for words in [
        "public.goods, which is not",
        "no column nme",
        "unlogged",
        "column a of public.code",
    ] {
        assert!(
            of_recipe.iter().any(|found| found.contains(words)),
            "{words}"
        );
    }
    let writes = |it: &&Finding| {
        it.check == "synchronous_commit" && it.found.contains("subscription writes")
    };
    assert_eq!(found.iter().filter(writes).count(), 1);
    // Spaces at the end of a value are no trouble, but for a domain.
    for (column, is_loose) in [("b", true), ("c", false)] {
        let found = checked(
            &database,
            "postgres",
            &text.replace("{a}", &format!("{{{column}}}")),
        )
        .await;
        let is_about = found.iter().any(|it| it.found.contains("several texts"));
        assert_eq!(is_about, is_loose, "{column}");
    }
    for finding in &found {
        assert_eq!(
            finding.advice.is_empty(),
            finding.severity == Severity::Good
        );
    }
}

/// What the promise leaves out: a commit that does not wait is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_does_not_wait_is_counted() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    for _ in 0..50 {
        run(&client, "UPDATE item SET price = price + 1 WHERE id = 1").await;
    }
    let report = kept.report.borrow().clone();
    assert!(report.is_coherent() && report.not_waited == 0, "{report:?}");
    assert_eq!(report.commits, 50);
    run(&client, "SET synchronous_commit = local").await;
    // The keeper counts those that it finds visible. On a busy machine it can be there before that.
    let begun = std::time::Instant::now();
    while kept.report.borrow().not_waited < 25 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", *kept.report.borrow());
        run(&client, "UPDATE item SET price = price + 1 WHERE id = 1").await;
    }
    assert!(!kept.report.borrow().is_coherent());
}
