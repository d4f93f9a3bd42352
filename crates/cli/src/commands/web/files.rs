//! How many files and connections the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one. Many systems say 1,024, and a proxy has a file for each client and for each fill.
pub(super) fn raise_limit() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: hard,
        maximum: hard,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        // Too many clients wait in the system's queue then.
        eprintln!("the limit of open files stays as it is: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = getrlimit(Resource::Nofile);
        let low = Rlimit {
            current: Some(limit.maximum.map_or(512, |hard| hard.min(512))),
            maximum: limit.maximum,
        };
        setrlimit(Resource::Nofile, low).expect("a lower limit");
        raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, limit.maximum);
    }
}
