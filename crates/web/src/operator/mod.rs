//! What the operator sees of a running proxy: figures, what is stored and why, what was dropped and by which update.
//!
//! | part | what it does |
//! |---|---|
//! | `watched` | looks at a proxy and its keeper, and makes documents |
//! | `document` | what there is to say, as JSON |
//! | `metrics` | the figures as Prometheus reads them |
//! | `page` | the same for a browser |
//! | `html` | text that a browser cannot take for anything else |
//! | `address` | an address as a person writes it, and the part of a question behind `?` |
//! | `port` | the listener. Clients never reach it: it is on the loopback interface |

mod address;
mod document;
mod html;
mod metrics;
mod moment;
mod page;
mod port;
mod watched;

pub use address::Address;
pub use document::{
    AtAddress, Audited, DifferenceLine, DropLine, EntryLine, HomeLine, KeyLine, ProxyStatus,
    Reloads, SourceKind, Stored, Total, UpdateLine,
};
pub use port::{OperatorPort, PortError};
pub use watched::Watched as WatchedProxy;
