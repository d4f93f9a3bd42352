//! The home's own work: it installs pages, trims the log and removes segments.

use crate::home::Outbox;
use crate::home::commit::parking::Parking;
use crate::home::log::Log;
use crate::home::pages::install::Installer;
use crate::home::pages::remove::Remover;
use crate::home::tables::Tables;

/// Appends the home's own batches, and keeps the page memory within its limit.
///
/// Installer and remover note the mark under which the log appends what they return. They wait for that mark to become
/// durable.
#[derive(Debug)]
pub(super) struct Housekeeping<'a> {
    pub(super) log: &'a mut Log,
    pub(super) tables: &'a mut Tables,
    pub(super) installer: &'a mut Installer,
    pub(super) remover: &'a mut Remover,
    pub(super) parking: &'a Parking,
}

impl Housekeeping<'_> {
    /// Does what is due: at most one batch of each kind.
    pub(super) fn run(&mut self, outbox: &mut Outbox) {
        let Tables {
            pages, segments, ..
        } = &mut *self.tables;
        let (installer, log) = (&mut *self.installer, &mut *self.log);
        let (durable, mark) = (log.durable(), log.next_mark());
        let hurries = log.wants_space();
        if log.may_install() {
            let ops = installer.install(pages, (durable, hurries), mark, outbox);
            if !ops.is_empty() {
                log.append_own_work(mark, ops, outbox);
            }
            let mark = log.next_mark();
            let ops = installer.trim(pages, (durable, hurries), mark);
            if !ops.is_empty() {
                log.append_own_work(mark, ops, outbox);
            }
        }
        let (done, mark) = (log.durable_mark(), log.next_mark());
        if let Some(ops) = self.remover.remove(segments, pages, done, mark) {
            log.append_own_work(mark, ops, outbox);
        }
        // After the installation: what was loaded for it would go before it is used.
        let (parking, votes) = (self.parking, &self.tables.votes);
        let needed = |page| installer.needs(page) || parking.needs(page) || votes.needs(page);
        self.tables.pages.shrink(needed);
    }
}
