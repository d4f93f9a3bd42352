//! What is varied, and over which range, as it is told.

use crate::web::sweep::{Parameter, log_spaced};

/// A parameter, and from where to where it is varied, as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sweep {
    pub(super) parameter: Parameter,
    from: f64,
    to: f64,
}

/// `alpha=0.5:1.2`; nothing for what is no such text.
pub(super) fn sweep(text: &str) -> Option<Sweep> {
    let (name, range) = text.split_once('=')?;
    let (_, parameter) = NAMES.into_iter().find(|(known, _)| *known == name.trim())?;
    let (from, to) = range.split_once(':')?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    let is_whole = matches!(parameter, Parameter::Clients | Parameter::Documents);
    let least = match (is_whole, parameter) {
        (true, _) => 1.0,
        (false, Parameter::Alpha) => 0.0,
        (false, Parameter::RequestRate) => REQUESTS_MIN,
        (false, _) => DAYS_MIN,
    };
    let most = match parameter {
        Parameter::Alpha => ALPHA_MAX,
        _ => WHOLE_MAX,
    };
    let can_be = least <= from && from < to && to <= most;
    can_be.then_some(Sweep {
        parameter,
        from,
        to,
    })
}

/// What can be varied, for people who told something else.
pub(super) fn names() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

impl Sweep {
    /// So many values; in equal steps for an exponent, in equal factors for all else.
    pub(super) fn values(self, many: usize) -> Vec<f64> {
        let last = (many - 1) as f64;
        let step = |number: usize| self.from + (self.to - self.from) * number as f64 / last;
        let mut values: Vec<f64> = match self.parameter {
            Parameter::Alpha => (0..many).map(step).collect(),
            _ => log_spaced(self.from, self.to, many).collect(),
        };
        if matches!(self.parameter, Parameter::Clients | Parameter::Documents) {
            values.iter_mut().for_each(|value| *value = value.round());
            values.dedup();
        }
        values
    }

    pub(super) fn label(self) -> &'static str {
        match self.parameter {
            Parameter::Clients => "clients",
            Parameter::RequestRate => "requests of a client in a day",
            Parameter::PopularChange => "days between changes, popular documents",
            Parameter::UnpopularChange => "days between changes, other documents",
            Parameter::Alpha => "exponent of popularity",
            Parameter::Documents => "documents",
        }
    }
}

const NAMES: [(&str, Parameter); 6] = [
    ("clients", Parameter::Clients),
    ("requests-per-day", Parameter::RequestRate),
    ("popular-change-days", Parameter::PopularChange),
    ("other-change-days", Parameter::UnpopularChange),
    ("alpha", Parameter::Alpha),
    ("documents", Parameter::Documents),
];

const ALPHA_MAX: f64 = 20.0;

/// Once in three thousand million years.
const REQUESTS_MIN: f64 = 1e-12;

/// A change every 86 nanoseconds.
const DAYS_MIN: f64 = 1e-12;

/// Whole numbers are exact up to here, and no Web is as large.
pub(super) const WHOLE_MAX: f64 = 1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_a_parameter_and_its_ends() {
        let told = sweep("alpha=0.5:1.5").expect("a sweep");
        let values = told.values(3);
        assert_eq!(
            (told.parameter, &*values),
            (Parameter::Alpha, &[0.5, 1.0, 1.5][..])
        );
        let clients = sweep("clients=1:3").expect("a sweep").values(9);
        assert_eq!(clients, [1.0, 2.0, 3.0]);
        let days = sweep("other-change-days=0.01:100").expect("a sweep");
        assert!((days.values(5)[2] - 1.0).abs() < 1e-12);
        for wrong in [
            "alpha",
            "alpha=1",
            "alpha=1.5:0.5",
            "alpha=1:21",
            "alpha=0.5:nan",
            "clients=0:10",
            "clients=5:5",
            "documents=1:1e16",
            "other-change-days=0:10",
            "popular-change-days=1e-300:1e15",
            "members=1:10",
        ] {
            assert_eq!(sweep(wrong), None, "{wrong}");
        }
    }
}
