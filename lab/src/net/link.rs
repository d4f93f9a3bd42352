//! What is asked of a link, and what a packet between two spokes meets in all.

use crate::quantity::{self, Rate};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What is asked of a spoke, or of a pair of spokes. What is `None` is not asked for: of a spoke then there is none of it,
/// and a pair has what its two spokes have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// One way. Of two spokes the delays add up.
    pub delay: Option<Duration>,
    /// Each packet takes up to so much longer, evenly spread; none overtakes another.
    pub jitter: Option<Duration>,
    /// The share of packets that vanish.
    pub loss: Option<f64>,
    /// Packets vanish in bursts of this mean length; without it each for itself.
    pub burst: Option<f64>,
    /// Up and down, each by itself.
    pub rate: Option<Rate>,
}

impl Link {
    /// A link with this one-way delay and nothing else.
    pub fn with_delay(delay: Duration) -> Self {
        Link {
            delay: Some(delay),
            ..Link::default()
        }
    }

    /// Takes one setting, as `key=value`; the value `none` takes it back. `rtt` is twice the delay.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let known = || {
            format!(
                "{setting:?} is no setting of a link: delay, rtt, jitter, loss, burst, rate, each as key=value"
            )
        };
        let (key, value) = setting.split_once('=').ok_or_else(known)?;
        let asked = (value != "none").then_some(value);
        match key {
            "delay" => self.delay = asked.map(quantity::duration).transpose()?,
            "rtt" => {
                self.delay = asked
                    .map(quantity::duration)
                    .transpose()?
                    .map(|rtt| rtt / 2)
            }
            "jitter" => self.jitter = asked.map(quantity::duration).transpose()?,
            "loss" => self.loss = asked.map(quantity::share).transpose()?,
            "burst" => self.burst = asked.map(burst).transpose()?,
            "rate" => self.rate = asked.map(Rate::from_str).transpose()?,
            _ => return Err(known()),
        }
        Ok(())
    }
}

fn burst(text: &str) -> Result<f64, String> {
    let length = text
        .parse::<f64>()
        .ok()
        .filter(|length| (1.0..1e6).contains(length));
    length
        .ok_or_else(|| format!("{text:?} is no length of a burst: a number of packets, at least 1"))
}

/// `20ms,loss=0.1%,rate=100mbit`; a time alone is the delay.
impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut link = Link::default();
        for setting in text.split(',').filter(|setting| !setting.is_empty()) {
            if setting.contains('=') {
                link.set(setting)?;
            } else {
                link.delay = Some(quantity::duration(setting)?);
            }
        }
        Ok(link)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = [
            self.delay
                .map(|delay| format!("delay={}", quantity::show_duration(delay))),
            self.jitter
                .map(|jitter| format!("jitter={}", quantity::show_duration(jitter))),
            self.loss.map(|loss| format!("loss={loss}")),
            self.burst.map(|burst| format!("burst={burst}")),
            self.rate.map(|rate| format!("rate={rate}")),
        ];
        f.write_str(&settings.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a packet from one spoke to another meets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// One way.
    pub delay: Duration,
    /// Added to the delay, up to so much.
    pub jitter: Duration,
    /// The share of packets that vanish.
    pub loss: f64,
    /// In bursts of this mean length.
    pub burst: Option<f64>,
    /// Leaving the sender.
    pub rate_up: Option<Rate>,
    /// Asked for this pair, between the two.
    pub rate_between: Option<Rate>,
    /// Reaching the receiver.
    pub rate_down: Option<Rate>,
}

/// Below this the largest segments (64 KiB) would occupy the wire for longer than a millisecond each: what is behind
/// them would wait in steps that no real network has.
const WHOLE_SEGMENTS_RATE_MIN: u64 = 500_000_000;

impl Path {
    /// From one spoke to another, given what is asked of this pair.
    pub fn between(from: &Link, to: &Link, pair: &Link) -> Self {
        let time = |time: Option<Duration>| time.unwrap_or_default();
        let survive = |link: &Link| 1.0 - link.loss.unwrap_or_default();
        Path {
            delay: pair.delay.unwrap_or(time(from.delay) + time(to.delay)),
            jitter: pair.jitter.unwrap_or(time(from.jitter) + time(to.jitter)),
            loss: pair.loss.unwrap_or(1.0 - survive(from) * survive(to)),
            burst: pair.burst.or(from.burst).or(to.burst),
            rate_up: from.rate,
            rate_between: pair.rate,
            rate_down: to.rate,
        }
    }

    /// The narrowest place.
    pub fn rate(&self) -> Option<Rate> {
        [self.rate_up, self.rate_between, self.rate_down]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether segments larger than a packet may cross as they are. Loss would take a whole one where it should take one packet.
    pub(crate) fn carries_whole_segments(&self) -> bool {
        let wide = self
            .rate()
            .is_none_or(|rate| rate.bits() >= WHOLE_SEGMENTS_RATE_MIN);
        self.loss == 0.0 && wide
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Link {
        text.parse().expect(text)
    }

    #[test]
    fn a_link_reads_as_it_is_written() {
        let text = "delay=20ms,jitter=1ms,loss=0.001,burst=4,rate=100mbit";
        assert_eq!(link(text).to_string(), text);
        assert_eq!(link("20ms,loss=0.1%"), link("rtt=40ms,loss=0.001"));
        assert_eq!(link(""), Link::default());
    }

    #[test]
    fn a_setting_is_taken_back() {
        let mut both = link("20ms,rate=1mbit");
        both.set("rate=none").expect("a setting");
        assert_eq!(both, link("20ms"));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_what_there_is() {
        for text in [
            "color=red",
            "delay",
            "burst=0.5",
            "loss=120%",
            "rate=fast",
            "20ms,jitter",
        ] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
        assert!(
            Link::default()
                .set("color=red")
                .expect_err("none")
                .contains("jitter")
        );
    }

    #[test]
    fn spokes_add_up_and_a_pair_overrides() {
        let (home, site) = (
            link("20ms,loss=50%,rate=10mbit"),
            link("5ms,jitter=2ms,loss=50%"),
        );
        let path = Path::between(&home, &site, &Link::default());
        assert_eq!(path.delay, Duration::from_millis(25));
        assert_eq!(path.jitter, Duration::from_millis(2));
        assert_eq!(path.loss, 0.75);
        assert_eq!(path.rate().map(Rate::bits), Some(10_000_000));
        let path = Path::between(&home, &site, &link("rtt=2ms,loss=0%,rate=1mbit"));
        assert_eq!((path.delay, path.loss), (Duration::from_millis(1), 0.0));
        assert_eq!(path.rate().map(Rate::bits), Some(1_000_000));
    }

    #[test]
    fn large_segments_cross_whole_only_without_loss_and_on_a_wide_path() {
        let whole = |text| {
            Path::between(&link(text), &Link::default(), &Link::default()).carries_whole_segments()
        };
        assert!(whole("20ms"));
        assert!(whole("20ms,rate=1gbit"));
        assert!(!whole("20ms,rate=100mbit"));
        assert!(!whole("20ms,loss=0.01%"));
    }
}
