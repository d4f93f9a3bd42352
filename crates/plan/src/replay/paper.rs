//! placeholder
use crate::report::Section;
use std::path::Path;
/// placeholder
pub fn paper(_data: Option<&Path>) -> Vec<Section> {
    Vec::new()
}
