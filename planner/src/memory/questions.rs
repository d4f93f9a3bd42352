//! How many are needed, how many can be served.

use super::cluster::Cluster;
use super::network::Kind;
use crate::invalid::{Invalid, fraction, positive};

/// The least number of servers among which requests are balanced so that a page takes no longer than this; none if that many
/// servers as anybody could have do not help: the time to serve a page is above the bound, or local servers are too busy.
///
/// # Errors
///
/// [`Invalid`] parameters.
pub fn servers_needed(cluster: &Cluster, response_s: f64) -> Result<Option<u32>, Invalid> {
    positive("response_s", response_s)?;
    let is_enough = |servers: u32| {
        let cluster = Cluster {
            servers,
            hottest_share: None,
            ..*cluster
        };
        Ok(cluster.solve()?.response_s() <= response_s)
    };
    least_servers(is_enough)
}

/// The least number of servers that is enough, where more are enough as well; none if that many as anybody could have are not.
///
/// # Errors
///
/// What asking whether they are enough returns.
pub fn least_servers(
    is_enough: impl Fn(u32) -> Result<bool, Invalid>,
) -> Result<Option<u32>, Invalid> {
    least(1, SERVERS_MAX, is_enough)
}

/// The least number of machines with which a page takes as long as this or longer: with the time of a disk, from when on the
/// servers are no better than it. None if that is beyond the machines of any cluster.
///
/// # Errors
///
/// [`Invalid`] parameters.
pub fn machines_until(cluster: &Cluster, response_s: f64) -> Result<Option<u32>, Invalid> {
    positive("response_s", response_s)?;
    let is_reached = |machines: u32| {
        let cluster = Cluster {
            machines,
            ..*cluster
        };
        Ok(cluster.solve()?.response_s() >= response_s)
    };
    least(1, MACHINES_MAX, is_reached)
}

/// The largest part of all requests that local servers can take with no more than a part of their time.
///
/// # Errors
///
/// [`Invalid`] parameters; no local servers.
pub fn local_share_max(cluster: &Cluster, utilisation_max: f64) -> Result<f64, Invalid> {
    fraction("utilisation_max", utilisation_max)?;
    if cluster.local_servers == 0 {
        return Err(Invalid::new("local_servers", "must be 1 or more"));
    }
    let used = |local_share: f64| {
        let cluster = Cluster {
            local_share,
            ..*cluster
        };
        Ok(cluster.solve()?.utilisation_max(Kind::Local))
    };
    let (mut low, mut high) = (0.0, 1.0);
    if used(high)? <= utilisation_max {
        return Ok(high);
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        match used(middle)? <= utilisation_max {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(low)
}

/// The least number for which something holds that, once it does, holds for all that are larger.
fn least(
    from: u32,
    to: u32,
    holds: impl Fn(u32) -> Result<bool, Invalid>,
) -> Result<Option<u32>, Invalid> {
    let (mut below, mut at) = (from - 1, from);
    while !holds(at)? {
        if at == to {
            return Ok(None);
        }
        (below, at) = (at, at.saturating_mul(2).min(to));
    }
    while at - below > 1 {
        let middle = below + (at - below) / 2;
        match holds(middle)? {
            true => at = middle,
            false => below = middle,
        }
    }
    Ok(Some(at))
}

const SERVERS_MAX: u32 = 1_000_000;

const MACHINES_MAX: u32 = 1_000_000;

/// Halves an interval of 1 to below 1e-9.
const HALVINGS: u32 = 30;
