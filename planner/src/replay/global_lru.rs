use super::aged::{Chooser, State, Told};

/// Global LRU: it is always known which page of all is the oldest, and that is what is lost. No system knows that; it is what GMS
/// strives for.
pub(super) struct GlobalLru;

impl Chooser for GlobalLru {
    fn target(&mut self, _: usize, used: u32, state: &State) -> Option<usize> {
        let nodes = state
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.room > 0);
        let by_oldest = nodes.map(|(at, node)| match node.pages.first() {
            Some(&(oldest, _)) if node.is_full() => (oldest, at),
            _ => (0, at),
        });
        let (oldest, node) = by_oldest.min()?;
        (oldest < used).then_some(node)
    }

    fn note(&mut self, _: &Told<'_>) {}
}
