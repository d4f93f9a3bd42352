//! A figure: one line of JSON.

use serde_json::Value;

/// What was measured, against what, and whether that is good enough.
#[derive(Debug)]
pub struct Figure(Vec<(&'static str, Value)>);

impl Figure {
    /// A figure of this name.
    pub fn new(name: &str) -> Self {
        Figure(vec![("bench", name.into())])
    }

    /// Adds a number or a text.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.push((key, rounded(value.into())));
        self
    }

    /// Prints it; the figure must not be above the target.
    pub fn at_most(self, key: &'static str, value: f64, target: f64) {
        self.print(key, value, target, value <= target);
    }

    /// Prints it; the figure must not be below the target.
    pub fn at_least(self, key: &'static str, value: f64, target: f64) {
        self.print(key, value, target, value >= target);
    }

    /// Prints it, without a target.
    pub fn tell(self) {
        let fields = self.0.iter();
        let fields = fields.map(|(key, value)| format!("\"{key}\":{value}"));
        println!("{{{}}}", fields.collect::<Vec<_>>().join(","));
    }

    fn print(self, key: &'static str, value: f64, target: f64, met: bool) {
        self.with(key, value)
            .with("target", target)
            .with("met", met)
            .tell();
    }
}

/// More digits than three behind the point would only pretend.
fn rounded(value: Value) -> Value {
    match value.as_f64() {
        Some(number) if value.is_f64() => ((number * 1e3).round() / 1e3).into(),
        _ => value,
    }
}

/// The middle one of some numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    numbers.get(middle).copied().unwrap_or(f64::NAN)
}

/// What a share of some numbers is not above.
pub fn percentile(numbers: &[f64], share: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).ceil() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
