//! Whoever carries a site's redirector is told which homes it does not reach, and why.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests, although not by attribute"
)]

mod joins;

use std::time::Duration;

use joins::Joins;
use thorp_client::{JoinConfig, JoinError, Member, OutOfReach, SiteOfMembers};
use thorp_testing::{HomeNode, eventually};

/// A member that carries its redirector, of a site of its own.
fn carrier(village: &HomeNode, name: &str) -> SiteOfMembers {
    let own = format!("unix:{}", village.path(&format!("{name}.sock")).display());
    SiteOfMembers::new(own.clone()).neighbours([own])
}

fn among(village: &HomeNode, site: SiteOfMembers) -> JoinConfig {
    JoinConfig::among(site).identity(village.village().member("carl"))
}

/// Tries to join until the error says so.
fn refused_with(site: SiteOfMembers, village: &HomeNode, said: &str) {
    let config = among(village, site).join_timeout(Duration::from_millis(200));
    eventually(said, || match Member::join(config.clone()) {
        Ok(_) => panic!("it has joined"),
        Err(JoinError::Unreachable(words)) => words.contains(said),
        Err(error) => panic!("{error}"),
    });
}

fn out_of_reach(member: &Member, name: &str) -> Option<OutOfReach> {
    let all = member.site().out_of_reach.into_iter();
    all.into_iter()
        .find(|one| one.name.as_deref() == Some(name))
}

#[test]
fn who_reaches_no_home_has_not_joined_and_is_told_why() {
    let (village, other) = (HomeNode::new(), HomeNode::new());
    let site = |home: &str, address: String| carrier(&village, "anna").home(home, address);
    let wrong_name = site("dale", village.address().to_string());
    refused_with(
        wrong_name,
        &village,
        "wanted the node dale, but what answered is alps",
    );
    let other_village = site("alps", other.address().to_string());
    refused_with(other_village, &village, "of another village");
    let nobody_there = site("alps", "unix:/nowhere.sock".to_owned());
    refused_with(nobody_there, &village, "alps: unix:/nowhere.sock: ");
}

#[test]
fn one_home_of_several_that_is_not_reached_is_in_the_status() {
    let village = HomeNode::new();
    let site = carrier(&village, "anna").home("alps", village.address().to_string());
    let site = site.home("dale", village.address().to_string());
    let anna = Member::join(among(&village, site)).unwrap();
    let is_told = || {
        let dale = out_of_reach(&anna, "dale");
        dale.is_some_and(|dale| dale.why.contains("what answered is alps"))
    };
    eventually("what is wrong with dale is told", is_told);
    let dale = out_of_reach(&anna, "dale").unwrap();
    assert_eq!(dale.addresses, [village.address().to_string()]);
    assert_eq!(out_of_reach(&anna, "alps"), None);
}

#[test]
fn a_home_that_goes_away_is_told_while_it_is_away() {
    let village = HomeNode::new();
    let site = carrier(&village, "anna").home("alps", village.address().to_string());
    let carried = Member::join(among(&village, site)).unwrap();
    let direct = village.member();
    for member in [&carried, &direct] {
        eventually("it is there", || member.site().out_of_reach.is_empty());
    }
    village.stop();
    for member in [&carried, &direct] {
        eventually("it is away", || {
            let lost = member.site().out_of_reach;
            matches!(&lost[..], [home] if home.addresses == [village.address().to_string()])
        });
    }
    village.restart();
    for member in [&carried, &direct] {
        eventually("it is back", || member.site().out_of_reach.is_empty());
    }
}
