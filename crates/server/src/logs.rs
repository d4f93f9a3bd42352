//! Logs, to standard error.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{ConfigError, LogConfig, LogFormat};

/// Sends this process's logs to standard error. Once for a process: the first one stays.
///
/// # Errors
///
/// [`ConfigError::Value`] if the level is none.
pub fn init_logs(config: &LogConfig) -> Result<(), ConfigError> {
    let filter: Targets = config.level.parse().map_err(|error| ConfigError::Value {
        key: "log.level",
        why: format!("{error}: write error, warn, info, debug or trace"),
    })?;
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match config.format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    // Who has set up logs before us, a test or an embedding program, keeps them.
    let _ = tracing_subscriber::registry()
        .with(layer.with_filter(filter))
        .try_init();
    Ok(())
}
