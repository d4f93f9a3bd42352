//! A keeper and the table that it writes, as one: what a call returns is stored by then.

use crate::cells::Writable;
use crate::keeper::{Action, Event, Keeper};
use crate::writer::Writer;

/// The open updates of a source, and their table.
#[derive(Debug)]
pub struct Ledger<C> {
    keeper: Keeper,
    writer: Writer<C>,
    beat_ms: u64,
    generation: u64,
}

impl<C: Writable> Ledger<C> {
    /// The ledger of this table. No update is open.
    pub fn new(writer: Writer<C>) -> Self {
        Ledger {
            keeper: Keeper::new(),
            writer,
            beat_ms: 0,
            generation: 0,
        }
    }

    /// The table may have missed an update (rule W8). No update is open in the new generation, and there is no beat.
    pub fn restart(&mut self, generation: u64) {
        self.beat_ms = 0;
        self.generation = generation;
        let sequence = self.writer.restart(generation, &[]);
        self.keeper.handle(Event::Restarted(sequence));
    }

    /// The table may have missed an update, and all that is open is known.
    pub fn renew(&mut self, generation: u64) {
        self.beat_ms = 0;
        self.generation = generation;
        let open = self.keeper.open_places();
        let sequence = self.writer.restart(generation, &open);
        self.keeper.handle(Event::Renewed(sequence));
    }

    /// Handles one event, and does to the table what is wanted: [`Action::Store`] and [`Action::Beat`] are done when they are returned.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        let actions = self.keeper.handle(event);
        for action in &actions {
            match action {
                Action::Store(store) => self.writer.store(store),
                Action::Beat(asked_ms) => {
                    self.beat_ms = *asked_ms;
                    self.writer.beat(*asked_ms);
                }
                Action::Acknowledge(_) | Action::Refuse(_) => {}
            }
        }
        actions
    }

    /// The time of the last beat in milliseconds; 0: there is none.
    pub fn beat_ms(&self) -> u64 {
        self.beat_ms
    }

    /// The generation that the caller gave last; 0: none.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Which updates are open.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }
}
