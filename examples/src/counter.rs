//! A counter that many programs increment: nothing is lost and nothing is counted twice.

use thorp_client::{Member, Ref, Result, Segment};

/// The counter of a segment; the first who asks makes it.
pub fn open(member: &Member, segment: &Segment) -> Result<Ref<u64>> {
    member.transact(|tx| match tx.root(segment, "counter")? {
        Some(counter) => Ok(Ref::new(counter)),
        None => {
            let counter = tx.create_typed(segment, &0u64)?;
            tx.set_root(segment, "counter", Some(counter.reference()))?;
            Ok(counter)
        }
    })
}

/// Adds one, and tells how many it is now. Conflicts with others are run again by `transact`.
pub fn increment(member: &Member, counter: &Ref<u64>) -> Result<u64> {
    member.transact(|tx| {
        let count = tx.get(counter)? + 1;
        tx.put(counter, &count)?;
        Ok(count)
    })
}
