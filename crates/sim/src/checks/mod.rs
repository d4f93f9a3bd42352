//! What must hold, each checker by itself.

pub mod bounds;
pub mod cache;
pub mod chains;
pub mod commits;
pub mod directory;
pub mod end;
pub mod helpers;
pub mod joint;
pub mod pace;
pub mod promises;
pub mod reads;
pub mod rights;
pub mod silence;
pub mod told;
pub mod validity;
pub mod watches;
