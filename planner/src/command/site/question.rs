//! What is asked: parameters, and what stands for those that nobody told.

use crate::Invalid;
use crate::command::failure::{Code, Failure};
use crate::command::given::{Given, Usual, refused};
use crate::site::{BUDDY_CACHE, Cold, Costs, Hot, Site, THORP};
use clap::Args;
use serde::Serialize;

#[derive(Args, Debug, Default, Serialize)]
pub(super) struct Parameters {
    /// Members at the site that want the same pages
    #[arg(long, value_name = "N")]
    pub(super) members: Option<f64>,
    /// Round trip between the site and the home
    #[arg(long, value_name = "MS")]
    pub(super) round_trip_ms: Option<f64>,
    /// Pages that each member wants
    #[arg(long, value_name = "N")]
    pub(super) pages: Option<f64>,
    /// Pages that come with one round trip (1: one by one; more: fetched ahead)
    #[arg(long, value_name = "N")]
    pub(super) pages_per_wait: Option<f64>,
    /// Transactions in which it reads them
    #[arg(long, value_name = "N")]
    pub(super) transactions: Option<f64>,
    /// A transaction's own work
    #[arg(long, value_name = "MS")]
    pub(super) compute_ms: Option<f64>,
    /// Later: pages that a warm transaction finds changed
    #[arg(long, value_name = "N")]
    pub(super) misses: Option<f64>,
    /// Later: members that ask for a page between two of its changes
    #[arg(long, value_name = "N")]
    pub(super) sharing: Option<f64>,
    /// Whose costs beside the round trip: thorp, or buddycache (2004)
    #[arg(long, value_name = "NAME")]
    pub(super) system: Option<String>,
    /// A page from the home costs beside the round trip
    #[arg(long, value_name = "MS")]
    pub(super) fetch_ms: Option<f64>,
    /// The same through the site
    #[arg(long, value_name = "MS")]
    pub(super) fetch_by_site_ms: Option<f64>,
    /// A page from a neighbour
    #[arg(long, value_name = "MS")]
    pub(super) redirect_ms: Option<f64>,
    /// A commit costs beside the round trip
    #[arg(long, value_name = "MS")]
    pub(super) commit_ms: Option<f64>,
    /// The same through the site
    #[arg(long, value_name = "MS")]
    pub(super) commit_by_site_ms: Option<f64>,
}

pub(super) struct Question {
    pub(super) site: Site,
    pub(super) cold: Cold,
    pub(super) hot: Hot,
}

impl Question {
    pub(super) fn of(given: &mut Given) -> Result<Self, Failure> {
        let members = given.number_or("members", "members at the site", "", 5.0, "a small site");
        let round_trip_ms = given.number_or(
            "round_trip_ms",
            "round trip to the home",
            "ms",
            40.0,
            "within a continent",
        );
        let system = given.word(&Usual {
            key: "system",
            words: "whose costs",
            unit: "",
            value: "thorp",
            why: "what is planned",
        });
        let (costs, ahead, whose) = match &*system {
            "thorp" => (
                THORP,
                7.0,
                "Thorp, measured on one machine: docs/performance.md",
            ),
            "buddycache" => (BUDDY_CACHE, 1.0, "BuddyCache 2004, tables 1 and 2"),
            other => {
                let what = format!("--system is thorp or buddycache, not {other:?}");
                return Err(
                    Failure::new(what, "each cost has a flag of its own, too").with(Code::Usage)
                );
            }
        };
        let costs = Costs {
            fetch_ms: given.number_or(
                "fetch_ms",
                "a page from the home, beside the round trip",
                "ms",
                costs.fetch_ms,
                whose,
            ),
            fetch_by_site_ms: given.number_or(
                "fetch_by_site_ms",
                "the same through the site",
                "ms",
                costs.fetch_by_site_ms,
                whose,
            ),
            redirect_ms: given.number_or(
                "redirect_ms",
                "a page from a neighbour",
                "ms",
                costs.redirect_ms,
                whose,
            ),
            commit_ms: given.number_or(
                "commit_ms",
                "a commit, beside the round trip",
                "ms",
                costs.commit_ms,
                whose,
            ),
            commit_by_site_ms: given.number_or(
                "commit_by_site_ms",
                "the same through the site",
                "ms",
                costs.commit_by_site_ms,
                whose,
            ),
        };
        let compute_ms = given.number_or(
            "compute_ms",
            "a transaction's own work",
            "ms",
            5.0,
            "short transactions",
        );
        let pages = given.number_or("pages", "pages that each member wants", "", 500.0, "4 MB");
        let cold = Cold {
            pages,
            pages_per_wait: given.number_or(
                "pages_per_wait",
                "pages that come with one round trip",
                "",
                // No more than there are.
                f64::min(ahead, pages.max(1.0)),
                whose,
            ),
            transactions: given.number_or(
                "transactions",
                "transactions in which it reads them",
                "",
                (pages / 50.0).ceil().max(1.0),
                "50 pages each",
            ),
            compute_ms,
        };
        let hot = Hot {
            misses: given.number_or(
                "misses",
                "pages that a warm transaction finds changed",
                "",
                2.0,
                "somebody changes what others read",
            ),
            sharing: given.number_or(
                "sharing",
                "members that ask for a page between two of its changes",
                "",
                members.max(1.0),
                "all of them",
            ),
            compute_ms,
        };
        let site = Site {
            members,
            round_trip_ms,
            costs,
        };
        for (name, count) in [
            ("members", members),
            ("pages", cold.pages),
            ("transactions", cold.transactions),
        ] {
            whole(name, count).map_err(|invalid| refused(&invalid))?;
        }
        Ok(Question { site, cold, hot })
    }
}

fn whole(name: &'static str, count: f64) -> Result<(), Invalid> {
    match count.is_finite() && count.fract() != 0.0 {
        true => Err(Invalid::new(
            name,
            format!("must be a whole number, not {count}"),
        )),
        // What is no number is refused where the model looks at it.
        false => Ok(()),
    }
}
