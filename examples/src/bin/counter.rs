//! Adds to a shared counter, ten times or as often as told.

use thorp_examples::{Arguments, Failure, counter};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let times = arguments
        .rest
        .first()
        .map_or(Ok(10), |times| times.parse::<u32>())?;
    let member = arguments.join()?;
    let segment = member.open_or_create(&arguments.segment)?;
    let counter = counter::open(&member, &segment)?;
    for _ in 0..times {
        println!("{}", counter::increment(&member, &counter)?);
    }
    Ok(())
}
