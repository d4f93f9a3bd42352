//! What can be changed and asked while the network runs.

use super::carrier::{Carrier, Order};
use super::link::{Link, Path};
use super::router::Router;
use super::statistics::Statistics;
use crate::Outcome;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

/// A handle that may be copied and sent around. It does not keep the network alive.
#[derive(Clone)]
pub struct Controls {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
}

impl Controls {
    pub(super) fn new(orders: Sender<Order>, bell: Arc<OwnedFd>) -> Self {
        Controls { orders, bell }
    }

    /// Sets a spoke's link; what was asked of it before no longer counts.
    pub fn set_spoke(&self, spoke: &str, link: Link) -> Outcome<()> {
        self.change_spoke(spoke, move |asked| {
            *asked = link;
            Ok(())
        })
    }

    /// Changes some of what is asked of a spoke's link: `rate=10mbit`.
    pub fn adjust_spoke(&self, spoke: &str, settings: &[&str]) -> Outcome<()> {
        self.change_spoke(spoke, adjustment(settings))
    }

    /// Sets what is asked of a pair, in both directions.
    pub fn set_pair(&self, a: &str, b: &str, link: Link) -> Outcome<()> {
        self.set_way(a, b, link)?;
        self.set_way(b, a, link)
    }

    /// Changes some of what is asked of a pair, in both directions.
    pub fn adjust_pair(&self, a: &str, b: &str, settings: &[&str]) -> Outcome<()> {
        self.adjust_way(a, b, settings)?;
        self.adjust_way(b, a, settings)
    }

    /// Sets what is asked of a pair in this direction.
    pub fn set_way(&self, from: &str, to: &str, link: Link) -> Outcome<()> {
        self.change_way(from, to, move |asked| {
            *asked = link;
            Ok(())
        })
    }

    /// Changes some of what is asked of a pair in this direction.
    pub fn adjust_way(&self, from: &str, to: &str, settings: &[&str]) -> Outcome<()> {
        self.change_way(from, to, adjustment(settings))
    }

    /// Cuts a pair, in both directions. Nobody is told: packets vanish.
    pub fn cut(&self, a: &str, b: &str) -> Outcome<()> {
        self.cut_way(a, b, true)?;
        self.cut_way(b, a, true)
    }

    /// Joins a pair again, in both directions.
    pub fn heal(&self, a: &str, b: &str) -> Outcome<()> {
        self.cut_way(a, b, false)?;
        self.cut_way(b, a, false)
    }

    /// Cuts one direction, or joins it again.
    pub fn cut_way(&self, from: &str, to: &str, cut: bool) -> Outcome<()> {
        self.on_way(from, to, move |carrier, from, to| {
            carrier.router.cut(from, to, cut)
        })
    }

    /// Cuts a spoke off from all others, or joins it to all again.
    pub fn cut_off(&self, spoke: &str, cut: bool) -> Outcome<()> {
        let name = spoke.to_owned();
        self.ask(move |carrier| {
            let spoke = find(&carrier.router, &name)?;
            carrier.router.cut_off(spoke, cut);
            Ok(())
        })?
    }

    /// What a packet meets in this direction now.
    pub fn path(&self, from: &str, to: &str) -> Outcome<Path> {
        self.on_way(from, to, |carrier, from, to| carrier.router.path(from, to))
    }

    /// What has happened since the beginning, or since it was last forgotten.
    pub fn statistics(&self) -> Outcome<Statistics> {
        self.ask(|carrier| carrier.statistics())
    }

    /// Begins the statistics anew.
    pub fn forget_statistics(&self) -> Outcome<()> {
        self.ask(|carrier| carrier.router.forget_statistics())
    }

    fn change_spoke(
        &self,
        spoke: &str,
        change: impl FnOnce(&mut Link) -> Result<(), String> + Send + 'static,
    ) -> Outcome<()> {
        let name = spoke.to_owned();
        self.ask(move |carrier| {
            let spoke = find(&carrier.router, &name)?;
            let mut link = carrier.router.spoke_link(spoke);
            change(&mut link)?;
            carrier.router.ask_spoke(spoke, link);
            Ok(carrier.fit_segments()?)
        })?
    }

    fn change_way(
        &self,
        from: &str,
        to: &str,
        change: impl FnOnce(&mut Link) -> Result<(), String> + Send + 'static,
    ) -> Outcome<()> {
        self.on_way(from, to, move |carrier, from, to| {
            let mut link = carrier.router.pair_link(from, to);
            change(&mut link)?;
            carrier.router.ask_pair(from, to, link);
            Ok(carrier.fit_segments()?)
        })?
    }

    fn on_way<T: Send + 'static>(
        &self,
        from: &str,
        to: &str,
        work: impl FnOnce(&mut Carrier, usize, usize) -> T + Send + 'static,
    ) -> Outcome<T> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.ask(move |carrier| {
            let (a, b) = (find(&carrier.router, &from)?, find(&carrier.router, &to)?);
            if a == b {
                return Err(format!("{from} needs no link to itself").into());
            }
            Ok(work(carrier, a, b))
        })?
    }

    /// Has this done between two packets, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Carrier) -> T + Send + 'static,
    ) -> Outcome<T> {
        let (answer, answered) = channel();
        let work = move |carrier: &mut Carrier| {
            // Whoever asked may have gone.
            let _ = answer.send(work(carrier));
        };
        let ended = "the network has ended";
        self.orders
            .send(Order::Do(Box::new(work)))
            .map_err(|_| ended)?;
        ring(&self.bell)?;
        Ok(answered.recv().map_err(|_| ended)?)
    }
}

/// Wakes the carrying thread.
pub(super) fn ring(bell: &OwnedFd) -> rustix::io::Result<()> {
    rustix::io::write(bell, &1u64.to_ne_bytes()).map(drop)
}

fn adjustment(settings: &[&str]) -> impl FnOnce(&mut Link) -> Result<(), String> + Send + 'static {
    let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
    move |link| settings.iter().try_for_each(|setting| link.set(setting))
}

fn find(router: &Router, name: &str) -> Outcome<usize> {
    router
        .index(name)
        .ok_or_else(|| format!("there is no spoke {name:?}").into())
}
