//! A family tree: founds it when there is none, adds a child for each name given, and prints everybody.

use thorp_client::Ref;
use thorp_examples::{Arguments, Failure, graph};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let member = arguments.join()?;
    let segment = member.open_or_create(&arguments.segment)?;
    let ancestor = match segment.root("ancestor")? {
        Some(ancestor) => Ref::new(ancestor),
        None => graph::found(&member, &segment, "Eve")?,
    };
    for name in &arguments.rest {
        graph::born(&member, &ancestor, name)?;
    }
    for name in graph::everybody(&member, &segment)? {
        println!("{name}");
    }
    println!("{}", member.format(&ancestor.reference())?);
    Ok(())
}
