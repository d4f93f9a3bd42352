use super::*;

fn question(parameters: &Parameters) -> Result<Question, Invalid> {
    let mut given = Given::new::<Options, _>(parameters, None, "memory").expect("told");
    Question::of(&mut given)
}

fn report(parameters: &Parameters) -> Report {
    let question = question(parameters).expect("it can be");
    question.report(false).expect("it can be")
}

#[test]
fn the_answer_says_what_the_tables_show() {
    let report = report(&Parameters::default());
    let takes = &report.sections[0].tables[0].rows[0][1];
    let start = "24 machines need three memory servers: with them, work takes 4.6 % longer because requests wait (5 % is allowed); with one server work takes 79 % longer.";
    assert!(report.answer.starts_with(start), "{}", report.answer);
    let told = format!(
        "Three memory servers carry 24 active machines (a page comes sooner than from a disk): a page takes {takes}, from a disk 3.6 ms; from 64 machines on"
    );
    assert!(report.answer.contains(&told), "{}", report.answer);
    let times_told = report.answer.matches("4.6 %").count();
    assert_eq!(times_told, 1, "{}", report.answer);
    let rows = &report.sections[1].tables[0].rows;
    let three = rows.iter().find(|row| row[0] == "3").expect("a row");
    assert!(takes == &three[1] && three[4] == "64", "{three:?}");
}

#[test]
fn too_few_servers_are_told_with_how_many_it_takes() {
    let few = Parameters {
        servers: Some(1.0),
        machines: Some(40.0),
        ..Parameters::default()
    };
    let report = report(&few);
    assert!(
        report
            .answer
            .contains("One memory server does not carry 40 active machines (a page comes no sooner than from a disk): a page takes 11 ms"),
        "{}",
        report.answer
    );
    assert!(
        report
            .answer
            .starts_with("40 machines need five memory servers:"),
        "{}",
        report.answer
    );
}

#[test]
fn an_uneven_load_and_local_servers_are_spoken_of_if_there_are_any() {
    let uneven = Parameters {
        machines: Some(18.0),
        servers: Some(11.0),
        hottest_share: Some(0.75),
        ..Parameters::default()
    };
    let answer = report(&uneven).answer;
    assert!(
        answer.contains("uneven, work takes 13 % longer"),
        "{answer}"
    );
    assert!(!answer.contains("local"), "{answer}");
    let local = Parameters {
        local_servers: Some(4.0),
        local_share: Some(0.2),
        ..Parameters::default()
    };
    let answer = report(&local).answer;
    assert!(
        answer.contains("Each of the four local servers loses"),
        "{answer}"
    );
}

#[test]
fn what_no_number_of_servers_helps_is_told() {
    let busy = Parameters {
        local_servers: Some(1.0),
        local_share: Some(0.9),
        ..Parameters::default()
    };
    let answer = report(&busy).answer;
    let start = "No number of memory servers beside one local server is enough for 24 machines:";
    assert!(answer.starts_with(start), "{answer}");
    let alone = Parameters {
        machines: Some(1.0),
        ..Parameters::default()
    };
    let answer = report(&alone).answer;
    assert!(
        answer.starts_with("One machine needs one memory server: with it, "),
        "{answer}"
    );
    let local = Parameters {
        servers: Some(0.0),
        local_servers: Some(2.0),
        ..Parameters::default()
    };
    let answer = report(&local).answer;
    assert!(answer.starts_with("Two local servers"), "{answer}");
}

#[test]
fn think_time_and_rate_are_the_same_told_twice() {
    let [time, rate] = [
        Parameters {
            think_ms: Some(2.5),
            ..Parameters::default()
        },
        Parameters {
            requests_per_second: Some(400.0),
            ..Parameters::default()
        },
    ]
    .map(|parameters| report(&parameters).answer);
    assert_eq!(time, rate);
}

#[test]
fn what_cannot_be_is_refused_with_its_flag() {
    let usual = Parameters::default;
    for (parameters, why) in [
        (
            Parameters {
                machines: Some(0.0),
                ..usual()
            },
            "--machines must be a whole number from 1 to 1000000, not 0",
        ),
        (
            Parameters {
                servers: Some(2.5),
                ..usual()
            },
            "--servers must be a whole number",
        ),
        (
            Parameters {
                think_ms: Some(f64::NAN),
                ..usual()
            },
            "--think-ms must be a number not below 0",
        ),
        (
            Parameters {
                hottest_share: Some(0.2),
                ..usual()
            },
            "--hottest-share cannot be below 0.333",
        ),
        (
            Parameters {
                local_share: Some(0.2),
                ..usual()
            },
            "--local-share cannot be 0.2 without local servers",
        ),
        (
            Parameters {
                slowdown_max: Some(5.0),
                ..usual()
            },
            "--slowdown-max must be between 0 and 1, not 5: for 5 % write 0.05",
        ),
        (
            Parameters {
                local_busy_max: Some(f64::NAN),
                ..usual()
            },
            "--local-busy-max must be between 0 and 1",
        ),
        (
            Parameters {
                local_busy_max: Some(-1.0),
                ..usual()
            },
            "--local-busy-max must be between 0 and 1",
        ),
        (
            Parameters {
                local_busy_max: Some(f64::INFINITY),
                ..usual()
            },
            "--local-busy-max must be between 0 and 1",
        ),
        (
            Parameters {
                servers: Some(0.0),
                ..usual()
            },
            "--servers must be 1 or more, unless",
        ),
    ] {
        let refusal = question(&parameters).and_then(|question| question.report(false));
        let told = refused(&refusal.expect_err("it cannot be")).to_string();
        assert!(told.starts_with(why), "{told}");
    }
}

fn of(mix: Option<&str>, routing: Option<&str>) -> Parameters {
    Parameters {
        mix: mix.map(str::to_owned),
        routing: routing.map(|rows| rows.parse().expect("text")),
        ..Parameters::default()
    }
}

/// Rows of the first table, from a column on.
fn cells(report: &Report, column: usize) -> Vec<&[String]> {
    let rows = report.sections[0].tables[0].rows.iter();
    rows.map(|row| &row[column..]).collect()
}

#[test]
fn machines_that_are_alike_are_one_kind_or_two() {
    let [one, two] = ["24:5", "16:5,8:5"].map(|mix| report(&of(Some(mix), None)));
    let alike = report(&Parameters::default());
    let start = "24 active machines need three memory servers: with them, work takes 4.6 % longer";
    assert!(one.answer.starts_with(start), "{}", one.answer);
    let takes = &alike.sections[0].tables[0].rows[0][1];
    assert_eq!(cells(&one, 2)[0][0], *takes);
    assert_eq!(cells(&two, 2)[0][..3], cells(&one, 2)[0][..3]);
    assert_eq!(cells(&two, 2)[1][..3], cells(&one, 2)[0][..3]);
}

#[test]
fn who_asks_more_often_loses_more() {
    let report = report(&of(Some("16:5,8:1"), None));
    let told = "for eight machines that think 1.0 ms work takes 69 % longer, for 16 machines that think 5.0 ms work takes 17 % longer.";
    assert!(report.answer.contains(told), "{}", report.answer);
    let needed = "24 active machines of two kinds need 15 memory servers";
    assert!(report.answer.starts_with(needed), "{}", report.answer);
    let by_servers = &report.sections[1].tables[0].rows;
    let with = by_servers.iter().find(|row| row[0] == "15").expect("a row");
    assert_eq!(with[2], "4.9 %");
}

#[test]
fn a_matrix_says_which_server_is_asked() {
    let hottest = Parameters {
        servers: Some(2.0),
        hottest_share: Some(0.75),
        ..Parameters::default()
    };
    let uneven = report(&hottest);
    let routed = report(&of(None, Some("0.75,0.25")));
    let takes = &uneven.sections[0].tables[0].rows[0][1];
    assert_eq!(cells(&routed, 2)[0][0], *takes);
    let longer = "Because they are not evenly asked, work takes up to 22 % longer.";
    assert!(routed.answer.contains(longer), "{}", routed.answer);
    assert!(
        uneven.answer.contains("uneven, work takes 22 % longer"),
        "{}",
        uneven.answer
    );
    let even = report(&of(None, Some("0.5,0.5")));
    assert!(
        even.answer.contains("as good as evenly asked"),
        "{}",
        even.answer
    );
    // Each kind has a server for itself: as two clusters.
    let apart = report(&of(Some("16:5,8:1"), Some("1,0/0,1")));
    for (mix, kind) in [("16:5", 0), ("8:1", 1)] {
        let alone = Parameters {
            servers: Some(1.0),
            ..of(Some(mix), None)
        };
        let alone = report(&alone);
        assert_eq!(cells(&alone, 2)[0], cells(&apart, 2)[kind]);
        let server = |of: &Report, at: usize| of.sections[0].tables[1].rows[at][1..].to_vec();
        assert_eq!(server(&alone, 0), server(&apart, kind));
    }
    let local = Parameters {
        local_servers: Some(1.0),
        ..of(Some("4:5"), Some("0.5,0.3,0.2"))
    };
    let local = report(&local);
    assert!(
        local
            .answer
            .starts_with("Two memory servers and one local carry four active machines")
            && local.answer.contains("The busiest local server loses"),
        "{}",
        local.answer
    );
    let last = local.sections[0].tables[1].rows.last().expect("a row");
    assert_eq!(last[0], "local server 1");
}

#[test]
fn what_kinds_and_matrices_cannot_be_is_refused() {
    let routed = |rows| of(Some("16:5,8:1"), Some(rows));
    for (parameters, why) in [
        (
            of(Some("16"), None),
            "--mix must be machines and their milliseconds",
        ),
        (
            Parameters {
                machines: Some(3.0),
                ..of(Some("16:5"), None)
            },
            "--mix says otherwise what --machines says",
        ),
        (
            Parameters {
                requests_per_second: Some(3.0),
                ..of(Some("16:5"), None)
            },
            "--mix says otherwise what --requests-per-second says",
        ),
        (routed("0.5,0.4"), "--routing is wrong: row 1 sums to 0.9"),
        (
            routed("1,0/0,1/0,1"),
            "--routing must have one row, or one for each of 2 kinds of machines, not 3",
        ),
        (
            Parameters {
                servers: Some(3.0),
                ..routed("1,0/0,1")
            },
            "--routing must have a probability for each of 3 servers (3 memory servers, 0 local), not 2",
        ),
        (
            Parameters {
                hottest_share: Some(0.7),
                ..routed("1,0/0,1")
            },
            "--routing says otherwise what --hottest-share says",
        ),
        (
            Parameters {
                local_share: Some(0.7),
                ..routed("1,0/0,1")
            },
            "--routing says otherwise what --local-share says",
        ),
        (
            Parameters {
                local_busy_max: Some(0.7),
                ..routed("1,0/0,1")
            },
            "--local-busy-max is not heeded with --mix",
        ),
        (
            Parameters {
                local_busy_max: Some(0.7),
                ..of(None, None)
            },
            "--local-busy-max is for local servers, of which there are none",
        ),
        (
            Parameters {
                servers: Some(0.0),
                ..of(Some("16:5"), None)
            },
            "--servers must be 1 or more, unless",
        ),
    ] {
        let refusal = question(&parameters).and_then(|question| question.report(false));
        let told = refused(&refusal.expect_err("it cannot be")).to_string();
        assert!(told.starts_with(why), "{told}");
    }
}

#[test]
fn any_mix_is_answered() {
    for (mix, routing) in [
        ("1:0", None),
        ("1000000:5", None),
        ("500000:5,500000:0.01", None),
        ("1:1e9,1:0", Some("1")),
        ("40:5,40:1,40:0", Some("0,0,1")),
    ] {
        let text = crate::report::text(&report(&of(Some(mix), routing)));
        assert!(
            !text.contains("NaN")
                && !text.contains("inf")
                && !text.contains("salt")
                && !text.contains("e0"),
            "{text}"
        );
    }
}

/// One node of a hundred thousand is asked, too.
#[test]
fn local_servers_get_their_even_part() {
    let of = |servers, local_servers| {
        let parameters = Parameters {
            servers: Some(servers),
            local_servers: Some(local_servers),
            ..Parameters::default()
        };
        question(&parameters)
            .expect("it can be")
            .cluster
            .local_share
    };
    assert_eq!(of(2.0, 1.0), 1.0 / 3.0);
    assert_eq!(of(99_999.0, 1.0), 1e-5);
}

#[test]
fn clusters_of_any_size_are_answered() {
    for (machines, servers, local) in [
        (1.0, 1.0, 0.0),
        (1.0, 1e6, 0.0),
        (1e6, 1.0, 0.0),
        (1e6, 1e6, 10.0),
        (5.0, 0.0, 2.0),
    ] {
        let parameters = Parameters {
            machines: Some(machines),
            servers: Some(servers),
            local_servers: Some(local),
            ..Parameters::default()
        };
        let report = report(&parameters);
        let text = crate::report::text(&report);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn what_is_needed_does_not_depend_on_what_is_there() {
    let needed = |servers, local_servers| {
        let parameters = Parameters {
            servers: Some(servers),
            local_servers: Some(local_servers),
            ..Parameters::default()
        };
        let question = question(&parameters).expect("it can be");
        let needed = question.needed_for(24).expect("it can be");
        let needed = needed.expect("enough");
        let busy = |servers| question.local_busy(24, servers).expect("it can be");
        assert!(busy(needed) <= 0.1, "{needed}");
        assert!(needed == 1 || busy(needed - 1) > 0.1, "{needed}");
        needed
    };
    let all = [1.0, 3.0, 10.0, 100.0].map(|servers| needed(servers, 2.0));
    assert!(
        all[0] > 3 && all.iter().all(|&count| count == all[0]),
        "{all:?}"
    );
}

#[test]
fn local_servers_are_why_more_are_needed() {
    let local = Parameters {
        local_servers: Some(2.0),
        ..Parameters::default()
    };
    let answer = report(&local).answer;
    let told = "; one would keep waiting short, but the local ones would lose";
    assert!(answer.contains(told), "{answer}");
}

#[test]
fn local_servers_that_would_lose_too_much_are_told_with_what_would_do() {
    let told = Parameters {
        local_servers: Some(2.0),
        local_share: Some(0.3),
        ..Parameters::default()
    };
    let report = report(&told);
    let start = "No number of memory servers beside two local servers is enough for 24 machines: two memory servers would keep waiting short, but local servers would lose";
    assert!(report.answer.starts_with(start), "{}", report.answer);
    assert!(
        report
            .answer
            .contains("(--local-share), they would lose no more"),
        "{}",
        report.answer
    );
    let title = &report.sections[1].tables[0].title;
    assert!(
        title.ends_with("30 % of the requests go to local servers"),
        "{title}"
    );
}

#[test]
fn where_a_disk_is_as_quick_nobody_needs_servers() {
    for (mix, disk_ms) in [(None, 0.1), (Some("16:5,8:1"), 0.194)] {
        let quick = Parameters {
            disk_ms: Some(disk_ms),
            ..of(mix, None)
        };
        let answer = report(&quick).answer;
        assert!(
            answer.starts_with("No memory servers: a disk is at least as quick."),
            "{answer}"
        );
        assert!(!answer.contains("need"), "{answer}");
    }
    let many = Parameters {
        servers: Some(60_000.0),
        ..Parameters::default()
    };
    let answer = report(&many).answer;
    assert!(answer.contains("more than 1000000 machines"), "{answer}");
    let restless = Parameters {
        think_ms: Some(0.0),
        ..Parameters::default()
    };
    let answer = report(&restless).answer;
    assert!(
        answer.contains("from disks alone it would be 19 times"),
        "{answer}"
    );
}

#[test]
fn a_hottest_server_is_answered_for_as_it_was_told() {
    let hot = |machines| Parameters {
        machines: Some(machines),
        servers: Some(3.0),
        hottest_share: Some(0.75),
        ..Parameters::default()
    };
    let answer = report(&hot(18.0)).answer;
    let start = "No number of memory servers is enough for 18 machines while one of them gets 75 % of the requests:";
    assert!(answer.starts_with(start), "{answer}");
    assert!(
        answer.contains(
            "more servers do not help the busiest one; evenly asked, three would be enough"
        ),
        "{answer}"
    );
    let answer = report(&hot(10.0)).answer;
    let start =
        "Ten machines need two memory servers if one of them gets 75 % of the requests: with them,";
    assert!(answer.starts_with(start), "{answer}");
}
