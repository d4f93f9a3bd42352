//! Logs, to standard error.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use crate::config::{ConfigError, LogConfig, LogFormat};

/// Sends this process's logs to standard error. Once for a process: the first one stays.
///
/// # Errors
///
/// [`ConfigError::Value`] if the level is none.
pub fn init_logs(config: &LogConfig) -> Result<(), ConfigError> {
    let filter = filter(&config.level)?;
    // No colours, and below no records of the crate `log`: neither may depend on the features that another crate of the
    // build asks for.
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(std::io::stderr);
    let layer = match config.format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    // A test or an embedding program that has set up logs before keeps them.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// What is written to the logs. A word alone is a level, and never a part of the program: a misspelt level would silence all.
fn filter(level: &str) -> Result<Targets, ConfigError> {
    let wrong = |why: String| ConfigError::Value {
        key: "log.level",
        why: format!(
            "{why}: write error, warn, info, debug, trace or off; of single parts, thorp_net=debug"
        ),
    };
    let mut words = level.split(',').map(str::trim);
    let misspelt = words.find(|word| !word.contains('=') && word.parse::<LevelFilter>().is_err());
    match misspelt {
        Some(word) => Err(wrong(format!("{word:?} is no level"))),
        None => level.parse().map_err(|error| wrong(format!("{error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_level_is_refused() {
        for good in [
            "info",
            "WARN",
            "off",
            "info,thorp_net=debug",
            "thorp_net=trace",
        ] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["wran", "loud", "info,thorp_net", "thorp_net=wran"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
