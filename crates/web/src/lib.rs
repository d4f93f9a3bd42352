//! A reverse proxy whose cache is never stale: before each hit it looks whether data behind the stored answer have changed.

#![forbid(unsafe_code)]

mod clock;
mod follow;
mod key_field;
mod limits;
mod postgres;
mod proxy;
mod random;
mod recipe;
mod requests;
mod route;
mod status;
mod table;
mod template;

pub use follow::{Start, follow};
pub use key_field::KeyField;
pub use limits::{
    CALLS_OPEN_MAX, FOLLOWED_MAX, KEY_BYTES_OF_UPDATE_MAX, KEY_FIELD_BYTES_MAX, KEYS_OF_ANSWER_MAX,
    KEYS_OF_CALL_MAX, LINGERING_MAX, PROXIES_MAX, UPDATES_OF_PROXY_MAX, UPLOAD_BYTES_MAX,
    UPLOADS_BYTES_MAX,
};
pub use postgres::{
    Deed, Finding, Found, GoingLive, Health, Look, Names, Numbers, Patience, Plan, Postgres,
    PostgresError, Question, Report, SetUp, Severity, Step, Task, Watched, check, keep,
    leaves_after_ms, watch_over,
};
pub use proxy::{
    Asked, Cache, Dependencies, Filling, Moment, Next, Proxy, ProxyError, Tls, TlsError, Waiting,
    Weight, ends_update, serve, serve_tls,
};
pub use random::number as random_id;
pub use recipe::{Recipe, RecipeError, Rests, Route, Table};
pub use requests::{
    ByHand, Calls, CallsError, Connection, HandError, KeepError, Lives, NotBegun, OpenUpdates,
    Page, REQUEST_LIFE, Requests, ShownKeys, ShownUpdate, ShownUpdates, ToKeeper, ToProxy, Todo,
    Update, counts, end_by_hand, keep_requests, may_leave, open_updates,
};
pub use route::{Pattern, PatternError};
pub use status::{Status, write_status};
pub use table::{table_of, table_of_requests, terms_of_requests};
pub use template::{Template, TemplateError};
