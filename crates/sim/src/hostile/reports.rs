//! Pages that it does not hold (rules 2 and 13).

use super::attack::{Attack, Target, ToParent};
use super::eyes::Eyes;
use thorp_model::{
    EntryNo, PageId, PageNo, Position, ReportNo, Reported, SegmentId, Up, Xoshiro256, message,
};

/// Reports pages that it never got, and gives up others.
#[derive(Default)]
pub(crate) struct Reports {
    sent: u64,
}

/// Pages of a report.
const PAGES: u32 = 200;

impl Attack for Reports {
    fn name(&self) -> &'static str {
        "attack: false page reports"
    }

    fn strike(&mut self, at: Target, eyes: &Eyes, prng: &mut Xoshiro256, outbox: &mut ToParent) {
        let Target {
            edge, home, epoch, ..
        } = at;
        // Sometimes the number comes again.
        self.sent += prng.below(2);
        let segments = eyes.segments(home);
        let segment = prng.pick(segments).copied().unwrap_or(SegmentId(1));
        let segment = [segment, SegmentId(u32::MAX)][prng.index(2)];
        let ahead = Position(eyes.position(home).0 + prng.below(1_000));
        let as_of = [Position(0), eyes.position(home), ahead][prng.index(3)];
        let pages = (0..PAGES).map(|page| Reported {
            page: PageId {
                segment,
                page: PageNo(page),
            },
            as_of,
            complete: page % 2 == 0,
        });
        let pages: Vec<Reported> = pages.collect();
        for page in &pages {
            let entry = EntryNo([0, 1, u32::MAX][prng.index(3)]);
            let page = page.page;
            outbox.up(
                edge,
                Up::Evict(message::Evict {
                    home,
                    epoch,
                    page,
                    entry,
                }),
            );
        }
        let report = ReportNo(self.sent);
        outbox.up(
            edge,
            Up::Report(message::Report {
                home,
                epoch,
                report,
                pages,
            }),
        );
    }
}
