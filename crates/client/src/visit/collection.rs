//! Collections in a visit: what they read, and how their changes leave (record 0026).

use super::Visit;
use super::own::{NOT_IN_A_LOG, Update};
use super::redo::{Redo, Redoing};
use crate::collections::{Access, Change};
use crate::{Error, Reference, Result, Transaction};
use std::sync::Arc;
use thorp_model::Moment;

impl<C: Change> Redo for C {
    fn redo<'a>(&'a self, tx: &'a mut Transaction) -> Redoing<'a> {
        Box::pin(async move { self.make(tx).await.map(drop) })
    }

    fn rehearse<'a>(&'a self, visit: &'a mut Visit) -> Redoing<'a> {
        Box::pin(async move { self.make(&mut Rehearsal(visit)).await.map(drop) })
    }
}

/// A visit whose collections may change: over its view only.
struct Rehearsal<'a>(&'a mut Visit);

impl Access for Rehearsal<'_> {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        read_node(self.0, reference).await
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        self.0.scratch.write(reference, Some(bytes));
        Ok(())
    }

    async fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.0.scratch.create(near, bytes)
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        self.0.scratch.write(reference, None);
        Ok(())
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.0.view.member.shared().naming().object(reference)
    }
}

/// A visit reads collections as of one moment for each call. It makes whole changes of them only ([`Access::change`]): these it can
/// make anew when it publishes them.
impl Access for Visit {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        read_node(self, reference).await
    }

    fn write(&mut self, _: &Reference, _: Vec<u8>) -> Result<()> {
        Err(Error::invalid(ONLY_WHOLE))
    }

    async fn create_near(&mut self, _: &Reference, _: Vec<u8>) -> Result<Reference> {
        Err(Error::invalid(ONLY_WHOLE))
    }

    fn delete(&mut self, _: &Reference) -> Result<()> {
        Err(Error::invalid(ONLY_WHOLE))
    }

    async fn begin_reading(&mut self) -> Result<()> {
        begin_collection(self).await
    }

    async fn change<C: Change>(&mut self, change: C) -> Result<C::Found> {
        let root = change.root();
        self.check_writes(&root)?;
        if self.view.is_tentative() {
            return Err(Error::invalid(NOT_IN_A_LOG));
        }
        begin_collection(self).await?;
        let found = change.make(&mut Rehearsal(self)).await?;
        self.add(&root, Update::Collection(Arc::new(change)))
            .await?;
        Ok(found)
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.view.member.shared().naming().object(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        let others = references.iter().filter(|at| !self.scratch.has(at));
        let others: Vec<Reference> = others.copied().collect();
        self.view.member.shared().prefetcher.named(&others);
    }
}

/// A call on a collection begins. All that it reads is of one moment, with the changes that the visit has made.
async fn begin_collection(visit: &mut Visit) -> Result<()> {
    if visit.view.consistency.isolation() == Moment::Access {
        visit.look_again().await?;
    }
    if !visit.scratch.take_stale() {
        return Ok(());
    }
    for change in visit.own.collections() {
        if let Err(error) = change.rehearse(visit).await {
            visit.scratch.is_old();
            return Err(error);
        }
    }
    Ok(())
}

/// A node of a collection. The view does not move after the first one.
async fn read_node<'a>(visit: &'a mut Visit, node: &Reference) -> Result<&'a [u8]> {
    if visit.scratch.has(node) {
        return visit.scratch.read(node);
    }
    visit.view.check_place(node)?;
    visit.node = visit.read_whole(node, false).await?;
    Ok(&visit.node)
}

const ONLY_WHOLE: &str = "a visit changes a collection by whole changes, which it makes anew when it publishes them: Access::change";
