//! Limits that the page of limits names. Each is explained where it is used.

pub use crate::key_field::{KEY_FIELD_BYTES_MAX, KEYS_OF_ANSWER_MAX};
pub use crate::proxy::{UPLOAD_BYTES_MAX, UPLOADS_BYTES_MAX};
pub use crate::requests::limits::{
    CALLS_OPEN_MAX, FOLLOWED_MAX, KEY_BYTES_OF_UPDATE_MAX, KEYS_OF_CALL_MAX, LINGERING_MAX,
    PROXIES_MAX, UPDATES_OF_PROXY_MAX,
};
