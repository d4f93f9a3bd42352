//! What one transaction is going to do, drawn before it begins.

use super::value::Known;
use crate::village::Habits;
use std::collections::{BTreeMap, VecDeque};
use thorp_model::{
    Carrier, NameId, ObjectId, Overflow, PageId, PageNo, Right, RightsList, SegmentId, Slot,
    Subject, Xoshiro256,
};

/// One thing that a transaction does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reads an object, or that there is none.
    Read(ObjectId),
    /// Reads an object and writes it; creates it if there is none.
    Upsert(ObjectId),
    /// Reads an object and changes a part of it.
    Patch(ObjectId),
    /// Reads an object and deletes it.
    Delete(ObjectId),
    /// Writes an object as it was known from an earlier transaction.
    BlindWrite(ObjectId),
    /// Patches such an object.
    BlindPatch(ObjectId),
    /// Deletes such an object.
    BlindDelete(ObjectId),
    /// Creates an object where there was none when last seen.
    BlindCreate(ObjectId),
    /// Reads all objects of a segment.
    Scan(SegmentId),
    /// Moves an amount between two accounts of the bank.
    Transfer(SegmentId, u16, u16),
    /// Adds up all accounts.
    Audit(SegmentId),
    /// Writes a value that was staged.
    Large(ObjectId, Overflow),
    /// Sets who may do what in a segment.
    Restrict(SegmentId, RightsList),
}

impl Operation {
    /// Whether it writes nothing.
    pub fn only_reads(&self) -> bool {
        matches!(
            self,
            Operation::Read(_) | Operation::Scan(_) | Operation::Audit(_)
        )
    }
}

/// Members that a rights list may name.
const MEMBERS_MAX: u64 = 12;

/// Sites that a rights list may name.
const SITES_MAX: u64 = 3;

/// Accounts of the bank.
pub const ACCOUNTS: u16 = 5;

/// What each account has at first.
pub const BALANCE_FIRST: u64 = 100;

/// An account.
pub fn account(bank: SegmentId, number: u16) -> ObjectId {
    ObjectId {
        page: PageId {
            segment: bank,
            page: PageNo(1 + u32::from(number % 2)),
        },
        slot: Slot(number / 2),
    }
}

/// Where a session's transactions happen.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The shared segment.
    pub plaza: Option<SegmentId>,
    /// The bank.
    pub bank: Option<SegmentId>,
    /// The first of this session's reserved pages of the plaza.
    pub reserved: Option<PageNo>,
    /// A segment that somebody may remove at any time.
    pub passing: Option<SegmentId>,
    /// Whose rights count for what this session does.
    pub own: NameId,
    /// How many of the shared pages programs have left behind them, where these fill up.
    pub left_behind: u32,
}

/// Draws the actions of a transaction.
pub fn draw(
    prng: &mut Xoshiro256,
    habits: &Habits,
    places: &Places,
    known: &BTreeMap<ObjectId, Known>,
    read_only: bool,
) -> VecDeque<Operation> {
    let mut actions = VecDeque::new();
    if let Some(bank) = places.bank
        && prng.percent(20)
    {
        actions.push_back(if read_only {
            Operation::Audit(bank)
        } else {
            let from = prng.below(u64::from(ACCOUNTS)) as u16;
            let step = prng.range(1, u64::from(ACCOUNTS) - 1) as u16;
            Operation::Transfer(bank, from, (from + step) % ACCOUNTS)
        });
        return actions;
    }
    for _ in 0..prng.range(1, habits.actions_max) {
        if let Some(action) = draw_one(prng, habits, places, known, read_only) {
            actions.push_back(action);
        }
    }
    actions
}

fn draw_one(
    prng: &mut Xoshiro256,
    habits: &Habits,
    places: &Places,
    known: &BTreeMap<ObjectId, Known>,
    read_only: bool,
) -> Option<Operation> {
    let plaza = places.passing.or(places.plaza)?;
    let is_passing = places.passing.is_some();
    if is_passing && !read_only && prng.per_mille(habits.rights) {
        return Some(Operation::Restrict(plaza, draw_rights(prng, places.own)));
    }
    let object = draw_object(prng, habits, places, plaza);
    if read_only {
        return Some(if prng.percent(8) {
            Operation::Scan(plaza)
        } else {
            Operation::Read(object)
        });
    }
    if prng.percent(habits.blind)
        && let Some(action) = draw_blind(prng, known, plaza)
    {
        return Some(action);
    }
    Some(match prng.below(100) {
        0..=29 => Operation::Read(object),
        30..=64 => Operation::Upsert(object),
        65..=84 => Operation::Patch(object),
        85..=96 => Operation::Delete(object),
        _ => Operation::Scan(plaza),
    })
}

/// Some members get some right, and now and then all of them do. Whoever draws the list stays an admin, mostly. Some lists
/// say which sites may carry the segment.
fn draw_rights(prng: &mut Xoshiro256, own: NameId) -> RightsList {
    const RIGHTS: [Right; 3] = [Right::Read, Right::Write, Right::Admin];
    let mut list = RightsList::default();
    for number in 0..MEMBERS_MAX {
        if prng.percent(40) {
            let subject = Subject::Name(format!("m{number}"));
            list.grant(subject, RIGHTS[prng.index(RIGHTS.len())]);
        }
    }
    if prng.percent(30) {
        list.grant(Subject::Members, RIGHTS[prng.index(2)]);
    }
    if prng.percent(90) {
        list.grant(Subject::Id(own), Right::Admin);
    }
    if prng.percent(40) {
        draw_carriers(prng, &mut list);
    }
    list
}

/// Some sites, also carried ones, or none, or all that no member carries.
fn draw_carriers(prng: &mut Xoshiro256, list: &mut RightsList) {
    list.grant_carry(Carrier::Nobody);
    for number in 0..SITES_MAX {
        if prng.percent(50) {
            list.grant_carry(Carrier::Name(format!("r{number}")));
        }
    }
    if prng.percent(20) {
        let member = prng.below(MEMBERS_MAX);
        list.grant_carry(Carrier::Name(format!("m{member}")));
    }
    if prng.percent(20) {
        list.grant_carry(Carrier::Sites);
    }
}

/// An object of the shared pages, the reserved ones, or somebody else's, now and then of their system pages; or the root.
fn draw_object(
    prng: &mut Xoshiro256,
    habits: &Habits,
    places: &Places,
    segment: SegmentId,
) -> ObjectId {
    let reserved = places.reserved.filter(|_| places.passing.is_none());
    let roll = prng.below(100);
    let page = match (roll, reserved) {
        (0..=2, _) => {
            return ObjectId {
                page: PageId {
                    segment,
                    page: PageNo(0),
                },
                slot: Slot(1),
            };
        }
        (roll, Some(first)) if roll < 3 + habits.reserved => {
            let mine = prng.percent(70);
            let others = 33 + 32 * prng.below(4) as u32;
            let first = if mine { first.0 } else { others.min(first.0) };
            PageNo(first + prng.below(2) as u32)
        }
        _ => PageNo(places.left_behind + prng.range(1, u64::from(habits.pages)) as u32),
    };
    let is_system = roll % 16 == 15;
    let page = if is_system { page.system() } else { page };
    // Sometimes far up in the page: the slot table grows.
    let slot = if habits.full_pages && prng.percent(30) {
        prng.range(u64::from(habits.slots), 40)
    } else if prng.percent(2) {
        prng.range(20, 239)
    } else {
        prng.below(u64::from(habits.slots))
    };
    ObjectId {
        page: PageId { segment, page },
        slot: Slot(slot as u16),
    }
}

fn draw_blind(
    prng: &mut Xoshiro256,
    known: &BTreeMap<ObjectId, Known>,
    segment: SegmentId,
) -> Option<Operation> {
    let objects = known.iter().filter(|(id, _)| id.page.segment == segment);
    let objects: Vec<_> = objects.filter(|(id, _)| id.page.page.0 > 0).collect();
    let (object, known) = prng.pick(&objects)?;
    let object = **object;
    if known.length.is_none() {
        return Some(Operation::BlindCreate(object));
    }
    Some(match prng.below(10) {
        0..=4 => Operation::BlindWrite(object),
        5..=8 => Operation::BlindPatch(object),
        _ => Operation::BlindDelete(object),
    })
}
