//! The entities that everything in a generated building is made of.

use crate::ifc::{GlobalIds, Schema};
use crate::step::{Body, Entity, EntityId, Param, Record, StepFile};

/// Collects entities; each refers only to earlier ones.
pub(super) struct Builder {
    pub(super) schema: Schema,
    ids: GlobalIds,
    entities: Vec<Entity>,
    shared: Shared,
}

/// What every entity of a kind refers to, made once.
struct Shared {
    owner: EntityId,
    context: EntityId,
    up: EntityId,
    north: EntityId,
    origin: EntityId,
}

impl Builder {
    pub(super) fn new(schema: Schema, seed: u64) -> Self {
        let nothing = EntityId(0);
        let shared = Shared {
            owner: nothing,
            context: nothing,
            up: nothing,
            north: nothing,
            origin: nothing,
        };
        let mut builder = Self {
            schema,
            ids: GlobalIds::new(seed),
            entities: Vec::new(),
            shared,
        };
        builder.shared.owner = builder.owner_history();
        builder.shared.up = builder.add("IFCDIRECTION", vec![reals(&[0., 0., 1.])]);
        builder.shared.north = builder.add("IFCDIRECTION", vec![reals(&[0., 1., 0.])]);
        let point = builder.add("IFCCARTESIANPOINT", vec![reals(&[0., 0., 0.])]);
        builder.shared.origin = builder.add(
            "IFCAXIS2PLACEMENT3D",
            vec![to(point), Param::Null, Param::Null],
        );
        builder.shared.context = builder.context();
        builder
    }

    pub(super) fn finish(self, header: Vec<Record>) -> StepFile {
        StepFile {
            header,
            data: Vec::new(),
            entities: self.entities,
        }
    }

    /// A number from 0 to below `limit`, for properties that should not all be alike.
    pub(super) fn dice(&mut self, limit: u64) -> u64 {
        self.ids.next_number() % limit.max(1)
    }

    pub(super) fn add(&mut self, keyword: &str, params: Vec<Param>) -> EntityId {
        let id = EntityId(self.entities.len() as u64 + 1);
        self.entities.push(Entity {
            id,
            body: Body::Simple(Record::new(keyword, params)),
        });
        id
    }

    /// Adds an `IfcRoot` with this name, and these attributes after the description.
    pub(super) fn root(&mut self, keyword: &str, name: &str, tail: Vec<Param>) -> EntityId {
        let global_id = self.ids.next_id();
        let name = if name.is_empty() {
            Param::Null
        } else {
            Param::text(name)
        };
        let mut params = vec![
            Param::text(&global_id),
            to(self.shared.owner),
            name,
            Param::Null,
        ];
        params.extend(tail);
        self.add(keyword, params)
    }

    /// Adds an `IfcProduct`, with these attributes after the representation.
    pub(super) fn product(
        &mut self,
        keyword: &str,
        name: &str,
        placement: EntityId,
        shape: Option<EntityId>,
        tail: Vec<Param>,
    ) -> EntityId {
        let mut params = vec![Param::Null, to(placement), shape.map_or(Param::Null, to)];
        params.extend(tail);
        self.root(keyword, name, params)
    }

    /// A place inside another, turned to the north (so that x runs along y) or not.
    pub(super) fn placement(
        &mut self,
        inside: Option<EntityId>,
        at: [f64; 3],
        north: bool,
    ) -> EntityId {
        let point = self.add("IFCCARTESIANPOINT", vec![reals(&at)]);
        let (axis, direction) = if north {
            (to(self.shared.up), to(self.shared.north))
        } else {
            (Param::Null, Param::Null)
        };
        let axes = self.add("IFCAXIS2PLACEMENT3D", vec![to(point), axis, direction]);
        self.add(
            "IFCLOCALPLACEMENT",
            vec![inside.map_or(Param::Null, to), to(axes)],
        )
    }

    /// A box with a corner in the origin: a rectangle drawn upwards.
    pub(super) fn box_shape(&mut self, [x, y, z]: [f64; 3]) -> EntityId {
        let middle = self.add("IFCCARTESIANPOINT", vec![reals(&[x / 2., y / 2.])]);
        let position = self.add("IFCAXIS2PLACEMENT2D", vec![to(middle), Param::Null]);
        let area = Param::enumeration("AREA");
        let profile = self.add(
            "IFCRECTANGLEPROFILEDEF",
            vec![area, Param::Null, to(position), real(x), real(y)],
        );
        let Shared {
            context,
            up,
            origin,
            ..
        } = self.shared;
        let solid = self.add(
            "IFCEXTRUDEDAREASOLID",
            vec![to(profile), to(origin), to(up), real(z)],
        );
        let kind = [Param::text("Body"), Param::text("SweptSolid")];
        let body = self.add(
            "IFCSHAPEREPRESENTATION",
            [vec![to(context)], kind.to_vec(), vec![list(&[solid])]].concat(),
        );
        self.add(
            "IFCPRODUCTDEFINITIONSHAPE",
            vec![Param::Null, Param::Null, list(&[body])],
        )
    }

    pub(super) fn aggregate(&mut self, whole: EntityId, parts: &[EntityId]) {
        self.root("IFCRELAGGREGATES", "", vec![to(whole), list(parts)]);
    }

    pub(super) fn contain(&mut self, place: EntityId, elements: &[EntityId]) {
        self.root(
            "IFCRELCONTAINEDINSPATIALSTRUCTURE",
            "",
            vec![list(elements), to(place)],
        );
    }

    pub(super) fn make_of(&mut self, elements: &[EntityId], material: &str) {
        let more = if self.schema == Schema::Ifc2x3 { 0 } else { 2 };
        let mut params = vec![Param::text(material)];
        params.extend((0..more).map(|_| Param::Null));
        let material = self.add("IFCMATERIAL", params);
        self.root(
            "IFCRELASSOCIATESMATERIAL",
            "",
            vec![list(elements), to(material)],
        );
    }

    /// Describes an object by a property set.
    pub(super) fn describe(
        &mut self,
        object: EntityId,
        set_name: &str,
        properties: Vec<(&str, Param)>,
    ) {
        let properties: Vec<EntityId> = properties
            .into_iter()
            .map(|(name, value)| {
                self.add(
                    "IFCPROPERTYSINGLEVALUE",
                    vec![Param::text(name), Param::Null, value, Param::Null],
                )
            })
            .collect();
        let set = self.root("IFCPROPERTYSET", set_name, vec![list(&properties)]);
        self.root(
            "IFCRELDEFINESBYPROPERTIES",
            "",
            vec![list(&[object]), to(set)],
        );
    }

    pub(super) fn project(&mut self, name: &str) -> EntityId {
        let units = self.units();
        let nothing = vec![Param::Null; 3];
        let tail = [nothing, vec![list(&[self.shared.context]), to(units)]].concat();
        self.root("IFCPROJECT", name, tail)
    }

    fn owner_history(&mut self) -> EntityId {
        let person = [
            vec![Param::Null, Param::text("Villager")],
            vec![Param::Null; 6],
        ]
        .concat();
        let person = self.add("IFCPERSON", person);
        let organization = vec![
            Param::Null,
            Param::text("Thorp"),
            Param::Null,
            Param::Null,
            Param::Null,
        ];
        let organization = self.add("IFCORGANIZATION", organization);
        let both = self.add(
            "IFCPERSONANDORGANIZATION",
            vec![to(person), to(organization), Param::Null],
        );
        let about = ["1", "Thorp", "thorp"].map(Param::text).to_vec();
        let application = self.add("IFCAPPLICATION", [vec![to(organization)], about].concat());
        let unchanged = vec![
            Param::Null,
            Param::enumeration("NOCHANGE"),
            Param::Null,
            Param::Null,
            Param::Null,
        ];
        let times = vec![Param::integer(946_684_800)];
        self.add(
            "IFCOWNERHISTORY",
            [vec![to(both), to(application)], unchanged, times].concat(),
        )
    }

    fn context(&mut self) -> EntityId {
        let kind = vec![
            Param::Null,
            Param::text("Model"),
            Param::integer(3),
            real(0.00001),
        ];
        let system = vec![to(self.shared.origin), Param::Null];
        self.add("IFCGEOMETRICREPRESENTATIONCONTEXT", [kind, system].concat())
    }

    fn units(&mut self) -> EntityId {
        let si = [
            ("LENGTHUNIT", Some("MILLI"), "METRE"),
            ("AREAUNIT", None, "SQUARE_METRE"),
            ("VOLUMEUNIT", None, "CUBIC_METRE"),
            ("PLANEANGLEUNIT", None, "RADIAN"),
        ];
        let units = si.map(|(quantity, prefix, name)| {
            let prefix = prefix.map_or(Param::Null, Param::enumeration);
            let params = vec![
                Param::Derived,
                Param::enumeration(quantity),
                prefix,
                Param::enumeration(name),
            ];
            self.add("IFCSIUNIT", params)
        });
        self.add("IFCUNITASSIGNMENT", vec![list(&units)])
    }
}

pub(super) fn to(id: EntityId) -> Param {
    Param::Reference(id)
}

pub(super) fn list(ids: &[EntityId]) -> Param {
    Param::List(ids.iter().copied().map(to).collect())
}

pub(super) fn real(value: f64) -> Param {
    Param::real(value).expect("sizes and places of a generated building are finite")
}

pub(super) fn reals(values: &[f64]) -> Param {
    Param::List(values.iter().copied().map(real).collect())
}
