//! Wide-area networks on one machine.
//!
//! ```text
//!  namespace home          the lab                       namespace site
//!  ┌──────────────┐   ┌──────────────────────────┐   ┌──────────────┐
//!  │ thorp home   │   │ carrier, one thread:     │   │ thorp site   │
//!  │ kernel TCP   │   │   router: rate, loss,    │   │ kernel TCP   │
//!  │ device wan0 ─┼──►│   delay, jitter ─► queue ├──►┼─ device wan0 │
//!  └──────────────┘   └──────────────────────────┘   └──────────────┘
//! ```
//!
//! [`Plan`] says who is there, [`Wan`] makes it, [`Namespace::command`] starts a program at a spoke, and [`Controls`] changes and
//! asks while it runs.

mod carrier;
mod control;
mod controls;
mod delay_queue;
mod lease;
mod line;
mod link;
mod loss;
mod namespace;
mod packet;
mod plan;
mod router;
mod statistics;
mod tun;
mod tuning;
mod wan;

pub use control::{COMMANDS, ControlSocket, say};
pub use controls::Controls;
pub use lease::sweep;
pub use link::{Link, Path};
pub use namespace::Namespace;
pub use plan::{Pair, Plan, Spoke};
pub use statistics::{PairStatistics, Punctuality, Statistics};
pub use tuning::Tuning;
pub use wan::Wan;
