//! The member's page cache: immutable page images read without locks.
//!
//! A member process has ONE writer, the thread that runs the member's state
//! machine; it calls [`Cache::publish`]. Many application threads run
//! transactions; each owns a [`ReadSet`] and writes nothing that another thread
//! reads, except that it holds and marks a page on its first read of it.
//!
//! # The protocol
//!
//! For each home there are three things:
//!
//! ```text
//!  changes   a ring of (position, page, slots) and (position, page, evicted); an entry's index names a *cut*:
//!            the state after all entries before it
//!  pages     page -> (image, installed): the image tells of all entries before the cut `installed`, of none after it
//!  marks     a ring of (settled, position, watermark, heard): the cut `settled` IS the home at `position`
//! ```
//!
//! The writer takes a publication in the order *changes, pages, mark*. So:
//!
//! - whoever finds an image finds the changes it tells of: `installed` is a cut;
//! - whoever finds a mark finds the pages of it: an image loaded after a mark
//!   tells of everything before the mark's cut.
//!
//! A reader loads the newest mark FIRST and then the image (rule 4, trap 20).
//! The image is then right at every cut from the later of `settled` and
//! `installed` on, until an entry at or after that cut names its page. The
//! reader brings all it has read to one common cut by going through the entries
//! in between: an entry that names a slot read dooms the transaction, an entry
//! that names another slot of a page held makes that slot *stale*: it is never
//! served from the held image. So what a transaction sees of one home is always
//! the home as of one cut, also in a transaction that is doomed later (opacity).
//! If nothing was published since the last look, that costs one atomic load.
//!
//! When a page that was read is evicted at position `e`, nothing later will be
//! heard of it (rule 2, trap 1). The transaction then stands still at `e`: it
//! takes no notice of later changes, reads no image with a later version, and
//! its evidence is `e`. A writer is judged by the home as of `e`; a read-only
//! transaction is serialized there.
//!
//! A transaction that only reads ([`ReadSet::only_reads`]) stands still, too, when what it has read
//! is changed: at the newest mark before that change, as if it had ended there. It is shown *old
//! images* of the pages that were changed since; the writer keeps them for a while, when it
//! replaces them, before it does. An image is right from its version on, and up to the last mark
//! before the change. Whoever has read behind a change cannot write any more (rule 5).
//!
//! A stream that was broken and is resynchronised (rule 13) goes on in the same cache: a page
//! that changed meanwhile is *missed*, which is a change of all that anybody read there, at no known position, so the last
//! mark before it is the old stream's end; and whoever watches is told that something is lost.
//!
//! Beside all that lies the *tentative view* (rule C6): updates that their homes have not executed. Only sessions that ask
//! for it look there. A publication that takes an update out of the view puts its effect into the images at the same moment:
//! a reader finds the same version of the view before and after it has read an image, or reads again.
//!
//! Transactions over several homes see each home at a cut of its own; that
//! these fit together is settled at commit (rules 5 and 10).

mod cache;
mod change;
mod error;
mod home;
mod home_reads;
pub mod limits;
mod mark;
mod old;
mod read_set;
mod ring;
mod sync;
mod table;
mod tentative;
mod watch;

#[cfg(all(test, feature = "loom"))]
mod loom_tests;

pub use cache::{Cache, Chosen, Standing, Totals};
pub use error::{Doomed, ReadError};
pub use read_set::{ReadSet, SlotRead};
pub use tentative::{Object, Overlay};
pub use watch::{Changes, Cursor};
