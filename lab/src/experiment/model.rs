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
}
