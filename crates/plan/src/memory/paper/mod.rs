//! Table 3.1 and figures 3.2, 3.3, 3.4 and 3.8, as far as the text tells what they show.

use crate::report::Section;

/// What the thesis says, what the model says, and with what.
pub fn paper() -> Vec<Section> {
    Vec::new()
}
