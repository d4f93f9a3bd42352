//! Which keys a transaction changes, by the recipe (rule W9).

use super::decode::{Cell, Change, Relation, Row};
use crate::journal;
use crate::recipe::{Recipe, Table};
use crate::template::Template;
use std::collections::{BTreeMap, BTreeSet};
use thorp_versions::{KEYS_OF_UPDATE_MAX, Place};

/// The changes of one transaction.
///
/// Invariant: None if something in it cannot be named. Then the transaction changes *unknown*. Beside each place is its key, cut to a
/// length that can be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Changed(Option<BTreeMap<Place, String>>);

impl Changed {
    /// A transaction that has changed nothing yet.
    pub(super) fn nothing() -> Self {
        Changed(Some(BTreeMap::new()))
    }

    /// The places of the keys, and the keys. None: somebody has to believe that all have changed.
    pub(super) fn keys(self) -> Option<(Vec<Place>, Vec<String>)> {
        Some(self.0?.into_iter().unzip())
    }

    /// Whether no answer can show what was changed.
    pub(super) fn is_nothing(&self) -> bool {
        self.0.as_ref().is_some_and(BTreeMap::is_empty)
    }

    /// Nobody can say what has changed.
    pub(super) fn unknown(&mut self) {
        self.0 = None;
    }

    fn add(&mut self, keys: Option<Vec<String>>) {
        let Some(places) = &mut self.0 else {
            return;
        };
        let Some(keys) = keys else {
            return self.unknown();
        };
        // What counts is the place. The text is for people, and may be long.
        places.extend(keys.iter().map(|key| (Place::of(key), journal::cut(key))));
        if places.len() > KEYS_OF_UPDATE_MAX {
            self.unknown();
        }
    }
}

/// The tables that the stream has described.
///
/// Invariant: until somebody has said of which table one is a part, its changes change *unknown*.
#[derive(Debug, Default)]
pub(super) struct Relations {
    described: BTreeMap<u32, Relation>,
    /// The tables whose rules count: a partition has those of its root.
    roots: BTreeMap<u32, String>,
    /// Those without a root yet.
    unplaced: BTreeSet<u32>,
}

impl Relations {
    /// A table of which nobody has said yet of which one it is a part.
    pub(super) fn unplaced(&self) -> Option<u32> {
        self.unplaced.first().copied()
    }

    /// Somebody has looked: the table is a part of this root, or of none. None: it is not there, or not yet.
    pub(super) fn place(&mut self, id: u32, root: Option<Option<String>>) {
        self.unplaced.remove(&id);
        if let (Some(relation), Some(root)) = (self.described.get(&id), root) {
            let root = root.unwrap_or_else(|| relation.name.clone());
            self.roots.insert(id, root);
        }
    }

    /// Takes one message of a transaction.
    pub(super) fn take(&mut self, change: Option<Change>, recipe: &Recipe, changed: &mut Changed) {
        let (id, rows) = match change {
            None => return changed.unknown(),
            Some(Change::Nothing) => return,
            Some(Change::Relation(relation)) => {
                self.roots.remove(&relation.id);
                self.unplaced.insert(relation.id);
                self.described.insert(relation.id, relation);
                return;
            }
            Some(Change::Truncate(ids)) => {
                // Nobody knows which rows there were.
                let is_ignored = |id: &u32| self.rule(*id, recipe) == Some(&Table::Ignored);
                if !ids.iter().all(is_ignored) {
                    changed.unknown();
                }
                return;
            }
            Some(Change::Insert(id, new)) => (id, Rows::Inserted(new)),
            Some(Change::Update(id, old, new)) => (id, Rows::Updated(old, new)),
            Some(Change::Delete(id, old)) => (id, Rows::Deleted(old)),
        };
        match self.rule(id, recipe) {
            Some(Table::Ignored) => {}
            Some(Table::Keys(templates)) => {
                let relation = self.described.get(&id);
                changed.add(relation.and_then(|relation| rows.keys(relation, templates)));
            }
            None => changed.unknown(),
        }
    }

    fn rule<'a>(&self, id: u32, recipe: &'a Recipe) -> Option<&'a Table> {
        recipe.table(self.roots.get(&id)?)
    }
}

/// A row before and after its change.
enum Rows {
    Inserted(Row),
    /// Without an old row, the identity is as it was.
    Updated(Option<Row>, Row),
    Deleted(Row),
}

impl Rows {
    /// The keys that the row stood for, and those that it stands for. None: some of them are not known.
    fn keys(&self, relation: &Relation, templates: &[Template]) -> Option<Vec<String>> {
        let keys = templates.iter().map(|template| match self {
            Rows::Inserted(new) => Some(vec![fill(template, relation, new, None)?]),
            Rows::Deleted(old) => Some(vec![fill(template, relation, old, None)?]),
            Rows::Updated(Some(old), new) => {
                let whole = old.is_whole.then_some(old);
                let keys = [
                    fill(template, relation, old, None)?,
                    fill(template, relation, new, whole)?,
                ];
                Some(keys.to_vec())
            }
            Rows::Updated(None, new) => {
                let is_fixed = template.holes().all(|hole| relation.identifies(hole));
                let key = is_fixed.then(|| fill(template, relation, new, None))?;
                Some(vec![key?])
            }
        });
        let keys = keys.collect::<Option<Vec<_>>>()?;
        Some(keys.concat())
    }
}

/// A key of a row. What has not changed is in the other one.
fn fill(
    template: &Template,
    relation: &Relation,
    row: &Row,
    other: Option<&Row>,
) -> Option<String> {
    template.fill(|name| {
        let here = value(row, relation, name);
        here.or_else(|| value(other?, relation, name))
    })
}

/// A column of a row. Of a row that is only an identity, the other columns are not known.
fn value<'a>(row: &'a Row, relation: &Relation, name: &str) -> Option<&'a str> {
    let mut columns = relation.columns.iter();
    let at = columns.position(|column| column.name == name)?;
    match row.cells.get(at)? {
        Cell::Text(text) if relation.columns[at].is_padded => {
            Some(std::str::from_utf8(text).ok()?.trim_end_matches(' '))
        }
        Cell::Text(text) => std::str::from_utf8(text).ok(),
        Cell::Null if row.is_whole || relation.identifies(name) => Some(""),
        Cell::Null | Cell::Unchanged => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::Column;
    use super::*;
    use bytes::Bytes;

    const RECIPE: &str = r#"
        [tables]
        item = ["item:{id}", "shelf:{shelf}"]
        visit = ["item:{id}"]
        session = "ignored"
    "#;

    fn relation(id: u32, name: &str) -> Change {
        let column = |name: &str, is_key| Column {
            name: name.to_owned(),
            is_key,
            is_padded: !is_key,
        };
        Change::Relation(Relation {
            id,
            name: format!("public.{name}"),
            columns: vec![column("id", true), column("shelf", false)],
        })
    }

    fn row(cells: &[&str], is_whole: bool) -> Row {
        let cell = |text: &&str| match *text {
            "-" => Cell::Null,
            "=" => Cell::Unchanged,
            text => Cell::Text(Bytes::copy_from_slice(text.as_bytes())),
        };
        let cells = cells.iter().map(cell).collect();
        Row { cells, is_whole }
    }

    fn changed(changes: Vec<Change>) -> Option<Vec<Place>> {
        let recipe = Recipe::parse(RECIPE).expect("a recipe");
        let mut relations = Relations::default();
        let mut changed = Changed::nothing();
        let known = [
            relation(1, "item"),
            relation(2, "visit"),
            relation(3, "session"),
            relation(4, "other"),
            relation(6, "item_2026"),
            relation(7, "session"),
        ];
        for change in known.into_iter().chain(changes) {
            relations.take(Some(change), &recipe, &mut changed);
            if let Some(id) = relations.unplaced() {
                let root = (id == 6).then(|| String::from("public.item"));
                relations.place(id, (id != 7).then_some(root));
            }
        }
        changed.keys().map(|(places, _)| places)
    }

    fn places(keys: &[&str]) -> Option<Vec<Place>> {
        let places: BTreeSet<Place> = keys.iter().map(|key| Place::of(key)).collect();
        Some(places.into_iter().collect())
    }

    #[test]
    fn a_moved_row_changes_the_old_and_the_new_key() {
        let update = Change::Update(1, Some(row(&["7", "a"], true)), row(&["=", "b"], true));
        assert_eq!(
            changed(vec![update]),
            places(&["item:7", "shelf:a", "shelf:b"])
        );
    }

    #[test]
    fn a_key_that_is_not_known_is_any_key() {
        // Only the identity of the old row is there, or nothing of it.
        let by_key = Change::Update(1, Some(row(&["7", "-"], false)), row(&["8", "b"], true));
        let without = Change::Update(1, None, row(&["7", "b"], true));
        let deleted = Change::Delete(1, row(&["7", "-"], false));
        for change in [
            by_key,
            without,
            deleted,
            Change::Truncate(vec![1]),
            relation(9, "new"),
        ] {
            let is_known = matches!(change, Change::Relation(_));
            assert_eq!(changed(vec![change]).is_some(), is_known);
        }
    }

    #[test]
    fn the_identity_alone_names_keys_of_identity() {
        let without = Change::Update(2, None, row(&["7", "b"], true));
        let moved = Change::Update(2, Some(row(&["7", "-"], false)), row(&["8", "b"], true));
        let deleted = Change::Delete(2, row(&["9", "-"], false));
        let expected = places(&["item:7", "item:8", "item:9"]);
        assert_eq!(changed(vec![without, moved, deleted]), expected);
    }

    #[test]
    fn spaces_that_fill_a_value_up_are_no_part_of_a_key() {
        let insert = Change::Insert(1, row(&["7", "a   "], true));
        assert_eq!(changed(vec![insert]), places(&["item:7", "shelf:a"]));
    }

    #[test]
    fn a_partition_has_the_keys_of_its_root_once_that_is_known() {
        let insert = |id| Change::Insert(id, row(&["7", "a"], true));
        assert_eq!(changed(vec![insert(6)]), places(&["item:7", "shelf:a"]));
        assert_eq!(changed(vec![Change::Truncate(vec![6])]), None);
        assert_eq!(changed(vec![insert(7)]), None);
    }

    #[test]
    fn what_the_recipe_ignores_changes_nothing_and_what_it_does_not_name_all() {
        let insert = |id| Change::Insert(id, row(&["7", "a"], true));
        assert_eq!(
            changed(vec![insert(3), Change::Truncate(vec![3])]),
            places(&[])
        );
        assert_eq!(changed(vec![insert(4)]), None);
        assert_eq!(
            changed(vec![insert(5)]),
            None,
            "the stream has not described it"
        );
    }
}
