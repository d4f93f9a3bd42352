use super::*;
use crate::SplitMix64;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

fn read(text: &str) -> Result<Consistency, String> {
    text.parse::<Consistency>()
        .map_err(|error| error.to_string())
}

#[test]
fn presets_are_read_by_their_words() {
    for (word, preset) in Consistency::PRESETS {
        match word {
            "bounded" => assert!(read(word).unwrap_err().contains("add time= or mods=")),
            _ => assert_eq!(read(word), Ok(preset), "{word}"),
        }
        assert!(preset.check().is_ok(), "{word}");
        let other = read(&preset.to_string());
        assert_eq!(other, Ok(preset), "{word} prints as {preset}");
    }
    assert_eq!(Consistency::default(), Consistency::SERIALIZABLE);
}

/// Tables 1 and 2 of the paper.
#[test]
fn what_nobody_names_is_as_in_the_paper() {
    let plain = read("mode=wr").unwrap();
    assert_eq!(plain.time(), Some(Duration::ZERO));
    assert_eq!((plain.mods(), plain.is_hard()), (None, false));
    assert_eq!(plain.order(), UpdateOrder::Total);
    assert_eq!(plain.failures(), Failures::Pessimistic);
    assert_eq!(
        (plain.visibility(), plain.isolation()),
        (Moment::Session, Moment::Session)
    );
    assert!(!plain.is_causal() && !plain.is_atomic() && !plain.counts_since_sync());
}

#[test]
fn text_and_value_are_the_same() {
    let text = "mode=wr,time=10ms,mods=5,hard,failures=optimistic:50ms";
    assert_eq!(read(text).unwrap().to_string(), text);
    // The order of the options and blanks do not count, and neither does what is said as it is anyway.
    let other = " failures = optimistic:50 ms, order=total , hard, mods=5, time=10ms,mode=wr";
    assert_eq!(read(other), read(text));
    let by_setters = Consistency::BOUNDED
        .with_time(Duration::from_millis(10))
        .with_mods(5)
        .hard()
        .with_failures(Failures::Optimistic {
            cutoff: Some(Duration::from_millis(50)),
        });
    assert_eq!(read(text), Ok(by_setters));
    assert_eq!(
        read("bounded,time=100ms,hard").unwrap().to_string(),
        "mode=wr,time=100ms,hard"
    );
    assert_eq!(
        read("eventual").unwrap().to_string(),
        "mode=wr,failures=optimistic"
    );
}

/// One of all options at random, also of those that contradict each other.
fn drawn(random: &mut SplitMix64) -> Consistency {
    let mut of = |count: u64| random.bits() % count;
    let pick = |at: u64| [Moment::Session, Moment::Access, Moment::Manual][at as usize];
    let time = [None, Some(0), Some(10), Some(90_000_000)][of(4) as usize];
    let cutoff = [None, Some(50)][of(2) as usize].map(Duration::from_millis);
    let (mode, order) = (
        AccessMode::WORDS[of(4) as usize].1,
        UpdateOrder::WORDS[of(4) as usize].1,
    );
    let base = match of(3) {
        0 => Consistency::PLAIN.with_mode(mode),
        _ => Consistency {
            mode,
            ..Consistency::PLAIN
        },
    };
    let mut drawn = match of(2) {
        0 => base,
        _ => base
            .with_time(time.map(Duration::from_micros))
            .with_mods([None, Some(0), Some(7)][of(3) as usize])
            .with_order(order)
            .with_visibility(pick(of(3)))
            .with_isolation(pick(of(3))),
    };
    if of(2) == 0 {
        drawn = drawn.with_failures(Failures::Optimistic { cutoff });
    }
    for set in [
        Consistency::hard,
        Consistency::soft,
        Consistency::causal,
        Consistency::atomic,
        Consistency::since_sync,
    ] {
        if of(4) == 0 {
            drawn = set(drawn);
        }
    }
    drawn
}

#[test]
fn whatever_is_allowed_is_read_back_as_it_was() {
    let mut random = SplitMix64::new(24);
    let (mut allowed, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let value = drawn(&mut random);
        match value.check() {
            Ok(value) => {
                allowed += 1;
                assert_eq!(read(&value.to_string()), Ok(value), "{value}");
            }
            Err(reason) => {
                refused += 1;
                assert_eq!(read(&value.to_string()), Err(reason.to_string()), "{value}");
            }
        }
    }
    assert!(allowed > 3000 && refused > 3000, "{allowed} {refused}");
}

#[test]
fn each_contradiction_is_refused_with_its_reason() {
    let cases = [
        ("serializable,time=10ms", "has no options"),
        ("strict,hard", "has no options"),
        ("mode=wrlk,soft", "soft does not go with it"),
        ("soft,mode=rdlk", "soft does not go with it"),
        ("locking,time=10ms", "another bound"),
        ("mode=wrlk,mods=3", "another bound"),
        ("mode=wrlk,order=total", "another order than serial"),
        ("mode=rdlk,visibility=manual", "another visibility"),
        ("locking,isolation=access", "another isolation"),
        ("mode=wr,time=none,hard", "give one with time= or mods="),
        ("bounded,mods=3,since_sync", "leave since_sync out"),
        ("master-slave,failures=optimistic", "choose one of them"),
        ("stream,atomic", "leaves as one"),
        ("bounded,time=25h", "at most 24 h"),
        ("bounded,mods=1000001", "at most 1000000"),
        ("failures=optimistic:61s", "at most 60 s"),
    ];
    for (text, reason) in cases {
        let refused = read(text).unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    // A lock may be said with what it implies, and among near neighbours only.
    let all = "mode=wrlk,hard,time=0,mods=0,order=serial,visibility=session,isolation=session";
    assert_eq!(read(all), Ok(Consistency::LOCKING));
    assert!(read("locking,failures=optimistic:5ms").is_ok());
    // Who only reads writes nothing that could be serial.
    assert!(read("mode=rd,order=serial,failures=optimistic").is_ok());
}

#[test]
fn what_is_no_option_is_refused_with_what_may_stand_there() {
    let cases = [
        ("", "an option is empty"),
        ("sometimes", "\"sometimes\" is no preset"),
        ("eventual,", "an option is empty"),
        ("hard=yes", "is no preset and no option"),
        ("mode", "is no preset and no option"),
        ("mode=x", "mode=x is not one of: rd, wr, rdlk, wrlk"),
        ("mode=wr,time=10", "a whole number with us, ms, s, min or h"),
        ("mods=-1", "a whole number of updates"),
        ("mods=4294967296", "a whole number of updates"),
        ("order=stamped", "none, total, serial, stamp"),
        ("visibility=never", "session, access, manual"),
        ("isolation=", "session, access, manual"),
        ("failures=optimistic50ms", "optimistic:TIME"),
        ("time=1s,time=2s", "time is said twice"),
        ("hard,soft", "choose one"),
        ("eventual,stream", "stream is a preset: there may be one"),
        ("hard,strict", "it comes first"),
    ];
    for (text, reason) in cases {
        let refused = read(text).unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
    assert_eq!(
        format!("{}{}", "mode=wr,", "x".repeat(1000)).parse::<Consistency>(),
        Err(NoConsistency::TooLong)
    );
}

#[test]
fn a_session_that_only_reads_asks_for_less() {
    let words: Vec<String> = Consistency::PRESETS
        .iter()
        .map(|(_, preset)| preset.for_reading().mode().to_string())
        .collect();
    assert!(words.iter().all(|word| word.starts_with("rd")), "{words:?}");
}
