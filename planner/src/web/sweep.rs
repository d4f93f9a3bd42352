//! How much each parameter matters, and the questions the other way round.

use super::model::{Model, Workload};
use super::root::rising;
use crate::{Invalid, fraction};
use serde::Serialize;

/// A parameter that can be varied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Parameter {
    /// N.
    Clients,
    /// λ, as a factor of what it is.
    RequestRate,
    /// Mean seconds between two changes of a popular document, 1/μ_p.
    PopularChange,
    /// Mean seconds between two changes of any other, 1/μ_u.
    UnpopularChange,
    /// α.
    Alpha,
    /// n; the popular documents stay the same part of it.
    Documents,
}

/// C_N where one parameter takes these values, and all else stays: the value and the share of hits.
///
/// # Errors
///
/// [`Invalid`] with the parameter, if it cannot be one of the values.
pub fn hit_rates(
    workload: &Workload,
    clients: f64,
    parameter: Parameter,
    values: impl IntoIterator<Item = f64>,
) -> Result<Vec<(f64, f64)>, Invalid> {
    // What does not change the documents needs no new preparation.
    let model = Model::new(*workload)?;
    let point = |value: f64| {
        let hits = match parameter {
            Parameter::Clients => model.cacheable_hit_rate(value),
            Parameter::RequestRate => model.cacheable_hit_rate(clients * value),
            _ => model
                .with(varied(workload, parameter, value))?
                .cacheable_hit_rate(clients),
        };
        Ok((value, hits.value))
    };
    values.into_iter().map(point).collect()
}

/// A workload where one parameter takes a value. That of the number of clients is no part of it.
pub fn varied(workload: &Workload, parameter: Parameter, value: f64) -> Workload {
    let mut varied = *workload;
    match parameter {
        Parameter::RequestRate => varied.requests_per_client_s *= value,
        Parameter::PopularChange => varied.popular_change_s = value,
        Parameter::UnpopularChange => varied.unpopular_change_s = value,
        Parameter::Alpha => varied.alpha = value,
        Parameter::Documents => {
            let part = workload.popular_documents as f64 / workload.documents as f64;
            varied.documents = value.round() as u64;
            let popular = (part * value).round() as u64;
            varied.popular_documents = popular.min(varied.documents);
        }
        Parameter::Clients => (),
    }
    varied
}

/// How many clients it takes until this share of the requests for cacheable documents hits; nothing if no number does, since
/// documents change all the time.
///
/// # Errors
///
/// [`Invalid`] if the share is none.
pub fn clients_for(model: &Model, share: f64) -> Result<Option<f64>, Invalid> {
    fraction("share", share)?;
    let hits = |log: f64| model.cacheable_hit_rate(log.exp()).value - share;
    let (few, many) = (FEWEST.ln(), MOST.ln());
    Ok(match (hits(few) >= 0.0, hits(many) >= 0.0) {
        (true, _) => Some(0.0),
        (_, false) => None,
        _ => Some(rising(few, many, hits).exp()),
    })
}

/// Values from one to another, each the same factor above the one before.
pub fn log_spaced(from: f64, to: f64, count: usize) -> impl Iterator<Item = f64> {
    // Half of it, twice: the quotient of the two may be beyond all numbers.
    let step = (to.ln() - from.ln()) / 2.0 / count.saturating_sub(1).max(1) as f64;
    (0..count).map(move |number| {
        let grown = (step * number as f64).exp();
        match number > 0 && number + 1 == count {
            // Charts end here: no rounding.
            true => to,
            false => from * grown * grown,
        }
    })
}

/// Nobody, and more than there will ever be.
const FEWEST: f64 = 1e-9;
const MOST: f64 = 1e30;

#[cfg(test)]
mod tests {
    use super::*;

    fn rises(points: &[(f64, f64)]) -> bool {
        points.windows(2).all(|pair| pair[0].1 <= pair[1].1 + 1e-9)
    }

    #[test]
    fn each_parameter_moves_hits_its_way() {
        let told = Workload::washington();
        for (parameter, from, to, up) in [
            (Parameter::Clients, 1.0, 1e9, true),
            (Parameter::RequestRate, 1e-3, 1e3, true),
            (Parameter::PopularChange, 1.0, 1e9, true),
            (Parameter::UnpopularChange, 1.0, 1e9, true),
            (Parameter::Documents, 1e3, 1e12, false),
        ] {
            let mut points = hit_rates(&told, 5e4, parameter, log_spaced(from, to, 25)).unwrap();
            if !up {
                points.reverse();
            }
            assert!(rises(&points), "{parameter:?} {points:?}");
        }
    }

    /// Where all documents change alike. Where the popular ones change more, a steeper popularity may cost hits at first.
    #[test]
    fn a_steeper_popularity_hits_more() {
        let mut told = Workload::washington();
        for clients in [1.0, 5e4, 1e8] {
            told.popular_documents = 0;
            let alphas = log_spaced(0.01, 3.0, 25);
            let alike = hit_rates(&told, clients, Parameter::Alpha, alphas).unwrap();
            assert!(rises(&alike), "{alike:?}");
        }
        told = Workload::washington();
        let two = hit_rates(&told, 5e4, Parameter::Alpha, [0.01, 0.6]).unwrap();
        assert!(!rises(&two), "{two:?}");
    }

    #[test]
    fn the_population_that_is_found_hits_as_often() {
        let mut workload = Workload::washington();
        for share in [1e-4, 0.5, 0.9, 0.999] {
            let model = Model::new(workload).unwrap();
            let clients = clients_for(&model, share).unwrap().unwrap();
            let hits = model.cacheable_hit_rate(clients).value;
            assert!((hits - share).abs() < 1e-9, "{share} {clients} {hits}");
        }
        workload.unpopular_change_s = 0.0;
        let model = Model::new(workload).unwrap();
        assert_eq!(clients_for(&model, 0.9), Ok(None));
        assert_eq!(clients_for(&model, 0.0), Ok(Some(0.0)));
        assert!(clients_for(&model, 1.1).is_err());
    }

    #[test]
    fn spaced_values_have_both_ends() {
        let values: Vec<f64> = log_spaced(1.0, 1000.0, 4).collect();
        assert!((values[1] - 10.0).abs() < 1e-9 && (values[3] - 1000.0).abs() < 1e-9);
        assert_eq!(log_spaced(5.0, 7.0, 1).collect::<Vec<_>>(), [5.0]);
        assert!(log_spaced(1e-300, 1e300, 9).all(f64::is_finite));
        assert_eq!(log_spaced(1e2, 1e9, 29).last(), Some(1e9));
    }
}
