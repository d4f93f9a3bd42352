//! Walls, slabs, openings, doors, windows and spaces.

use super::Placed;
use super::builder::{Builder, real, to};
use crate::ifc::Schema;
use crate::step::{EntityId, Param};

/// How thick a wall is, in millimetres as all lengths here.
pub(super) const WALL_THICKNESS: f64 = 200.;
const WALL_HEIGHT: f64 = 2800.;
const PANEL_THICKNESS: f64 = 50.;

/// Something that fills a hole in a wall.
pub(super) struct Filling {
    keyword: &'static str,
    name: &'static str,
    kind: [&'static str; 2],
    width: f64,
    height: f64,
    sill: f64,
}

pub(super) const DOOR: Filling = Filling {
    keyword: "IFCDOOR",
    name: "Door",
    kind: ["DOOR", "SINGLE_SWING_LEFT"],
    width: 900.,
    height: 2100.,
    sill: 0.,
};

pub(super) const WINDOW: Filling = Filling {
    keyword: "IFCWINDOW",
    name: "Window",
    kind: ["WINDOW", "SINGLE_PANEL"],
    width: 1600.,
    height: 1200.,
    sill: 900.,
};

pub(super) fn wall(
    builder: &mut Builder,
    storey: Placed,
    name: &str,
    at: [f64; 2],
    length: f64,
    north: bool,
) -> Placed {
    let placement = builder.placement(Some(storey.placement), [at[0], at[1], 0.], north);
    let shape = builder.box_shape([length, WALL_THICKNESS, WALL_HEIGHT]);
    let mut tail = vec![tag(name)];
    if builder.schema != Schema::Ifc2x3 {
        tail.push(Param::enumeration("SOLIDWALL"));
    }
    let object = builder.product("IFCWALL", name, placement, Some(shape), tail);
    let outside = if north { "F" } else { "T" };
    let rating = format!("F{}", 30 * (1 + builder.dice(3)));
    builder.describe(
        object,
        "Thorp_Wall",
        vec![
            (
                "IsExternal",
                Param::typed("IFCBOOLEAN", Param::enumeration(outside)),
            ),
            ("FireRating", Param::typed("IFCLABEL", Param::text(&rating))),
            (
                "Length",
                Param::typed("IFCPOSITIVELENGTHMEASURE", real(length)),
            ),
        ],
    );
    Placed { object, placement }
}

pub(super) fn slab(builder: &mut Builder, storey: Placed, name: &str, size: [f64; 3]) -> EntityId {
    let placement = builder.placement(Some(storey.placement), [0., 0., -size[2]], false);
    let shape = builder.box_shape(size);
    let tail = vec![tag(name), Param::enumeration("FLOOR")];
    let object = builder.product("IFCSLAB", name, placement, Some(shape), tail);
    let load = builder.dice(4) as f64 + 2.;
    let bearing = Param::typed("IFCBOOLEAN", Param::enumeration("T"));
    let load = Param::typed("IFCREAL", real(load));
    builder.describe(
        object,
        "Thorp_Slab",
        vec![("LoadBearing", bearing), ("DesignLoad", load)],
    );
    object
}

/// Cuts a hole into a wall at this distance from its beginning, and fills it.
pub(super) fn fill(
    builder: &mut Builder,
    wall: Placed,
    filling: &Filling,
    number: &str,
    distance: f64,
) -> EntityId {
    let &Filling {
        keyword,
        name,
        kind,
        width,
        height,
        sill,
    } = filling;
    let name = format!("{name} {number}");
    let hole = opening(
        builder,
        wall,
        &name,
        [distance, sill],
        [width, WALL_THICKNESS, height],
    );
    let placement = builder.placement(
        Some(hole.placement),
        [0., (WALL_THICKNESS - PANEL_THICKNESS) / 2., 0.],
        false,
    );
    let shape = builder.box_shape([width, PANEL_THICKNESS, height]);
    let mut tail = vec![tag(&name), real(height), real(width)];
    if builder.schema != Schema::Ifc2x3 {
        tail.extend(kind.map(Param::enumeration));
        tail.push(Param::Null);
    }
    let object = builder.product(keyword, &name, placement, Some(shape), tail);
    builder.root("IFCRELFILLSELEMENT", "", vec![to(hole.object), to(object)]);
    let number = builder.dice(1_000_000) as i64;
    let serial = Param::typed("IFCINTEGER", Param::integer(number));
    let maker = Param::typed("IFCLABEL", Param::text("Müller & Söhne"));
    builder.describe(
        object,
        "Thorp_Filling",
        vec![("Serial", serial), ("Maker", maker)],
    );
    object
}

fn opening(
    builder: &mut Builder,
    wall: Placed,
    name: &str,
    at: [f64; 2],
    size: [f64; 3],
) -> Placed {
    let placement = builder.placement(Some(wall.placement), [at[0], 0., at[1]], false);
    let shape = builder.box_shape(size);
    let mut tail = vec![Param::Null];
    if builder.schema != Schema::Ifc2x3 {
        tail.push(Param::enumeration("OPENING"));
    }
    let name = format!("Opening of {name}");
    let object = builder.product("IFCOPENINGELEMENT", &name, placement, Some(shape), tail);
    builder.root("IFCRELVOIDSELEMENT", "", vec![to(wall.object), to(object)]);
    Placed { object, placement }
}

pub(super) fn space(
    builder: &mut Builder,
    storey: Placed,
    number: &str,
    at: [f64; 2],
    size: [f64; 2],
) -> EntityId {
    let placement = builder.placement(Some(storey.placement), [at[0], at[1], 0.], false);
    let shape = builder.box_shape([size[0], size[1], WALL_HEIGHT]);
    let long_name = Param::text(&format!("Room {number}"));
    let inside = Param::enumeration("INTERNAL");
    let tail = vec![
        long_name,
        Param::enumeration("ELEMENT"),
        inside,
        Param::Null,
    ];
    let object = builder.product("IFCSPACE", number, placement, Some(shape), tail);
    let people = builder.dice(6) as i64;
    let people = Param::typed("IFCINTEGER", Param::integer(people));
    let area = Param::typed("IFCAREAMEASURE", real(size[0] * size[1] / 1e6));
    builder.describe(
        object,
        "Thorp_Room",
        vec![("Occupants", people), ("Area", area)],
    );
    object
}

fn tag(name: &str) -> Param {
    Param::text(name)
}
