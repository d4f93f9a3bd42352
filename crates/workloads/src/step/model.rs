//! What a STEP file holds: entities made of parameters, over any type of reference.

use std::convert::Infallible;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::RawText;
use super::tokens::Token;

/// An entity's number in its file: the 12 of `#12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(pub u64);

/// A whole STEP file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFile {
    /// The header's statements: `FILE_DESCRIPTION`, `FILE_NAME`, `FILE_SCHEMA` and any more, in order.
    pub header: Vec<Record>,
    /// The parameters of the DATA section; empty for the usual plain `DATA;`.
    pub data: Vec<Param>,
    /// The entities, in the file's order.
    pub entities: Vec<Entity>,
}

/// An entity: its number and what stands behind the `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity<R = EntityId> {
    /// The entity's number.
    pub id: EntityId,
    /// Its type and attributes.
    pub body: Body<R>,
}

/// What stands behind the `=` of an entity. `R` is what a reference is: a number in a file, the store's own
/// reference in a store.
///
/// Its serde form is a flat list of tokens, so decoding needs no stack, and decoding checks every spelling: a value
/// that decodes can be written into a valid file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Token<R>>", try_from = "Vec<Token<R>>")]
#[serde(bound(
    serialize = "R: Clone + Serialize",
    deserialize = "R: Deserialize<'de>"
))]
pub enum Body<R = EntityId> {
    /// `IFCWALL(...)`.
    Simple(Record<R>),
    /// `(A() B(1.))`: an entity of several types at once.
    Complex(Vec<Record<R>>),
}

/// A keyword and its parameters, `IFCDIRECTION((1.,0.,0.))`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Token<R>>", try_from = "Vec<Token<R>>")]
#[serde(bound(
    serialize = "R: Clone + Serialize",
    deserialize = "R: Deserialize<'de>"
))]
pub struct Record<R = EntityId> {
    /// The type's name, as spelled in the file.
    pub keyword: Box<str>,
    /// The attributes in the order of the schema.
    pub params: Vec<Param<R>>,
}

/// One parameter. Texts are spelled as in the file, without the marks around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param<R = EntityId> {
    /// `$`: no value.
    Null,
    /// `*`: a value that the schema derives.
    Derived,
    /// An integer.
    Integer(Box<str>),
    /// A real.
    Real(Box<str>),
    /// A string.
    Text(RawText),
    /// `.ENUM.`, without the full stops.
    Enum(Box<str>),
    /// `"0F"`, without the quotation marks.
    Binary(Box<str>),
    /// `#12`.
    Reference(R),
    /// `(1.,2.)`.
    List(Vec<Param<R>>),
    /// `IFCLABEL('x')`.
    Typed(Box<Typed<R>>),
}

/// A parameter that names its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed<R = EntityId> {
    /// The type's name.
    pub keyword: Box<str>,
    /// The value.
    pub value: Param<R>,
}

impl fmt::Display for EntityId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "#{}", self.0)
    }
}

impl StepFile {
    /// The highest entity number in use; new entities are numbered above it.
    #[must_use]
    pub fn id_max(&self) -> EntityId {
        self.entities
            .iter()
            .map(|entity| entity.id)
            .max()
            .unwrap_or(EntityId(0))
    }
}

impl<R> Entity<R> {
    /// The same entity with other references. See [`Body::try_map_refs`].
    ///
    /// # Errors
    /// The first error of `map`.
    pub fn try_map_refs<S, E>(
        self,
        map: &mut impl FnMut(R) -> Result<S, E>,
    ) -> Result<Entity<S>, E> {
        Ok(Entity {
            id: self.id,
            body: self.body.try_map_refs(map)?,
        })
    }
}

impl<R> Body<R> {
    /// The records of the entity: one, or several for a complex entity.
    #[must_use]
    pub fn records(&self) -> &[Record<R>] {
        match self {
            Self::Simple(record) => std::slice::from_ref(record),
            Self::Complex(records) => records,
        }
    }

    /// The record, unless the entity is complex.
    #[must_use]
    pub fn as_simple(&self) -> Option<&Record<R>> {
        match self {
            Self::Simple(record) => Some(record),
            Self::Complex(_) => None,
        }
    }

    /// Whether this is a simple entity of that type. The standard's keywords are in capitals; some writers' are not.
    #[must_use]
    pub fn is(&self, keyword: &str) -> bool {
        self.as_simple().is_some_and(|record| record.is(keyword))
    }

    /// The type's name; of a complex entity, the first.
    #[must_use]
    pub fn keyword(&self) -> &str {
        self.records().first().map_or("", |record| &record.keyword)
    }

    /// The parameter at `index` of a simple entity.
    #[must_use]
    pub fn param(&self, index: usize) -> Option<&Param<R>> {
        self.as_simple().and_then(|record| record.params.get(index))
    }

    /// The place of the parameter at `index` of a simple entity.
    pub fn param_mut(&mut self, index: usize) -> Option<&mut Param<R>> {
        match self {
            Self::Simple(record) => record.params.get_mut(index),
            Self::Complex(_) => None,
        }
    }

    /// Calls `visit` for every reference, in order.
    pub fn for_each_ref<'a>(&'a self, visit: &mut impl FnMut(&'a R)) {
        for param in self.records().iter().flat_map(|record| &record.params) {
            param.for_each_ref(visit);
        }
    }

    /// All references, in order, repeated ones repeated.
    #[must_use]
    pub fn references(&self) -> Vec<&R> {
        let mut references = Vec::new();
        self.for_each_ref(&mut |reference| references.push(reference));
        references
    }

    /// The same body with other references: numbers into the store's references at an import, and back at an export.
    pub fn map_refs<S>(self, map: &mut impl FnMut(R) -> S) -> Body<S> {
        match self.try_map_refs(&mut |reference| Ok::<S, Infallible>(map(reference))) {
            Ok(body) => body,
            Err(never) => match never {},
        }
    }

    /// [`Body::map_refs`] where the mapping can fail.
    ///
    /// # Errors
    /// The first error of `map`.
    pub fn try_map_refs<S, E>(self, map: &mut impl FnMut(R) -> Result<S, E>) -> Result<Body<S>, E> {
        Ok(match self {
            Self::Simple(record) => Body::Simple(record.try_map_refs(map)?),
            Self::Complex(records) => Body::Complex(
                records
                    .into_iter()
                    .map(|record| record.try_map_refs(map))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

impl<R> Record<R> {
    /// A record of that type with these parameters.
    #[must_use]
    pub fn new(keyword: &str, params: Vec<Param<R>>) -> Self {
        Self {
            keyword: keyword.into(),
            params,
        }
    }

    /// Whether the record is of that type, in whatever case it is spelled.
    #[must_use]
    pub fn is(&self, keyword: &str) -> bool {
        self.keyword.eq_ignore_ascii_case(keyword)
    }

    fn try_map_refs<S, E>(self, map: &mut impl FnMut(R) -> Result<S, E>) -> Result<Record<S>, E> {
        let params = self
            .params
            .into_iter()
            .map(|param| param.try_map_refs(map))
            .collect::<Result<_, _>>()?;
        Ok(Record {
            keyword: self.keyword,
            params,
        })
    }
}

impl<R> Param<R> {
    /// A string parameter with this content, escaped as the standard wants it.
    #[must_use]
    pub fn text(content: &str) -> Self {
        Self::Text(RawText::encode(content))
    }

    /// An integer parameter.
    #[must_use]
    pub fn integer(value: i64) -> Self {
        Self::Integer(value.to_string().into())
    }

    /// A real parameter in the shortest spelling that reads back as the same value; a real must contain a full stop.
    /// `None` if the value is not finite: STEP has no spelling for that.
    #[must_use]
    pub fn real(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let mut spelling = value.to_string();
        if !spelling.contains('.') {
            spelling.push('.');
        }
        Some(Self::Real(spelling.into()))
    }

    /// `.NAME.`
    #[must_use]
    pub fn enumeration(name: &str) -> Self {
        Self::Enum(name.into())
    }

    /// `KEYWORD(value)`
    #[must_use]
    pub fn typed(keyword: &str, value: Self) -> Self {
        Self::Typed(Box::new(Typed {
            keyword: keyword.into(),
            value,
        }))
    }

    /// The value of a real or an integer, if it is one and fits.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(spelling) | Self::Real(spelling) => spelling.parse().ok(),
            _ => None,
        }
    }

    /// The reference, if the parameter is one.
    #[must_use]
    pub fn as_reference(&self) -> Option<&R> {
        match self {
            Self::Reference(reference) => Some(reference),
            _ => None,
        }
    }

    /// The text, if the parameter is a string.
    #[must_use]
    pub fn as_text(&self) -> Option<&RawText> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The members, if the parameter is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(members) => Some(members),
            _ => None,
        }
    }

    /// Calls `visit` for every reference in the parameter, in order.
    pub fn for_each_ref<'a>(&'a self, visit: &mut impl FnMut(&'a R)) {
        match self {
            Self::Reference(reference) => visit(reference),
            Self::List(members) => members.iter().for_each(|member| member.for_each_ref(visit)),
            Self::Typed(typed) => typed.value.for_each_ref(visit),
            _ => {}
        }
    }

    fn try_map_refs<S, E>(self, map: &mut impl FnMut(R) -> Result<S, E>) -> Result<Param<S>, E> {
        Ok(match self {
            Self::Null => Param::Null,
            Self::Derived => Param::Derived,
            Self::Integer(spelling) => Param::Integer(spelling),
            Self::Real(spelling) => Param::Real(spelling),
            Self::Text(text) => Param::Text(text),
            Self::Enum(name) => Param::Enum(name),
            Self::Binary(digits) => Param::Binary(digits),
            Self::Reference(reference) => Param::Reference(map(reference)?),
            Self::List(members) => Param::List(
                members
                    .into_iter()
                    .map(|member| member.try_map_refs(map))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Typed(typed) => {
                let Typed { keyword, value } = *typed;
                Param::Typed(Box::new(Typed {
                    keyword,
                    value: value.try_map_refs(map)?,
                }))
            }
        })
    }
}
