//! Parameters that cannot be.

use std::fmt;

/// A parameter that makes no sense, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    parameter: &'static str,
    why: String,
}

impl Invalid {
    /// A parameter, as it is called in the struct that has it, and what is wrong with it: *must be above 0, not -3*.
    pub fn new(parameter: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Invalid { parameter, why }
    }

    /// Which parameter it is.
    pub fn parameter(&self) -> &'static str {
        self.parameter
    }

    /// What is wrong with it.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.parameter.replace('_', " "), self.why)
    }
}

impl std::error::Error for Invalid {}

/// Refuses what is not a finite number above 0.
///
/// # Errors
///
/// [`Invalid`] with the parameter's name.
pub fn positive(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Invalid::new(
        parameter,
        format!("must be a number above 0, not {value}"),
    ))
}

/// Refuses what is not a finite number at or above a bound.
///
/// # Errors
///
/// [`Invalid`] with the parameter's name.
pub fn at_least(parameter: &'static str, value: f64, bound: f64) -> Result<(), Invalid> {
    if value.is_finite() && value >= bound {
        return Ok(());
    }
    Err(Invalid::new(
        parameter,
        format!("must be a number not below {bound}, not {value}"),
    ))
}

/// Refuses what is not a number within bounds.
///
/// # Errors
///
/// [`Invalid`] with the parameter's name.
pub fn within(
    parameter: &'static str,
    value: f64,
    (least, most): (f64, f64),
) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    // Not in three hundred digits.
    let told = match value.abs() < 1e15 {
        true => value.to_string(),
        false => format!("{value:e}"),
    };
    Err(Invalid::new(
        parameter,
        format!("must be a number from {least} to {most}, not {told}"),
    ))
}

/// Refuses what is not a part of a whole.
///
/// # Errors
///
/// [`Invalid`] with the parameter's name.
pub fn fraction(parameter: &'static str, value: f64) -> Result<(), Invalid> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(
        parameter,
        format!("must be between 0 and 1, not {value}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_gets_through() {
        for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert!(positive("think_s", value).is_err(), "{value}");
        }
        assert!(positive("think_s", 1e-9).is_ok());
        assert!(at_least("members", 1.0, 1.0).is_ok() && at_least("members", 0.9, 1.0).is_err());
        for value in [f64::NAN, f64::INFINITY, 0.5, 1e300] {
            assert!(within("members", value, (1.0, 10.0)).is_err(), "{value}");
        }
        assert!(within("members", 10.0, (1.0, 10.0)).is_ok());
        assert!(fraction("shared", f64::NAN).is_err() && fraction("shared", 1.0).is_ok());
        let told = positive("think_s", -3.0).unwrap_err().to_string();
        assert_eq!(told, "think s must be a number above 0, not -3");
    }
}
