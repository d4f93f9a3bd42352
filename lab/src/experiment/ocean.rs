//! Everything that is told of wide-area links, in a row.

use super::{Chain, Common, Idle, Lossy, Paper, chain, idle, lossy, paper};
use crate::Outcome;
use crate::peer::{PEERS, PeerRun, against};
use crate::quantity::Rate;
use crate::stop::Stop;
use std::time::Duration;

/// Runs the paper's evaluation, the peers, a link that loses packets, and a silence; tells the tables. What cannot be done
/// (a peer cannot be installed) is told and does not keep the rest from being measured.
pub fn ocean(
    common: &Common,
    quick: bool,
    stop: &Stop,
    show: &mut dyn FnMut(&str),
) -> Outcome<String> {
    let mut text = String::new();
    let mut take = |name: &str, table: Outcome<String>| {
        let table = table.unwrap_or_else(|why| format!("not measured: {why}\n"));
        text += &format!("\n== {name}\n{table}");
    };
    let far = Common {
        round_trips: vec![Duration::from_millis(40)],
        ..common.clone()
    };
    let told = Paper {
        common: common.clone(),
        only: Vec::new(),
        quick,
    };
    take("BuddyCache's evaluation", paper(&told, stop, show));
    for peer in PEERS {
        if !stop.is_set() {
            let told = PeerRun {
                common: far.clone(),
                peer,
                members: 1,
                all_manners: !quick,
            };
            take(peer.words(), against(&told, stop, show));
        }
    }
    if !stop.is_set() {
        let told = Chain {
            common: Common {
                round_trips: [1, 10, 40, 80].map(Duration::from_millis).to_vec(),
                ..common.clone()
            },
            transactions: (25, 1000),
        };
        take(
            "Transactions that depend on each other",
            chain(&told, stop, show),
        );
    }
    if !stop.is_set() {
        let told = Lossy {
            common: far.clone(),
            loss: 0.01,
            flight: 32,
            fetches: 2000,
        };
        take("A link that loses 1 %", lossy(&told, stop, show));
    }
    if !stop.is_set() {
        let told = Idle {
            common: far,
            bytes: 1 << 20,
            silence: Duration::from_secs(2),
            rate: Rate::bits_per_second(1_000_000_000),
        };
        take("1 MB after two seconds of silence", idle(&told, stop, show));
    }
    Ok(text)
}
