//! A network from its first namespace to its last.

use super::carrier::{Carrier, Order, become_punctual};
use super::controls::{Controls, ring};
use super::lease::Lease;
use super::namespace::Namespace;
use super::plan::Plan;
use super::router::Router;
use super::tun::Tun;
use crate::{NeedsRoot, Outcome};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A network that runs. When it is dropped, all processes in its namespaces are killed and everything it made is removed.
pub struct Wan {
    plan: Plan,
    namespaces: Vec<Namespace>,
    controls: Controls,
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
    carrier: Option<JoinHandle<()>>,
    imprecision: Option<String>,
    // Dropped last: the guardian removes what is left when the devices have gone.
    _lease: Lease,
}

impl Wan {
    /// Makes the network.
    pub fn start(plan: &Plan) -> Outcome<Self> {
        plan.check()?;
        if !crate::is_root() {
            return Err(NeedsRoot.into());
        }
        let lease = Lease::take()?;
        let (mut namespaces, mut tuns) = (Vec::new(), Vec::new());
        for spoke in &plan.spokes {
            let namespace = Namespace::create(lease.name(&spoke.name), &spoke.name, spoke.address)?;
            plan.tuning.apply(&namespace)?;
            tuns.push(Tun::create(&namespace, spoke.address, plan.mtu)?);
            namespaces.push(namespace);
        }
        let (orders, taken) = channel();
        // Not blocking: who reads it may find that another ring has been heard with an earlier one.
        let bell = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let mut carrier = Carrier::new(Router::new(plan), tuns, taken, bell.clone());
        carrier.fit_segments()?;
        let (carrier, imprecision) = carry(carrier, plan.realtime)?;
        Ok(Wan {
            plan: plan.clone(),
            namespaces,
            controls: Controls::new(orders.clone(), bell.clone()),
            orders,
            bell,
            carrier: Some(carrier),
            imprecision,
            _lease: lease,
        })
    }

    /// As it was asked for.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What can be changed and asked while it runs.
    pub fn controls(&self) -> &Controls {
        &self.controls
    }

    /// A spoke's namespace.
    pub fn namespace(&self, spoke: &str) -> Outcome<&Namespace> {
        let found = self
            .namespaces
            .iter()
            .find(|namespace| namespace.spoke() == spoke);
        found.ok_or_else(|| format!("there is no spoke {spoke:?}").into())
    }

    /// All of them, in the plan's order.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// Why packets may be late, if the machine refused what keeps them punctual.
    pub fn imprecision(&self) -> Option<&str> {
        self.imprecision.as_deref()
    }

    /// How the kernel's TCP is set, by spoke.
    pub fn settings(&self) -> Outcome<BTreeMap<String, BTreeMap<String, String>>> {
        let report = |namespace: &Namespace| {
            Ok((
                namespace.spoke().to_owned(),
                self.plan.tuning.report(namespace)?,
            ))
        };
        self.namespaces.iter().map(report).collect()
    }
}

impl Drop for Wan {
    fn drop(&mut self) {
        // It may have ended by itself, by a bug of ours, which it has told.
        let _ = self.orders.send(Order::End);
        let _ = ring(&self.bell);
        let _ = self.carrier.take().map(JoinHandle::join);
    }
}

fn carry(carrier: Carrier, realtime: bool) -> Outcome<(JoinHandle<()>, Option<String>)> {
    let (begun, begins) = channel();
    let thread = thread::Builder::new()
        .name("carrier".to_owned())
        .spawn(move || {
            let _ = begun.send(become_punctual(realtime).err());
            carrier.run();
        })?;
    Ok((thread, begins.recv()?))
}
