//! A keeper beside a real PostgreSQL: what is acknowledged is in the table before anybody sees it.

use crate::kept::{Kept, PATIENCE, item, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use thorp_versions::{Denied, Place};
use thorp_web::{Health, Postgres, Watched, watch_over};
use tokio::sync::watch;
use tokio_postgres::Client;

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_in_the_table_before_it_is_answered() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    let evidence = kept.reader.evidence();
    run(&client, "UPDATE session SET at = 1").await;
    run(&client, "UPDATE item SET price = 201 WHERE id = 2").await;
    assert_eq!(kept.check(evidence, &item(1)), Ok(()));
    assert_eq!(
        kept.check(evidence, &item(2)),
        Err(Denied::Changed(item(2)[0]))
    );
    let everything = [Place::EVERYTHING];
    assert_eq!(
        kept.check(evidence, &everything),
        Err(Denied::Changed(everything[0]))
    );
    // The update ends once it is visible.
    let evidence = kept.until_passes(&item(2)).await;
    run(&client, "INSERT INTO other VALUES (1)").await;
    assert_eq!(
        kept.check(evidence, &item(1)),
        Err(Denied::Changed(Place::UNKNOWN))
    );
}

/// The name holds up the commits of all databases, and of tables that are not decoded.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_not_decoded_does_not_wait_for_the_next_one_that_is() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    let statements = [
        "CREATE UNLOGGED TABLE basket (id int)",
        "INSERT INTO basket VALUES (1)",
        "CREATE TEMPORARY TABLE own (id int)",
        "CREATE DATABASE elsewhere",
    ];
    for statement in statements {
        let done = tokio::time::timeout(PATIENCE, client.batch_execute(statement)).await;
        done.expect(statement).expect(statement);
    }
    let other = kept.database.connect_to("elsewhere").await;
    for statement in ["CREATE TABLE a (id int)", "INSERT INTO a VALUES (1)"] {
        let done = tokio::time::timeout(PATIENCE, other.batch_execute(statement)).await;
        done.expect(statement).expect(statement);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_passes_its_check_is_older_than_what_was_acknowledged() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let writes = kept.database.connect().await;
    let reads = kept.database.connect().await;
    let acknowledged = Arc::new(AtomicI32::new(100));
    let says = Arc::clone(&acknowledged);
    let writer = tokio::spawn(async move {
        for price in 101..=400 {
            writes
                .execute("UPDATE item SET price = $1 WHERE id = 1", &[&price])
                .await
                .expect("an update");
            says.store(price, Ordering::SeqCst);
            // Between two updates, some fills are kept.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let (mut fills, mut kept_fills, mut hits) = (0, 0, 0);
    while !writer.is_finished() || kept_fills == 0 {
        let evidence = kept.reader.evidence();
        let row = reads
            .query_one("SELECT price FROM item WHERE id = 1", &[])
            .await
            .expect("a row");
        let price: i32 = row.get(0);
        fills += 1;
        let mut is_kept = kept.check(evidence, &item(1)).is_ok();
        kept_fills += i32::from(is_kept);
        while is_kept && !writer.is_finished() {
            // A request arrives.
            let least = acknowledged.load(Ordering::SeqCst);
            is_kept = kept.check(evidence, &item(1)).is_ok();
            assert!(
                !is_kept || price >= least,
                "{price} is served after {least} was acknowledged"
            );
            hits += i32::from(is_kept);
        }
    }
    writer.await.expect("the writer");
    println!("{fills} fills, {kept_fills} of them kept, {hits} hits");
    assert!(kept_fills > 0 && hits > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_stops_leaves_no_commit_waiting() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let evidence = kept.reader.evidence();
    let client = kept.database.connect().await;
    // The database has no session left that the keeper could have to stop.
    let address = kept.database.address();
    let mut others = Vec::new();
    while let Ok(session) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await {
        others.push(session);
    }
    kept.stop.send_replace(true);
    tokio::time::timeout(PATIENCE, &mut kept.keeper)
        .await
        .expect("it stops")
        .expect("no panic");
    assert!(kept.check(evidence, &item(1)).is_err());
    let update = client.batch_execute("UPDATE item SET price = 1");
    let updated = tokio::time::timeout(PATIENCE, update).await;
    updated.expect("nobody is waited for").expect("an update");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_waited_for_serves_nothing() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    run(
        &client,
        "ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (thorp, somebody)'",
    )
    .await;
    run(&client, "SELECT pg_reload_conf()").await;
    let evidence = kept.reader.evidence();
    kept.until(|health| matches!(health, Health::Away(why) if why.contains("stand in")))
        .await;
    assert!(kept.check(evidence, &item(1)).is_err());
    run(&client, "ALTER SYSTEM SET synchronous_standby_names = ''").await;
    run(&client, "SELECT pg_reload_conf()").await;
    kept.until(|health| *health == Health::Live).await;
    kept.until_passes(&item(1)).await;
    assert_eq!(kept.check(evidence, &item(1)), Err(Denied::OtherGeneration));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_could_be_stood_in_for_serves_nothing() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let evidence = kept.reader.evidence();
    let other = kept.database.standby("thorp");
    kept.until(|health| matches!(health, Health::Away(_))).await;
    assert!(kept.check(evidence, &item(1)).is_err());
    drop(other);
    kept.until(|health| *health == Health::Live).await;
    kept.until_passes(&item(1)).await;
}

/// Watches over the keeper, and says what it does.
fn watched(kept: &Kept) -> watch::Receiver<Watched> {
    let (says, watched) = watch::channel(Watched::Well);
    let source = Postgres::new(&kept.database.address(), "thorp").expect("an address");
    tokio::spawn(watch_over(source, says, kept.stop.subscribe()));
    watched
}

async fn until_let_go(watched: &mut watch::Receiver<Watched>) {
    let let_go = watched.wait_for(|said| matches!(said, Watched::LetGo(_)));
    assert!(tokio::time::timeout(PATIENCE, let_go).await.is_ok());
}

/// A commit that waits for the keeper until the watchdog lets it go on.
async fn commit_beside(client: &Client) {
    let update = client.batch_execute("UPDATE item SET price = 2 WHERE id = 1");
    let updated = tokio::time::timeout(PATIENCE, update).await;
    updated.expect("it goes on").expect("an update");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_gone_holds_up_no_commit_for_ever() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let mut watched = watched(&kept);
    let client = kept.database.connect().await;
    let evidence = kept.reader.evidence();
    // As a keeper that hangs with the lock, and as anybody: this was the lock of before.
    let hung = kept.database.connect().await;
    run(
        &hung,
        "SELECT pg_advisory_lock(8388076843281376610); BEGIN; LOCK TABLE thorp_web.lock IN EXCLUSIVE MODE",
    )
    .await;
    kept.keeper.abort();
    commit_beside(&client).await;
    assert_eq!(kept.check(evidence, &item(1)), Err(Denied::NoBeat));
    until_let_go(&mut watched).await;
}

async fn names(client: &Client) -> String {
    let question = "SELECT current_setting('synchronous_standby_names')";
    let row = client.query_one(question, &[]).await.expect("a setting");
    row.get(0)
}

/// No watchdog runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_does_not_get_through_holds_up_no_commit() {
    let Some(mut kept) = Kept::start().await else {
        return;
    };
    let client = kept.database.connect().await;
    // The keeper is live, and the stream ends at the next change.
    let drop =
        "SET synchronous_commit = local; DROP PUBLICATION thorp; SET synchronous_commit = on";
    run(&client, drop).await;
    commit_beside(&client).await;
    assert_eq!(names(&client).await, "");
    // From then on it ends at that change in each life, before commits wait.
    run(&client, "CREATE PUBLICATION thorp FOR ALL TABLES").await;
    let ends = |health: &Health| matches!(health, Health::Away(why) if why.contains("the stream"));
    kept.until(ends).await;
    assert_eq!(names(&client).await, "");
    // So it does if the slot is of another database.
    run(&client, "CREATE DATABASE elsewhere").await;
    let other = kept.database.connect_to("elsewhere").await;
    let end = "SELECT pg_drop_replication_slot('thorp'); SELECT pg_create_logical_replication_slot('thorp', 'pgoutput')";
    while other.batch_execute(end).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let is_other =
        |health: &Health| matches!(health, Health::Away(why) if why.contains("another database"));
    kept.until(is_other).await;
    assert_eq!(names(&client).await, "");
    run(&client, "SELECT pg_drop_replication_slot('thorp')").await;
    kept.until(|health| *health == Health::Live).await;
}

/// Traps W8 and W25: a keeper hangs with its connections, and wakes when commits no longer wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_hangs_serves_no_hit_when_it_wakes() {
    let Some(kept) = Kept::start().await else {
        return;
    };
    let mut watched = watched(&kept);
    let client = kept.database.connect().await;
    let evidence = kept.reader.evidence();
    assert_eq!(kept.check(evidence, &item(1)), Ok(()));
    kept.hang(Duration::from_secs(9));
    commit_beside(&client).await;
    assert_eq!(kept.check(evidence, &item(1)), Err(Denied::NoBeat));
    until_let_go(&mut watched).await;
    // It wakes, and its next life goes live.
    while kept.reader.evidence().generation == evidence.generation {
        assert!(kept.check(evidence, &item(1)).is_err());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    kept.until_passes(&item(1)).await;
    assert_eq!(kept.check(evidence, &item(1)), Err(Denied::OtherGeneration));
}
