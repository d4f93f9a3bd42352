//! Whether the machine had something else to do: then only ratios may be believed, and they not far.

use std::fs;

/// A line that says how loaded the machine is now.
pub(crate) fn busy() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    told(load.split(' ').next().unwrap_or("?"), processors)
}

/// A village keeps about one processor at work.
fn told(load: &str, processors: usize) -> String {
    let is_busy = load
        .parse::<f64>()
        .is_ok_and(|load| load > processors as f64);
    let words = if is_busy {
        "BUSY with other work: believe ratios, not times"
    } else {
        "nothing much beside this"
    };
    format!("load {load} on {processors} processors, {words}\n")
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn more_work_than_processors_is_busy() {
        assert!(told("4.20", 2).contains("BUSY"));
        assert!(!told("1.30", 2).contains("BUSY"));
        assert!(!told("?", 2).contains("BUSY"));
    }
}
