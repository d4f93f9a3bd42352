//! A reverse proxy whose cache is never stale: before each hit it looks whether data behind the stored answer have changed.

#![forbid(unsafe_code)]

mod clock;
mod follow;
mod journal;
mod noise;
mod operator;
mod postgres;
mod proxy;
mod random;
mod recipe;
mod route;
mod status;
mod table;
mod template;

pub use follow::{Start, follow};
pub use journal::{Journal, Noted, Update};
pub use noise::{Noise, NoiseError};
pub use operator::{
    Address, AtAddress, Audited, DifferenceLine, DropLine, EntryLine, KeyLine, OperatorPort,
    PortError, ProxyStatus, Reloads, Stored, Total, UpdateLine, WatchedProxy,
};
pub use postgres::{
    Deed, Finding, Found, GoingLive, Health, Look, Names, Numbers, Patience, Plan, Postgres,
    PostgresError, Question, Report, SetUp, Severity, Step, Task, Watched, check, keep,
    leaves_after_ms, watch_over,
};
pub use proxy::{
    Asked, Cache, Dependencies, Door, Dropped, Filling, Missed, Moment, Next, Proxy, ProxyError,
    Seen, Share, ShareError, Tls, TlsError, Waiting, Weight, Why, serve, serve_door,
};
pub use random::number as random_id;
pub use recipe::{Recipe, RecipeError, Rests, Route, Table};
pub use route::{Pattern, PatternError};
pub use status::{Status, read_updates, write_status};
pub use table::table_of;
pub use template::{Template, TemplateError};
