//! The village of `thorp dev`, as other commands know it.

use crate::text::pasted;
use thorp_client::Context;

/// The file in its directory that keeps its ports.
pub(super) const PORTS_FILE: &str = "dev-ports";

/// What starts the village of a context again, if `thorp dev` has run it on this machine.
pub(crate) fn restart(context: &Context) -> Option<String> {
    let dir = context.authority.as_ref()?.parent()?;
    let is_of_dev = dir.join(PORTS_FILE).is_file();
    is_of_dev.then(|| format!("to run that village: `thorp dev --dir {}`", pasted(dir)))
}
