//! What the commands do.

use crate::options::{
    ChainOptions, ColdOptions, CostsOptions, Ctl, HotOptions, IdleOptions, LossyOptions, Network,
    OceanOptions, PaperOptions, PeerOptions, Ping, ScaleOptions, Up,
};
use lab::Outcome;
use lab::experiment;
use lab::measure::{self, Effort};
use lab::net::{self, ControlSocket, Wan};
use lab::peer;
use lab::stop::Stop;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// As a shell tells SIGINT.
const CUT_SHORT: u8 = 130;
/// Longer than any experiment.
const LONG: Duration = Duration::from_secs(365 * 24 * 3600);

pub(crate) fn ping(options: &Ping) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let (wan, _control) = start(&options.network)?;
    let effort = Effort {
        round_trips: options.round_trips,
        datagrams: options.datagrams,
        flow: options.flow,
    };
    let record = measure::run(&wan, effort, &stop, &mut show)?;
    show("");
    if let Some(directory) = &options.out {
        record.write(directory)?;
    }
    tell(record.table().trim_end())?;
    if let Some(directory) = &options.out {
        tell(&format!("raw samples are in {}", directory.display()))?;
    }
    Ok(if record.cut_short {
        ExitCode::from(CUT_SHORT)
    } else {
        ExitCode::SUCCESS
    })
}

pub(crate) fn up(options: &Up) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let (wan, _control) = start(&options.network)?;
    for namespace in wan.namespaces() {
        let (spoke, address, name) = (namespace.spoke(), namespace.address(), namespace.name());
        tell(&format!("{spoke} {address}: ip netns exec {name} COMMAND"))?;
    }
    tell("ready")?;
    stop.sleep(options.time.unwrap_or(LONG));
    tell(&serde_json::to_string_pretty(
        &wan.controls().statistics()?,
    )?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn ctl(options: &Ctl) -> Outcome<ExitCode> {
    tell(net::say(&options.socket, &options.words)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn cold(options: &ColdOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::cold(&options.cold(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn hot(options: &HotOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::hot(&options.hot(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn costs(options: &CostsOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::costs(&options.costs(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn lossy(options: &LossyOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::lossy(&options.lossy(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn idle(options: &IdleOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::idle(&options.idle(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn chain(options: &ChainOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::chain(&options.chain(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn scale(options: &ScaleOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::scale(&options.scale(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn paper(options: &PaperOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::paper(&options.paper(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn peer(options: &PeerOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = peer::against(&options.peer(), &stop, &mut show)?;
    told(&table, &stop)
}

pub(crate) fn ocean(options: &OceanOptions) -> Outcome<ExitCode> {
    let stop = Stop::on_signals()?;
    let table = experiment::ocean(&options.common(), options.quick, &stop, &mut show)?;
    told(&table, &stop)
}

fn told(table: &str, stop: &Stop) -> Outcome<ExitCode> {
    show("");
    tell(table.trim_end())?;
    Ok(if stop.is_set() {
        ExitCode::from(CUT_SHORT)
    } else {
        ExitCode::SUCCESS
    })
}

pub(crate) fn clean() -> Outcome<ExitCode> {
    if !lab::is_root() {
        return Err(lab::NeedsRoot.into());
    }
    let swept = net::sweep()?;
    for lab in &swept {
        tell(&format!("removed what {lab} had left"))?;
    }
    if swept.is_empty() {
        tell("nothing to remove")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// On standard output, at once: whoever started this may wait for a line.
fn tell(text: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

fn start(network: &Network) -> Outcome<(Wan, Option<ControlSocket>)> {
    let wan = Wan::start(&network.plan()?)?;
    let listen = |path: &std::path::PathBuf| ControlSocket::listen(path, wan.controls().clone());
    let control = network.control.as_ref().map(listen).transpose()?;
    Ok((wan, control))
}

/// What is being done: on a terminal in one line, which the next replaces.
fn show(text: &str) {
    let mut out = std::io::stderr();
    // Nobody may be listening, which stops nothing.
    let _ = match (out.is_terminal(), text) {
        (true, text) => write!(out, "\r\x1b[K{text}"),
        (false, "") => Ok(()),
        (false, text) => writeln!(out, "{text}"),
    };
    let _ = out.flush();
}
