//! A site without a server of its own: its members carry the redirector (rule 13).
//!
//! Every member of such a site runs a redirector beside itself. It listens from the start and rests until the first
//! neighbour comes. No member decides which of them is the site. All members have one list, and each joins the first of
//! it that answers. So there is no election, and members that see different neighbours are two sites for a while.

mod config;
mod redirector;
mod site;

pub use config::{HEAL_EVERY, SiteOfMembers};
pub(crate) use site::{Edges, EmbeddedSite};
