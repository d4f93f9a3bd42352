//! Collections in a visit: what they read, and how their changes leave (record 0026).

use super::Visit;
use super::own::{NOT_IN_A_LOG, Update};
use crate::collections::{Access, Change};
use crate::{Error, Reference, Result, Transaction};
use std::pin::Pin;
use std::sync::Arc;
use thorp_model::Moment;

/// A change of a collection that a visit has made, and makes again.
pub(super) trait Redo: Send + Sync {
    /// For good, in the transaction that publishes it.
    fn redo<'a>(&'a self, tx: &'a mut Transaction) -> Redoing<'a>;
    /// Over the view of the visit, which has moved.
    fn rehearse<'a>(&'a self, visit: &'a mut Visit) -> Redoing<'a>;
}

/// A change that goes on.
pub(super) type Redoing<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

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
        self.0.read_node(reference).await
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
        self.0.member.shared().naming().object(reference)
    }
}

/// A visit reads collections as of one moment for each call. It makes whole changes of them only ([`Access::change`]): these it can
/// make anew when it publishes them.
impl Access for Visit {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        self.read_node(reference).await
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
        self.begin_collection().await
    }

    async fn change<C: Change>(&mut self, change: C) -> Result<C::Found> {
        let root = change.root();
        self.check_writes(&root)?;
        if self.is_tentative() {
            return Err(Error::invalid(NOT_IN_A_LOG));
        }
        self.begin_collection().await?;
        let found = change.make(&mut Rehearsal(self)).await?;
        self.add(&root, Update::Collection(Arc::new(change)))
            .await?;
        Ok(found)
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.member.shared().naming().object(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        let others = references.iter().filter(|at| !self.scratch.has(at));
        let others: Vec<Reference> = others.copied().collect();
        self.member.shared().prefetcher.named(&others);
    }
}

impl Visit {
    /// A call on a collection begins. All that it reads is of one moment, with the changes that this visit has made.
    async fn begin_collection(&mut self) -> Result<()> {
        if self.consistency.isolation() == Moment::Access {
            self.look_again().await?;
        }
        if !self.scratch.take_stale() {
            return Ok(());
        }
        for change in self.own.collections() {
            if let Err(error) = change.rehearse(self).await {
                self.scratch.is_old();
                return Err(error);
            }
        }
        Ok(())
    }

    /// A node of a collection. The view does not move after the first one.
    async fn read_node(&mut self, node: &Reference) -> Result<&[u8]> {
        if self.scratch.has(node) {
            return self.scratch.read(node);
        }
        self.check_place(node)?;
        self.node = self.read_whole(node, false).await?;
        Ok(&self.node)
    }
}

const ONLY_WHOLE: &str = "a visit changes a collection by whole changes, which it makes anew when it publishes them: Access::change";
