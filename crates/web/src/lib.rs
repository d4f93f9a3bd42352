//! A reverse proxy whose cache is never stale: before each hit it looks whether data behind the stored answer have changed.

#![forbid(unsafe_code)]

mod clock;
mod follow;
mod home_fields;
mod homes;
mod postgres;
mod proxy;
mod random;
mod recipe;
mod route;
mod source;
mod status;
mod table;
mod template;

pub use follow::{Start, follow, follow_home};
pub use homes::{AtHomes, HOMES_MAX, Homes, HomesError};
pub use postgres::{
    Deed, Finding, Found, GoingLive, Health, Look, Names, Numbers, Patience, Plan, Postgres,
    PostgresError, Question, Report, SetUp, Severity, Step, Task, Watched, check, keep,
    leaves_after_ms, watch_over,
};
pub use proxy::{
    Asked, Cache, Dependencies, Filling, Moment, Next, Proxy, ProxyError, Tls, TlsError, Waiting,
    Weight, serve, serve_tls,
};
pub use random::number as random_id;
pub use recipe::{Recipe, RecipeError, Rests, Route, Table};
pub use route::{Pattern, PatternError};
pub use source::{Said, Source};
pub use status::{Status, write_status};
pub use table::table_of;
pub use template::{Template, TemplateError};
