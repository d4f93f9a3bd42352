//! Neighbours as processes of their own: one is killed, and the next carries the site.

#![allow(clippy::unwrap_used, reason = "this is a test")]

#[path = "../../crates/client/tests/joins/mod.rs"]
mod joins;

use joins::Joins;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use thorp_client::Session;
use thorp_examples::counter;
use thorp_testing::HomeNode;

/// Killed with the test, or before.
struct Neighbour {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it has counted.
    counted: u64,
}

impl Neighbour {
    fn start(village: &HomeNode, name: &str, names: &[&str]) -> Self {
        let address =
            |name: &str| format!("unix:{}", village.path(&format!("{name}.sock")).display());
        let neighbours: Vec<String> = names.iter().map(|name| address(name)).collect();
        let mut child = Command::new(env!("CARGO_BIN_EXE_neighbours"))
            .args([name, &address(name), &neighbours.join(",")])
            .arg(format!("alps={}", village.address()))
            .arg(village.village().member(name))
            .arg("thorp://alps/count")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Neighbour {
            child,
            lines,
            counted: 0,
        }
    }

    /// Goes on until it is there, and tells the count of that moment.
    fn until_at(&mut self, site: &str) -> u64 {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "it has ended");
            self.counted += 1;
            let (count, at) = line.trim().split_once(", at ").unwrap();
            if at.starts_with(site) {
                return count.parse().unwrap();
            }
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // SIGKILL: it has no time to say goodbye.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_site_outlives_whoever_carries_it() {
    let village = HomeNode::new();
    let names = ["anna", "bert", "carl"];
    let [mut anna, mut bert, mut carl] = names.map(|name| Neighbour::start(&village, name, &names));
    for neighbour in [&mut anna, &mut bert, &mut carl] {
        neighbour.until_at("anna");
    }
    let mut counted = anna.counted;
    drop(anna);
    let last = [&mut bert, &mut carl].map(|neighbour| neighbour.until_at("bert"));
    counted += bert.counted + carl.counted;
    assert!(last.iter().max().unwrap() >= &counted);
    drop(bert);
    carl.until_at("carl (this one), 1 here");

    // Started anew, the first is the site again.
    let mut anna = Neighbour::start(&village, "anna", &names);
    anna.until_at("anna (this one)");
    let last = carl.until_at("anna");
    let (member, segment) = village.member_at("count");
    let counter = counter::open(&member, &segment).unwrap();
    let strict = Session::new().strict(true);
    let count = member.transact_with(strict, |tx| tx.get(&counter)).unwrap();
    assert!(count >= last && last > counted);
}
