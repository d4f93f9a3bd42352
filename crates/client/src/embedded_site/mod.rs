//! A site without a server of its own: its members carry the redirector (rule 13).
//!
//! Every member of such a site runs a redirector beside itself, which listens from the start and rests until the first
//! neighbour comes. Which of them is the site is nobody's decision: all members have one list, and each joins the first of it
//! that answers. So there is nothing to elect, and members that see different things are two sites for a while.

mod config;
mod redirector;
mod site;

pub use config::{HEAL_EVERY, SiteOfMembers};
pub(crate) use site::{Edges, EmbeddedSite};
