//! Which attribute is which. The entities used here have these attributes at the same places in IFC2X3, IFC4 and
//! IFC4X3; where versions differ (the generator meets such), [`Schema`] decides.

use crate::step::{Body, Param, Record, StepFile};

/// A version of the IFC schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// IFC 2x3.
    Ifc2x3,
    /// IFC 4.
    Ifc4,
    /// IFC 4.3.
    Ifc4x3,
}

impl Schema {
    /// The version that the file's header names; `None` for another schema.
    #[must_use]
    pub fn of(file: &StepFile) -> Option<Self> {
        let record = file.header.iter().find(|record| record.is("FILE_SCHEMA"))?;
        let name = first_text(record)?.to_ascii_uppercase();
        match name.as_str() {
            "IFC2X3" => Some(Self::Ifc2x3),
            "IFC4" => Some(Self::Ifc4),
            _ if name.starts_with("IFC4X3") => Some(Self::Ifc4x3),
            _ => None,
        }
    }

    /// The name as it stands in a file's header.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ifc2x3 => "IFC2X3",
            Self::Ifc4 => "IFC4",
            Self::Ifc4x3 => "IFC4X3_ADD2",
        }
    }
}

/// The name of an `IfcRoot`, decoded; `None` if it has none.
#[must_use]
pub fn name_of<R>(body: &Body<R>) -> Option<String> {
    is_root(body)
        .then(|| body.param(root::NAME)?.as_text().map(|text| text.decode()))
        .flatten()
}

/// Whether the entity is of a subtype of `IfcRoot`. There are hundreds; all, and only they, begin with a GlobalId.
pub(super) fn is_root<R>(body: &Body<R>) -> bool {
    let identified = body.param(root::GLOBAL_ID).and_then(Param::as_text);
    identified.is_some_and(|text| super::global_id::is_global_id(text.as_bytes()))
        && matches!(body.param(root::NAME), Some(Param::Null | Param::Text(_)))
        && matches!(
            body.param(root::DESCRIPTION),
            Some(Param::Null | Param::Text(_))
        )
}

/// The longest text that an `IfcLabel` takes.
pub(super) const LABEL_CHARS_MAX: usize = 255;

/// Attributes of every `IfcRoot`.
pub(super) mod root {
    pub(crate) const GLOBAL_ID: usize = 0;
    pub(crate) const NAME: usize = 2;
    pub(crate) const DESCRIPTION: usize = 3;
}

/// Attributes of every `IfcProduct`.
pub(super) mod product {
    pub(crate) const OBJECT_PLACEMENT: usize = 5;
}

/// Attributes on the way from a product to its coordinates.
pub(super) mod placement {
    pub(crate) const PLACEMENT_REL_TO: usize = 0;
    pub(crate) const RELATIVE_PLACEMENT: usize = 1;
    pub(crate) const LOCATION: usize = 0;
    pub(crate) const COORDINATES: usize = 0;
}

/// Attributes of `IfcPropertySet`.
pub(super) mod property_set {
    pub(crate) const HAS_PROPERTIES: usize = 4;
}

/// Attributes of the relationships; which side is which differs from one to the next.
pub(super) mod relation {
    pub(crate) const RELATING_OBJECT: usize = 4;
    pub(crate) const RELATED_OBJECTS: usize = 5;
    pub(crate) const RELATED_ELEMENTS: usize = 4;
    pub(crate) const RELATING_STRUCTURE: usize = 5;
    pub(crate) const DESCRIBED_OBJECTS: usize = 4;
    pub(crate) const RELATING_PROPERTY_DEFINITION: usize = 5;
}

fn first_text<R>(record: &Record<R>) -> Option<String> {
    record
        .params
        .first()?
        .as_list()?
        .first()?
        .as_text()
        .map(|text| text.decode())
}
