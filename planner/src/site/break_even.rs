//! From where on a site pays: every time of the model is a line over the round trip, so two of them meet once.

use super::{Cold, Hot, Site, Times};
use crate::invalid::{Invalid, fraction};

/// From which distance on a site saves time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BreakEven {
    /// At every distance, also without any.
    Always,
    /// At none.
    Never,
    /// Above this round trip.
    AboveMs(f64),
}

impl Site {
    /// From which distance on a site saves time for members that begin with nothing.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn cold_break_even(&self, work: &Cold) -> Result<BreakEven, Invalid> {
        self.cold(work)?;
        Ok(self.break_even(|site| site.cold_unchecked(work)))
    }

    /// The same for readers whose writer is elsewhere.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn elsewhere_break_even(&self, work: &Hot) -> Result<BreakEven, Invalid> {
        self.writer_elsewhere(work)?;
        Ok(self.break_even(|site| site.elsewhere_unchecked(work)))
    }

    /// The same for readers whose writer is at their site.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn here_break_even(&self, work: &Hot) -> Result<BreakEven, Invalid> {
        self.writer_here(work)?;
        Ok(self.break_even(|site| site.here_unchecked(work)))
    }

    fn break_even(&self, times: impl Fn(&Site) -> Times) -> BreakEven {
        let gain_ms = |round_trip_ms| {
            let at = times(&Site {
                round_trip_ms,
                ..*self
            });
            at.alone_ms - at.together_ms
        };
        let near = gain_ms(0.0);
        let slope = gain_ms(1.0) - near;
        // What is left of adding times that cancel is no slope.
        let is_flat = slope <= 1e-9 * near.abs().max(1.0);
        match (near > 0.0, is_flat) {
            (true, _) => BreakEven::Always,
            (false, true) => BreakEven::Never,
            (false, false) => BreakEven::AboveMs((0.0 - near) / slope),
        }
    }

    /// The least number of members with whom the site saves a part of the time from cold; none if no number does.
    ///
    /// # Errors
    ///
    /// [`Invalid`] parameters.
    pub fn members_to_save(&self, part: f64, work: &Cold) -> Result<Option<u64>, Invalid> {
        fraction("part", part)?;
        self.cold(work)?;
        let saved = |members: f64| self.with(members).cold_unchecked(work).saved();
        // The time falls with 1/k, from that of one member to a limit: solve for k where it is the wanted one.
        let (alone, crowd) = (saved(1.0), saved(f64::INFINITY));
        if alone >= part {
            return Ok(Some(1));
        }
        if crowd <= part {
            return Ok(None);
        }
        let first = (crowd - part) / (crowd - alone);
        // A hair below, or rounding makes it one more.
        Ok(Some((1.0 / first - 1e-9).ceil() as u64))
    }

    /// The same site with another number of members.
    pub fn with(&self, members: f64) -> Site {
        Site { members, ..*self }
    }
}
