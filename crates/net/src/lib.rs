//! Frames, TLS and the loop that drives any core.
