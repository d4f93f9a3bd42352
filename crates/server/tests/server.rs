//! Homes and sites as they run, over sockets, with real stores.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Village, get, is_committed};
use thorp_model::{CallRequest, CallResponse, HomeId, Outcome, Refusal, Slot, Stamp};
use thorp_net::driver::now;
use thorp_server::{Bytes, HomeConfigFile, HomeServer, ServerError, SiteServer};
use thorp_store::OpenError;
use thorp_testing::{MemberNode, create, holds};

#[tokio::test]
async fn a_home_restarts_as_itself_and_remembers_outcomes() {
    let village = Village::new();
    let first = village.home().await;
    let anna = village.member(&first.address, first.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let (id, outcome) = anna.commit(page, Slot(0), create(b"dear bert")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    let home = first.home;
    let address = first.address.clone();
    first.stop().await;

    let mut config = village.home_config();
    config.listen = vec![address.clone()];
    let second = village.home_with(config).await.unwrap();
    assert_eq!(second.home, home);
    // The member comes back by itself, and asks again.
    anna.until(|seen| seen.streams() == 2).await;
    let Ok(CallResponse::Registered(registration)) = anna.call(CallRequest::Register(None)).await
    else {
        panic!("not registered any more");
    };
    let request = CallRequest::Outcome {
        commit: id,
        registration,
    };
    assert_eq!(anna.call(request).await, Ok(CallResponse::Outcome(outcome)));
    let bert = village.member(&address, home, 2).await;
    assert!(holds(&bert.fetch(page).await, Slot(0), b"dear bert"));
    second.stop().await;
}

#[tokio::test]
async fn a_site_serves_from_memory_and_its_status_tells_so() {
    let village = Village::new();
    let home = village.home().await;
    let site = village.site(&home.address).await;
    let anna = village.member(&site.address, home.home, 1).await;
    let bert = village.member(&site.address, home.home, 2).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    bert.fetch(page).await;
    anna.commit(page, Slot(0), create(b"dear bert")).await;
    bert.page(page, |image| holds(image, Slot(0), "dear bert"))
        .await;
    bert.evict(page).await;
    bert.fetch(page).await;

    let (code, text) = get(site.http.unwrap(), "/status").await;
    assert_eq!(code, 200);
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["role"], "site");
    assert!(
        status["pages"]["from_memory"].as_u64().unwrap() > 0,
        "{text}"
    );
    assert!(status["notes"]["update_delivered"].as_u64().unwrap() > 0);
    assert_eq!(status["homes"][0]["name"], "alps");
    assert_eq!(status["homes"][0]["connected"], true);
    assert_eq!(status["parents"][0]["connected"], true);
    let round_trip_ms = status["parents"][0]["round_trip_ms"].as_f64();
    assert!(round_trip_ms.is_some_and(|time| time > 0.0), "{text}");
    let (_, metrics) = get(site.http.unwrap(), "/metrics").await;
    assert!(
        metrics.contains("thorp_parent_round_trip_seconds{parent=\"alps\"} "),
        "{metrics}"
    );
    assert_eq!(status["children"].as_array().unwrap().len(), 2);
    assert_eq!(
        get(site.http.unwrap(), "/health").await,
        (200, "ok\n".to_owned())
    );

    let (_, text) = get(home.http.unwrap(), "/status").await;
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    let child = &status["children"][0];
    assert_eq!(
        (&child["kind"], &child["name"]),
        (&"site".into(), &"valley".into())
    );
    assert_eq!(child["homes"][0]["home"], home.home.0);
    assert!(status["storage"]["groups"].as_u64().unwrap() > 0, "{text}");

    home.stop().await;
    // Without its home the site is not well, and says why.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let (code, text) = get(site.http.unwrap(), "/health").await;
        if code == 503 {
            assert!(text.contains("parent alps is not reached"), "{text}");
            break;
        }
        assert!(Instant::now() < until, "{code} {text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    site.stop().await;
}

#[tokio::test]
async fn two_sites_below_one_home_both_serve() {
    let village = Village::new();
    let home = village.home().await;
    let valley = village.site(&home.address).await;
    let config = village.site_config_of("ridge", &home.address);
    let ridge = village.site_with(&config).await;
    let anna = village.member(&valley.address, home.home, 1).await;
    let bert = village.member(&ridge.address, home.home, 2).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    anna.fetch(page).await;
    bert.fetch(page).await;
    anna.commit(page, Slot(0), create(b"dear bert")).await;
    bert.page(page, |image| !image.is_complete()).await;
    assert!(holds(&bert.fetch(page).await, Slot(0), "dear bert"));
    bert.commit(page, Slot(1), create(b"dear anna")).await;
    anna.page(page, |image| !image.is_complete()).await;
    assert!(holds(&anna.fetch(page).await, Slot(1), "dear anna"));

    // To the home they are two children, and neither has come again.
    let status = home.control.status().await;
    assert_eq!(status.notes.get("came_again").copied().unwrap_or(0), 0);
    let mut children: Vec<_> = status.children.iter().map(|child| &*child.name).collect();
    children.sort_unstable();
    assert_eq!(children, ["ridge", "valley"]);
    assert_eq!((anna.streams(), bert.streams()), (1, 1));
    valley.stop().await;
    ridge.stop().await;
    home.stop().await;
}

#[tokio::test]
async fn metrics_are_what_prometheus_reads() {
    let village = Village::new();
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(1 << 30));
    let home = village.home_with(config).await.unwrap();
    let anna = village.member(&home.address, home.home, 1).await;
    anna.open_or_create("letters").await;
    let (code, text) = get(home.http.unwrap(), "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "# TYPE thorp_notes counter",
        "thorp_notes_total{note=\"stream_began\"}",
        "thorp_healthy 1.0",
        "thorp_room 1.0",
        "thorp_store_limit_bytes 1073741824.0",
        "thorp_commit_groups_total ",
        "thorp_child_lag{child=\"anna\",kind=\"member\",edge=\"1\"}",
        "thorp_bytes_total{edges=\"down\",way=\"sent\"}",
        "thorp_position{home=\"alps\"} 1.0",
        "thorp_leases{mode=\"write\"} 0.0",
        "thorp_leases{mode=\"read\"} 0.0",
        "thorp_pulls 0.0",
        "thorp_locks 0.0",
        "thorp_lock_waiters 0.0",
        "thorp_answers_withheld 0.0",
        "# TYPE thorp_writers_waited_seconds counter",
    ] {
        assert!(text.contains(line), "{line} is missing in:\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(get(home.http.unwrap(), "/nothing").await.0, 404);
    home.stop().await;
}

#[tokio::test]
async fn without_room_commits_are_refused_reads_go_on_and_room_brings_them_back() {
    let village = Village::new();
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(200 << 10));
    // One member fills it.
    config.shares.store_percent_max = 100;
    let home = village.home_with(config).await.unwrap();
    let anna = village.member(&home.address, home.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let first = anna.fresh_page(segment).await;
    let mut committed = 0;
    let refused = loop {
        let mut page = first;
        page.page.0 += committed / 4;
        let op = create([7; 1800]);
        let (_, outcome) = anna.commit(page, Slot((committed % 4) as u16), op).await;
        match outcome {
            Outcome::Committed { .. } => committed += 1,
            Outcome::Refused(refusal) => break refusal,
        }
        assert!(committed < 128, "it should be full by now");
    };
    assert!(matches!(refused, Refusal::Full(_)), "{refused}");
    assert!(committed > 50, "{committed}");
    // It was seen coming: nobody was cut off for it.
    assert_eq!(anna.streams(), 1);
    let (code, text) = get(home.http.unwrap(), "/health").await;
    assert_eq!(code, 503);
    assert!(text.contains("reads and deletes go on"), "{text}");
    let bert = village.member(&home.address, home.home, 2).await;
    assert!(holds(&bert.fetch(first).await, Slot(0), [7; 1800]));

    home.control.set_limit(Some(10 << 20));
    wait_for_health(&home.control).await;
    let mut page = first;
    page.page.0 += 30;
    let (_, outcome) = anna.commit(page, Slot(0), create(b"again")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    home.stop().await;
}

async fn wait_for_health(control: &thorp_server::HomeControl) {
    let until = Instant::now() + Duration::from_secs(10);
    while !control.status().await.health.ok {
        let health = control.status().await.health;
        assert!(Instant::now() < until, "{health:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_large_commit_that_does_not_fit_is_refused_alone() {
    let village = Village::new();
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(40 << 10));
    let home = village.home_with(config).await.unwrap();
    let anna = village.member(&home.address, home.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let (_, outcome) = anna.commit(page, Slot(0), create(b"small")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    let second = thorp_model::PageId::new(page.segment.0, page.page.0 + 1);
    let slots = (0..6).map(|slot| (Slot(slot), create([1; 8000])));
    let (_, outcome) = anna.commit_all(second, slots.collect()).await;
    assert!(
        matches!(outcome, Outcome::Refused(Refusal::Full(_))),
        "{outcome:?}"
    );
    let (_, outcome) = anna.commit(page, Slot(1), create(b"again")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    // Nobody was cut off for it, and the home takes commits.
    assert_eq!(anna.streams(), 1);
    assert!(home.control.status().await.health.ok);
    home.stop().await;
}

#[tokio::test]
async fn a_commit_caught_without_room_opens_the_home_again_and_is_never_guessed() {
    let village = Village::new();
    let mut config = village.home_config();
    // It does not look again before the commit.
    config.store.room_probe_ms = 3_600_000;
    let home = village.home_with(config).await.unwrap();
    let anna = Arc::new(village.member(&home.address, home.home, 1).await);
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let (_, outcome) = anna.commit(page, Slot(0), create(b"small")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    // A large commit does not fit any more, and the home has not heard of it.
    home.control.set_limit(Some(40 << 10));
    let fat = Arc::clone(&anna);
    let second = thorp_model::PageId::new(page.segment.0, page.page.0 + 1);
    let large = tokio::spawn(async move {
        let slots = (0..6).map(|slot| (Slot(slot), create([1; 8000])));
        fat.commit_all(second, slots.collect()).await
    });
    anna.until(|seen| seen.streams() == 2).await;
    // Reads go on.
    assert!(holds(&anna.fetch(page).await, Slot(0), b"small"));
    let status = home.control.status().await;
    let opened = status.storage.unwrap().opened;
    assert_eq!(opened.times, 2);
    assert!(
        opened
            .why
            .unwrap()
            .contains("are free below its --limit-bytes"),
        "why"
    );
    home.control.set_limit(None);
    let (id, outcome) = large.await.unwrap();
    assert_eq!(outcome, Outcome::Refused(Refusal::Unknown), "{id}");
    let (_, outcome) = anna.commit(page, Slot(1), create(b"again")).await;
    assert!(is_committed(&outcome), "{outcome:?}");
    home.stop().await;
}

#[tokio::test]
async fn a_second_process_is_refused_and_so_is_another_name() {
    let village = Village::new();
    let home = village.home().await;
    let refused = HomeServer::start(village.home_config()).await.map(drop);
    assert!(
        matches!(refused, Err(ServerError::Store(OpenError::InUse { .. }))),
        "{refused:?}"
    );
    home.stop().await;

    let mut config = village.home_config();
    config.name = Some("andes".to_owned());
    let refused = HomeServer::start(config).await.map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("is that of home \"alps\""),
        "{refused}"
    );
    village.home().await.stop().await;
}

#[tokio::test]
async fn a_directory_that_is_no_store_is_refused_unchanged() {
    let village = Village::new();
    let store = village.dir.path().join("home/store");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(store.join("thesis.tex"), "all my work").unwrap();
    let refused = HomeServer::start(village.home_config()).await.map(drop);
    assert!(
        matches!(
            refused,
            Err(ServerError::Store(OpenError::NotAStore { .. }))
        ),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_dir(&store).unwrap().count(), 1);
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let village = Village::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut config = village.home_config();
    config.listen = vec![address.to_string().parse().unwrap()];
    let refused = HomeServer::start(config).await.map(drop).unwrap_err();
    assert!(
        refused.to_string().contains(&address.to_string()),
        "{refused}"
    );
    let mut config = village.home_config();
    config.http = Some(address);
    let dir = config.data_dir().unwrap().to_owned();
    let refused = HomeServer::start(config).await.map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("cannot serve HTTP"),
        "{refused}"
    );
    // Nothing is there that would be taken for a home.
    assert!(!dir.exists(), "{}", dir.display());
}

#[tokio::test]
async fn a_site_without_a_certificate_says_how_to_get_one() {
    let village = Village::new();
    let mut config = village.site_config(&"127.0.0.1:1".parse().unwrap());
    config.authority_dir = None;
    let refused = SiteServer::start(&config).await.map(drop).unwrap_err();
    assert!(refused.to_string().contains("have one issued"), "{refused}");
}

#[tokio::test]
async fn a_shutdown_is_quick_also_without_room_and_with_members_connected() {
    let village = Village::new();
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(64 << 10));
    let home = village.home_with(config).await.unwrap();
    let _anna = village.member(&home.address, home.home, 1).await;
    home.control.set_limit(Some(10));
    while home.control.status().await.health.ok {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = Instant::now();
    home.stop().await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    // And it starts without room, too: reads are served.
    let mut config = village.home_config();
    config.store.limit = Some(Bytes(10));
    let home = village.home_with(config).await.unwrap();
    let _bert = village.member(&home.address, home.home, 2).await;
    home.control.set_limit(None);
    wait_for_health(&home.control).await;
    home.stop().await;
}

/// Threat 30: the clock of one home ran 25 hours ahead, and no node reported it.
#[tokio::test]
async fn a_clock_that_differs_from_that_of_another_home_is_told_with_both_times() {
    let village = Village::new();
    let home = village.home().await;
    let anna = village.member(&home.address, home.home, 1).await;
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    let hours = |hours: u64| Stamp {
        clock: Stamp::clock_of(now().wall.plus(hours * 3_600_000)),
        home: HomeId(77),
    };
    let write = |slot| vec![(Slot(slot), create(b"dear bert"))];
    let (_, same) = anna.commit_after(page, write(0), hours(0)).await;
    assert!(is_committed(&same), "{same:?}");
    assert!(home.control.status().await.health.ok);
    let (_, ahead) = anna.commit_after(page, write(1), hours(25)).await;
    assert!(is_committed(&ahead), "{ahead:?}");
    // One member may make it up.
    assert!(home.control.status().await.health.ok);
    let identity = village.identity("bert");
    let bert = MemberNode::start_here(identity, &home.address, home.home, 2).await;
    let (_, ahead) = bert.commit_after(page, write(2), hours(25)).await;
    assert!(is_committed(&ahead), "{ahead:?}");
    let health = home.control.status().await.health;
    let [reason] = &health.reasons[..] else {
        panic!("{health:?}");
    };
    assert!(reason.contains("a clock is wrong"), "{reason}");
    assert!(reason.contains("a stamp of home id 77"), "{reason}");
    assert_eq!(reason.matches(" UTC").count(), 2, "{reason}");
    home.stop().await;
}

#[test]
fn a_configuration_must_be_whole() {
    let runtime = thorp_server::runtime().unwrap();
    let started = runtime.block_on(HomeServer::start(HomeConfigFile::default()));
    assert!(matches!(started.map(drop), Err(ServerError::Config(_))));
}
