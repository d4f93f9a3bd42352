//! Villages simulated from one seed, with faults and checkers.
