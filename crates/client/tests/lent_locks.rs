//! Locks that a site hands over among the members below it (rule C5), over real sockets.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

use std::thread;
use std::time::Duration;
use thorp_client::{JoinConfig, Member, Reference, Segment, Transaction, Visit};
use thorp_protocol::Redirector;
use thorp_testing::{HomeNode, Link, SiteNode, Village, eventually};

const NAME: &str = "thorp://alps/plan";

/// A member, and the segment that it has opened: that takes a message to the home.
type Joined = (Member, Segment);

/// Two members at a site, and one at the home.
struct Scene {
    anna: Joined,
    ben: Joined,
    carol: Joined,
    object: Reference,
    link: Link,
    site: SiteNode,
    home: HomeNode,
}

fn scene() -> Scene {
    let village = Village::new();
    let home = village.home("alps");
    let link = home.link(Duration::ZERO);
    let site = village.site("valley", &[&link]);
    let join = |address: String, name: &str| {
        let config = JoinConfig::new(address).identity(village.member(name));
        let member = Member::join(config).unwrap();
        let segment = plan(&member);
        (member, segment)
    };
    let [anna, ben] = ["anna", "ben"].map(|name| join(site.address().to_string(), name));
    let carol = join(home.address().to_string(), "carol");
    let make = |tx: &mut Transaction| tx.create(&anna.1, "0");
    let object = anna.0.transact(make).unwrap();
    // Its page is in their caches from here on.
    for (member, _) in [&anna, &ben] {
        let read = |tx: &mut Transaction| tx.read(&object).map(<[u8]>::to_vec);
        assert_eq!(member.transact(read).unwrap(), b"0");
    }
    Scene {
        anna,
        ben,
        carol,
        object,
        link,
        site,
        home,
    }
}

impl Scene {
    /// How many sessions wait at the site.
    fn waiters(&self) -> usize {
        let sizes = self.site.handle().inspect(|site: &Redirector| site.sizes());
        let sizes = sizes.wait().expect("the site runs");
        let waiters = sizes.iter().find(|(name, _)| *name == "lock_waiters");
        waiters.expect("a size of that name").1
    }

    /// The holder closes its visit while another one waits at the site. That has the lock then.
    fn hand_over(&self, mut held: Visit, next: &Joined) -> Visit {
        let read = |visit: &mut Visit| {
            let number = String::from_utf8(visit.read(&self.object).unwrap()).unwrap();
            number.parse::<u32>().unwrap()
        };
        thread::scope(|scope| {
            let waiting = scope.spawn(|| locked(next));
            eventually("it waits at the site", || self.waiters() == 1);
            read(&mut held);
            held.close().unwrap();
            waiting.join().unwrap()
        })
    }
}

fn plan(member: &Member) -> Segment {
    member.open_or_create(NAME).unwrap()
}

fn locked((member, segment): &Joined) -> Visit {
    Visit::open(member, "locking".parse().unwrap(), &[segment]).unwrap()
}

/// The link carries nothing while the lock goes from hand to hand: nobody needs a message to the home, or from it.
#[test]
fn a_lock_is_handed_over_without_a_message_to_the_home() {
    const TURNS: usize = 10;
    let scene = scene();
    let (anna, ben) = (&scene.anna, &scene.ben);
    // The site may hand the lock over from the second session on, and calls of the first stay there after it had the lock.
    let mut held = scene.hand_over(locked(anna), ben);
    scene.link.fall_silent();
    for turn in 0..TURNS {
        let next = if turn % 2 == 0 { anna } else { ben };
        held = scene.hand_over(held, next);
    }
    scene.link.mend();
    drop(held);
    eventually("the home has the lock back", || {
        scene.home.size("locks") == 0
    });
    assert_eq!(scene.waiters(), 0);
}

/// Each adds one to a number that it has read, and writes it blindly. One of them is elsewhere, and has its turns.
#[test]
fn no_update_is_lost_among_those_that_hand_a_lock_over() {
    const ROUNDS: u32 = 15;
    let scene = scene();
    thread::scope(|scope| {
        for member in [&scene.anna, &scene.ben, &scene.carol] {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut visit = locked(member);
                    let number = visit.read(&scene.object).unwrap();
                    let number = String::from_utf8(number).unwrap();
                    let next = number.parse::<u32>().unwrap() + 1;
                    visit.write(&scene.object, next.to_string()).unwrap();
                    visit.close().unwrap();
                }
            });
        }
    });
    let sum = scene
        .carol
        .0
        .transact(|tx| tx.read(&scene.object).map(<[u8]>::to_vec))
        .unwrap();
    assert_eq!(sum, (ROUNDS * 3).to_string().into_bytes());
    assert_eq!(scene.home.size("locks"), 0);
}

/// The site loses its home while one waits there: it waits at the home from then on, and gets the lock.
#[test]
fn who_waits_at_a_site_that_is_cut_off_waits_at_the_home_then() {
    let scene = scene();
    let held = scene.hand_over(locked(&scene.anna), &scene.ben);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| locked(&scene.anna));
        eventually("it waits at the site", || scene.waiters() == 1);
        scene.link.cut();
        eventually("nobody waits at the site", || scene.waiters() == 0);
        scene.link.mend();
        held.close().unwrap();
        waiting.join().unwrap().close().unwrap();
    });
    eventually("the home has the lock back", || {
        scene.home.size("locks") == 0
    });
}
