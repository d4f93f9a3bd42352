//! A reverse proxy whose cache is never stale: before each hit it looks whether data behind the stored answer have changed.

#![forbid(unsafe_code)]

mod any_source;
mod clock;
mod follow;
mod home_fields;
mod homes;
mod journal;
mod key_field;
mod limits;
mod noise;
mod operator;
mod postgres;
mod proxy;
mod random;
mod recipe;
mod requests;
mod route;
mod source;
mod status;
mod table;
mod template;

pub use any_source::{AnyEvidence, AnySource};
pub use follow::{Start, follow, follow_home};
pub use homes::{AtHomes, HOMES_MAX, Homes, HomesError};
pub use journal::{Cause, Journal, Noted, Update as NotedUpdate};
pub use key_field::KeyField;
pub use limits::{
    CALLS_OPEN_MAX, FOLLOWED_MAX, KEY_BYTES_OF_UPDATE_MAX, KEY_FIELD_BYTES_MAX, KEYS_OF_ANSWER_MAX,
    KEYS_OF_CALL_MAX, LINGERING_MAX, PROXIES_MAX, UPDATES_OF_PROXY_MAX, UPLOAD_BYTES_MAX,
    UPLOADS_BYTES_MAX,
};
pub use noise::{Noise, NoiseError};
pub use operator::{
    Address, AtAddress, Audited, DifferenceLine, DropLine, EntryLine, HomeLine, KeyLine,
    OperatorPort, PortError, ProxyStatus, Reloads, SourceKind, Stored, Total, UpdateLine,
    WatchedProxy,
};
pub use postgres::{
    Deed, Finding, Found, GoingLive, Health, Look, Names, Numbers, Patience, Plan, Postgres,
    PostgresError, Question, Report, SetUp, Severity, Step, Task, Watched, check, keep,
    leaves_after_ms, watch_over,
};
pub use proxy::{
    Asked, Cache, Dependencies, Door, Dropped, Filling, Missed, Moment, Next, Proxy, ProxyError,
    Seen, Share, ShareError, Tls, TlsError, Waiting, Weight, Why, ends_update, serve, serve_door,
};
pub use random::number as random_id;
pub use recipe::{Recipe, RecipeError, Rests, Route, Table};
pub use requests::{
    ByHand, Calls, CallsError, Connection, HandError, KeepError, Lives, NotBegun, OpenUpdates,
    Page, REQUEST_LIFE, Requests, ShownKeys, ShownUpdate, ShownUpdates, ToKeeper, ToProxy, Todo,
    Update, counts, end_by_hand, keep_requests, may_leave, open_updates,
};
pub use route::{Pattern, PatternError};
pub use source::{Said, Source};
pub use status::{Status, read_updates, write_status};
pub use table::{table_of, table_of_requests, terms_of_requests};
pub use template::{Template, TemplateError};
