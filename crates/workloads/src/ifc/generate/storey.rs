//! One storey: two rows of rooms with a corridor between.

use super::Placed;
use super::builder::{Builder, real};
use super::parts::{DOOR, WALL_THICKNESS, WINDOW, fill, slab, space, wall};
use crate::step::{EntityId, Param};

const STOREY_HEIGHT: f64 = 3000.;
const SLAB_THICKNESS: f64 = 200.;
const ROOM_WIDTH: f64 = 4000.;
const ROOM_DEPTH: f64 = 5000.;
const CORRIDOR_WIDTH: f64 = 2000.;

pub(super) fn build(builder: &mut Builder, building: Placed, floor: u32, rooms: u32) -> EntityId {
    let elevation = f64::from(floor) * STOREY_HEIGHT;
    let placement = builder.placement(Some(building.placement), [0., 0., elevation], false);
    let tail = vec![Param::Null, Param::enumeration("ELEMENT"), real(elevation)];
    let object = builder.product(
        "IFCBUILDINGSTOREY",
        &format!("Level {floor}"),
        placement,
        None,
        tail,
    );
    furnish(builder, Placed { object, placement }, floor, rooms);
    object
}

fn furnish(builder: &mut Builder, storey: Placed, floor: u32, rooms: u32) {
    let mut content = Content::default();
    for room in 0..rooms {
        let number = format!("{floor}.{:03}", room + 1);
        build_room(builder, storey, &number, Corner::of(room), &mut content);
    }
    for side in 0..rooms.min(2) {
        close_row(builder, storey, floor, side, rooms, &mut content);
    }
    builder.make_of(&content.walls, "Brick");
    let extent = [
        width(rooms) + WALL_THICKNESS,
        2. * ROOM_DEPTH + CORRIDOR_WIDTH,
        SLAB_THICKNESS,
    ];
    let slab = slab(builder, storey, &format!("Slab {floor}"), extent);
    builder.make_of(&[slab], "Concrete");
    builder.aggregate(storey.object, &content.spaces);
    builder.contain(
        storey.object,
        &[content.walls, content.fillings, vec![slab]].concat(),
    );
}

/// What has been built on a storey.
#[derive(Default)]
struct Content {
    spaces: Vec<EntityId>,
    walls: Vec<EntityId>,
    fillings: Vec<EntityId>,
}

/// A room's south-western corner, and on which side of the corridor it is.
struct Corner {
    x: f64,
    y: f64,
    south: bool,
}

impl Corner {
    fn of(room: u32) -> Self {
        let south = room.is_multiple_of(2);
        let y = if south {
            0.
        } else {
            ROOM_DEPTH + CORRIDOR_WIDTH
        };
        Self {
            x: f64::from(room / 2) * ROOM_WIDTH,
            y,
            south,
        }
    }
}

fn build_room(
    builder: &mut Builder,
    storey: Placed,
    number: &str,
    corner: Corner,
    content: &mut Content,
) {
    let Corner { x, y, south } = corner;
    let near = y;
    let far = y + ROOM_DEPTH - WALL_THICKNESS;
    let (front, corridor) = if south { (near, far) } else { (far, near) };
    let front = wall(
        builder,
        storey,
        &format!("Front {number}"),
        [x, front],
        ROOM_WIDTH,
        false,
    );
    let corridor = wall(
        builder,
        storey,
        &format!("Corridor {number}"),
        [x, corridor],
        ROOM_WIDTH,
        false,
    );
    let side = side_wall(builder, storey, number, x, y);
    content.walls.extend([front.object, corridor.object, side]);
    content
        .fillings
        .push(fill(builder, front, &WINDOW, number, 1200.));
    content
        .fillings
        .push(fill(builder, corridor, &DOOR, number, 600.));
    let inside = [x + WALL_THICKNESS, y + WALL_THICKNESS];
    let size = [
        ROOM_WIDTH - WALL_THICKNESS,
        ROOM_DEPTH - 2. * WALL_THICKNESS,
    ];
    content
        .spaces
        .push(space(builder, storey, number, inside, size));
}

/// Every room brings the wall on its west; the last of a row needs one on its east too.
fn close_row(
    builder: &mut Builder,
    storey: Placed,
    floor: u32,
    side: u32,
    rooms: u32,
    content: &mut Content,
) {
    let Corner { y, .. } = Corner::of(side);
    let in_row = (rooms - side).div_ceil(2);
    let x = f64::from(in_row) * ROOM_WIDTH;
    content.walls.push(side_wall(
        builder,
        storey,
        &format!("{floor} end {side}"),
        x,
        y,
    ));
}

/// A wall to the north, turned by a right angle: its thickness runs to the west of its line.
fn side_wall(builder: &mut Builder, storey: Placed, number: &str, x: f64, y: f64) -> EntityId {
    let at = [x + WALL_THICKNESS, y + WALL_THICKNESS];
    wall(
        builder,
        storey,
        &format!("Side {number}"),
        at,
        ROOM_DEPTH - 2. * WALL_THICKNESS,
        true,
    )
    .object
}

fn width(rooms: u32) -> f64 {
    f64::from(rooms.div_ceil(2)) * ROOM_WIDTH
}
