//! How old what a node knows of a home is: followed from the home along every heartbeat, because
//! the messages themselves do not tell.

use crate::time::{At, NodeNo};
use crate::world::World;
use std::collections::BTreeMap;
use thorp_model::{Down, HomeId, Message, NodeKind, message};

/// That a home was heard of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Freshness {
    /// When the home said it: everything told there before is known.
    pub as_of: At,
    /// When it came. What a site tells a new child of what it has heard before came
    /// when the site heard it.
    pub arrived: At,
}

impl Freshness {
    fn add(&mut self, news: Freshness) {
        self.as_of = self.as_of.max(news.as_of);
        self.arrived = self.arrived.max(news.arrived);
    }
}

/// The last news of each home.
pub type FreshnessByHome = BTreeMap<HomeId, Freshness>;

/// Freshness on their way: how old they were when they were sent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    home: HomeId,
    as_of: At,
    age_us: u64,
}

impl World {
    /// What a message says of a home being there, if it says that.
    pub fn freshness_in(&self, from: NodeNo, message: &Message) -> Option<Sent> {
        let home = match message {
            Message::Down(
                Down::Begin(message::Begin { home, .. })
                | Down::Heartbeat(message::Heartbeat { home, .. }),
            ) => *home,
            _ => return None,
        };
        let node = &self.nodes[from.0];
        let news = if node.kind == NodeKind::Home {
            Freshness {
                as_of: self.now,
                arrived: self.now,
            }
        } else {
            match self.arriving {
                Some((of, news)) if of == home => news,
                _ => *node.news.get(&home)?,
            }
        };
        Some(Sent {
            home,
            as_of: news.as_of,
            age_us: self.now.0 - news.arrived.0,
        })
    }

    /// Freshness arrive at a node, which may still turn the message away.
    pub fn freshness_arrive(&mut self, sent: Option<Sent>) {
        self.arriving = sent.map(|sent| {
            let arrived = At(self.now.0.saturating_sub(sent.age_us));
            let as_of = sent.as_of;
            (sent.home, Freshness { as_of, arrived })
        });
    }

    /// The message was not one of the node's stream: it is no news.
    pub fn freshness_turned_away(&mut self) {
        self.arriving = None;
    }

    /// The node has taken the message.
    pub fn freshness_taken(&mut self, no: NodeNo) {
        let Some((home, news)) = self.arriving.take() else {
            return;
        };
        let node = self.node(no);
        let machine = node.machine.as_ref();
        let held = machine.is_some_and(|machine| machine.is_held(home));
        let all = match held {
            true => &mut node.freshness_held,
            false => &mut node.news,
        };
        all.entry(home).or_default().add(news);
    }

    /// What a member heard while its pages were not resynchronised counts when they are: until
    /// then they are as of the stream before (rule 13).
    pub fn freshness_settle(&mut self, no: NodeNo) {
        let node = self.node(no);
        let Some(machine) = node
            .machine
            .as_ref()
            .filter(|_| !node.freshness_held.is_empty())
        else {
            return;
        };
        for (home, news) in std::mem::take(&mut node.freshness_held) {
            if machine.is_held(home) {
                node.freshness_held.insert(home, news);
            } else if machine.is_live(home) {
                node.news.entry(home).or_default().add(news);
            }
        }
    }
}
