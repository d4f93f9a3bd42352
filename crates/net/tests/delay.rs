//! A link with a delay: late enough, in order, and still a pipe. (That the schedule is exact is tested in the queue, with made-up
//! clocks; here no wall time is bounded from above.)
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::time::{Duration, Instant};

use common::{Village, any, at_home, at_member};
use thorp_net::{Config, LinkDelay};

const ONE_WAY: Duration = Duration::from_millis(15);

fn delayed(config: Config) -> Config {
    Config {
        delay: LinkDelay::new(ONE_WAY),
        ..config
    }
}

#[tokio::test]
async fn a_round_trip_takes_both_delays_at_least() {
    let village = Village::new();
    let (home, member) = village
        .connect(&any(), delayed(at_home()), delayed(at_member()))
        .await;
    let ((home_out, mut home_in), (up, mut down)) = (home.split(), member.split());
    let start = Instant::now();
    up.try_send(vec![1]).unwrap();
    assert_eq!(up.queued().frames, 1);
    let question = home_in.recv().await.unwrap().unwrap();
    assert!(start.elapsed() >= ONE_WAY);
    home_out.try_send(question).unwrap();
    down.recv().await.unwrap().unwrap();
    assert!(start.elapsed() >= 2 * ONE_WAY);
}

#[tokio::test]
async fn frames_travel_behind_each_other_each_late_enough() {
    let village = Village::new();
    let (home, member) = village
        .connect(&any(), at_home(), delayed(at_member()))
        .await;
    let ((_home_out, mut home_in), (up, _down)) = (home.split(), member.split());
    let mut submitted = Vec::new();
    let mut most_under_way = 0;
    for number in 0..500u32 {
        submitted.push(Instant::now());
        up.try_send(number.to_le_bytes().repeat(100)).unwrap();
        most_under_way = most_under_way.max(up.queued().frames);
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(
        most_under_way > 1,
        "the next frame does not wait for the one before to arrive"
    );
    for (number, submitted) in (0u32..).zip(submitted) {
        assert_eq!(
            home_in.recv().await.unwrap().unwrap(),
            number.to_le_bytes().repeat(100)
        );
        assert!(
            submitted.elapsed() >= ONE_WAY,
            "frame {number} came too early"
        );
    }
}

#[tokio::test]
async fn the_delay_can_change_and_nobody_overtakes() {
    let village = Village::new();
    let (home, member) = village.connect(&any(), at_home(), at_member()).await;
    let ((_home_out, mut home_in), (up, _down)) = (home.split(), member.split());
    let start = Instant::now();
    up.set_delay(LinkDelay::new(ONE_WAY));
    up.try_send(vec![1]).unwrap();
    up.set_delay(LinkDelay::default());
    up.try_send(vec![2]).unwrap();
    assert_eq!(home_in.recv().await.unwrap().unwrap(), [1]);
    assert_eq!(home_in.recv().await.unwrap().unwrap(), [2]);
    assert!(start.elapsed() >= ONE_WAY);
}

#[tokio::test]
async fn a_goodbye_waits_for_frames_under_way() {
    let village = Village::new();
    let (home, member) = village
        .connect(&any(), at_home(), delayed(at_member()))
        .await;
    let ((_home_out, mut home_in), (up, _down)) = (home.split(), member.split());
    up.try_send(vec![1]).unwrap();
    drop(up);
    assert_eq!(home_in.recv().await.unwrap().unwrap(), [1]);
    assert!(home_in.recv().await.unwrap().is_none());
}
