//! The auction house: a small web application whose data are at a Thorp home, or in PostgreSQL.

use std::net::TcpListener;
use thorp_client::{JoinConfig, Member};
use thorp_examples::{AtHome, Books, Failure, InPostgres, answer, serve, unavailable};

const USAGE: &str = "usage: auction IP:PORT thorp ADDRESS IDENTITY-DIR thorp://HOME/SEGMENT
       auction IP:PORT postgres URL";

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [listen, "thorp", address, identity, segment] => {
            let member = Member::join(JoinConfig::new(address).identity(identity))?;
            let segment = member.open_or_create(segment)?;
            let books = AtHome::open(&member, &segment)?;
            run(listen, || Ok(books.clone()))
        }
        [listen, "postgres", url] => {
            let open = || InPostgres::open(url).map_err(|error| Failure::from(error.to_string()));
            open()?.make().map_err(|error| error.to_string())?;
            run(listen, open)
        }
        _ => Err(USAGE.into()),
    }
}

/// Serves each connection with books of its own.
fn run<B: Books + Send + 'static>(
    listen: &str,
    open: impl Fn() -> Result<B, Failure>,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(listen)?;
    println!("ready: http://{}", listener.local_addr()?);
    serve(&listener, || {
        let mut books = open();
        move |request| match &mut books {
            Ok(books) => answer(books, request),
            Err(error) => unavailable(&format!("{error:?}")),
        }
    })?;
    Ok(())
}
