//! What a collection needs of a transaction, and what it is asked for.

use crate::{Reference, Result, Transaction};

/// What collections need of a transaction. [`Transaction`] has it. With an implementation for something else, for
/// example memory in a test, the same collections work there.
///
/// All methods fail as those of [`Transaction`] do.
///
/// A [`Visit`](crate::Visit) has it, too. It takes no single writes: a collection that is to work in visits makes its changes by
/// [`Access::change`].
pub trait Access: Send {
    /// An object's bytes.
    fn read(&mut self, reference: &Reference) -> impl Future<Output = Result<&[u8]>> + Send;

    /// Replaces an object's bytes.
    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()>;

    /// Makes an object near another one, if there is space.
    fn create_near(
        &mut self,
        near: &Reference,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Reference>> + Send;

    /// Deletes an object.
    fn delete(&mut self, reference: &Reference) -> Result<()>;

    /// A call begins that only reads. All that it reads is of one moment.
    fn begin_reading(&mut self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Makes a whole change of a collection. A visit makes it over what it sees, and again when it publishes it.
    fn change<C: Change>(&mut self, change: C) -> impl Future<Output = Result<C::Found>> + Send
    where
        Self: Sized,
    {
        async move { change.make(self).await }
    }

    /// What people call an object, for errors.
    fn name_of(&self, reference: &Reference) -> String {
        let (page, slot) = (reference.object.page.page, reference.object.slot);
        format!("#{page}.{slot}.{}", reference.generation)
    }

    /// Says that these will be read soon.
    fn prefetch(&mut self, references: &[Reference]) {
        let _ = references;
    }
}

/// A whole change of a collection, for example an insertion: it reads what it needs, and then writes. It may be made several times,
/// each time on what the collection is by then.
pub trait Change: Send + Sync + 'static {
    /// What it finds.
    type Found: Send;

    /// The object by which the collection is known. All objects of the collection are of its segment.
    fn root(&self) -> Reference;

    /// Makes it. If that fails, nothing of it was written.
    fn make<A: Access>(&self, objects: &mut A) -> impl Future<Output = Result<Self::Found>> + Send;
}

impl Access for Transaction {
    async fn read(&mut self, reference: &Reference) -> Result<&[u8]> {
        self.read_async(reference).await
    }

    fn write(&mut self, reference: &Reference, bytes: Vec<u8>) -> Result<()> {
        Transaction::write(self, reference, bytes)
    }

    async fn create_near(&mut self, near: &Reference, bytes: Vec<u8>) -> Result<Reference> {
        self.create_near_async(near, bytes).await
    }

    fn delete(&mut self, reference: &Reference) -> Result<()> {
        Transaction::delete(self, reference)
    }

    fn name_of(&self, reference: &Reference) -> String {
        self.shared.naming().object(reference)
    }

    fn prefetch(&mut self, references: &[Reference]) {
        self.shared.prefetcher.named(references);
    }
}
