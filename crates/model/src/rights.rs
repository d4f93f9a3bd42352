//! Who may do what in a segment: its rights list (rules R3 to R5).
//!
//! A rights list is an object like any other: a text with one line for each entry.
//!
//! ```text
//! admin anna
//! read #1c04c1f5ac30fe90
//! read @staff
//! write @members
//! carry office
//! ```

use crate::carriers::{CARRY, Carrier, Carriers};
use crate::ids::{NameId, PageId, PageNo, SegmentId, Slot};
use crate::limits::{GROUPS_PER_LIST_MAX, RIGHTS_BYTES_MAX};
use crate::name_word::NameWord;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The slot of a segment's first page that holds its rights list (rule R3).
pub const RIGHTS_SLOT: Slot = Slot(2);

/// The page that holds the rights list of a segment.
pub const fn rights_page(segment: SegmentId) -> PageId {
    PageId {
        segment,
        page: PageNo(0),
    }
}

/// What a name may do in a segment. A higher right includes the lower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Right {
    /// Read and watch objects.
    Read,
    /// Create, change and delete objects.
    Write,
    /// Change the rights list, and remove the segment.
    Admin,
}

/// Whom an entry of a rights list is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The node with this name.
    Name(String),
    /// The node whose name has this id: a home writes it where it was told no name.
    Id(NameId),
    /// The nodes in a group of the home (rule R3).
    Group(String),
    /// Every node of the village with the role member.
    Members,
}

/// Why a text is no rights list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DamagedRights {
    /// It has more than [`RIGHTS_BYTES_MAX`] bytes.
    TooLong,
    /// It names more than [`GROUPS_PER_LIST_MAX`] groups.
    TooManyGroups,
    /// It is not text.
    NotText,
    /// This line, counted from 1, is not `RIGHT SUBJECT`.
    Line(usize),
    /// This line, counted from 1, has a subject of an earlier line.
    Twice(usize),
}

/// A segment's rights list: each subject has one right, the highest. Beside them are the sites that may carry the segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RightsList {
    entries: BTreeMap<Subject, Right>,
    carriers: BTreeSet<Carrier>,
}

/// Who asks for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Principal {
    /// The id of its name.
    pub name: NameId,
    /// Whether its certificate has the role operator: then it may do everything (rule R3).
    pub is_operator: bool,
}

/// A rights list as it is asked about: by ids of names. Who is in its groups, only their lists say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    names: BTreeMap<NameId, Right>,
    groups: BTreeMap<String, Right>,
    members: Option<Right>,
    carriers: Carriers,
}

/// Who may read a segment: what is left of its list for those who only pass pages on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Readers {
    /// Every member of the village.
    Members,
    /// The nodes with these names, ascending.
    Names(Vec<NameId>),
}

impl Readers {
    /// Whether somebody may read.
    pub fn include(&self, who: Principal) -> bool {
        match self {
            Readers::Members => true,
            Readers::Names(names) => who.is_operator || names.binary_search(&who.name).is_ok(),
        }
    }
}

impl Right {
    /// Its word in a list.
    pub fn word(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is no right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRightWord;

impl fmt::Display for NoRightWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rights are read, write and admin")
    }
}

impl core::error::Error for NoRightWord {}

impl FromStr for Right {
    type Err = NoRightWord;

    fn from_str(word: &str) -> Result<Self, NoRightWord> {
        let all = [Right::Read, Right::Write, Right::Admin];
        let found = all.into_iter().find(|right| right.word() == word);
        found.ok_or(NoRightWord)
    }
}

impl Subject {
    /// The id of the name that it means; none of a group and of all members.
    pub fn id(&self) -> Option<NameId> {
        match self {
            Subject::Name(name) => Some(NameId::of(name)),
            Subject::Id(id) => Some(*id),
            Subject::Group(_) | Subject::Members => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Name(name) => f.write_str(name),
            Subject::Id(id) => write!(f, "#{id}"),
            Subject::Group(name) => write!(f, "@{name}"),
            Subject::Members => f.write_str("@members"),
        }
    }
}

/// A word that names no subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSubject;

impl fmt::Display for NoSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a subject is a node's name (lower-case letters, digits, hyphens and full stops), \
             #ID with 16 hexadecimal digits, @GROUP, or @members",
        )
    }
}

impl core::error::Error for NoSubject {}

impl FromStr for Subject {
    type Err = NoSubject;

    fn from_str(word: &str) -> Result<Self, NoSubject> {
        if word == "@members" {
            return Ok(Subject::Members);
        }
        let (word, is_group) = match word.strip_prefix('@') {
            Some(group) => (group, true),
            None => (word, false),
        };
        match NameWord::parse(word) {
            Some(NameWord::Id(id)) if !is_group => Ok(Subject::Id(id)),
            Some(NameWord::Name(name)) if is_group => Ok(Subject::Group(String::from(name))),
            Some(NameWord::Name(name)) => Ok(Subject::Name(String::from(name))),
            _ => Err(NoSubject),
        }
    }
}

impl fmt::Display for DamagedRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamagedRights::TooLong => {
                write!(f, "a rights list has at most {RIGHTS_BYTES_MAX} bytes")
            }
            DamagedRights::TooManyGroups => {
                write!(
                    f,
                    "a rights list names at most {GROUPS_PER_LIST_MAX} groups"
                )
            }
            DamagedRights::NotText => f.write_str("a rights list is a text"),
            DamagedRights::Line(line) => {
                write!(f, "line {line} of the rights list is not RIGHT SUBJECT")
            }
            DamagedRights::Twice(line) => {
                write!(f, "line {line} of the rights list has a subject twice")
            }
        }
    }
}

impl core::error::Error for DamagedRights {}

impl RightsList {
    /// The list of a new segment (rule R3).
    pub fn of_new(creator: Subject) -> Self {
        let mut list = RightsList::default();
        list.grant(creator, Right::Admin);
        list.grant(Subject::Members, Right::Write);
        list
    }

    /// What a segment without a list has (rule R3).
    pub fn without_list() -> Self {
        let mut list = RightsList::default();
        list.grant(Subject::Members, Right::Write);
        list
    }

    /// Reads an object's bytes.
    ///
    /// # Errors
    ///
    /// [`DamagedRights`], with the line that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, DamagedRights> {
        if bytes.len() > RIGHTS_BYTES_MAX {
            return Err(DamagedRights::TooLong);
        }
        let text = core::str::from_utf8(bytes).map_err(|_| DamagedRights::NotText)?;
        let mut list = RightsList::default();
        for (line, number) in text.lines().zip(1..) {
            let wrong = DamagedRights::Line(number);
            let (right, subject) = line.split_once(' ').ok_or(wrong)?;
            let is_first = if right == CARRY {
                let carrier = subject.parse().map_err(|_| wrong)?;
                list.carriers.insert(carrier)
            } else {
                let right = right.parse().map_err(|_| wrong)?;
                let subject = subject.parse().map_err(|_| wrong)?;
                list.entries.insert(subject, right).is_none()
            };
            if !is_first {
                return Err(DamagedRights::Twice(number));
            }
        }
        let is_group = |subject: &&Subject| matches!(subject, Subject::Group(_));
        if list.entries.keys().filter(is_group).count() > GROUPS_PER_LIST_MAX {
            return Err(DamagedRights::TooManyGroups);
        }
        Ok(list)
    }

    /// Gives a subject this right instead of what it has.
    pub fn grant(&mut self, subject: Subject, right: Right) {
        self.entries.insert(subject, right);
    }

    /// Takes all rights from a subject. Tells what it had.
    pub fn revoke(&mut self, subject: &Subject) -> Option<Right> {
        self.entries.remove(subject)
    }

    /// Lets a site carry the segment. If there was no such line, no other site carries it any more; `@nobody` takes the
    /// right from all.
    pub fn grant_carry(&mut self, carrier: Carrier) {
        if carrier == Carrier::Nobody {
            self.carriers.clear();
        }
        self.carriers.remove(&Carrier::Nobody);
        self.carriers.insert(carrier);
    }

    /// Takes the line of a carrier away. Without lines every site would carry the segment: `@nobody` takes the place of the
    /// last one. False if there is no such line. A list without any has `@sites`.
    pub fn revoke_carry(&mut self, carrier: &Carrier) -> bool {
        let all_had = self.carriers.is_empty() && *carrier == Carrier::Sites;
        let had = *carrier != Carrier::Nobody && self.carriers.remove(carrier);
        if (had || all_had) && self.carriers.is_empty() {
            self.carriers.insert(Carrier::Nobody);
        }
        had || all_had
    }

    /// The carriers, in a fixed order. Without any, every site that no member carries may carry the segment.
    pub fn carriers(&self) -> impl Iterator<Item = &Carrier> {
        self.carriers.iter()
    }

    /// The entries, in a fixed order.
    pub fn entries(&self) -> impl Iterator<Item = (&Subject, Right)> {
        self.entries
            .iter()
            .map(|(subject, right)| (subject, *right))
    }

    /// The object's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        alloc::format!("{self}").into_bytes()
    }
}

impl fmt::Display for RightsList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries = self.entries();
        entries.try_for_each(|(subject, right)| writeln!(f, "{right} {subject}"))?;
        let mut carriers = self.carriers();
        carriers.try_for_each(|carrier| writeln!(f, "{CARRY} {carrier}"))
    }
}

impl Access {
    /// A segment that has no list: it is from before there were rights (rule R3).
    pub const fn without_list() -> Self {
        Access {
            names: BTreeMap::new(),
            groups: BTreeMap::new(),
            members: Some(Right::Write),
            carriers: Carriers::ALL_SITES,
        }
    }

    /// Nobody but operators has a right, and no site carries the segment.
    pub const fn closed() -> Self {
        Access {
            names: BTreeMap::new(),
            groups: BTreeMap::new(),
            members: None,
            carriers: Carriers::NOBODY,
        }
    }

    /// What an object's bytes give. A damaged list lets only operators in, and no site carries the segment: the list may
    /// have said so (rule R3).
    pub fn of(bytes: &[u8]) -> Self {
        let mut access = Access::closed();
        let Ok(list) = RightsList::parse(bytes) else {
            return access;
        };
        access.carriers = Carriers::of(list.carriers());
        for (subject, right) in list.entries() {
            match (subject, subject.id()) {
                (_, Some(id)) => {
                    // A name and its id may both be there: the higher right counts.
                    let held = access.names.entry(id).or_insert(right);
                    *held = right.max(*held);
                }
                (Subject::Group(group), None) => drop(access.groups.insert(group.clone(), right)),
                (_, None) => access.members = Some(right),
            }
        }
        access
    }

    /// Who may read, without its groups.
    pub fn readers(&self) -> Readers {
        match self.members {
            Some(_) => Readers::Members,
            None => Readers::Names(self.names.keys().copied().collect()),
        }
    }

    /// The sites that may carry the segment, whoever reads.
    pub fn carriers(&self) -> &Carriers {
        &self.carriers
    }

    /// How many nodes it names, carriers aside.
    pub fn named(&self) -> usize {
        self.names.len()
    }

    /// Whether only those read that it names, and those in its groups.
    pub fn readers_are_named(&self) -> bool {
        self.members.is_none()
    }

    /// Its groups, and what right each has.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Right)> {
        let groups = self.groups.iter();
        groups.map(|(group, right)| (group.as_str(), *right))
    }

    /// As a list; it names nodes by their ids.
    pub fn to_list(&self) -> RightsList {
        let names = self.names.iter();
        let names = names.map(|(name, right)| (Subject::Id(*name), *right));
        let groups = self.groups.iter();
        let groups = groups.map(|(group, right)| (Subject::Group(group.clone()), *right));
        let members = self.members.map(|right| (Subject::Members, right));
        RightsList {
            entries: names.chain(groups).chain(members).collect(),
            carriers: self.carriers.lines().collect(),
        }
    }

    /// The right that an entry of its own gives to a name, whatever all members have.
    pub fn own(&self, name: NameId) -> Option<Right> {
        self.names.get(&name).copied()
    }

    /// Whether a right is given to a name, without its groups.
    pub fn allows(&self, who: Principal, wanted: Right) -> bool {
        who.is_operator || self.own(who.name).max(self.members) >= Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn who(name: &str) -> Principal {
        Principal {
            name: NameId::of(name),
            is_operator: false,
        }
    }

    #[test]
    fn a_list_is_read_as_it_is_written() {
        let mut list = RightsList::of_new(Subject::Id(NameId::of("carl")));
        list.grant(Subject::Name("anna".to_string()), Right::Read);
        assert_eq!(RightsList::parse(&list.to_bytes()), Ok(list.clone()));
        assert_eq!(list.revoke(&Subject::Members), Some(Right::Write));
        let id = NameId::of("carl");
        assert_eq!(list.to_string(), alloc::format!("read anna\nadmin #{id}\n"));
    }

    #[test]
    fn a_higher_right_includes_the_lower_ones() {
        let access = Access::of(b"write anna\nread @members\n");
        let allowed = |name| {
            let all = [Right::Read, Right::Write, Right::Admin];
            all.map(|right| access.allows(who(name), right))
        };
        assert_eq!(allowed("anna"), [true, true, false]);
        assert_eq!(allowed("ben"), [true, false, false]);
        let operator = Principal {
            is_operator: true,
            ..who("ben")
        };
        assert!(access.allows(operator, Right::Admin));
    }

    #[test]
    fn without_an_entry_nobody_but_an_operator_has_a_right() {
        let access = Access::of(b"");
        assert!(!access.allows(who("anna"), Right::Read));
        assert!(Access::without_list().allows(who("anna"), Right::Write));
        assert!(!Access::without_list().allows(who("anna"), Right::Admin));
    }

    #[test]
    fn the_readers_are_those_who_have_any_right() {
        let readers = Access::of(b"write anna\nread ben\n").readers();
        assert!(
            ["anna", "ben"]
                .iter()
                .all(|name| readers.include(who(name)))
        );
        assert!(!readers.include(who("carl")));
        assert_eq!(Access::of(b"read @members\n").readers(), Readers::Members);
        assert_eq!(Access::closed().readers(), Readers::Names(Vec::new()));
    }

    #[test]
    fn a_name_and_its_id_are_one_subject_when_they_are_asked_about() {
        let both = alloc::format!("read anna\nadmin #{}\n", NameId::of("anna"));
        assert!(Access::of(both.as_bytes()).allows(who("anna"), Right::Admin));
    }

    #[test]
    fn a_group_is_kept_beside_the_names() {
        let access = Access::of(b"write @staff\nread anna\n");
        assert_eq!(
            access.groups().collect::<Vec<_>>(),
            [("staff", Right::Write)]
        );
        assert!(access.allows(who("anna"), Right::Read));
        assert!(!access.allows(who("staff"), Right::Read));
        assert_eq!(Access::of(&access.to_list().to_bytes()), access);
    }

    #[test]
    fn lines_about_carriers_are_beside_the_entries() {
        let text = b"read anna\ncarry anna\ncarry @sites\n";
        let list = RightsList::parse(text).unwrap();
        assert_eq!(list.to_bytes(), text);
        let access = Access::of(text);
        assert_eq!(Access::of(&access.to_list().to_bytes()), access);
        assert!(access.carriers().sites);
        assert_eq!(
            RightsList::parse(b"carry a\ncarry a\n"),
            Err(DamagedRights::Twice(2))
        );
        assert_eq!(
            RightsList::parse(b"carry @staff\n"),
            Err(DamagedRights::Line(1))
        );
    }

    #[test]
    fn taking_the_last_carrier_away_opens_the_segment_to_no_site() {
        let site = |name: &str| Carrier::Name(name.to_string());
        let mut list = RightsList::without_list();
        assert!(!list.revoke_carry(&site("office")));
        list.grant_carry(site("office"));
        assert!(list.revoke_carry(&site("office")));
        assert_eq!(list.to_string(), "write @members\ncarry @nobody\n");
        assert!(!list.revoke_carry(&Carrier::Nobody));
        list.grant_carry(site("shed"));
        assert_eq!(list.to_string(), "write @members\ncarry shed\n");
        list.grant_carry(Carrier::Nobody);
        assert!(list.carriers().eq([&Carrier::Nobody]));
        let mut list = RightsList::without_list();
        assert!(list.revoke_carry(&Carrier::Sites));
        assert!(list.carriers().eq([&Carrier::Nobody]));
    }

    #[test]
    fn no_site_carries_what_a_damaged_list_may_have_kept_from_it() {
        assert_eq!(*Access::of(b"read anna\n").carriers(), Carriers::ALL_SITES);
        assert_eq!(*Access::of(b"reads anna\n").carriers(), Carriers::NOBODY);
    }

    #[test]
    fn a_damaged_list_lets_nobody_in_and_says_where_it_is_wrong() {
        let wrong = |bytes: &[u8]| RightsList::parse(bytes).unwrap_err();
        assert_eq!(wrong(b"read anna\nreads ben\n"), DamagedRights::Line(2));
        assert_eq!(wrong(b"read anna\nwrite anna\n"), DamagedRights::Twice(2));
        assert_eq!(wrong(b"read Anna\n"), DamagedRights::Line(1));
        assert_eq!(wrong(b"read #12\n"), DamagedRights::Line(1));
        assert_eq!(wrong(b"read @\n"), DamagedRights::Line(1));
        assert_eq!(wrong(b"read @Staff\n"), DamagedRights::Line(1));
        assert_eq!(wrong(b"\xff"), DamagedRights::NotText);
        assert_eq!(
            wrong(&vec![b'r'; RIGHTS_BYTES_MAX + 1]),
            DamagedRights::TooLong
        );
        let groups = |count: usize| -> alloc::string::String {
            let lines = (0..count).map(|group| alloc::format!("read @g{group}\n"));
            lines.collect()
        };
        assert!(RightsList::parse(groups(GROUPS_PER_LIST_MAX).as_bytes()).is_ok());
        assert_eq!(
            wrong(groups(GROUPS_PER_LIST_MAX + 1).as_bytes()),
            DamagedRights::TooManyGroups
        );
        let access = Access::of(b"write @members\nreads ben\n");
        assert!(!access.allows(who("anna"), Right::Read));
    }
}
