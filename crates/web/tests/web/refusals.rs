//! A keeper that cannot be one says what to do.

use crate::database::Database;
use crate::kept::{Kept, PATIENCE, RECIPE, TABLES, run};
use std::time::{Duration, Instant};
use thorp_web::{Health, Postgres, Recipe, SetUp, check};

/// Waits until the keeper says all this.
async fn until_says(kept: &mut Kept, words: &[&str]) {
    let says = |why: &String| words.iter().all(|word| why.contains(word));
    kept.until(|health| matches!(health, Health::Away(why) if says(why)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_logical_decoding_is_named() {
    let Some(database) = Database::start_with(&["wal_level=replica"]).await else {
        return;
    };
    run(&database.connect().await, TABLES).await;
    let mut kept = Kept::over(database, "postgres", RECIPE);
    until_says(&mut kept, &["wal_level is replica", "restart the database"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_lacks_rights_is_named_with_what_it_lacks() {
    let Some(database) = Database::start().await else {
        return;
    };
    let client = database.connect().await;
    run(&client, TABLES).await;
    run(&client, "CREATE ROLE clerk LOGIN REPLICATION").await;
    let mut kept = Kept::over(database, "clerk", RECIPE);
    let words = [
        "ALTER SYSTEM ON PARAMETER",
        "pg_read_all_stats",
        "thorp web setup",
    ];
    until_says(&mut kept, &words).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_a_publication_is_named() {
    let Some(database) = Database::start().await else {
        return;
    };
    let mut kept = Kept::over(database, "postgres", RECIPE);
    until_says(&mut kept, &["no publication thorp", "thorp web setup"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_set_up_or_cannot_connect_is_told_so() {
    let Some(database) = Database::start().await else {
        return;
    };
    let client = database.connect().await;
    run(&client, "CREATE ROLE clerk LOGIN").await;
    let clerk = Postgres::new(&database.address_of("clerk"), "thorp").expect("an address");
    let refused = SetUp::of(&clerk, "thorp").await.map(|_| ());
    let refused = refused.expect_err("a clerk is no superuser").to_string();
    assert!(
        refused.contains("no superuser of the database: give the URL of one"),
        "{refused}"
    );
    let tls = format!("{} sslmode=require", database.address());
    let tls = Postgres::new(&tls, "thorp").expect("an address");
    let recipe = Recipe::parse(RECIPE).expect("a recipe");
    let refused = check(&tls, &recipe).await.expect_err("it speaks no TLS");
    assert!(
        refused.to_string().contains("through a tunnel"),
        "{refused}"
    );
}

/// A slot that another program reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_in_use_is_named_with_who_uses_it() {
    let Some(database) = Database::start().await else {
        return;
    };
    let client = database.connect().await;
    run(&client, TABLES).await;
    let slot = "SELECT pg_create_logical_replication_slot('thorp', 'pgoutput')";
    run(&client, slot).await;
    let reader = database.logical_reader("thorp");
    let active = "SELECT 1 FROM pg_replication_slots WHERE active";
    let begun = Instant::now();
    while client
        .query(active, &[])
        .await
        .expect("an answer")
        .is_empty()
    {
        assert!(begun.elapsed() < PATIENCE, "nobody reads the slot");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut kept = Kept::over(database, "postgres", RECIPE);
    until_says(&mut kept, &["slot thorp is in use by process", "--name"]).await;
    drop(reader);
    kept.until(|health| *health == Health::Live).await;
}
