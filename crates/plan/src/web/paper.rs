//! placeholder
use crate::report::Section;
/// nothing yet
pub fn paper() -> Vec<Section> {
    Vec::new()
}
