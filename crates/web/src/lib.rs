//! A reverse proxy whose cache is never stale: before each hit it looks whether data behind the stored answer have changed.

#![forbid(unsafe_code)]

mod clock;
mod postgres;
mod proxy;
mod random;
mod recipe;
mod route;
mod template;

pub use postgres::{
    Deed, Found, GoingLive, Health, Look, Names, Numbers, Patience, Postgres, PostgresError,
    Question, Task, Watched, keep, leaves_after_ms, watch_over,
};
pub use proxy::{
    Asked, Cache, Dependencies, Filling, Moment, Proxy, ProxyError, Step, Waiting, Weight, serve,
};
pub use recipe::{Recipe, RecipeError, Rests, Route, Table};
pub use route::{Pattern, PatternError};
pub use template::{Template, TemplateError};
