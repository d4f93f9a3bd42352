//! The edits of the demo, each marked so that a checker can tell whether it is in an export, and only once.
//!
//! All of them read what is there and add to it. An edit that was lost, or done twice, or overwritten by one that
//! had not seen it, therefore shows in the result, however many edits the same element has had.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::schema::{LABEL_CHARS_MAX, is_root, property_set, root};
use super::{Editor, IfcError, Model};
use crate::step::{Body, Entity, EntityId, Param, Record};

/// A word that marks one edit and no other, of letters, digits, `-`, `_` and `.`. In texts it stands in brackets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tag(String);

/// An edit that has been made: what it read and changed in the model, and the record of it for the checker.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit<R> {
    /// The record for the checker. To be kept only if the transaction commits.
    pub record: EditRecord,
    /// What was read, changed or not.
    pub read: Vec<R>,
    /// What got a new body.
    pub rewritten: Vec<R>,
    /// What was created.
    pub created: Vec<R>,
}

/// What a checker has to know of one edit. A file of edits is a JSON list of these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EditRecord {
    /// The edit's mark.
    pub tag: Tag,
    /// The entity that was edited: the renamed or moved object, or the property set.
    pub entity: EntityId,
    /// What was done and what must be seen of it.
    #[serde(flatten)]
    pub kind: Kind,
    /// The entities that got a new body.
    pub rewritten: Vec<EntityId>,
    /// The entities that were created.
    pub created: Vec<EntityId>,
}

/// The kinds of edits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// The tag was appended to the object's name.
    Rename {
        /// The name right after this edit.
        expected: String,
    },
    /// The object was moved.
    Move {
        /// By how much, along each axis of its placement.
        delta: [f64; 3],
        /// Where it was right after this edit.
        expected: [f64; 3],
    },
    /// A property was added, with the tag in its name.
    AddProperty {
        /// The property's name.
        name: String,
        /// Its value.
        expected: String,
    },
}

impl Tag {
    /// How the tag stands in texts. The brackets keep `a-1` from being found in `a-10`.
    #[must_use]
    pub fn bracketed(&self) -> String {
        format!("[{}]", self.0)
    }
}

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=40).contains(&text.len()) && text.bytes().all(is_good) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a tag must be of 1 to 40 letters, digits, hyphens, underscores and full stops")
        }
    }
}

impl TryFrom<String> for Tag {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        tag.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// An edit, or why it could not be made.
pub(super) type Edited<M> = Result<Edit<<M as Model>::Reference>, IfcError<<M as Model>::Error>>;

/// Appends the tag to the name of any `IfcRoot`: an element, a storey, a property set.
///
/// # Errors
/// The entity is no `IfcRoot`, its name would be too long, or the model fails.
pub fn rename<M: Editor>(model: &mut M, object: &M::Reference, tag: &Tag) -> Edited<M> {
    let mut edit = Recorder::new(model);
    let Entity { id, mut body } = edit.get(object)?;
    if !is_root(&body) {
        return Err(IfcError::WrongKind {
            entity: id,
            wanted: "an IfcRoot, which has a name",
        });
    }
    let name = super::name_of(&body).unwrap_or_default();
    let expected = format!("{name} {}", tag.bracketed())
        .trim_start()
        .to_owned();
    if expected.chars().count() > LABEL_CHARS_MAX {
        return Err(IfcError::TooLong(id));
    }
    set(&mut body, id, root::NAME, Param::text(&expected), "Name")?;
    edit.replace(object, id, body)?;
    Ok(edit.finish(tag, id, Kind::Rename { expected }))
}

/// Adds a property with this text as its value to an `IFCPROPERTYSET`.
///
/// # Errors
/// The entity is no property set, the value is too long, or the model fails.
pub fn add_property<M: Editor>(
    model: &mut M,
    set: &M::Reference,
    value: &str,
    tag: &Tag,
) -> Edited<M> {
    let mut edit = Recorder::new(model);
    let Entity { id, mut body } = edit.get(set)?;
    if !body.is("IFCPROPERTYSET") {
        return Err(IfcError::WrongKind {
            entity: id,
            wanted: "an IFCPROPERTYSET",
        });
    }
    if value.chars().count() > LABEL_CHARS_MAX {
        return Err(IfcError::TooLong(id));
    }
    let Some(Param::List(properties)) = body.param_mut(property_set::HAS_PROPERTIES) else {
        return Err(IfcError::BadAttribute {
            entity: id,
            attribute: "HasProperties",
        });
    };
    let name = format!("Note {}", tag.bracketed());
    let label = Param::typed("IFCLABEL", Param::text(value));
    let property = Record::new(
        "IFCPROPERTYSINGLEVALUE",
        vec![Param::text(&name), Param::Null, label, Param::Null],
    );
    properties.push(Param::Reference(edit.create(Body::Simple(property))?));
    edit.replace(set, id, body)?;
    Ok(edit.finish(
        tag,
        id,
        Kind::AddProperty {
            name,
            expected: value.to_owned(),
        },
    ))
}

/// Puts `param` into an attribute that the entity must have.
pub(super) fn set<R, E>(
    body: &mut Body<R>,
    entity: EntityId,
    index: usize,
    param: Param<R>,
    attribute: &'static str,
) -> Result<(), IfcError<E>> {
    let place = body
        .param_mut(index)
        .ok_or(IfcError::BadAttribute { entity, attribute })?;
    *place = param;
    Ok(())
}

/// Passes an edit's calls on to the model and remembers them.
pub(super) struct Recorder<'a, M: Editor> {
    model: &'a mut M,
    read: Vec<M::Reference>,
    rewritten: Vec<(M::Reference, EntityId)>,
    created: Vec<(M::Reference, EntityId)>,
}

impl<'a, M: Editor> Recorder<'a, M> {
    pub(super) fn new(model: &'a mut M) -> Self {
        Self {
            model,
            read: Vec::new(),
            rewritten: Vec::new(),
            created: Vec::new(),
        }
    }

    pub(super) fn get(
        &mut self,
        reference: &M::Reference,
    ) -> Result<Entity<M::Reference>, IfcError<M::Error>> {
        self.read.push(reference.clone());
        self.model.get(reference).map_err(IfcError::Model)
    }

    pub(super) fn replace(
        &mut self,
        reference: &M::Reference,
        id: EntityId,
        body: Body<M::Reference>,
    ) -> Result<(), IfcError<M::Error>> {
        self.rewritten.push((reference.clone(), id));
        self.model.replace(reference, body).map_err(IfcError::Model)
    }

    pub(super) fn create(
        &mut self,
        body: Body<M::Reference>,
    ) -> Result<M::Reference, IfcError<M::Error>> {
        let (reference, id) = self.model.create(body).map_err(IfcError::Model)?;
        self.created.push((reference.clone(), id));
        Ok(reference)
    }

    pub(super) fn finish(self, tag: &Tag, entity: EntityId, kind: Kind) -> Edit<M::Reference> {
        let (rewritten, rewritten_ids) = self.rewritten.into_iter().unzip();
        let (created, created_ids) = self.created.into_iter().unzip();
        let record = EditRecord {
            tag: tag.clone(),
            entity,
            kind,
            rewritten: rewritten_ids,
            created: created_ids,
        };
        Edit {
            record,
            read: self.read,
            rewritten,
            created,
        }
    }
}
