//! Counts together with its neighbours, and tells who carries the site. Start several, end one, and look on.

use std::time::Duration;
use thorp_examples::neighbours::{Arguments, site};
use thorp_examples::{Failure, counter};

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse()?;
    let member = arguments.join()?;
    let segment = member.open_or_create(&arguments.segment)?;
    let counter = counter::open(&member, &segment)?;
    loop {
        let count = counter::increment(&member, &counter)?;
        println!("{count}, at {}", site(&member));
        std::thread::sleep(PAUSE);
    }
}

const PAUSE: Duration = Duration::from_millis(500);
