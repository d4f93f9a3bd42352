//! Measurements, each as a ratio against something run in the same minute.

pub mod counting;
pub mod samples;
