//! What a site's answer says.

use super::said::{thousands, words};
use super::*;

fn question(parameters: &Parameters) -> Question {
    let mut given = Given::new::<Options, _>(parameters, None, "site").expect("told");
    Question::of(&mut given).expect("it can be")
}

#[test]
fn the_answer_says_what_the_table_shows() {
    let five = Parameters {
        members: Some(5.0),
        round_trip_ms: Some(40.0),
        ..Parameters::default()
    };
    let report = question(&five).report().expect("it can be");
    let saved = &report.sections[0].tables[0].rows[0][3];
    assert!(
        report
            .answer
            .starts_with("Yes: with a site 40 ms from the home, 5 members"),
        "{}",
        report.answer
    );
    assert!(
        report.answer.contains(&format!("save {saved}")),
        "{}",
        report.answer
    );
}

#[test]
fn one_member_is_told_no() {
    let one = Parameters {
        members: Some(1.0),
        misses: Some(0.0),
        ..Parameters::default()
    };
    let answer = question(&one).answer().expect("it can be");
    assert!(
        answer.starts_with("No:") && answer.contains("one member"),
        "{answer}"
    );
}

#[test]
fn a_saving_too_small_to_show_is_said_to_be_one() {
    for parameters in [
        Parameters {
            pages: Some(3.0),
            transactions: Some(100.0),
            ..Parameters::default()
        },
        Parameters {
            compute_ms: Some(1e9),
            ..Parameters::default()
        },
    ] {
        let report = question(&parameters).report().expect("it can be");
        let answer = report.answer;
        assert!(answer.contains("would save less than 1 % of"), "{answer}");
        assert!(answer.contains("but hardly at this distance"), "{answer}");
        assert!(
            !answer.contains("nothing of") && !answer.starts_with("No:"),
            "{answer}"
        );
        assert_eq!(report.sections[0].tables[0].rows[0][3], "<1 %");
    }
    assert_eq!(words(-0.001), "lose less than 1 %");
    assert_eq!(words(0.0), "save nothing");
}

#[test]
fn more_pages_than_one_processor_passes_on_are_told() {
    let answer = |members| {
        let told = Parameters {
            members: Some(members),
            ..Parameters::default()
        };
        question(&told).answer().expect("it can be")
    };
    let told = "What one redirector can do is not in this";
    assert!(!answer(5.0).contains(told), "{}", answer(5.0));
    for members in [3000.0, 1e6] {
        assert!(answer(members).contains(told), "{}", answer(members));
    }
    assert_eq!(
        [7.26, 1234.0, 2.34e7].map(thousands),
        ["7.3", "1200", "23 million"]
    );
}

#[test]
fn few_pages_come_together_and_are_read_at_once() {
    let few = Parameters {
        pages: Some(3.0),
        ..Parameters::default()
    };
    let cold = question(&few).cold;
    assert_eq!((cold.pages_per_wait, cold.transactions), (3.0, 1.0));
    question(&few).report().expect("it can be");
}

#[test]
fn no_more_members_share_than_there_are() {
    let measured = Measured {
        members: None,
        round_trip_ms: Some(40.0),
        requests_per_fetch: Some(4.5),
    };
    assert_eq!(parameters(&measured, None).sharing, None);
    assert_eq!(parameters(&measured, Some(3.0)).sharing, Some(3.0));
    let here = Measured {
        members: Some(12.0),
        ..measured
    };
    assert_eq!(parameters(&here, None).sharing, Some(4.5));
}

#[test]
fn what_cannot_be_is_refused_with_its_flag() {
    let none = Parameters {
        members: Some(0.0),
        ..Parameters::default()
    };
    let invalid = question(&none).report().expect_err("nobody");
    let told = refused(&invalid).to_string();
    assert!(
        told.starts_with("--members must be a number from 1 to 1000000000, not 0"),
        "{told}"
    );
    let other = Parameters {
        system: Some("zeo".into()),
        ..Parameters::default()
    };
    let mut given = Given::new::<Options, _>(&other, None, "site").expect("told");
    assert!(Question::of(&mut given).is_err());
}
