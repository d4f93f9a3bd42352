//! What the named roots of a segment are kept in: an ordered map over objects, or in a segment of before, one list.

use super::super::{Transaction, decode, encode};
use super::nodes::{Nodes, empty_map, is_in_system_page_of, is_map, not_of_roots};
use super::roots_of;
use crate::collections::TreeMap;
use crate::{Error, Reference, Result, Segment};
use std::collections::BTreeMap;
use thorp_session::Act;

/// The roots as segments had them at first: one object holds all.
type List = BTreeMap<String, Reference>;

/// Bytes of a list that one commit turns into a map. A longer one stays a list, and each change writes it whole. 1 MiB
/// is about 40,000 roots.
const LIST_TURNED_BYTES_MAX: usize = 1 << 20;

/// Cells that are fetched ahead of the one that is read.
const CELLS_AHEAD: usize = 512;

/// The named roots of a segment, as a transaction sees them.
///
/// The map leads from each name to a *cell*: an object that holds the reference. So transactions that set different
/// roots write different objects. They conflict only if one of them adds or removes a name near that of the other.
pub(super) struct Roots<'a> {
    tx: &'a mut Transaction,
    /// The object in the segment's first page: the root node of the map, or the list.
    object: Reference,
    form: Form,
}

enum Form {
    /// No root was ever set.
    None,
    /// The list, and how many bytes it has.
    List(List, usize),
    Map,
}

impl<'a> Roots<'a> {
    /// Finds out what a segment keeps its roots in.
    pub(super) async fn of(tx: &'a mut Transaction, segment: &Segment) -> Result<Roots<'a>> {
        let object = roots_of(segment);
        let form = match tx.exists_async(&object).await? {
            true => form_of(tx.read_async(&object).await?, segment)?,
            false => Form::None,
        };
        Ok(Roots { tx, object, form })
    }

    /// A root's reference.
    pub(super) async fn get(mut self, name: &str) -> Result<Option<Reference>> {
        match &self.form {
            Form::None => Ok(None),
            Form::List(list, _) => Ok(list.get(name).copied()),
            Form::Map => match self
                .map()
                .get_async(&mut self.nodes(), &name.to_owned())
                .await?
            {
                Some(cell) => self.read_cell(&cell).await.map(Some),
                None => Ok(None),
            },
        }
    }

    /// All roots, in the order of their names.
    pub(super) async fn all(mut self) -> Result<Vec<(String, Reference)>> {
        match self.form {
            Form::None => Ok(Vec::new()),
            Form::List(list, _) => Ok(list.into_iter().collect()),
            Form::Map => self.read_all().await,
        }
    }

    /// Sets a root.
    pub(super) async fn set(mut self, name: &str, reference: Reference) -> Result<()> {
        match std::mem::replace(&mut self.form, Form::Map) {
            Form::None => {
                let act = Act::Created(empty_map()?);
                let (object, generation) = ((&self.object).into(), self.object.generation);
                self.tx.inner.writes_mut().set(object, generation, act);
            }
            Form::List(mut list, bytes) if bytes > LIST_TURNED_BYTES_MAX => {
                list.insert(name.to_owned(), reference);
                return self.tx.replace(&self.object, encode(&list)?);
            }
            Form::List(list, _) => self.turn(list).await?,
            Form::Map => {}
        }
        self.put(name, reference).await
    }

    /// Takes a root away.
    pub(super) async fn remove(mut self, name: &str) -> Result<()> {
        match std::mem::replace(&mut self.form, Form::Map) {
            Form::None => Ok(()),
            Form::List(mut list, _) => match list.remove(name) {
                Some(_) => self.tx.replace(&self.object, encode(&list)?),
                None => Ok(()),
            },
            Form::Map => match self
                .map()
                .remove_async(&mut self.nodes(), &name.to_owned())
                .await?
            {
                Some(cell) => {
                    self.check_cell(&cell)?;
                    self.tx.delete_system(&cell)
                }
                None => Ok(()),
            },
        }
    }

    /// Makes a map of a list.
    async fn turn(&mut self, list: List) -> Result<()> {
        self.tx.replace(&self.object, empty_map()?)?;
        for (name, reference) in list {
            self.put(&name, reference).await?;
        }
        Ok(())
    }

    async fn put(&mut self, name: &str, reference: Reference) -> Result<()> {
        let (map, name) = (self.map(), name.to_owned());
        if let Some(cell) = map.get_async(&mut self.nodes(), &name).await? {
            self.check_cell(&cell)?;
            return self.tx.replace(&cell, encode(&reference)?);
        }
        let bytes = encode(&reference)?;
        let cell = self.tx.create_system(&self.object, bytes, 0).await?;
        map.insert_async(&mut self.nodes(), name, cell).await?;
        Ok(())
    }

    async fn read_all(&mut self) -> Result<Vec<(String, Reference)>> {
        let (names, cells): (Vec<String>, Vec<Reference>) = {
            let entries = self.map().range_async(&mut self.nodes(), ..).await?;
            entries.into_iter().unzip()
        };
        let mut references = Vec::with_capacity(cells.len());
        for some in cells.chunks(CELLS_AHEAD) {
            some.iter().try_for_each(|cell| self.check_cell(cell))?;
            self.tx.shared.prefetcher.named(some);
            for cell in some {
                references.push(self.read_cell(cell).await?);
            }
        }
        Ok(names.into_iter().zip(references).collect())
    }

    async fn read_cell(&mut self, cell: &Reference) -> Result<Reference> {
        self.check_cell(cell)?;
        let value = decode(self.tx.read_async(cell).await?);
        value.map_err(|other| other.of(self.tx.shared.naming().object(cell)))
    }

    /// Whoever may write in the segment may have written any reference into the map.
    fn check_cell(&self, cell: &Reference) -> Result<()> {
        match is_in_system_page_of(&self.object, cell) {
            true => Ok(()),
            false => Err(not_of_roots(self.tx, &self.object)),
        }
    }

    fn map(&self) -> TreeMap<String, Reference> {
        TreeMap::at(self.object)
    }

    fn nodes(&mut self) -> Nodes<'_> {
        Nodes {
            root: self.object,
            tx: self.tx,
        }
    }
}

fn form_of(bytes: &[u8], segment: &Segment) -> Result<Form> {
    if is_map(bytes) {
        return Ok(Form::Map);
    }
    match postcard::from_bytes(bytes) {
        Ok(list) => Ok(Form::List(list, bytes.len())),
        Err(error) => {
            let name = segment.name();
            Err(Error::damaged(format!(
                "the roots of {name} are damaged: {error}"
            )))
        }
    }
}
