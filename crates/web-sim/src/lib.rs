//! The web cache from one seed: keeper, proxies, watchdog, origin, and a database with the visibility gap.
//!
//! The simulator runs the code that ships: `thorp_versions` (tables, keeper), and from `thorp_web` the coherent cache, going live, beats
//! and the watchdog's patience. What is simulated are processes, messages, clocks and the database. A process may hang between any two
//! loads or stores of a table: the cells of the simulator let the world go on there.
//!
//! | part | what it is |
//! |---|---|
//! | `world` | the clock, the queue of events, who hangs |
//! | `cells` | tables, with a seam before each load and store |
//! | `database`, `commits` | commits that wait for their standby, and are visible some time after it |
//! | `keeper`, `follower`, `watchdog`, `proxy`, `origin` | the processes |
//! | `keeper_host` and others | what there is on a machine; the world has them |
//! | `clients`, `updates`, `faults` | who writes and reads, and what goes wrong |
//! | `checker` | the promise |
//! | `run`, `campaign` | one seed, and many |
//! | `requests` | another world: requests are the source, and there is no database |

#![forbid(unsafe_code)]

mod campaign;
mod cells;
mod checker;
mod clients;
mod commits;
mod database;
mod digest;
mod faults;
mod follower;
mod follower_host;
mod keeper;
mod keeper_host;
mod origin;
mod pages;
mod plan;
mod proxy;
mod proxy_host;
mod requests;
mod run;
mod time;
mod updates;
mod watchdog;
mod watchdog_host;
mod world;

pub use campaign::{Campaign, Catch, OF_REQUESTS, catch, run, run_seeds};
pub use checker::Counts;
pub use plan::Without;
pub use run::{Options, Story};
pub use thorp_versions::{
    Broadcast, Bug, Cells, Event, Follower, FollowerId, HomeLedger, Keeper, Ledger, Place, Reader,
    Step, Store, ToFollower, UpdateId, Word, Writable, Writer, plant,
};
pub use thorp_web::{
    Asked, Cache, Connection, Deed, Dependencies, Filling, Lives, Names, Next, OpenUpdates,
    Page as Book, ToKeeper, Todo, Waiting, Weight, counts, may_leave,
};
pub use time::At;
