//! The paper's model of what a group saves (BuddyCache, section 6.1.1), with parameters measured in the same run.

/// What one client's work costs in one system, in seconds for each.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// A page from the home.
    pub fetch_s: f64,
    /// A page from a neighbour.
    pub redirect_s: f64,
    /// A transaction's commit.
    pub commit_s: f64,
    /// A transaction's own work.
    pub compute_s: f64,
}

/// One client's share of the workload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Model {
    /// Clients that want the same pages.
    pub clients: f64,
    /// Pages that each of them wants, once.
    pub pages: f64,
    /// Transactions that it commits meanwhile.
    pub transactions: f64,
}

impl Model {
    /// Equation 1: from cold, each client by itself.
    pub fn cold_base(&self, cost: &Cost) -> f64 {
        self.pages * cost.fetch_s + self.work(cost)
    }

    /// Equation 2: from cold, in a group. Of the k that want a page one gets it from the home.
    pub fn cold_group(&self, cost: &Cost) -> f64 {
        let first = 1.0 / self.clients;
        let page = first * cost.fetch_s + (1.0 - first) * cost.redirect_s;
        self.pages * page + self.work(cost)
    }

    fn work(&self, cost: &Cost) -> f64 {
        (cost.compute_s + cost.commit_s) * self.transactions
    }

    /// Equation 3: a warm transaction that misses so many pages because somebody changed them.
    pub fn stale_base(misses: f64, cost: &Cost) -> f64 {
        misses * cost.fetch_s + cost.compute_s + cost.commit_s
    }

    /// Equation 4: the same in a group of readers, of whom `sharing` want a page between two of its changes.
    pub fn stale_readers(misses: f64, sharing: f64, cost: &Cost) -> f64 {
        let first = 1.0 / sharing;
        let page = first * cost.fetch_s + (1.0 - first) * cost.redirect_s;
        misses * page + cost.compute_s + cost.commit_s
    }

    /// Equation 5: the same in the writer's group, where nothing is missed.
    pub fn stale_writers(cost: &Cost) -> f64 {
        cost.compute_s + cost.commit_s
    }
}

/// What was measured of one case: the value of a figure in the samples.
pub(crate) type Figures<'a> = &'a dyn Fn(&str) -> Option<f64>;

impl Cost {
    /// What one transaction of a case without a site cost, or one with a site that remembers nothing itself: then what came
    /// through the site came from the home.
    pub(crate) fn measured(figures: Figures<'_>) -> Option<Self> {
        let each = |time: f64, count: f64| if count > 0.0 { time / count } else { 0.0 };
        let count = figures("transactions").unwrap_or(1.0);
        let waits = Waits::measured(figures)?;
        let through = figures("from_home")? + figures("through_site")?;
        Some(Cost {
            fetch_s: each(waits.home_s + waits.site_s, through),
            redirect_s: each(waits.peer_s, figures("from_peers")?),
            commit_s: waits.commit_s / count,
            compute_s: waits.computing_s / count,
        })
    }
}

/// Where a case's time went, all its transactions together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) computing_s: f64,
    pub(crate) commit_s: f64,
    pub(crate) home_s: f64,
    pub(crate) site_s: f64,
    pub(crate) peer_s: f64,
}

impl Waits {
    /// What the parts are called, in the order of [`Waits::parts`].
    pub(crate) const NAMES: [&'static str; 5] = [
        "computing",
        "commit",
        "fetch from the home",
        "fetch through the site",
        "fetch from a neighbour",
    ];

    pub(crate) fn measured(figures: Figures<'_>) -> Option<Self> {
        let waits = Waits {
            computing_s: 0.0,
            commit_s: figures("commit_s")?,
            home_s: figures("home_fetch_s")?,
            site_s: figures("site_fetch_s")?,
            peer_s: figures("peer_fetch_s")?,
        };
        let waited: f64 = waits.parts().iter().sum();
        Some(Waits {
            computing_s: (figures("total_s")? - waited).max(0.0),
            ..waits
        })
    }

    /// Of so many transactions, each.
    pub(crate) fn each(&self, transactions: f64) -> Self {
        let [computing_s, commit_s, home_s, site_s, peer_s] =
            self.parts().map(|part| part / transactions);
        Waits {
            computing_s,
            commit_s,
            home_s,
            site_s,
            peer_s,
        }
    }

    pub(crate) fn parts(&self) -> [f64; 5] {
        [
            self.computing_s,
            self.commit_s,
            self.home_s,
            self.site_s,
            self.peer_s,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost {
        fetch_s: 0.04,
        redirect_s: 0.002,
        commit_s: 0.04,
        compute_s: 0.01,
    };

    #[test]
    fn a_group_of_one_saves_nothing_and_a_large_one_nearly_all() {
        let of = |clients| Model {
            clients,
            pages: 500.0,
            transactions: 1.0,
        };
        let (alone, base) = (of(1.0).cold_group(&COST), of(1.0).cold_base(&COST));
        assert!((alone - base).abs() < 1e-9);
        let saved = |clients| 1.0 - of(clients).cold_group(&COST) / of(clients).cold_base(&COST);
        assert!(saved(3.0) < saved(5.0) && saved(5.0) < saved(10.0));
        // What the neighbours' copies cost is left, and every page is fetched once.
        assert!((0.6..2.0 / 3.0).contains(&saved(3.0)), "{}", saved(3.0));
    }

    #[test]
    fn who_is_with_the_writer_misses_nothing() {
        let writers = Model::stale_writers(&COST);
        let readers = Model::stale_readers(4.0, 3.0, &COST);
        let base = Model::stale_base(4.0, &COST);
        assert!(writers < readers && readers < base);
        assert_eq!(Model::stale_readers(4.0, 1.0, &COST), base);
    }

    #[test]
    fn costs_are_means_of_what_was_waited_for() {
        let figures = |figure: &str| match figure {
            "transactions" => Some(2.0),
            "total_s" => Some(10.0),
            "commit_s" => Some(1.0),
            "home_fetch_s" => Some(0.0),
            "site_fetch_s" => Some(4.0),
            "peer_fetch_s" => Some(2.0),
            "from_home" => Some(0.0),
            "through_site" => Some(100.0),
            "from_peers" => Some(1000.0),
            _ => None,
        };
        let cost = Cost::measured(&figures).expect("all is there");
        assert_eq!((cost.fetch_s, cost.redirect_s), (0.04, 0.002));
        assert_eq!((cost.commit_s, cost.compute_s), (0.5, 1.5));
        assert_eq!(Cost::measured(&|_| None), None);
    }
}
