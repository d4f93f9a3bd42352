//! Elapsed time of policies against the least possible.

use crate::Invalid;
use crate::prefetch::{Hierarchy, Job, Policy, compare, dense, optimum_us};
use crate::report::Table;

const INSTANCES: u32 = 100;
pub(super) const REFERENCES: usize = 8;
pub(super) const PAGES: u32 = 5;

pub(super) fn table() -> Result<Table, Invalid> {
    let mut table = Table::new(
        "Elapsed time against the optimum of all schedules",
        &[
            "policy",
            "instances",
            "as fast as the optimum",
            "mean",
            "most",
            "beyond 1 + 3 F_G/F_D",
        ],
    );
    let mut ratios = vec![Vec::new(); Policy::ALL.len()];
    let mut random = fastrand::Rng::with_seed(424);
    for _ in 0..INSTANCES {
        let hierarchy = Hierarchy {
            local_pages: random.u32(1..=2),
            global_pages: random.u32(1..=2),
            server_disks: 1,
            compute_us: random.u64(1..=2),
            global_fetch_us: 1,
            disk_fetch_us: random.u64(2..=6),
            issue_us: 0,
        };
        let pages = random.u32(3..=PAGES);
        let stream: Vec<u32> = (0..REFERENCES).map(|_| random.u32(..pages)).collect();
        let stream = dense(&stream);
        let job = Job::hinted(&stream);
        let least_us = optimum_us(&hierarchy, &job)?;
        let comparison = compare(&hierarchy, &job, &Policy::ALL)?;
        for (ratios, (_, outcome)) in ratios.iter_mut().zip(&comparison.outcomes) {
            let ratio = outcome.elapsed_us as f64 / least_us as f64;
            ratios.push((ratio, 1.0 + 3.0 * hierarchy.ratio()));
        }
    }
    for (policy, ratios) in Policy::ALL.iter().zip(&ratios) {
        let count = |is: &dyn Fn(&(f64, f64)) -> bool| {
            ratios.iter().filter(|ratio| is(ratio)).count().to_string()
        };
        let mean = ratios.iter().map(|(ratio, _)| ratio).sum::<f64>() / f64::from(INSTANCES);
        let most = ratios.iter().map(|(ratio, _)| *ratio).fold(0.0, f64::max);
        table.row(vec![
            policy.name.to_owned(),
            INSTANCES.to_string(),
            count(&|(ratio, _)| *ratio <= 1.0),
            format!("{mean:.3}"),
            format!("{most:.2}"),
            count(&|(ratio, factor)| ratio > factor),
        ]);
    }
    Ok(table)
}
