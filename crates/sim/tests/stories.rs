//! Golden stories of the protocol: each tells one schedule, with every message
//! and effect that it causes.
//!
//! `THORP_BLESS=1 cargo test -p thorp-sim --test stories` writes down anew what
//! happens. Commit it only when every changed line is understood.

mod story;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use story::tell;
use thorp_model::planted::{Bug, plant};

/// Planted bugs are for the whole process: no two tests at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn every_story_is_told_as_it_is_written() {
    let _alone = alone();
    let bless = std::env::var_os("THORP_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in stories() {
        let name = name_of(&path);
        let written = fs::read_to_string(&path).expect("a story can be read");
        let told = tell(&written);
        if bless && told.text != written && !told.panicked {
            fs::write(&path, &told.text).expect("a story can be written");
        } else if told.text != written {
            wrong.push(format!(
                "{name}: {}",
                first_difference(&written, &told.text)
            ));
        }
        wrong.extend(told.failed.iter().map(|failed| format!("{name}: {failed}")));
        if told.panicked {
            wrong.push(format!("{name}: a panic"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_planted_bug_fails_a_story() {
    let _alone = alone();
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let caught = CAUGHT.iter().filter(|(known, _)| known == bug);
        let stories: Vec<&str> = caught.map(|(_, story)| *story).collect();
        let is_elsewhere = CAUGHT_ELSEWHERE.iter().any(|(known, ..)| known == bug);
        if stories.is_empty() && !is_elsewhere {
            missed.push(format!("no story catches {}", bug.name()));
        }
        for story in stories {
            let path = folder().join(format!("{story}.txt"));
            let written = fs::read_to_string(&path).expect("a story can be read");
            plant(Some(*bug));
            let told = tell(&written);
            plant(None);
            if told.failed.is_empty() {
                let how = if told.panicked { " (it panics)" } else { "" };
                missed.push(format!("{story} does not catch {}{how}", bug.name()));
            }
        }
    }
    assert!(missed.is_empty(), "\n{}\n", missed.join("\n"));
}

/// Which story catches which bug.
const CAUGHT: &[(Bug, &str)] = &[
    (Bug::CustodyBelieved, "trap-c41-a-site-changes-an-update"),
    (Bug::AuthorBelieved, "a-log-makes-an-author-up"),
    (Bug::KeptUnproven, "a-site-changes-what-its-log-keeps"),
    (
        Bug::AuthorsNotAsked,
        "a-reader-writes-by-the-log-of-its-site",
    ),
    (Bug::RightsNotChecked, "rights"),
    (Bug::ParkedNotChecked, "trap-r08-revoked-while-parked"),
    (Bug::ReadersNotTold, "trap-r05-failover"),
    (Bug::CarrierNotChecked, "carry"),
    (Bug::CarrierNotChecked, "carry-taken-away"),
    (Bug::LowerSiteNotChecked, "trap-r14-a-site-below-a-site"),
    (Bug::CarriedTakenForSite, "a-carried-site"),
    (Bug::JoinedNotChecked, "trap-r02-joined-fetch"),
    (Bug::RevokedKeepsPages, "rights-revoked"),
    (Bug::RightsInVote, "trap-r03-vote-and-list"),
    (Bug::FullStoreKeepsRights, "trap-r16-full-store"),
    (Bug::InstalledWithoutRoom, "a-full-store-installs-nothing"),
    (Bug::RoomNotShared, "the-kept-room-is-shared"),
    (Bug::DoubtsNotCounted, "votes-left-to-the-homes"),
    (Bug::HelpersBelieved, "a-wrong-image"),
    (Bug::WrongHelperAsked, "a-wrong-image"),
    (Bug::StampNotInDigest, "trap-r37-forged-stamp"),
    (Bug::OldImageIsWrong, "trap-r10-old-image"),
    (Bug::UnknownRedirected, "reported-is-not-believed"),
    (Bug::WriteWithoutRead, "rights-included"),
    (Bug::MembersIgnored, "rights-included"),
    (Bug::ListForWriters, "rights-included"),
    (Bug::EvictionNotTold, "trap-01-read-evict-commit"),
    (Bug::LabelIgnored, "trap-03-image-overtaken"),
    (Bug::LateAttemptTaken, "trap-03-late-attempt"),
    (Bug::LateNoticeStrikes, "trap-04-late-notice"),
    (Bug::AppliedTwice, "trap-05-old-answer-new-value"),
    (Bug::PatchIsBlind, "trap-07-blind-patch"),
    (Bug::PatchFillsHole, "trap-07-patch-meets-a-hole"),
    (Bug::ProcedureOnDurable, "procedures"),
    (Bug::GenerationNotChecked, "trap-07-patch-meets-a-hole"),
    (Bug::CeilingForgotten, "trap-10-forgotten-promise"),
    (Bug::ReaderAboveCeiling, "trap-10-reader-above-the-ceiling"),
    (Bug::ToldBeforeDurable, "trap-10-told-before-durable"),
    (Bug::VoteForgotten, "in-doubt-asks"),
    (Bug::DecisionBelieved, "decided-by-a-rogue"),
    (Bug::OthersHeard, "decided-by-another"),
    (Bug::OthersForgotten, "a-name-forgets-its-own"),
    (Bug::SiteBelieved, "a-site-speaks-for-nobody"),
    (Bug::SitesBelowNotChecked, "a-site-beside-speaks-for-nobody"),
    (Bug::UndelegatedRecorded, "trap-r34-an-old-way-arrives-late"),
    (
        Bug::OldDelegationTaken,
        "trap-r35-an-old-signature-comes-again",
    ),
    (Bug::UpperSitesNotTold, "trap-r44-a-site-above-the-site"),
    (Bug::ClaimsBelieved, "trap-r23-a-made-up-life"),
    (Bug::AnswersNotVouched, "trap-r39-acknowledged-then-lost"),
    (
        Bug::AnswersNotVouched,
        "trap-r40-a-segment-of-a-lost-answer",
    ),
    (Bug::OtherHistoryIgnored, "trap-r22-two-copies"),
    (Bug::AnybodyConfirms, "an-operator-opens-a-running-home"),
    (Bug::ConfirmedTwice, "an-operator-opens-a-running-home"),
    (Bug::LifeNotDurable, "trap-r25-begun-and-forgotten"),
    (Bug::NobodyForgets, "trap-r17-past-the-old-position"),
    (Bug::LeftExecuted, "trap-r20-an-earlier-incarnation"),
    (Bug::LostIsNo, "trap-r21-a-lost-vote"),
    (Bug::HomesToldFirst, "homes-that-a-site-is-to-reach"),
    (Bug::ClaimsNotPassed, "trap-r24-a-site-that-is-behind"),
    (Bug::ClaimsNotPassed, "trap-r38-on-a-standing-edge"),
    (Bug::SiteBelieved, "trap-r20-a-commit-on-its-way"),
    (Bug::GenerationsGivenAgain, "trap-r26-an-old-reference"),
    (
        Bug::MarksNotCompared,
        "trap-r19-nothing-lost-has-a-position",
    ),
    (Bug::ReceiptsForgotten, "trap-r52-forgotten-receipts"),
    (Bug::JointsForgotten, "trap-r53-a-lost-part"),
    (Bug::ParticipantsBelieved, "a-vote-for-nobody"),
    (Bug::SegmentsNotShared, "a-name-makes-its-share"),
    (Bug::SpaceNotShared, "a-name-fills-its-share"),
    (Bug::NumbersNotShared, "a-name-numbers-its-share"),
    (Bug::ReadersNotShared, "a-name-restricts-its-share"),
    (Bug::WatchesNotShared, "watches-no-more"),
    (Bug::ProcessesNotCounted, "a-name-has-one-share"),
    (Bug::VoteKept, "in-doubt-last-to-hear"),
    (Bug::AnybodySettles, "doubt-settled"),
    (Bug::SettlementNotLogged, "doubt-settled"),
    (Bug::SettledStaysShown, "doubt-settled-otherwise"),
    (Bug::VoteNotLocked, "trap-14-deadlock"),
    (Bug::VoteNotLocked, "two-homes-one-says-no"),
    (Bug::VoteTimesOut, "trap-11-no-one-times-out"),
    (Bug::WatermarkPassesVote, "trap-13-one-doubt"),
    (Bug::WatermarkNotAwaited, "trap-19-order-by-position"),
    (Bug::OwnStampNotTold, "trap-06-own-value-before-its-place"),
    (Bug::NamedNotLast, "own-value-overwritten"),
    (Bug::NamedNotLast, "overwritten-between-two-of-a-chain"),
    (Bug::BuiltOnAnything, "trap-08-dirty-speculation"),
    (Bug::RefusedToldFirst, "refused-and-gone-before-it-is-heard"),
    (Bug::TentativeStays, "shown-until-what-it-rests-on-changes"),
    (Bug::RestsOnEvicted, "evicted-and-not-answered"),
    (Bug::WrittenOverNotNamed, "trap-23-chained-writer"),
    (Bug::WrittenOverTakenForRead, "written-over-is-not-read"),
    (Bug::OwnReadFrozen, "own-read-is-not-frozen"),
    (Bug::EarlyStampNotKnown, "reader-of-what-is-not-answered"),
    (Bug::OnlyNamesSeen, "chain-on-one-object"),
    (Bug::WrittenOverLastOnly, "written-over-and-covered"),
    (Bug::OwnServedFrozen, "own-served-is-not-frozen"),
    (Bug::KnownEndsNothing, "known-ends-what-rests-on-it"),
    (Bug::WithdrawnOvertaken, "withdrawn-values-keep-their-place"),
    (
        Bug::OtherHomesAhead,
        "withdrawn-values-keep-their-place-over-two-homes",
    ),
    (Bug::MovedIsChanged, "moved-is-not-changed"),
    (Bug::KnownElsewhere, "known-here-is-not-read-there"),
    (Bug::LockedIsMoved, "what-a-vote-writes-is-not-moved"),
    (Bug::LockedIsMoved, "a-vote-has-its-room"),
    (Bug::TentativeSent, "neighbours-see-what-is-answered"),
    (Bug::ShownTooLate, "shown-too-late"),
    (Bug::LastStampTold, "trap-19-highest-stamp"),
    (Bug::SessionFloorIgnored, "trap-16-backwards-across-homes"),
    (Bug::CreationNotChecked, "trap-12-two-creators"),
    (Bug::GenerationNotChecked, "trap-12-reused-slot"),
    (Bug::ExtentNotRaised, "trap-12-scan-misses-a-page"),
    (Bug::SystemPageRaisesExtent, "system-pages"),
    (Bug::SystemPagesLeft, "system-pages"),
    (Bug::DroppedNotInvalidated, "trap-17-values-not-kept"),
    (Bug::ChildNotLimited, "trap-18-floods"),
    (Bug::ChildNotLimited, "trap-18-flood-at-a-home"),
    (Bug::ChildNotLimited, "trap-18-full-directory"),
    (Bug::ChildNotLimited, "trap-18-greedy-child"),
    (Bug::ParkedBytesNotCounted, "trap-18-parked-bytes"),
    (Bug::ChildNotLimited, "trap-18-greedy-for-help"),
    (Bug::ChildNotLimited, "trap-18-large-commits"),
    (Bug::StepSplit, "trap-20-between-two-messages"),
    (Bug::JoinedOntoRedirect, "trap-21-joined-onto-a-redirect"),
    (Bug::NoticesCount, "trap-22-numbers-not-counts"),
    (Bug::OwnCopyOnly, "trap-24-whose-page-is-it"),
    (Bug::SilenceNotTold, "silence-of-a-site"),
    (Bug::InvalidationLost, "invalidation-reaches-every-holder"),
    (Bug::SentBeforeEntered, "entered-before-sent"),
    (Bug::AheadNotEntered, "hints"),
    (Bug::RefetchedNotTold, "refetch-overtaken"),
    (Bug::EvidenceRewritten, "evidence-is-the-members-own"),
    (Bug::ContentBelieved, "one-id-two-contents"),
    (Bug::OutcomeForgotten, "exactly-once-sent-again"),
    (Bug::FloorIgnored, "validation-floor"),
    (Bug::SecondParentTaken, "trap-09-second-parent"),
    (Bug::HalfResynchronised, "trap-09-half-resynchronised"),
    (Bug::OutcomeTooEarly, "failover-outcome-held-back"),
    (Bug::VersionsIgnored, "failover-each-its-version"),
    (Bug::VersionsIgnored, "failover-keeps-pages"),
    (
        Bug::WordFromBehindPassed,
        "trap-09-the-new-parents-word-from-behind",
    ),
    (Bug::StruckSaidSame, "trap-09-struck-before-the-answer"),
    (Bug::OldDirectoryKept, "failover-old-directory"),
    (Bug::StruckChildBelieved, "silent-child"),
    (Bug::ReadsNotReported, "trap-25-page-not-reported"),
    (Bug::EvictionNotTold, "trap-25-read-evict-fail-over"),
    (Bug::RemovalByPath, "removal-repeated"),
    (Bug::OnlyLastTry, "slow-link-any-try"),
    (Bug::MemoryIsNews, "memory-is-no-news"),
    (Bug::TrimmedOnlyWithPages, "trimming-with-a-hot-page"),
    (Bug::ColdPagesHoldTheLog, "installation-of-a-cold-page"),
    (Bug::RemovalsMixed, "removals-two-at-once"),
    (Bug::RemovedEarly, "removal-and-installation"),
    (Bug::WatchNotTold, "watch"),
    (Bug::DamagedIsEmpty, "damaged-page"),
    (Bug::OldImageAfterItsEnd, "old-images"),
    (Bug::BehindTakenForCurrent, "old-images"),
    (Bug::OldImageKeptOverGap, "old-images-and-a-broken-stream"),
    (Bug::SessionReadsOmitted, "solo-commit"),
    (Bug::SessionEvidenceAssumed, "trap-01-read-evict-commit"),
    (Bug::SessionDependenciesOmitted, "trap-08-dirty-speculation"),
    (Bug::SessionOwnNotAwaited, "reader-of-what-is-not-answered"),
    (Bug::SessionPromiseAssumed, "trap-15-slow-clock"),
    (Bug::SessionStampOmitted, "trap-10-reader-above-the-ceiling"),
    (Bug::SessionFitAssumed, "strict-reader-of-two-homes"),
    (Bug::SavedNotTold, "trap-c03-saved-and-fetched"),
    (Bug::UpdateTakenTwice, "trap-c04-sent-twice"),
    (Bug::UpdateNumbersSkipped, "trap-c07-number-skipped"),
    (Bug::LeaseEndsWithEdge, "trap-c09-edge-of-a-writer"),
    (Bug::LeasesForgotten, "trap-c10-restarted-home"),
    (Bug::WritersNotAsked, "trap-c12-writer-not-asked"),
    (Bug::HeadsNotAwaited, "what-a-log-has-named-is-awaited"),
    (Bug::LeaseFromAnswer, "trap-c26-slow-grant"),
    (Bug::UpdateRefusalForgotten, "trap-c34-refusal-lost"),
    (Bug::UpdatesNotSentAgain, "updates-are-sent-again"),
    (Bug::FollowNotAwaited, "trap-c36-told-ahead"),
    (Bug::LateUpdateShown, "late-update-is-not-shown"),
    (Bug::AnswerNotWithheld, "hard-bounds-an-answer-waits"),
    (Bug::SeenWhenSent, "hard-bounds-an-answer-waits"),
    (Bug::SeenForOthers, "hard-bounds-a-site-asks"),
    (
        Bug::ReadLeasesForgotten,
        "trap-c10-home-restarts-under-readers",
    ),
    (Bug::ReadLeaseBesideWriter, "hard-bounds-a-writer-by-log"),
    (Bug::RememberedNotWithheld, "trap-c22-a-remembered-outcome"),
    (
        Bug::ToldAgainNotWithheld,
        "trap-c22-a-decision-that-comes-again",
    ),
    (Bug::VoteNotWithheld, "trap-c21-a-vote-under-a-read-lease"),
    (
        Bug::MissedNotAskedAgain,
        "trap-c11-what-may-be-missed-is-asked-again",
    ),
    (Bug::SeenTooEarly, "trap-c23-seen-while-behind"),
    (Bug::SeenDebtForgiven, "trap-c30-a-reader-that-says-nothing"),
    (Bug::LockNotNamed, "trap-c08-a-lock-that-was-lost"),
    (
        Bug::LocksForgotten,
        "trap-c29-a-home-that-starts-again-knows-its-locks",
    ),
    (Bug::LockBesideVote, "trap-c17-a-lock-waits-for-a-vote"),
    (Bug::EndedStreamStands, "a-stream-that-ends-too-early"),
    (Bug::PullPastVote, "a-pull-waits-for-a-vote"),
    (Bug::LockBesideWriter, "a-lock-waits-for-a-log"),
    (Bug::LockOutlivesRight, "trap-c42-a-lock-needs-the-right"),
    (
        Bug::LeaseOutlivesRight,
        "nobody-waits-for-the-lease-of-a-revoked-name",
    ),
    (Bug::RestoredNotAsked, "a-right-that-comes-back"),
    (Bug::GivesBackTooEarly, "a-lock-recalls-leases"),
    (Bug::GivesBackForOthers, "a-lock-recalls-leases"),
    (Bug::AnswersRecalled, "a-lock-recalls-leases"),
    (Bug::PaceNotKept, "a-member-that-keeps-no-pace"),
    (Bug::RefusalWithheld, "a-refusal-beside-a-vote-kept-back"),
    (Bug::PullJoined, "trap-c01-joined-pull"),
    (Bug::UpdateInImage, "trap-c05-a-transaction-reads-no-update"),
    (Bug::LogIdKept, "trap-c06-a-log-from-a-backup"),
    (
        Bug::AnswerWaitsAlways,
        "trap-c16-a-neighbour-without-privilege",
    ),
    (Bug::UpdatePastLock, "trap-c18-an-update-waits-for-a-lock"),
    (Bug::NewerThanStanding, "trap-c19-an-old-image-that-is-gone"),
    (Bug::PullQueued, "trap-c25-pulls-that-cross"),
    (Bug::RestartedIsHolder, "trap-c27-a-site-that-starts-again"),
    (
        Bug::LockBeforeStep,
        "trap-c31-a-lock-comes-behind-what-was-written",
    ),
    (Bug::LockedWaits, "trap-c33-two-locks-and-two-commits"),
    (Bug::LogForgotten, "trap-c35-away-for-months"),
    (Bug::OtherLogTaken, "trap-c41-the-log-of-another"),
    (Bug::SavedNotKept, "trap-c43-saved-and-not-told"),
    (Bug::FoundLockNotLooked, "a-lock-of-a-dead-holder-ends"),
    (Bug::MissedNotCounted, "two-readers-that-may-miss"),
    (Bug::LateLockTold, "a-lock-that-comes-late"),
    (Bug::EndedLockForgotten, "a-lock-is-ended-once"),
    (
        Bug::UnlockNotRepeated,
        "a-busy-home-is-asked-again-to-end-a-lock",
    ),
    (Bug::WantNotCounted, "a-lock-that-others-want-for-long"),
    (Bug::WantNeverForgotten, "who-wanted-a-lock-once"),
    (Bug::DebtForgiven, "a-debt-outlives-its-pull"),
];

/// Which test of another crate catches which bug, because what it breaks has no place in a story.
const CAUGHT_ELSEWHERE: &[(Bug, &str, &str)] = &[
    (
        Bug::AgeFromAnswer,
        "client/src/runtime/pulls.rs",
        "an_age_that_counts_from_the_answer_is_too_low",
    ),
    (
        Bug::LockNotLooked,
        "client/tests/traps.rs",
        "a_visit_looks_whether_its_lock_holds",
    ),
    (
        Bug::OverlayOfNow,
        "client/tests/traps.rs",
        "a_snapshot_keeps_the_updates_of_its_opening",
    ),
];

/// Those tests are there, and each names its bug.
#[test]
fn what_no_story_catches_a_test_does() {
    for (bug, file, test) in CAUGHT_ELSEWHERE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let code = fs::read_to_string(&path).expect("the file of a test");
        let (_, after) = code
            .split_once(&format!("fn {test}()"))
            .unwrap_or_else(|| panic!("{file} has no test {test}"));
        let of_test = after.split("#[test]").next().unwrap_or_default();
        assert!(
            of_test.contains(&format!("Bug::{}", bug.name())),
            "{test} plants no {}",
            bug.name()
        );
    }
}

/// Readers here and a writer elsewhere: each reader reads after each change. What crosses the wide area falls to one request for
/// each doubling of the changes, whoever asks; and most reads wait for nothing, not even for their redirector.
#[test]
fn what_is_read_again_and_again_crosses_the_wide_area_seldom() {
    const CHANGES: usize = 64;
    const READERS: usize = 3;
    let _alone = alone();
    let mut story = String::from("village H(R(m0 m1 m2) R2(m3)) where P.x=a P.y=b\n");
    for change in 1..=CHANGES {
        story += &format!("m3/{change} writes P.x=v{change}\nm3/{change} commits\nsettle\n");
        for reader in 0..READERS {
            let read = format!("m{reader}/{change}");
            story += &format!("{read} reads P.x\nsettle\nexpect {read} saw = \"v{change}\"\n");
        }
    }
    let told = tell(&story);
    assert_eq!((told.failed, told.panicked), (Vec::new(), false));
    let count = |what: &str| told.text.matches(what).count();
    // The first two, and then with the values of 4, 4, 8, 16 and 32 changes.
    assert_eq!(count(" R -> H: fetch P "), 7);
    assert_eq!(count("-> R: fetch P "), 7 * READERS);
    assert_eq!(count(" misses P"), 7 * READERS);
    // With each of the others nobody waited.
    assert_eq!(count("[UpdateTold]"), CHANGES - 7);
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("stories")
}

fn stories() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("there are stories");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder can be read").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "txt"))
        .collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn first_difference(written: &str, told: &str) -> String {
    let (mut written, mut told) = (written.lines(), told.lines());
    for line in 1.. {
        match (written.next(), told.next()) {
            (a, b) if a == b && a.is_some() => {}
            (a, b) => {
                let nothing = "(nothing)";
                let (a, b) = (a.unwrap_or(nothing), b.unwrap_or(nothing));
                return format!("line {line}:\n  written: {a}\n  told:    {b}");
            }
        }
    }
    String::new()
}
