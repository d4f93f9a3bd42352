//! Checks one model, with constants changed, and prints the counterexample:
//! `cargo run --example story -- SiteCommit FrozenEvidence=FALSE [Serializable]`.

use std::process::ExitCode;

use thorp_spec::Run;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(model) = arguments.next() else {
        eprintln!("which model? and then CONSTANT=VALUE, or one invariant");
        return ExitCode::FAILURE;
    };
    let mut run = Run::of(&model);
    for argument in arguments {
        run = match argument.split_once('=') {
            Some((constant, value)) => run.with(constant, value),
            None => run.only(&argument),
        };
    }
    let report = match run.check() {
        Ok(report) => report,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", report.line(&run));
    for (action, times) in &report.fired {
        println!("{times:>9} {action}");
    }
    if let Some(broken) = &report.broken {
        println!("\n{}", broken.text);
    }
    ExitCode::SUCCESS
}
