//! How often each server is chosen to take a page: thesis, section 3.6.1.

/// The selection frequencies f of equation 3.1, `f_i = b w_i + (1 - b) a_i`, none above its bound (equations 3.2 and 3.3): a server
/// whose frequency is above gets its bound, and what is left of the whole is divided among the others in the same way, with their
/// weights as parts of their own sum, until nobody is above.
///
/// `targets` are w, the shares of a balanced load, and `ages` a, the shares of the oldest pages; `balance` is b. Neither need have
/// the sum 1, but nothing may be negative. Where one of them is 0 for all that are left, the other decides alone. The frequencies
/// have the sum 1, unless all are at their bounds: then the rest of the pages finds no server.
pub(super) fn frequencies(targets: &[f64], ages: &[f64], balance: f64, bounds: &[f64]) -> Vec<f64> {
    debug_assert!(targets.len() == ages.len() && targets.len() == bounds.len());
    let servers = targets.len().min(ages.len()).min(bounds.len());
    let mut chosen = vec![0.0; servers];
    let mut open: Vec<usize> = (0..servers).collect();
    let mut left = 1.0;
    while left > 0.0 && !open.is_empty() {
        let Some(weights) = mixed(targets, ages, balance, &open) else {
            break;
        };
        let mut above = 0.0;
        let mut within = Vec::new();
        for (&server, weight) in open.iter().zip(&weights) {
            chosen[server] = left * weight;
            if chosen[server] > bounds[server] {
                chosen[server] = bounds[server];
                above += bounds[server];
            } else {
                within.push(server);
            }
        }
        if within.len() == open.len() {
            break;
        }
        left -= above;
        open = within;
        open.iter().for_each(|&server| chosen[server] = 0.0);
    }
    chosen
}

/// Equation 3.1 for those that are left, with the sum 1; `None` if none of them has any weight.
fn mixed(targets: &[f64], ages: &[f64], balance: f64, open: &[usize]) -> Option<Vec<f64>> {
    let sum = |weights: &[f64]| open.iter().map(|&server| weights[server]).sum::<f64>();
    let (target_sum, age_sum) = (sum(targets), sum(ages));
    let balance = match (target_sum > 0.0, age_sum > 0.0) {
        (true, true) => balance,
        (true, false) => 1.0,
        (false, true) => 0.0,
        (false, false) => return None,
    };
    let part = |weight: f64, sum: f64| if sum > 0.0 { weight / sum } else { 0.0 };
    let mix = |&server: &usize| {
        balance * part(targets[server], target_sum) + (1.0 - balance) * part(ages[server], age_sum)
    };
    Some(open.iter().map(mix).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn frequencies_by_hand() {
        let free = [f64::INFINITY; 3];
        assert_eq!(
            frequencies(&[0.5, 0.25, 0.25], &[0.0, 0.5, 0.5], 0.5, &free),
            [0.25, 0.375, 0.375]
        );
        assert_eq!(
            frequencies(&[0.5, 0.5], &[1.0, 0.0], 0.0, &free[1..]),
            [1.0, 0.0]
        );
        // The first is held at 0.2; the others share 0.8 as 3 to 1.
        let held = frequencies(&[0.6, 0.3, 0.1], &[0.6, 0.3, 0.1], 0.3, &[0.2, 1.0, 1.0]);
        assert!(
            held.iter()
                .zip([0.2, 0.6, 0.2])
                .all(|(is, should)| (is - should).abs() < 1e-12),
            "{held:?}"
        );
        // That pushes the second above its own bound.
        let held = frequencies(&[0.6, 0.3, 0.1], &[0.6, 0.3, 0.1], 0.3, &[0.2, 0.5, 1.0]);
        assert!(
            held.iter()
                .zip([0.2, 0.5, 0.3])
                .all(|(is, should)| (is - should).abs() < 1e-12),
            "{held:?}"
        );
        assert_eq!(
            frequencies(&[1.0, 1.0], &[1.0, 3.0], 0.5, &[0.1, 0.2]),
            [0.1, 0.2],
            "the rest finds no server"
        );
        assert_eq!(frequencies(&[0.0], &[0.0], 0.5, &[1.0]), [0.0]);
        assert_eq!(frequencies(&[], &[], 0.5, &[]), [0.0; 0]);
    }

    #[test]
    fn frequencies_are_within_bounds_and_whole() {
        let mut random = Rng::with_seed(12);
        for _ in 0..5000 {
            let servers = random.usize(1..9);
            let mut weights = |zeros: u8| -> Vec<f64> {
                let weight = |_| {
                    if random.u8(..10) < zeros {
                        0.0
                    } else {
                        random.f64()
                    }
                };
                (0..servers).map(weight).collect()
            };
            let (targets, ages, bounds) = (weights(1), weights(4), weights(1));
            let balance = random.f64();
            let chosen = frequencies(&targets, &ages, balance, &bounds);
            assert!(
                chosen
                    .iter()
                    .zip(&bounds)
                    .all(|(chosen, bound)| *chosen >= 0.0 && chosen <= bound),
                "{chosen:?}"
            );
            let has_weight = |at: &usize| targets[*at] > 0.0 || ages[*at] > 0.0;
            let most: f64 = (0..servers).filter(has_weight).map(|at| bounds[at]).sum();
            let sum: f64 = chosen.iter().sum();
            // A server without any weight, for this balance, need not be chosen.
            assert!(
                sum <= 1.0 + 1e-9 && (sum > most.min(1.0) - 1e-9),
                "{sum} {most} {chosen:?}"
            );
        }
    }
}
