//! Editors and readers of a MediaWiki behind `thorp web`: is an answer ever older than what was acknowledged before its request?
//!
//! `scripts/wiki.sh` starts the wiki and the proxy, and runs this. Each page shows its revision (`wgCurRevisionId`). It must be at least
//! that of the last edit that was acknowledged before the request began, and at least what this reader has seen.

use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// At least this share of the reads has to be hits, in percent.
const HITS_MIN_PERCENT: u64 = 50;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser, Debug)]
struct Options {
    /// The proxy
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    proxy: String,
    /// How long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Programs that edit through the API
    #[arg(long, default_value_t = 8)]
    editors: usize,
    /// Programs that read
    #[arg(long, default_value_t = 40)]
    readers: usize,
    /// Pages
    #[arg(long, default_value_t = 40)]
    pages: usize,
    /// Between two edits of an editor
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    edit_every_ms: u64,
    /// Between two reads of a reader
    #[arg(long, value_name = "MS", default_value_t = 100)]
    read_every_ms: u64,
}

/// What was counted.
#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    hits: AtomicU64,
    stale: AtomicU64,
    edits: AtomicU64,
    failures: AtomicU64,
}

/// A wiki, and the last acknowledged revision of each page.
struct Wiki {
    options: Options,
    client: Client<HttpConnector, Full<Bytes>>,
    acknowledged: Vec<AtomicU64>,
    counts: Counts,
    end: Instant,
}

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let options = Options::parse();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let acknowledged = (0..options.pages).map(|_| AtomicU64::new(0)).collect();
    let wiki = Arc::new(Wiki {
        client: Client::builder(TokioExecutor::new()).build_http(),
        acknowledged,
        counts: Counts::default(),
        end,
        options,
    });
    for page in 0..wiki.options.pages {
        wiki.edit(page, 0).await?;
    }
    let mut tasks = JoinSet::new();
    for editor in 0..wiki.options.editors {
        tasks.spawn(Arc::clone(&wiki).edits(editor));
    }
    for reader in 0..wiki.options.readers {
        tasks.spawn(Arc::clone(&wiki).reads(reader));
    }
    tasks.join_all().await;
    Ok(wiki.tell())
}

impl Wiki {
    /// Edits the pages of one editor in turn. No other one edits them.
    async fn edits(self: Arc<Self>, editor: usize) {
        let own = (editor..self.options.pages).step_by(self.options.editors.max(1));
        for (number, page) in own.cycle().enumerate() {
            if Instant::now() >= self.end {
                return;
            }
            if let Err(error) = self.edit(page, number + 1).await {
                self.fails("an edit", &*error);
            }
            tokio::time::sleep(Duration::from_millis(self.options.edit_every_ms)).await;
        }
    }

    async fn reads(self: Arc<Self>, reader: usize) {
        let mut seen = vec![0; self.options.pages];
        let mut page = reader;
        while Instant::now() < self.end {
            // Another order for each reader.
            page = (page * 7 + reader + 1) % self.options.pages;
            if let Err(error) = self.read(page, &mut seen[page]).await {
                self.fails("a read", &*error);
            }
            tokio::time::sleep(Duration::from_millis(self.options.read_every_ms)).await;
        }
    }

    fn fails(&self, what: &str, error: &(dyn Error + Send + Sync)) {
        self.counts.failures.fetch_add(1, Ordering::SeqCst);
        eprintln!("{what}: {error}");
    }

    async fn edit(&self, page: usize, number: usize) -> Outcome<()> {
        // The token of whoever has not logged in.
        let form =
            format!("action=edit&format=json&title=Page_{page}&text=edit+{number}&token=%2B%5C");
        let request = Request::post(format!("{}/api.php", self.options.proxy))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Full::from(form))?;
        let (_, body) = self.ask(request).await?;
        let revision = after(&body, "\"newrevid\":").or_else(|| {
            // The text was so before: no revision is new.
            body.contains("\"nochange\"").then_some(0)
        });
        let revision = revision.ok_or(body)?;
        self.acknowledged[page].fetch_max(revision, Ordering::SeqCst);
        self.counts.edits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn read(&self, page: usize, seen: &mut u64) -> Outcome<()> {
        let least = self.acknowledged[page].load(Ordering::SeqCst).max(*seen);
        let request = Request::get(format!("{}/wiki/Page_{page}", self.options.proxy));
        let (head, body) = self.ask(request.body(Full::default())?).await?;
        let revision =
            after(&body, "\"wgCurRevisionId\":").ok_or("an answer without its revision")?;
        let status = head.headers().get("cache-status");
        let is_hit = status.is_some_and(|status| status.as_bytes().ends_with(b"hit"));
        self.counts.reads.fetch_add(1, Ordering::SeqCst);
        self.counts
            .hits
            .fetch_add(u64::from(is_hit), Ordering::SeqCst);
        if revision < least {
            self.counts.stale.fetch_add(1, Ordering::SeqCst);
            eprintln!("stale: Page_{page} shows {revision} after {least}, {status:?}");
        }
        *seen = revision.max(*seen);
        Ok(())
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> Outcome<(Response<()>, String)> {
        let (head, body) = self.client.request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok((Response::from_parts(head, ()), body))
    }

    fn tell(&self) -> ExitCode {
        let count = |count: &AtomicU64| count.load(Ordering::SeqCst);
        let counts = &self.counts;
        let (reads, hits, stale) = (
            count(&counts.reads),
            count(&counts.hits),
            count(&counts.stale),
        );
        let failures = count(&counts.failures);
        let is_met =
            stale == 0 && failures == 0 && reads > 0 && hits * 100 >= reads * HITS_MIN_PERCENT;
        let told = serde_json::json!({
            "bench": "wiki", "seconds": self.options.seconds, "editors": self.options.editors, "readers": self.options.readers,
            "edits": count(&counts.edits), "reads": reads, "hits": hits, "stale": stale, "failures": failures, "met": is_met,
        });
        println!("{told}");
        match is_met {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}

/// The number behind a text.
fn after(body: &str, text: &str) -> Option<u64> {
    let (_, rest) = body.split_once(text)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_behind_its_text() {
        let body = "{\"wgCurRevisionId\":178,\"wgRevisionId\":177}";
        assert_eq!(after(body, "\"wgCurRevisionId\":"), Some(178));
        assert_eq!(after(body, "\"newrevid\":"), None);
        assert_eq!(after("\"newrevid\":x", "\"newrevid\":"), None);
    }
}
