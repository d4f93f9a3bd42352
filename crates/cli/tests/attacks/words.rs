//! What a home says because of a member, and to it.

use crate::common::one_site::OneSite;
use crate::common::thorp;
use crate::scene::{intrude, invite, join};
use std::time::{SystemTime, UNIX_EPOCH};
use thorp_model::{CallRequest, Down, HomeId, Millis, Stamp, Subject};

/// Threat 30: NOT WELL with two times says that a clock of a home is wrong. One member could say so of homes that are right, or
/// are not there.
#[test]
fn a_member_cannot_raise_the_alarm_of_clocks() {
    let dir = tempfile::tempdir().unwrap();
    let village = OneSite::start(dir.path(), &["mallory"], &[]);
    let mut mallory = intrude(dir.path(), "mallory", &village.site_via);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let hour = Millis(u64::try_from(since.as_millis()).unwrap()).plus(3_600_000);
    let at_least = Stamp {
        clock: Stamp::clock_of(hour),
        home: HomeId(4_711),
    };
    let answer = mallory.call(CallRequest::Watermark { at_least });
    assert!(matches!(answer, Down::CallResult(_)), "{answer:?}");
    let said = thorp().run(&["status", &village.home.http]);
    assert_eq!(said.code, 0, "{}", said.out);
}

/// Rule R5: a segment that a name may not read is to it as one that is not there. Who wants to make it learns the difference.
#[test]
#[ignore = "finding: who asks to make a segment learns whether a hidden one has that path"]
fn who_makes_segments_learns_no_hidden_paths() {
    let dir = tempfile::tempdir().unwrap();
    let home = thorp().home(dir.path());
    for name in ["anna", "mallory"] {
        invite(dir.path(), &home, name, "member");
    }
    let anna = join(dir.path(), "anna", &home.via);
    let plans = anna.create("thorp://alps/plans/merger").unwrap();
    plans.revoke(&Subject::Members).unwrap();
    let mut mallory = intrude(dir.path(), "mallory", &home.via);
    let mut is_refused = |path: &str| {
        let (path, create) = (path.to_owned(), true);
        let told = mallory.call(CallRequest::Open { path, create });
        matches!(&told, Down::CallResult(answer) if answer.result.is_err())
    };
    let (hidden, absent) = (is_refused("plans/merger"), is_refused("plans/sale"));
    assert_eq!(
        hidden, absent,
        "whether a hidden path and an absent one are refused"
    );
}
