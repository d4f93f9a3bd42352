//! What a fetch from a neighbour costs, beside a bare request and answer over the same TLS. Numbers are printed:
//! `cargo test --release -p thorp-testing --test driver -- --ignored --nocapture latency`

use std::future::pending;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use thorp_model::{Blob, Generation, NewValue, PageId, WriteOp};
use thorp_net::Listener;

use crate::common::{Village, any, at_home, at_member};
use crate::memory::{Program, home, member, site};
use crate::village::{commit, fetch, fresh_page, open};

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
async fn bare(village: &Arc<Village>) -> Vec<Duration> {
    let theirs = Arc::clone(village);
    let address = apart(move || async move {
        let mut listener = Listener::bind(&any(), &theirs.home, at_home())
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
    let dialed = thorp_net::dial(&[address], &village.member, None, b"", &at_member()).await;
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

async fn fetches(program: &Program, page: PageId) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        program.evict(page);
        // The eviction and its notice are over before the fetch begins.
        thread::sleep(PAUSE);
        let begin = Instant::now();
        fetch(program, page).await;
        times.push(begin.elapsed());
    }
    times
}

async fn prepared(village: &Arc<Village>, cache_bytes: usize) -> (Program, PageId) {
    let v = Arc::clone(village);
    let (_, address) = apart(move || async move { home(&v).await });
    let v = Arc::clone(village);
    let (_, address) = apart(move || async move { site(&v, &address, cache_bytes).await });
    let [anna, bert] = [10, 11].map(|id| {
        let (v, address) = (Arc::clone(village), address.clone());
        apart(move || async move { member(&v, &address, id).await })
    });
    let segment = open(&anna, "letters").await;
    let page = fresh_page(&anna, segment).await;
    let value = NewValue::Inline(Blob::from(vec![1; 7900]));
    let generation = Generation(1);
    commit(&anna, page, WriteOp::Create { generation, value }).await;
    fetch(&anna, page).await;
    fetch(&bert, page).await;
    (bert, page)
}

#[tokio::test]
#[ignore = "it measures"]
async fn latency_of_a_fetch() {
    let village = Arc::new(Village::new());
    let base = report("bare request and answer", bare(&village).await);
    let (bert, page) = prepared(&village, 0).await;
    let peer = report("from a neighbour       ", fetches(&bert, page).await);
    let (bert, page) = prepared(&village, 1 << 20).await;
    let near = report("from the site's memory ", fetches(&bert, page).await);
    let ratio = |time: Duration| time.as_secs_f64() / base.as_secs_f64();
    println!(
        "neighbour {:.2} x bare, memory {:.2} x bare",
        ratio(peer),
        ratio(near)
    );
}
