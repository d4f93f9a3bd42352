//! The log of a site: a member beside the redirector keeps updates of members that have none (rule C6).

use crate::failure::{Code, Failure};
use std::future::Future;
use thorp_client::{JoinConfig, Member};
use thorp_net::Address;
use thorp_server::SiteConfigFile;

/// The member that keeps the log of a site.
pub(super) struct LogKeeper(Member);

impl LogKeeper {
    /// Opens the log, and joins the site that listens there. None: the site has no log.
    pub(super) async fn start(
        config: &SiteConfigFile,
        addresses: &[Address],
    ) -> Result<Option<LogKeeper>, Failure> {
        let Some(identity) = &config.log_identity_dir else {
            return Ok(None);
        };
        let dir = config
            .log_dir()
            .map_err(|error| super::node::config_failure(&error))?;
        let at = addresses.first().map(ToString::to_string);
        let at = at.ok_or_else(|| {
            let todo = "give it one with --listen ADDR";
            Failure::new("a site with a log needs an address", todo).with(Code::Usage)
        })?;
        let keeper = JoinConfig::new(at)
            .identity(identity)
            .log(dir)
            .keeps_for_neighbours();
        Ok(Some(LogKeeper(Member::join_async(keeper).await?)))
    }

    /// Leaves the site. What its homes do not have stays in the log.
    async fn leave(self) {
        // It waits for the member's own thread.
        let _ = tokio::task::spawn_blocking(move || self.0.close()).await;
    }
}

/// Runs beside a site until it is told to end: with its log, if it has one. `ready` says that clients can come.
pub(super) async fn beside(
    (config, addresses): (&SiteConfigFile, &[Address]),
    ready: impl FnOnce() -> Result<(), Failure>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut shutdown = std::pin::pin!(shutdown);
    let keeper = tokio::select! {
        keeper = LogKeeper::start(config, addresses) => keeper?,
        () = &mut shutdown => return Ok(()),
    };
    ready()?;
    shutdown.await;
    if let Some(keeper) = keeper {
        keeper.leave().await;
    }
    Ok(())
}
