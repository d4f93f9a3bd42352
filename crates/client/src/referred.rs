//! The references that are met in a value while it is decoded: what its reader is likely to read next.

use crate::limits::REFERRED_MAX;
use std::cell::RefCell;
use thorp_model::Reference;

thread_local! {
    /// None while no caller collects references.
    static MET: RefCell<Option<Vec<Reference>>> = const { RefCell::new(None) };
}

/// Decodes a value, and gives the first references in it.
pub(crate) fn with_references<T>(decode: impl FnOnce() -> T) -> (T, Vec<Reference>) {
    let before = MET.replace(Some(Vec::new()));
    let value = decode();
    let met = MET.replace(before);
    (value, met.unwrap_or_default())
}

/// A typed reference was decoded.
pub(crate) fn met(reference: Reference) {
    MET.with_borrow_mut(|met| {
        if let Some(met) = met
            && met.len() < REFERRED_MAX
        {
            met.push(reference);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ref;
    use thorp_model::{Generation, HomeId, ObjectId, PageId, Slot};

    fn to(page: u32) -> Ref<String> {
        Ref::new(Reference {
            home: HomeId(7),
            object: ObjectId {
                page: PageId::new(3, page),
                slot: Slot(1),
            },
            generation: Generation(1),
            offset: 0,
        })
    }

    #[test]
    fn what_a_value_refers_to_is_met_only_when_it_is_wanted() {
        let value = ("a name", Some(to(1)), vec![to(2), to(3)]);
        let bytes = postcard::to_allocvec(&value).unwrap();
        type Value = (String, Option<Ref<String>>, Vec<Ref<String>>);
        let decode = || postcard::from_bytes::<Value>(&bytes).unwrap();
        decode();
        let (decoded, met) = with_references(decode);
        let all = [to(1), to(2), to(3)].map(Ref::reference);
        assert_eq!((decoded.2, met), (vec![to(2), to(3)], all.to_vec()));
        let many: Vec<Ref<String>> = (0..10_000).map(to).collect();
        let bytes = postcard::to_allocvec(&many).unwrap();
        let (decoded, met) = with_references(|| postcard::from_bytes::<Vec<Ref<String>>>(&bytes));
        assert_eq!((decoded.unwrap().len(), met.len()), (10_000, REFERRED_MAX));
    }
}
