//! A helper that sends wrong images of pages that it was given (rule R6).

use std::collections::BTreeMap;
use thorp_model::{
    Content, Down, Draft, FetchResult, Generation, HomeId, Image, ImageEdit, PageId, PeerImage,
    Position, Slot, Stamp, Xoshiro256, message,
};

/// What a rogue got, and how far it heard of each home.
#[derive(Default)]
pub(crate) struct Forger {
    given: BTreeMap<(HomeId, PageId), Image>,
    positions: BTreeMap<HomeId, Position>,
}

impl Forger {
    /// Keeps what can be forged later, and where the stream stands.
    pub(crate) fn hear(&mut self, message: &Down) {
        match message {
            Down::Image(response) => {
                self.stands(response.home, response.position);
                if let FetchResult::Image(image) = &response.result {
                    let page = (response.home, response.page);
                    self.given.insert(page, image.clone());
                }
            }
            Down::Begin(begin) => self.stands(begin.home, begin.position),
            Down::Step(step) => self.stands(step.home, step.position),
            Down::Heartbeat(beat) => self.stands(beat.home, beat.position),
            _ => {}
        }
    }

    fn stands(&mut self, home: HomeId, position: Position) {
        let known = self.positions.entry(home).or_default();
        *known = position.max(*known);
    }

    /// A wrong image, as the answer to a request for help. Nothing if the page was never given.
    pub(crate) fn forge(
        &self,
        redirect: &message::Redirect,
        prng: &mut Xoshiro256,
    ) -> Option<PeerImage> {
        let image = self.given.get(&(redirect.home, redirect.page))?;
        let position = self.positions.get(&redirect.home).copied();
        let position = position.unwrap_or_default();
        let forged = match prng.below(4) {
            0 => other_value(image),
            1 => restamped(image, position, image.stamp()),
            2 => restamped(image, image.version(), next_year(image.stamp())),
            // As it was given, which may be long ago.
            _ => image.clone(),
        };
        Some(PeerImage {
            home: redirect.home,
            page: redirect.page,
            requester: redirect.requester,
            epoch: redirect.epoch,
            attempt: redirect.attempt,
            entry: redirect.entry,
            position: Position(position.0.saturating_sub(prng.below(2))),
            image: Some(forged),
        })
    }
}

/// The first object has another value.
fn other_value(image: &Image) -> Image {
    let mut edit = ImageEdit::of(image);
    let mut slots = image.iter();
    let value = slots.find(|(_, _, content)| matches!(content, Content::Value(_)));
    let (slot, generation) = value.map_or((Slot(0), Generation(1)), |(slot, generation, _)| {
        (slot, generation)
    });
    edit.set(slot, generation, Draft::Value(b"forged".to_vec()));
    edit.finish(image.version(), image.stamp())
}

fn restamped(image: &Image, version: Position, stamp: Stamp) -> Image {
    ImageEdit::of(image).finish(version, stamp)
}

fn next_year(stamp: Stamp) -> Stamp {
    Stamp {
        clock: stamp.clock.saturating_add(YEAR_MS << 16),
        ..stamp
    }
}

/// Milliseconds of a year.
const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;
