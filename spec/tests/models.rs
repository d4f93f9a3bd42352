//! The models hold, every action of them happens, and each guard that is switched
//! off breaks what it is for.
//!
//! `make tla` prints what each check came to; `make tla-deep` checks larger villages.

use std::collections::BTreeSet;

use thorp_spec::{Report, Run, actions, directory};

#[test]
fn commit_holds() {
    // Below its floor the home refuses on page grounds, so both are looked at.
    let acknowledged = commit().with("Acks", "TRUE").with("Objects", "{1}");
    holds("SiteCommit", &[commit(), acknowledged], &[]);
}

#[test]
fn peer_holds() {
    holds("PeerFetch", &[peer()], &["Join"]);
}

#[test]
fn failover_holds() {
    holds("Failover", &[failover(), two_turn()], &[]);
}

#[test]
fn outcome_holds() {
    holds("Outcome", &[outcome()], &[]);
}

#[test]
fn two_phase_holds() {
    holds("TwoPhase", &[two_phase(), skew(), stamps()], &["TimeOut"]);
}

#[test]
fn readers_hold() {
    holds("Readers", &[readers(), session()], &[]);
}

#[test]
fn chain_holds() {
    let runs = [chain(), written_over(), overtaking(), over_two(), turning()];
    holds("Chain", &runs, &["Hide"]);
}

#[test]
fn revocation_holds() {
    holds("Revocation", &[revocation(), turned()], &[]);
}

#[test]
fn updates_hold() {
    let crashes = updates().with("Kinds", "{\"site\"}");
    holds(
        "Updates",
        &[updates(), crashes, log()],
        &["Late", "HaveBeside"],
    );
}

#[test]
fn write_lease_holds() {
    let runs = [
        write_lease(),
        site_cut_off(),
        site_restarts(),
        home_restarts(),
        two_sessions(),
        recalled_turning(),
        recalled_below_site()
            .with("Breaks", "{1}")
            .with("Restarts", "{1}"),
        recalled_below_site().with("Lengths", "<<2, 2>>"),
        recalled_below_home().with("Updates", "2"),
    ];
    holds("WriteLease", &runs, &["CallLost", "Renew"]);
}

#[test]
fn hard_answers_hold() {
    let runs = [
        hard_cut_off(),
        hard_site_restarts(),
        hard_lagging(),
        hard_votes(),
        hard_mods(),
        hard_mods_elsewhere(),
    ];
    holds("HardAnswers", &runs, &[]);
}

#[test]
fn a_weaker_commit_breaks() {
    let off = |guard| commit().with(guard, "FALSE");
    breaks(&[
        // Read, evict, commit: as a writer, and as a reader.
        (off("FrozenEvidence"), "Serializable"),
        (off("FrozenEvidence"), "Evidence"),
        // Given up above while an image is on its way down.
        (off("EvictionNumbers"), "Validity"),
        (off("EvictionNumbers"), "Serializable"),
        // The redirector gives up what its members still have.
        (off("SubtreeCopies"), "Validity"),
    ]);
}

#[test]
fn a_weaker_peer_fetch_breaks() {
    let off = |guard| peer().with(guard, "FALSE");
    let three = off("EachItsOwnRedirect").with("Changes", "1");
    let three = three.with("Members", "{1, 2, 3}");
    breaks(&[
        // The helper answers before an update that is queued for it.
        (off("RedirectInStream"), "Validity"),
        // An invalidation overtakes the image.
        (off("KeepsMessages"), "Validity"),
        (off("WaitsForLabel"), "Validity"),
        // The image of an abandoned attempt comes late.
        (off("Attempts").with("Changes", "1"), "Validity"),
        // A late notice strikes the new copy.
        (off("EvictionNumbers"), "Validity"),
        // An image that waits is given up with the copy that is shown.
        (off("CountsWhenShown"), "Copies"),
        // A neighbour's image overtakes one in the stream, and is evicted.
        (off("RisingNumbers").with("Changes", "1"), "Validity"),
        // A second requester is joined onto a redirect.
        (three.with("Fetches", "<<0, 1, 1>>"), "Validity"),
    ]);
}

#[test]
fn a_weaker_failover_breaks() {
    let off = |guard| failover().with(guard, "FALSE");
    breaks(&[
        // Struck as dead, and still connected.
        (off("Epochs"), "Validity"),
        // The position goes on while a page is not resynchronised.
        (off("HoldsPosition"), "Evidence"),
        (off("HoldsPosition"), "Serializable"),
        // Two members report two versions of one page.
        (two_turn().with("EachItsVersion", "FALSE"), "Validity"),
        // Read, evict, fail over.
        (off("ReportsReads"), "Evidence"),
        (off("ReportsReads"), "Serializable"),
        // An old answer brings an old value.
        (off("ForwardsAnswers").with("Pages", "{1}"), "Validity"),
    ]);
}

#[test]
fn a_weaker_outcome_breaks() {
    let off = |guard| outcome().with(guard, "FALSE");
    breaks(&[
        // Told before it is durable.
        (off("DurableFirst"), "NothingForgotten"),
        // Two answers to one id.
        (off("RecordsUnknown"), "ExactlyOnce"),
        (off("RecordsRefusals"), "NothingForgotten"),
        // Outcomes expire, and a request that comes again is executed.
        (off("NothingBelowWindow"), "ExactlyOnce"),
    ]);
}

#[test]
fn a_weaker_two_phase_breaks() {
    let off = |guard| two_phase().with(guard, "FALSE");
    breaks(&[
        // One aborts by its clock while another finishes with every vote yes.
        (off("AbortNeedsNo"), "Atomic"),
        (off("DurableVotes"), "Atomic"),
        (off("DurableVotes"), "NothingForgotten"),
        (skew().with("LocksReads", "FALSE"), "Serializable"),
        (off("VotesHaveSets"), "Serializable"),
        (stamps().with("BelowDoubt", "FALSE"), "Watermarks"),
        (stamps().with("BelowDoubt", "FALSE"), "ReadOnly"),
        (stamps().with("HighestVote", "FALSE"), "OneStamp"),
        // A home forgets what it promised.
        (stamps().with("Ceiling", "FALSE"), "Watermarks"),
    ]);
}

#[test]
fn a_weaker_reader_breaks() {
    let off = |guard| readers().with(guard, "FALSE");
    breaks(&[
        // One home's news come before the other's: the moment has no stamp.
        (off("WithinPromises"), "Whole"),
        (off("WithinPromises"), "Place"),
        (off("AboveSeen"), "Place"),
        // The second of two readings is at a home that has not heard yet.
        (session().with("SessionFloor", "FALSE"), "NeverBack"),
        // A promise passes a vote; each home has a stamp of its own.
        (off("BelowDoubt"), "Whole"),
        (off("HighestVote"), "Whole"),
        // A promise that a crash forgets.
        (off("BelowCeiling"), "Place"),
    ]);
}

#[test]
fn a_weaker_chain_breaks() {
    let off = |guard| chain().with(guard, "FALSE");
    let busy = off("HiddenFirst").with("Foreign", "0");
    let given_up = turning().with("EvictionWithdraws", "FALSE");
    let given_up = given_up.with("Evictions", "1");
    let excused = off("NamedIsLast").with("Reads", "<<{2}, {1, 2}>>");
    let frozen = off("OwnReadNeverFrozen").with("Foreign", "0");
    let frozen = frozen.with("Reads", "<<{}, {1, 2}>>");
    let frozen = frozen.with("Writes", "<<{1}, {}>>");
    breaks(&[
        // Trap 8: what builds on a commit that was refused.
        (off("NamedIsCommitted"), "OnCommitted"),
        (off("NamedIsCommitted"), "Serializable"),
        // A name excuses what others changed.
        (excused.with("Writes", "<<{1}, {2}>>"), "Serializable"),
        // What is not answered stays over what it does not stand on any more.
        (off("ChangeWithdraws"), "Opacity"),
        (given_up.with("Turns", "0"), "Opacity"),
        (turning().with("EndWithdraws", "FALSE"), "Opacity"),
        (off("LooksOnceMore"), "Opacity"),
        // It reads what was there before, and then comes behind it.
        (
            written_over().with("UnlessReadBefore", "FALSE"),
            "Serializable",
        ),
        // What a program makes first comes last.
        (overtaking().with("WithdrawnGoesFirst", "FALSE"), "InOrder"),
        (overtaking().with("NamesWrittenOver", "FALSE"), "InOrder"),
        (over_two().with("NamesBelow", "FALSE"), "InOrder"),
        // A reader stands on what was refused, or where it is not yet.
        (frozen.with("Evictions", "1"), "Readers"),
        (busy.with("Busy", "{1}"), "Readers"),
        (off("WaitsForOwn"), "Readers"),
    ]);
}

#[test]
fn a_weaker_revocation_breaks() {
    let off = |guard| revocation().with(guard, "FALSE");
    let turns = |guard| turned().with(guard, "FALSE");
    breaks(&[
        // An image of the home beside the stream is newer than what the redirector knows of rights.
        (off("WaitsForLabel"), "NothingNewer"),
        // Trap R2: one of those who wait has lost its right.
        (off("EachWaiter"), "NothingNewer"),
        (off("EachWaiter"), "NeverRefused"),
        // The helper's image is not given, and the next helper's entry brings a step.
        (off("NextTryChecks"), "NothingNewer"),
        // Whoever holds the page gets its changes.
        (off("EndsPages"), "NothingNewer"),
        (off("EndsPages"), "NothingHeld"),
        // A helper has given the page up, and nobody answers.
        (off("TriesOn"), "Served"),
        // Trap R5: the second redirector knows nothing of rights.
        (turns("BeginHasReaders"), "NothingNewer"),
        // What is reported is entered for whoever reports it.
        (turns("ChecksReports"), "NothingNewer"),
        // Revoked between a report and its answer.
        (turns("StruckIsChanged"), "NothingNewer"),
        (turns("StruckIsChanged"), "Copies"),
    ]);
}

#[test]
fn a_weaker_update_breaks() {
    let off = |guard| log().with(guard, "FALSE");
    let off_below = |guard| updates().with(guard, "FALSE");
    let holders = log().with("Named", "\"holders\"");
    breaks(&[
        // Number 2 is taken first, and number 1 is dropped as old.
        (off("TakesOnlyNext"), "NeverVanishes"),
        // The home restarts, and the log sends again.
        (off("SavedInBatch"), "ExactlyOnce"),
        // The page is evicted. An image comes that has the update.
        (holders, "NeverTwice"),
        (off("OneStep"), "NeverTwice"),
        // The answer to Have is newer than the image.
        (off("HaveInStream"), "NoneMissed"),
        // New images under the old view.
        (off("WaitsForHave"), "NeverTwice"),
        // The new stream knows nothing of what the old one exchanged.
        (off("HaveRegisters"), "NeverTwice"),
        // A refusal is lost with the edge, and the log takes its update for saved.
        (off("StoresRefusals"), "AsDecided"),
        (off("NamesRefusals"), "AsDecided"),
        (off("NamesRefusals"), "NeverVanishes"),
        // The next update of the log makes the home forget it.
        (off("UntilConfirmed"), "AsDecided"),
        // What was on a broken edge stays in the log for ever.
        (off("SendsAgain"), "AllSettled"),
        // A neighbour is shown what has been executed.
        (off_below("ShowsAfterHave"), "NeverTwice"),
        (off_below("FollowedSince"), "NeverTwice"),
        (off_below("AboveSettled"), "NeverTwice"),
    ]);
}

#[test]
fn a_weaker_write_lease_breaks() {
    let off = |guard| two_parents().with(guard, "FALSE");
    let one_site = |guard| {
        let run = write_lease().with("Sites", "{1}");
        run.with(guard, "FALSE")
    };
    let no_margin = two_parents().with("Skew", "1");
    let restarts = |lengths, guard| off(guard).with("Lengths", lengths);
    let sessions = two_sessions().with("JoinsUnsent", "FALSE");
    let stands = two_parents().with("SiteCounts", "\"first\"");
    let renamed = one_site("NewNode").with("Restarts", "{1}");
    let back = |guard| recalled_below_home().with(guard, "FALSE");
    let site_back = |guard| recalled_below_site().with(guard, "FALSE");
    breaks(&[
        // The home forgets a writer, and answers.
        (restarts("<<2, 2>>", "LogsFirst"), "Seen"),
        (restarts("<<2, 2>>", "LogsFirst"), "Known"),
        (restarts("<<2, 2>>", "WaitsAfter"), "Seen"),
        (restarts("<<2, 2>>", "WaitsAfter"), "Known"),
        // It waits for the shorter of two lengths: the configured one, or the first.
        (restarts("<<2, 1>>", "WaitsLogged"), "Seen"),
        (restarts("<<1, 2, 1>>", "LogsLonger"), "Seen"),
        // A site renews for longer than the home knows of.
        (off("ThroughHome"), "Seen"),
        (off("ThroughHome"), "Known"),
        // The writer believes for longer than its parents.
        (off("CountsSending"), "Seen"),
        (off("CountsSending"), "Known"),
        (off("CountsOwnCall"), "Seen"),
        (off("CountsOwnCall"), "Known"),
        (no_margin.clone(), "Seen"),
        (no_margin, "Known"),
        // A site's record does not grow with a refresh.
        (stands.clone(), "Seen"),
        (stands, "Known"),
        // A record ends with the edge: of the writer, or of its site.
        (off("EndOfEdge"), "Seen"),
        (off("EndOfEdge"), "Known"),
        (one_site("EndOfEdge").with("Breaks", "{1}"), "Seen"),
        // A restarted site has no record, and is taken for the one that had it.
        (renamed.clone(), "Seen"),
        (renamed, "Known"),
        // A site leaves out a writer that it cannot ask.
        (off("AsksAbsent"), "Seen"),
        // A Get overtakes the grant that it has to follow.
        (off("InOrder"), "Seen"),
        // An answer from before the writer came to this site.
        (off("MatchesGet"), "Seen"),
        // The number has come, and the update has not.
        (off("WaitsNumbers"), "Seen"),
        // A session joins a pull that the writer has answered.
        (sessions, "Seen"),
        // A writer gives back while it keeps what it answered, or before a grant comes.
        (back("BackWhenSettled"), "Seen"),
        (back("BackAfterAnswer"), "Seen"),
        (back("BackAfterAnswer"), "Known"),
        // A site gives back before its writer does, or passes a grant on after that.
        (site_back("BackWhenSettled"), "Seen"),
        (site_back("SiteBackWaits"), "Seen"),
        (site_back("SiteBackWaits"), "Known"),
        (gives_back_at_once(), "Seen"),
        (gives_back_at_once(), "Known"),
    ]);
}

#[test]
fn a_weaker_hard_answer_breaks() {
    let off = |guard| hard_answers().with(guard, "FALSE");
    let restarts = |guard| off(guard).with("Lengths", "<<2, 2>>");
    let votes = |guard| off(guard).with("Votes", "TRUE");
    let gives_back = off("BackAnswered").with("GivesBack", "TRUE");
    let renamed = off("NewNode").with("Restarts", "{1}");
    let cut_off = off("EndOfEdge").with("Direct", "FALSE");
    let cut_off = cut_off.with("Breaks", "{1}");
    let no_margin = hard_answers().with("Skew", "1");
    let not_repeated = hard_mods_elsewhere().with("Repeats", "\"nothing\"");
    let not_repeated = not_repeated.with("Commits", "1");
    breaks(&[
        // The step is the answer, and the reader has not taken it yet.
        (off("AwaitsSeen"), "Bounded"),
        // Trap C22: the writer asks by another edge, or sends once more what was executed.
        (off("OutcomeWaits"), "Bounded"),
        (off("AgainWaits"), "Bounded"),
        // Trap C23: a reader that stands where its old stream ended sends Seen, or believes a grant.
        (off("SeenAfterView"), "Bounded"),
        (off("GrantWhenStands"), "Bounded"),
        // A site sends Seen, and has not asked the reader below.
        (off("SiteAsksChildren"), "Bounded"),
        // Trap C11: what was sent counts as seen.
        (hard_mods().with("MissedUntilSeen", "FALSE"), "Bounded"),
        // A site forgets with its edge what it was asked. Its Seen for another segment counts for that, too.
        (hard_mods_elsewhere().with("Repeats", "\"kept\""), "Bounded"),
        (not_repeated.with("Mods", "0"), "Bounded"),
        // A grant comes before a step that was answered when nobody had a lease.
        (off("InOrder"), "Bounded"),
        // A grant comes after the lease was given back.
        (gives_back.clone(), "Bounded"),
        (gives_back, "Known"),
        // The reader believes for longer than its parents.
        (off("CountsSending"), "Bounded"),
        (off("CountsSending"), "Known"),
        (no_margin.clone(), "Bounded"),
        (no_margin, "Known"),
        // A record ends with the edge: of the reader, or of its site.
        (off("EndOfEdge"), "Bounded"),
        (off("EndOfEdge"), "Known"),
        (cut_off.clone(), "Bounded"),
        (cut_off, "Known"),
        // A restarted site has no record, and is taken for the one that had it.
        (renamed.clone(), "Bounded"),
        (renamed, "Known"),
        // Trap C10: the home forgets a reader, and answers.
        (restarts("LogsFirst"), "Bounded"),
        (restarts("LogsFirst"), "Known"),
        (restarts("WaitsAfter"), "Bounded"),
        (restarts("OutcomeWaitsAfter"), "Bounded"),
        // The votes answer before the reader has seen, or begins to believe.
        (votes("VoteSays"), "Bounded"),
        (votes("NoGrantInDoubt"), "Bounded"),
    ]);
}

#[test]
fn steps_to_those_who_exchanged_come_without_a_name() {
    kept(
        &by_exchange().only("NeverTwice"),
        "steps-to-those-who-exchanged",
    );
}

#[test]
fn a_pull_that_asks_once_misses_a_writer_that_turns() {
    kept(&asks_once().only("Seen"), "pull-asks-once");
}

#[test]
fn a_site_that_gives_back_at_once_passes_on_a_grant() {
    kept(&gives_back_at_once().only("Seen"), "gives-back-at-once");
}

#[test]
fn a_site_may_count_from_the_home_s_answer() {
    whole(&two_parents().with("SiteCounts", "\"answering\""));
}

#[test]
fn rights_that_are_checked_at_the_request_come_too_late() {
    kept(
        &at_request().only("NoLaterBytes"),
        "rights-checked-at-request",
    );
}

#[test]
fn acknowledgements_alone_lose_an_update() {
    kept(
        &by_acknowledgements().only("Serializable"),
        "acknowledgements-lose",
    );
}

#[test]
fn acknowledgements_alone_refuse_what_is_current() {
    kept(
        &by_acknowledgements().only("SoloCommit"),
        "acknowledgements-refuse",
    );
}

/// Larger villages: `make tla-deep`.
#[test]
#[ignore = "takes long: make tla-deep"]
fn larger_villages_hold() {
    let runs = [
        commit().with("Acks", "TRUE"),
        commit().with("Writers", "{1, 2}"),
        commit().with("Commits", "3").with("Elsewhere", "2"),
        peer().with("Objects", "{1, 2}").with("Fetches", "<<1, 2>>"),
        peer()
            .with("Members", "{1, 2, 3}")
            .with("Fetches", "<<0, 1, 1>>"),
        failover().with("Commits", "3"),
        two_turn()
            .with("Transactions", "TRUE")
            .with("Commits", "1")
            .with("Elsewhere", "1"),
        outcome().with("Tries", "4"),
        two_phase().with("Crashes", "2"),
        stamps().with("Ceilings", "5").with("Ticks", "2"),
        readers().with("Parts", "<<{1, 2}, {2}>>"),
        chain().with("Evictions", "1").with("Parks", "{1}"),
        overtaking().with("Foreign", "1").with("Busy", "{1}"),
        over_two().with("Evictions", "1"),
        two_of_any().with("Evictions", "1"),
        revocation()
            .with("Commits", "3")
            .with("Losers", "{1, 2, 3}"),
        turned()
            .with("Members", "{1, 2, 3}")
            .with("Fetches", "<<1, 1, 1>>"),
        log().with("Faults", "2").with("Refusals", "2"),
        updates().with("Refusals", "1"),
        updates().with("Faults", "2"),
        updates()
            .with("Turners", "{1, 2}")
            .with("Kinds", "{\"edge\", \"member\", \"site\", \"home\"}"),
        lagging(two_parents()),
        lagging(write_lease()),
        write_lease().with("Updates", "2").with("Breaks", "{1}"),
        two_parents().with("Sessions", "{1, 2}"),
        home_restarts().with("Restarts", "{1}"),
        two_parents().with("Lengths", "<<2, 3, 2>>"),
        recalled(two_parents()),
        recalled(write_lease().with("Lengths", "<<1>>")),
        recalled_turning().with("Updates", "2"),
        recalled_turning().with("Breaks", "{1}"),
        recalled_turning().with("Lengths", "<<1, 1>>"),
        recalled(two_sessions()),
        hard_answers().with("Commits", "2"),
        hard_answers().with("Commits", "2").with("Mods", "1"),
        hard_mods_elsewhere().with("Lengths", "<<2>>"),
        hard_mods_elsewhere().with("Direct", "TRUE"),
        hard_votes().with("Lengths", "<<2, 2>>"),
        hard_votes().with("Commits", "2").with("Direct", "FALSE"),
        hard_site_restarts().with("Direct", "TRUE"),
        lagging(hard_answers()),
    ];
    for run in runs {
        whole(&run);
    }
}

fn commit() -> Run {
    Run::of("SiteCommit")
}

/// The paper's base validation: the home refuses what read an object whose
/// invalidation the site has not acknowledged, and looks at nothing else.
fn by_acknowledgements() -> Run {
    let run = commit().with("Acks", "TRUE");
    run.with("Validation", "\"acknowledgements\"")
}

fn peer() -> Run {
    Run::of("PeerFetch")
}

fn failover() -> Run {
    Run::of("Failover")
}

/// Two members that keep one page, each in its own version.
fn two_turn() -> Run {
    let run = failover().with("Members", "{1, 2}").with("Pages", "{1}");
    let run = run.with("Commits", "3").with("Elsewhere", "3");
    run.with("Transactions", "FALSE")
}

fn outcome() -> Run {
    Run::of("Outcome")
}

/// Two transactions that conflict at both homes.
fn two_phase() -> Run {
    Run::of("TwoPhase")
}

/// Two transactions that each read what the other writes.
fn skew() -> Run {
    two_phase().with("Writes", "<<{2}, {1}>>")
}

/// One transaction, with clocks, stamps and watermarks.
fn stamps() -> Run {
    let run = two_phase().with("Stamps", "TRUE");
    run.with("Reads", "<<{}>>").with("Writes", "<<{1, 2}>>")
}

/// One transaction over two homes, and a reader of both.
fn readers() -> Run {
    Run::of("Readers")
}

/// A session reads at one home, and then at the other.
fn session() -> Run {
    readers().with("Looks", "<<{1}, {2}>>")
}

/// Two commits, each of which reads what the other writes, and a reader of both.
fn chain() -> Run {
    Run::of("Chain")
}

/// One writes over a part of what the other does, and reads the rest, perhaps before it was shown.
fn written_over() -> Run {
    let run = chain().with("Foreign", "0").with("Evictions", "1");
    let run = run.with("Reads", "<<{}, {2}>>");
    run.with("Writes", "<<{1, 2}, {1}>>")
}

/// Two write the same, and the first may wait for pages at the home.
fn overtaking() -> Run {
    let run = chain().with("Foreign", "0").with("Evictions", "1");
    let run = run.with("Parks", "{1}").with("Reads", "<<{2}, {}>>");
    run.with("Writes", "<<{1}, {1}>>")
}

/// One writes over the first of two, and has read what the second wrote over that.
fn over_two() -> Run {
    let run = chain().with("Foreign", "0").with("Parks", "{1}");
    let run = run.with("Reads", "<<{}, {2}, {}>>");
    run.with("Writes", "<<{1}, {1}, {1, 2}>>")
}

/// The stream ends while something is shown.
fn turning() -> Run {
    let run = chain().with("Turns", "1").with("Reads", "<<{2}, {1, 2}>>");
    run.with("Writes", "<<{1}, {}>>")
}

/// Two transactions that do anything.
fn two_of_any() -> Run {
    let run = chain()
        .with("AnyScript", "TRUE")
        .with("Reads", "<<{}, {}>>");
    run.with("Parks", "{1, 2}")
}

/// Three members of one site, one of which may lose its right; redirectors do not fail.
fn revocation() -> Run {
    Run::of("Revocation")
}

/// Two members turn to a second redirector, and both may lose their right.
fn turned() -> Run {
    let run = revocation().with("Crashes", "TRUE");
    let run = run.with("Members", "{1, 2}").with("Losers", "{1, 2}");
    run.with("Fetches", "<<0, 1>>")
}

/// A writer that turns between two sites; all clocks go alike, and a lease needs no margin.
fn write_lease() -> Run {
    Run::of("WriteLease")
}

/// A writer that turns between a site and the home.
fn two_parents() -> Run {
    let run = write_lease().with("Sites", "{1}");
    run.with("Direct", "TRUE")
}

/// The writer's clock lags by what the margin allows.
fn lagging(run: Run) -> Run {
    let run = run.with("Lengths", "<<3>>").with("Skew", "1");
    run.with("Margin", "1")
}

/// The site loses its edge.
fn site_cut_off() -> Run {
    two_parents().with("Breaks", "{1}")
}

fn site_restarts() -> Run {
    two_parents().with("Restarts", "{1}")
}

fn home_restarts() -> Run {
    two_parents().with("Lengths", "<<2, 2>>")
}

/// Two sessions of the reader, and a writer that stays.
fn two_sessions() -> Run {
    let run = write_lease().with("Sites", "{1}");
    lagging(run.with("Sessions", "{1, 2}"))
}

/// A writer that turns between a site and the home, which recalls its lease.
fn recalled_turning() -> Run {
    recalled(two_parents().with("Lengths", "<<1>>"))
}

/// A writer that stays below a site.
fn recalled_below_site() -> Run {
    recalled(write_lease().with("Sites", "{1}"))
}

/// A writer that stays below the home.
fn recalled_below_home() -> Run {
    let run = write_lease().with("Sites", "{}");
    recalled(run.with("Direct", "TRUE"))
}

fn recalled(run: Run) -> Run {
    run.with("Recalls", "TRUE")
}

/// The obvious protocol: a recalled site gives back when nobody below it has a lease.
fn gives_back_at_once() -> Run {
    recalled_below_site().with("SiteBackAfterAnswer", "FALSE")
}

/// The obvious protocol: a pull asks those that have a record when it arrives.
fn asks_once() -> Run {
    write_lease().with("AsksAnew", "FALSE")
}

/// A reader that turns between a site and the home; all clocks go alike, and a lease needs no margin.
fn hard_answers() -> Run {
    Run::of("HardAnswers")
}

/// The site loses its edge, and the reader gives its lease back.
fn hard_cut_off() -> Run {
    hard_answers()
        .with("Breaks", "{1}")
        .with("GivesBack", "TRUE")
}

/// A reader that turns between two sites, of which one may restart.
fn hard_site_restarts() -> Run {
    let run = hard_answers()
        .with("Sites", "{1, 2}")
        .with("Direct", "FALSE");
    let run = run.with("Lengths", "<<1>>").with("Breaks", "{1}");
    run.with("Restarts", "{1}")
}

/// A reader that stays, and whose clock lags.
fn hard_lagging() -> Run {
    lagging(hard_answers().with("Direct", "FALSE"))
}

/// The commit may be over two homes, and the home restarts.
fn hard_votes() -> Run {
    let run = hard_answers().with("Votes", "TRUE");
    run.with("Lengths", "<<1, 1>>")
}

/// A reader that stays, and may miss one of two commits.
fn hard_mods() -> Run {
    let run = hard_answers().with("Commits", "2").with("Mods", "1");
    run.with("Direct", "FALSE")
}

/// The same, where another segment changes, and the site loses its edge.
fn hard_mods_elsewhere() -> Run {
    let run = hard_mods().with("Lengths", "<<1>>");
    run.with("Elsewhere", "TRUE").with("Breaks", "{1}")
}

/// The obvious protocol: a right is checked when somebody asks for a page.
fn at_request() -> Run {
    revocation().with("Checks", "\"request\"")
}

/// Two members of one site. The first writes, and may turn to the home.
fn updates() -> Run {
    Run::of("Updates")
}

/// One member below the home, which writes two updates and evicts the page.
/// One update may be refused, and everything may fail.
fn log() -> Run {
    let run = updates().with("Parent", "<<0>>").with("Turners", "{}");
    let run = run.with("Updates", "<<2>>").with("Refusals", "1");
    run.with("Evictors", "{1}")
        .with("Kinds", "{\"edge\", \"member\", \"home\"}")
}

/// The obvious protocol: a step names its update to those that exchanged it.
fn by_exchange() -> Run {
    updates().with("Named", "\"exchanged\"")
}

/// Checks each run of a model; every action happens in one of them, except those
/// that only a weaker protocol has.
fn holds(model: &str, runs: &[Run], weaker: &[&str]) {
    let fired: BTreeSet<String> = runs.iter().flat_map(whole).collect();
    let wanted = actions(model).expect("the model");
    assert!(wanted.len() > weaker.len(), "{model} has no actions");
    for action in wanted {
        let happens = fired.contains(&action);
        assert_eq!(happens, !weaker.contains(&&*action), "{model}: {action}");
    }
}

/// All states of a model, none of which breaks an invariant; what happened.
fn whole(run: &Run) -> Vec<String> {
    let report = check(run);
    if let Some(broken) = report.broken {
        panic!(
            "{}: {} breaks\n{}",
            run.title(),
            broken.invariant,
            broken.text
        );
    }
    report.fired.into_iter().map(|(action, _)| action).collect()
}

fn breaks(weaker: &[(Run, &str)]) {
    for (run, invariant) in weaker {
        let broken = check(&run.clone().only(invariant)).broken;
        let broken = broken.map(|broken| broken.invariant);
        assert_eq!(broken.as_deref(), Some(*invariant), "{}", run.title());
    }
}

/// The counterexample is the one that is kept beside the models.
fn kept(run: &Run, name: &str) {
    let broken = check(run).broken;
    let broken = broken.unwrap_or_else(|| panic!("{} holds", run.title()));
    let found = format!(
        "{}\n{} breaks:\n\n{}",
        run.title(),
        broken.invariant,
        broken.text
    );
    let path = directory().join("counterexamples").join(name);
    let path = path.with_extension("txt");
    if std::env::var_os("THORP_BLESS").is_some() {
        std::fs::create_dir_all(directory().join("counterexamples")).expect("a place for it");
        std::fs::write(&path, &found).expect("a place for it");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, text, "THORP_BLESS=1 writes it anew");
}

fn check(run: &Run) -> Report {
    let report = run.check().unwrap_or_else(|error| panic!("{error}"));
    println!("{}", report.line(run));
    report
}
