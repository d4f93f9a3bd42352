//! A graph of typed objects: a family tree, whose people lie near one another.

use serde::{Deserialize, Serialize};
use thorp_client::{Error, Member, Ref, Result, Segment};

/// A person, and who the children are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The children, by reference: they are objects of their own.
    pub children: Vec<Ref<Person>>,
}

/// Founds a family: the root of the segment.
pub fn found(member: &Member, segment: &Segment, name: &str) -> Result<Ref<Person>> {
    let person = Person {
        name: name.to_owned(),
        children: Vec::new(),
    };
    member.transact(|tx| {
        let ancestor = tx.create_typed(segment, &person)?;
        tx.set_root(segment, "ancestor", Some(ancestor.reference()))?;
        Ok(ancestor)
    })
}

/// A child is born: near its parent, and in the parent's list, both or neither.
pub fn born(member: &Member, parent: &Ref<Person>, name: &str) -> Result<Ref<Person>> {
    let person = Person {
        name: name.to_owned(),
        children: Vec::new(),
    };
    member.transact(|tx| {
        let child = tx.create_typed_near(parent.as_ref(), &person)?;
        let mut value = tx.get(parent)?;
        value.children.push(child);
        tx.put(parent, &value)?;
        Ok(child)
    })
}

/// Everybody, ancestors first, as of one moment.
pub fn everybody(member: &Member, segment: &Segment) -> Result<Vec<String>> {
    member.transact(|tx| {
        let ancestor = tx.root(segment, "ancestor")?;
        let ancestor = ancestor.ok_or_else(|| Error::aborted("nobody was born yet"))?;
        let (mut names, mut open) = (Vec::new(), vec![Ref::<Person>::new(ancestor)]);
        while let Some(person) = open.pop() {
            let person = tx.get(&person)?;
            names.push(person.name);
            open.extend(person.children.iter().rev());
        }
        Ok(names)
    })
}
