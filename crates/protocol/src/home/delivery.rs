//! What the home sends when it is durable (rule 1).

use crate::edge::downstream::{News, Values};
use crate::home::log::queue::{OnDurable, Reached};
use crate::home::pages::remove::Remover;
use crate::home::readers::{Readers, Reading};
use crate::home::serve::Serve;
use crate::home::tables::Tables;
use crate::home::writers::{self, Writers};
use crate::home::{Outbox, responses};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use thorp_model::planted::Bug;
use thorp_model::{
    Audience, CallId, CallResponse, Down, EdgeId, FetchRefusal, Note, PageChange, PageDigest,
    PageId, PageSlots, Purpose, Right, SegmentId, UpdateId, message, planted,
};

/// Sends to children what waited for the disk.
///
/// Only what comes out of the queue goes out, in its order. So no child learns of a position that
/// is not durable, and none learns of it before an earlier one.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub(super) serve: Serve<'a>,
    pub(super) remover: &'a mut Remover,
    pub(super) writers: &'a mut Writers,
    pub(super) readers: &'a mut Readers,
}

impl Delivery<'_> {
    /// Sends what rests on batches that are durable by now.
    pub(super) fn send_due(&mut self, outbox: &mut Outbox) {
        while let Some(due) = self.serve.log.pop() {
            self.send(due, outbox);
        }
    }

    fn send(&mut self, due: OnDurable, outbox: &mut Outbox) {
        let home = self.serve.home;
        if let Some(edge) = due.edge().filter(|_| !due.is_reach()) {
            self.vouch(edge, outbox);
        }
        match due {
            OnDurable::Reach(reached) => self.reach(reached, outbox),
            OnDurable::Vote(edge, commit, stamp) => {
                self.reading().voted(edge, commit, outbox);
                outbox.down(edge, responses::vote(home, commit, stamp));
            }
            OnDurable::Tell(edge, commit, outcome) => {
                outbox.down(edge, Down::outcome(home, commit, outcome));
            }
            OnDurable::TellAgain(edge, commit, outcome) => {
                self.reading().told_again(edge, commit, &outcome, outbox);
                outbox.down(edge, Down::outcome(home, commit, outcome));
            }
            OnDurable::Reject(edge, commit, outcome, update) => {
                outbox.down(edge, Down::outcome(home, commit, outcome));
                self.tell_rejected(update, outbox);
            }
            OnDurable::Answer(edge, call, result) => {
                outbox.down(edge, responses::call_result(home, call, result));
            }
            OnDurable::Outcome(edge, call, commit, result) => {
                let asked = self.reading().asked((edge, call), commit, result, outbox);
                if let Some(result) = asked {
                    outbox.down(edge, responses::call_result(home, call, result));
                }
            }
            OnDurable::Watermark(edge, call) => self.tell_watermark(edge, call, outbox),
            OnDurable::Ask(edge, get) => outbox.down(edge, Down::Get(get)),
            OnDurable::Recall(edge, segments) => {
                outbox.note(Note::LeaseRecalled);
                outbox.down(edge, Down::Recall(message::Recall { home, segments }));
            }
            OnDurable::NoPage(page, waiter) => {
                let child = self
                    .serve
                    .children
                    .in_epoch(waiter.edge, waiter.epoch, outbox);
                if child.is_some() {
                    let refusal = FetchRefusal::NoSuchSegment;
                    self.serve.refuse_fetch(page, waiter, refusal, outbox);
                }
            }
            OnDurable::Nothing => {}
        }
    }

    /// A position is durable: every child learns what concerns it, with values only where it
    /// subscribed to them.
    fn reach(&mut self, reached: Reached, outbox: &mut Outbox) {
        let Reached {
            position, stamp, ..
        } = reached;
        self.serve.log.reach(position, stamp);
        if let Some((edge, _)) = reached.origin {
            self.vouch(edge, outbox);
        }
        for change in &reached.changes {
            self.serve.tables.pages.made_durable(change.page, position);
        }
        let digests = self.digests(&reached.changes);
        let mut readers = reached.readers;
        readers.extend(
            reached
                .removed
                .map(|segment| (segment, Audience::EVERYBODY)),
        );
        let mut changes = reached.changes;
        if let Some(segment) = reached.removed {
            changes.extend(self.end_segment(segment));
        }
        let news = News {
            position,
            stamp,
            watermark: self.serve.promised(),
            changes,
            values: Values::ToWhoAsked,
            origin: reached.origin,
            readers,
            digests,
            executed: reached.executed,
            run: reached.run,
            update: reached
                .update
                .map(|update| (update, self.writers.followers.of(update.segment))),
        };
        let update = reached.update;
        let commit = (position, reached.commit, update);
        let origin = reached.origin.map(|(edge, _)| edge);
        let mut reading = self.reading();
        let wanted = reading.reached(commit, origin, &news.changes, outbox);
        let told: Vec<SegmentId> = news.readers.iter().map(|(segment, _)| *segment).collect();
        let watermark = news.watermark;
        reading.children.deliver(news, outbox);
        for segment in &told {
            reading.rights_changed(*segment);
        }
        reading.ask(wanted, watermark, outbox);
        for segment in told {
            self.end_locks(segment, outbox);
            self.end_leases(segment, outbox);
        }
    }

    /// Whoever follows the segment of an update shows it no more.
    fn tell_rejected(&mut self, update: UpdateId, outbox: &mut Outbox) {
        let at = (self.serve.log.durable(), self.serve.promised());
        let followers = self.writers.followers.of(update.segment);
        let children = &mut self.serve.children;
        children.tell_rejected(update, &followers, at, outbox);
    }

    /// Others may write in a segment from now on: a lock there needs the right (rule R5).
    fn end_locks(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        let Tables {
            rights,
            segment_locks,
            ..
        } = &mut *self.serve.tables;
        let may = |who| rights.may(who, segment, Right::Write);
        let over = match planted::is(Bug::LockOutlivesRight) {
            true => Vec::new(),
            false => segment_locks.take_in(segment, may),
        };
        if !over.is_empty() {
            outbox.note(Note::LockEnded);
            let (purpose, then) = (Purpose::Housekeeping, OnDurable::Nothing);
            self.serve.log.append_ops(purpose, over, then, outbox);
        }
    }

    /// Others may write in a segment from now on: so does a lease to write.
    fn end_leases(&mut self, segment: SegmentId, outbox: &mut Outbox) {
        let serve = &mut self.serve;
        let rights = &serve.tables.rights;
        let may = |who| rights.may(who, segment, Right::Write);
        let questions = self.writers.rights_changed(segment, may, outbox);
        writers::ask(serve.children, questions, serve.log, outbox);
    }

    /// The answers that wait for readers.
    pub(super) fn reading(&mut self) -> Reading<'_> {
        Reading {
            home: self.serve.home,
            readers: self.readers,
            children: self.serve.children,
            tables: self.serve.tables,
            log: self.serve.log,
        }
    }

    /// What is sent to this child now rests on what is durable (rule R9).
    fn vouch(&mut self, edge: EdgeId, outbox: &mut Outbox) {
        let serve = &mut self.serve;
        let receipt = serve.log.receipt(serve.tables.votes.lowest_stamp());
        serve.children.vouch(edge, receipt, outbox);
    }

    /// The digests of changed pages that a site hears of (rule R6). The images are as of the position that was made
    /// durable just now.
    fn digests(&self, changes: &[PageChange]) -> BTreeMap<PageId, PageDigest> {
        let serve = &self.serve;
        let pages = changes.iter().map(|change| change.page);
        let told = pages.filter(|page| serve.children.concerns_a_site(*page));
        let digest = |page| {
            Some((
                page,
                PageDigest::of(serve.tables.pages.durable_image(page)?),
            ))
        };
        told.filter_map(digest).collect()
    }

    /// The invalidations that tell the end of a segment to those who hold its pages.
    fn end_segment(&mut self, segment: SegmentId) -> Vec<PageChange> {
        self.serve.tables.pages.forget_segment(segment);
        self.remover.add(segment);
        // Also to children that watch it and hold nothing of it: by its first page.
        let first = PageId::new(segment.0, 0);
        let held = self.serve.children.directory.pages_of(segment).into_iter();
        let pages: BTreeSet<PageId> = held.chain([first]).collect();
        let ended = pages.into_iter().map(|page| PageChange {
            page,
            slots: PageSlots::Whole,
        });
        ended.collect()
    }

    /// The promise itself comes as a heartbeat: it is for all that are below the child.
    fn tell_watermark(&self, edge: EdgeId, call: CallId, outbox: &mut Outbox) {
        let home = self.serve.home;
        let watermark = self.serve.promised();
        outbox.down(
            edge,
            Down::Heartbeat(message::Heartbeat {
                home,
                position: self.serve.log.durable(),
                watermark,
            }),
        );
        let result = Ok(CallResponse::Watermark(watermark));
        outbox.down(edge, responses::call_result(home, call, result));
    }
}
