//! Durable storage behind the storage interface of `thorp-model`.
//!
//! [`Store`] keeps the tables of one home in a directory, on the embedded
//! engine `fjall`, which nothing outside this crate gets to see. [`Committer`]
//! is the one thread that commits. [`check`] walks a store without changing it.
//!
//! # What lies in the directory
//!
//! | name           | what it is                                                            |
//! |----------------|-----------------------------------------------------------------------|
//! | `thorp-store`  | the marker: one line with format version, engine and checksum         |
//! | `thorp-lock`   | locked while a process has the store open                             |
//! | `thorp-note`   | the number of the last acknowledged group, synced when it is made only |
//! | `thorp-origin` | empty: a copy of the directory has it with another inode number        |
//! | `thorp-ballast` | 1 MiB that is given up when the volume is full                          |
//! | `thorp-engine` | the engine's files                                                    |
//! | `thorp-making` | an engine that was not finished when its making was cut short         |
//!
//! The directory's mode is 0700. One that lets others in, as those of earlier builds did, is closed
//! when it is opened.
//!
//! # What makes a commit durable
//!
//! All batches that have gathered become one *group*: one batch of the engine,
//! appended to its journal and synced with `fdatasync` before it becomes
//! visible to readers. Nothing more is needed: the journal's size is set when
//! it is made, and synced with the directory. `fdatasync` also writes what is
//! needed to find newly written blocks. Every group carries its number and the
//! store's usage as its first record.
//!
//! The engine gives all changes of a batch one sequence number, so two changes
//! of one key in one batch would be in no order. A group is therefore folded
//! to the last change of each key before it is written.
//!
//! # What happens when the disk is full
//!
//! Tried on a small volume that was filled by another program (the ignored
//! test `full_disk` does it again):
//!
//! - The engine takes no writes after a failed one; it must be dropped and
//!   opened again. Reads still work.
//! - Every acknowledged commit survives.
//! - The failed group **can reappear** after opening: the part that fitted is in
//!   the journal, the rest in a buffer that is written when the engine is
//!   dropped, which works if there is space again by then. It is whole or
//!   absent, never a part.
//! - If a background thread runs out of space while writing out a table, all
//!   later commits are refused until the store is opened again. The engine
//!   may hold back a commit at that moment, because too many tables wait. By its
//!   source, that commit would never return; it was not seen to happen.
//!
//! So an error of the engine while writing is always `Broken`, never `Full`. To
//! make that rare, a group is refused as `Full` *before anything is written*.
//! That happens when the volume has little space left (see
//! [`Options::disk_reserve_bytes`]), or when the store would outgrow its limit
//! (see [`Options::limit_bytes`]).
//!
//! # How a store keeps small on a small volume
//!
//! A group leaves alone on the volume what the engine may still write. That is the memory that waits to be written out, twice,
//! and two compactions. Each of these is as large as the table that it rewrites (416 MiB at most). New data leaves alone a
//! share for removals, too, and as much as the home has still to install in pages.
//!
//! The engine gives room back by its own measures: a journal when it has 64 MB, a table with deleted records when enough new
//! ones come. So the store does it before the volume is full:
//!
//! - When more waits in memory than a sixteenth of the volume (1 to 64 MiB), the largest tables are written out.
//! - When journals take more than an eighth of the volume (2 to 512 MiB), all memory is written out, and the engine is
//!   closed and opened again with empty journals. Readers wait for some milliseconds.
//! - [`Store::reclaim`], which a home calls when it is full, rewrites tables of which a sixteenth was deleted or written
//!   over, and empties the journals.
//!
//! On volumes of 24 to 300 MiB a store holds data of 28 to 40 % of the volume, each time that it is filled (the test
//! `volumes`).
//!
//! # What the engine does with a damaged journal, and what is done about it
//!
//! Opening, the engine cuts a journal off at the first entry that it cannot
//! read. It says nothing, even if acknowledged commits follow. And it refuses
//! to open when the last batch is there but does not have the right checksum,
//! though a power failure in the middle of a write leaves just that. Therefore
//! the journals are read before the engine sees them. What ends in a group
//! that was never acknowledged is cut off there; what lacks an acknowledged
//! group is refused, unchanged. `thorp-note` tells the two apart. It survives
//! the end of the process. After a power failure it may be some seconds old:
//! damage to the last groups is then taken for a write that was cut short.
//!
//! Nor does the engine compare its manifests with the checksums it keeps for them: a flipped
//! bit there made it give out overwritten values. They are compared before each opening.
//!
//! # Whether a start continues the newest history (rule R9)
//!
//! A store has a [`History`] beside its tables: its incarnation, the lives of its home with their ends, the key for
//! receipts, and whether it is *closed*. A start without `thorp-note` has no proof. Neither has one in a directory whose
//! `thorp-origin` is another file than before. The store closes then, and stays closed until an operator says how it goes on
//! ([`Opening`]). What closed means is its home's matter: a store takes reads and commits all the same.
//!
//! # Settings
//!
//! - Values are not separated from keys. It would save rewriting pages in
//!   compactions. But that part of the engine had errors lately that lost
//!   values, and a page is read in one block either way.
//! - One background thread: with more, the engine's first one spins while another
//!   compacts, and lost inserts were reported for more than one.
//! - A commit of two small records took 214 us, where a bare append with
//!   `fdatasync` took 187 us. A page read took 4 to 12 us, and 160 MiB of memory
//!   were the most (the example `cost`, on a small virtual machine with a busy
//!   neighbour).
//! - Memory: the cache, and 4 to 16 MiB for each of six tables (a few times
//!   that while the background thread lags behind). Journals take up to about
//!   200 MiB on disk beside the tables, or an eighth of a small volume.

mod access;
mod ballast;
mod check;
mod committer;
mod dir;
mod engine;
mod error;
mod history;
mod journal;
mod manifest;
mod marker;
mod note;
mod older_log;
mod opening;
mod options;
mod origin;
mod outside;
mod plan;
mod record;
mod salvage;
mod slot;
mod space;
mod store;
mod update_log;
mod upkeep;
mod usage;
mod volume;

pub use access::{Access, READABLE_LISTED_MAX, readable_by_others};
pub use check::{Damage, Report, TableReport, check};
pub use committer::{Committer, CommitterLimits, Refused, Stats, Why};
pub use error::OpenError;
pub use history::{History, Opening, Reopening};
pub use options::Options;
pub use outside::{Room, format_of, is_in_use};
pub use salvage::{Lost, Salvaged, salvage};
pub use store::Store;
pub use thorp_model::people_bytes;
pub use update_log::{LogError, NotDurable, UpdateLog};
pub use usage::{TableUsage, Usage};
pub use volume::Volume;
