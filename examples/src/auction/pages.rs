//! The pages of the house.
//!
//! | request | answer |
//! |---|---|
//! | `GET /shelves/3` | the lots on shelf 3 |
//! | `GET /lots/7` | a lot |
//! | `GET /lots/7/bid` | the form for a bid |
//! | `POST /lots/7/bid` with `bidder=anna&cents=120` | 201, or 409 if the bid is too low |

use super::http::{Answer, Request};
use super::{Bid, Books, Lot, Read, Taken};

/// Answers a request.
pub fn answer(books: &mut dyn Books, request: &Request) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let answered = match (request.method.as_str(), &parts[..]) {
        ("GET" | "HEAD", ["shelves", number]) => numbered(number, |number| {
            let shelf = books.shelf(number)?;
            Ok(page(shelf, |lots| {
                (!lots.is_empty()).then(|| browse(number, lots))
            }))
        }),
        ("GET" | "HEAD", ["lots", number]) => numbered(number, |number| {
            Ok(page(books.lot(number)?, |lot| lot.as_ref().map(one)))
        }),
        ("GET" | "HEAD", ["lots", number, "bid"]) => numbered(number, |number| {
            Ok(page(books.lot(number)?, |lot| lot.as_ref().map(form)))
        }),
        ("POST", ["lots", number, "bid"]) => numbered(number, |number| {
            let Some(bid) = Bid::parse(&request.body) else {
                return Ok(Answer::plain(400, "write bidder=NAME&cents=NUMBER\n"));
            };
            Ok(match books.bid(number, &bid)? {
                Taken::Yes => Answer::plain(201, "it is the highest bid\n"),
                Taken::TooLow(price) => Answer::plain(409, &format!("the price is {price}\n")),
                Taken::NoLot => Answer::plain(404, "there is no such lot\n"),
            })
        }),
        ("GET" | "HEAD" | "POST", _) => Ok(Answer::plain(404, "there is no such page\n")),
        _ => Ok(Answer::plain(405, "GET, HEAD and POST are there\n")),
    };
    answered.unwrap_or_else(|error| unavailable(&error.to_string()))
}

/// The books cannot be read now.
pub fn unavailable(why: &str) -> Answer {
    Answer::plain(503, &format!("{why}\n"))
}

type Answered = Result<Answer, Box<dyn std::error::Error>>;

fn numbered(number: &str, answer: impl FnOnce(u32) -> Answered) -> Answered {
    match number.parse() {
        Ok(number) => answer(number),
        Err(_) => Ok(Answer::plain(404, "there is no such page\n")),
    }
}

/// What was read as a page, with what it rests on.
fn page<T>((read, fields): Read<T>, show: impl FnOnce(&T) -> Option<String>) -> Answer {
    let mut answer = match show(&read) {
        Some(body) => Answer::html(&body),
        None => Answer::plain(404, "there is no such page\n"),
    };
    // A cache that does not know better may keep it for a second.
    answer
        .fields
        .push(("Cache-Control", String::from("max-age=1")));
    answer.fields.extend(fields.into_iter().flatten());
    answer
}

fn browse(number: u32, lots: &[Lot]) -> String {
    let lines: String = lots.iter().map(line).collect();
    format!("<h1>Shelf {number}</h1>\n<table>\n{lines}</table>\n")
}

fn line(lot: &Lot) -> String {
    let (number, title, price) = (lot.number, text(&lot.title), lot.price);
    format!(
        "<tr><td><a href=\"/lots/{number}\">{title}</a></td><td data-lot=\"{number}\">{price}</td></tr>\n"
    )
}

fn one(lot: &Lot) -> String {
    let (number, title, bidder) = (lot.number, text(&lot.title), text(&lot.bidder));
    let (price, bids) = (lot.price, lot.bids);
    format!(
        "<h1>{title}</h1>\n<p>Price: <b data-lot=\"{number}\">{price}</b>, {bids} bids, the highest by {bidder}.</p>\n\
         <p><a href=\"/lots/{number}/bid\">Bid</a></p>\n"
    )
}

fn form(lot: &Lot) -> String {
    let (number, least) = (lot.number, lot.price + 1);
    format!(
        "<form method=\"post\">\n<input name=\"bidder\">\n<input name=\"cents\" type=\"number\" min=\"{least}\">\n\
         <button>Bid more than <b data-lot=\"{number}\">{}</b></button>\n</form>\n",
        lot.price
    )
}

fn text(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('"', "&quot;")
}
