//! What a fetch from a neighbour costs, beside a bare request and answer over the same TLS. Numbers are printed:
//! `cargo test --release -p thorp-testing --test driver -- --ignored --nocapture latency`

use std::future::pending;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thorp_model::PageId;
use thorp_net::{Config, Listener, Role, dial};
use thorp_testing::{HomeNode, MemberNode, SiteNode, Village, create, loopback};

use crate::nodes::{HOME, commit, home_options};

const ROUNDS: usize = 2_000;
/// Before each round, so that all nodes are at rest when it begins.
const PAUSE: Duration = Duration::from_micros(300);

/// Runs a node on a thread and a runtime of its own, as a process would; gives what `start` gives.
fn apart<T, F>(start: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (started, starting) = mpsc::channel();
    thread::spawn(move || {
        let runtime = thorp_net::driver::runtime().unwrap();
        runtime.block_on(async {
            started.send(start().await).unwrap();
            pending::<()>().await
        })
    });
    starting.recv().unwrap()
}

fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |part: usize| times[times.len() * part / 100];
    println!(
        "{what}: p50 {:?}, p90 {:?}, p99 {:?}",
        at(50),
        at(90),
        at(99)
    );
    at(50)
}

/// A small request, a page for an answer.
async fn bare(village: &Village) -> Vec<Duration> {
    let theirs = village.clone();
    let address = apart(move || async move {
        let mut listener = Listener::bind(&loopback(), &theirs.identity(), Config::new(Role::HOME))
            .await
            .unwrap();
        let address = listener.address().clone();
        tokio::spawn(async move {
            let connection = listener.accept().await.unwrap().accept(b"").unwrap();
            let (sender, mut receiver) = connection.split();
            while let Ok(Some(_)) = receiver.recv().await {
                sender.try_send(vec![1; 8000]).unwrap();
            }
        });
        address
    });
    let dialed = dial(
        &[address],
        &village.member_identity(),
        None,
        b"",
        &Config::new(Role::MEMBER),
    )
    .await;
    let (sender, mut receiver) = dialed.unwrap().split();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        thread::sleep(PAUSE);
        let begin = Instant::now();
        sender.try_send(vec![0; 40]).unwrap();
        receiver.recv().await.unwrap().unwrap();
        times.push(begin.elapsed());
    }
    times
}

async fn fetches(program: &MemberNode, page: PageId) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        program.evict(page).await;
        // The eviction and its notice are over before the fetch begins.
        thread::sleep(PAUSE);
        let begin = Instant::now();
        program.fetch(page).await;
        times.push(begin.elapsed());
    }
    times
}

/// A village whose nodes run apart, with a page that both members have.
struct Prepared {
    bert: MemberNode,
    page: PageId,
    /// They end when they are dropped.
    _others: (MemberNode, SiteNode, HomeNode),
}

async fn prepared(village: &Village, cache_bytes: usize) -> Prepared {
    let home = HomeNode::start(village, home_options());
    let parents = vec![home.as_parent()];
    let site = SiteNode::start(village, &loopback(), parents, cache_bytes);
    let [anna, bert] = [10, 11].map(|id| {
        let identity = village.member_identity();
        MemberNode::start(identity, site.address(), HOME, id)
    });
    let segment = anna.open_or_create("letters").await;
    let page = anna.fresh_page(segment).await;
    commit(&anna, page, create(vec![1; 7900])).await;
    anna.fetch(page).await;
    bert.fetch(page).await;
    Prepared {
        bert,
        page,
        _others: (anna, site, home),
    }
}

#[tokio::test]
#[ignore = "it measures"]
async fn latency_of_a_fetch() {
    let village = Village::new();
    let base = report("bare request and answer", bare(&village).await);
    let nodes = prepared(&village, 0).await;
    let peer = report(
        "from a neighbour       ",
        fetches(&nodes.bert, nodes.page).await,
    );
    drop(nodes);
    let nodes = prepared(&village, 1 << 20).await;
    let near = report(
        "from the site's memory ",
        fetches(&nodes.bert, nodes.page).await,
    );
    drop(nodes);
    let ratio = |time: Duration| time.as_secs_f64() / base.as_secs_f64();
    println!(
        "neighbour {:.2} x bare, memory {:.2} x bare",
        ratio(peer),
        ratio(near)
    );
}
