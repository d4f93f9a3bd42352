//! What a round trip costs with nothing above the transport: beside it stands what a fetch costs.
//!
//! `thorp-lab-worker answer` answers each frame with a page, `thorp-lab-worker ask` obeys: `asks COUNT` and `quit`.

use crate::{Outcome, pieces, say};
use clap::Parser;
use serde_json::json;
use std::io::{self, BufRead};
use std::time::Instant;
use thorp_net::{Address, Config, Identity, Listener, Role, dial};

/// Answers each frame with one of a page's length, until its input ends
#[derive(Parser, Debug)]
struct Answering {
    /// Where it listens, as tcp://HOST:PORT
    #[arg(long, value_name = "ADDR")]
    listen: String,
    /// The directory of its certificate
    #[arg(long, value_name = "DIR")]
    identity: String,
}

/// Asks who answers, one frame at a time
#[derive(Parser, Debug)]
struct Asking {
    /// Who answers, as tcp://HOST:PORT
    #[arg(long, value_name = "ADDR")]
    to: String,
    /// The directory of its certificate
    #[arg(long, value_name = "DIR")]
    identity: String,
}

/// As many bytes as a small request has, with what TLS needs.
const QUESTION_BYTES: usize = 64;
/// A page.
const ANSWER_BYTES: usize = 8192;

/// Does what the first word says, if it is one of these.
pub(crate) fn obey(words: &[String]) -> Option<Outcome<()>> {
    // The parser takes the first for the program's name.
    let words = words.get(1..)?;
    match words.first()?.as_str() {
        "answer" => Some(answer(&Answering::parse_from(words))),
        "ask" => Some(ask(&Asking::parse_from(words))),
        _ => None,
    }
}

fn answer(options: &Answering) -> Outcome<()> {
    let (address, identity) = (options.listen.parse()?, Identity::load(&options.identity)?);
    thorp_net::driver::runtime()?.block_on(async {
        let config = Config::new(Role::MEMBER);
        let mut listener = Listener::bind(&address, &identity, config).await?;
        say(&json!({"ready": true}))?;
        let ended = wait_for_end();
        tokio::select! {
            failed = serve(&mut listener) => failed,
            _ = ended => Ok(()),
        }
    })
}

async fn serve(listener: &mut Listener) -> Outcome<()> {
    loop {
        let (sender, mut receiver) = listener.accept().await?.accept(b"")?.split();
        tokio::spawn(async move {
            // A caller that is gone without a goodbye is gone, too.
            while let Ok(Some(_)) = receiver.recv().await {
                if sender.try_send(vec![7; ANSWER_BYTES]).is_err() {
                    return;
                }
            }
        });
    }
}

/// The lab ends its programs by ending their input.
async fn wait_for_end() {
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        // Nothing is said to it, and an error is an end, too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(tell);
    });
    let _ = told.await;
}

fn ask(options: &Asking) -> Outcome<()> {
    let (to, identity): (Address, _) = (options.to.parse()?, Identity::load(&options.identity)?);
    let runtime = thorp_net::driver::runtime()?;
    let config = Config::new(Role::MEMBER);
    let connection = runtime.block_on(dial(&[to], &identity, None, b"", &config))?;
    let (sender, mut receiver) = connection.split();
    say(&json!({"ready": true}))?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let count: usize = match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["quit"] => break,
            ["asks", count] => count.parse()?,
            _ => return Err(format!("not a command: {line}").into()),
        };
        let (begun, mut took) = (Instant::now(), Vec::with_capacity(count));
        for _ in 0..count {
            let begun = Instant::now();
            let answered = runtime.block_on(async {
                sender.try_send(vec![1; QUESTION_BYTES])?;
                Ok::<_, Box<dyn std::error::Error>>(receiver.recv().await?)
            })?;
            answered.ok_or("who answers has ended")?;
            took.push(begun.elapsed());
        }
        say(&pieces::timed(took, begun.elapsed()))?;
    }
    Ok(())
}
