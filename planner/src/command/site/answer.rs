//! The sentences of the answer.

use super::question::Question;
use super::said::{NOTHING, distance, thousands, time, words};
use crate::Invalid;
use crate::command::given::numeral;
use crate::report::Report;
use crate::site::{BreakEven, Site, Times};

impl Question {
    pub(super) fn report(&self) -> Result<Report, Invalid> {
        Ok(Report {
            answer: self.answer()?,
            sections: vec![self.now()?, self.by_members()?, self.by_distance()?],
            assumptions: Vec::new(),
        })
    }

    pub(super) fn answer(&self) -> Result<String, Invalid> {
        let Site {
            members,
            round_trip_ms,
            ..
        } = self.site;
        let saved = self.site.cold(&self.cold)?.saved();
        let elsewhere = self.site.writer_elsewhere(&self.hot)?.saved();
        let here = self.here(&self.site)?.map(|times| times.saved());
        let verdict = match (saved, here.map_or(elsewhere, |here| here.max(elsewhere))) {
            (cold, warm) if cold < NOTHING && warm < 0.1 => "No",
            (cold, warm) if cold < 0.005 && warm < 0.0 => "No",
            (cold, warm) if cold.max(warm) < 0.1 => "Hardly",
            (cold, _) if cold < 0.005 => "Only for what is warm",
            _ => "Yes",
        };
        let people = match members {
            1.0 => "one member that begins".to_owned(),
            members => format!("{} members that begin", numeral(members)),
        };
        let warm = match here {
            Some(here) => format!(
                "{} of the time of a transaction that reads what a neighbour changes, and {} if somebody elsewhere changes it",
                words(here),
                words(elsewhere)
            ),
            None => format!(
                "{} of the time of a transaction that reads what somebody elsewhere changes",
                words(elsewhere)
            ),
        };
        Ok(format!(
            "{verdict}: with a site {} from the home, {people} with nothing cached would {} of the time that it takes to read everything once. {} Afterwards, with everything cached, a site would {warm}.{}",
            distance(round_trip_ms),
            words(saved),
            self.where_it_pays()?,
            self.redirectors_work()?.unwrap_or_default(),
        ))
    }

    /// That the model lets one redirector pass on any number of pages, where that is more than a processor's work.
    fn redirectors_work(&self) -> Result<Option<String>, Invalid> {
        let times = self.site.cold(&self.cold)?;
        let passed_on = (self.site.members - 1.0) * self.cold.pages;
        let per_s = passed_on / (times.together_ms / 1000.0);
        let [least, most] = PASSED_ON_US.map(|us| per_s * us / 1e6);
        Ok((most > 1.0 && most.is_finite()).then(|| {
            format!(
                " What one redirector can do is not in this: if all begin at once, it passes on {} pages a second, which is the work of {} to {} processors.",
                thousands(per_s),
                thousands(least),
                thousands(most),
            )
        }))
    }

    /// With the writer at the site; nothing if nobody is there beside it.
    pub(super) fn here(&self, site: &Site) -> Result<Option<Times>, Invalid> {
        match site.members < 2.0 {
            true => Ok(None),
            false => site.writer_here(&self.hot).map(Some),
        }
    }

    /// From which distance and from how many members on.
    fn where_it_pays(&self) -> Result<String, Invalid> {
        let saved = self.site.cold(&self.cold)?.saved();
        let is_little = (NOTHING..0.005).contains(&saved);
        let distance = match self.site.cold_break_even(&self.cold)? {
            BreakEven::Always if is_little => "It pays at any distance, but hardly".to_owned(),
            BreakEven::AboveMs(far) if is_little => {
                format!("It pays from {} on, but hardly at this distance", time(far))
            }
            BreakEven::Always => "It pays at any distance".to_owned(),
            BreakEven::Never if self.site.members < 2.0 => {
                return Ok("One alone has no neighbours: that pays at no distance.".to_owned());
            }
            BreakEven::Never => {
                let why = "It pays at no distance: the way through the site costs more than neighbours save.";
                return Ok(why.to_owned());
            }
            BreakEven::AboveMs(far) => format!("It pays from {} on", time(far)),
        };
        let half = match self.site.members_to_save(0.5, &self.cold)? {
            Some(1) => "here one member saves half of its time".to_owned(),
            Some(members) => format!("here it takes {members} members to save half of their time"),
            None => "here no number of members saves half of their time".to_owned(),
        };
        Ok(format!("{distance}; {half}."))
    }
}

/// What a site takes of a processor for each page that it passes on: docs/performance.md.
const PASSED_ON_US: [f64; 2] = [22.0, 45.0];
