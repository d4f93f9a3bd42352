//! What experiments can be told on the command line.

use clap::Args;
use lab::experiment::{Chain, Cold, Common, Costs, Hot, Idle, Lossy, Paper, Part, Scale};
use lab::peer::{self, Peer, PeerRun};
use lab::quantity::{self, Rate};
use lab::village::Programs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What all experiments with villages are told.
#[derive(Args)]
pub(crate) struct Experiment {
    /// The thorp command
    #[arg(long, value_name = "FILE", default_value = "thorp")]
    thorp: PathBuf,
    /// The member that obeys; it is built beside this program
    #[arg(long, value_name = "FILE", default_value = "thorp-lab-worker")]
    worker: PathBuf,
    /// Between the home and everybody else; several, with commas between, where an experiment makes a series of them
    #[arg(long = "round-trip", value_name = "TIME,TIME", value_parser = quantity::duration, value_delimiter = ',', default_value = "40ms")]
    round_trips: Vec<Duration>,
    /// How often each case is run; medians are told
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: usize,
    /// OO7's module: tiny, small or medium
    #[arg(long, visible_alias = "module", default_value = "small")]
    size: String,
    /// Where the raw samples go
    #[arg(long, value_name = "DIRECTORY", default_value = "lab-out")]
    out: PathBuf,
}

impl Experiment {
    fn common(&self) -> Common {
        Common {
            programs: Programs {
                thorp: beside(&self.thorp),
                worker: beside(&self.worker),
            },
            round_trips: self.round_trips.clone(),
            repeats: self.repeats.max(1),
            size: self.size.clone(),
            out: self.out.clone(),
        }
    }

    /// Once is enough to see that it works.
    fn common_of(&self, quick: bool) -> Common {
        let repeats = if quick { 1 } else { self.repeats.max(1) };
        Common {
            repeats,
            ..self.common()
        }
    }
}

/// A bare name is first looked for where this program lies.
fn beside(program: &Path) -> PathBuf {
    let here = std::env::current_exe().ok();
    let here = here.and_then(|own| Some(own.parent()?.join(program)));
    here.filter(|path| path.is_file())
        .unwrap_or_else(|| program.to_owned())
}

#[derive(Args)]
pub(crate) struct ColdOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Sizes of groups
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "3,5,10"
    )]
    members: Vec<usize>,
}

impl ColdOptions {
    pub(crate) fn cold(&self) -> Cold {
        Cold {
            common: self.experiment.common(),
            groups: self.members.clone(),
        }
    }
}

#[derive(Args)]
pub(crate) struct HotOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Members that only read
    #[arg(long, value_name = "N", default_value_t = 3)]
    readers: usize,
    /// Transactions of each reader before it counts
    #[arg(long, value_name = "N", default_value_t = 50)]
    warm_up: usize,
    /// Transactions of each reader that count
    #[arg(long, value_name = "N", default_value_t = 200)]
    transactions: usize,
}

impl HotOptions {
    pub(crate) fn hot(&self) -> Hot {
        Hot {
            common: self.experiment.common(),
            readers: self.readers,
            transactions: (self.warm_up, self.transactions),
        }
    }
}

#[derive(Args)]
pub(crate) struct CostsOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Requests of each kind and member
    #[arg(long, value_name = "N", default_value_t = 1000)]
    requests: usize,
}

impl CostsOptions {
    pub(crate) fn costs(&self) -> Costs {
        Costs {
            common: self.experiment.common(),
            requests: self.requests,
        }
    }
}

#[derive(Args)]
pub(crate) struct PaperOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Only these: table1, table2, figure7 .. figure12, with commas between
    #[arg(long, value_name = "PART,PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Fewer distances, groups and transactions: some minutes instead of hours
    #[arg(long)]
    quick: bool,
}

impl PaperOptions {
    pub(crate) fn paper(&self) -> Paper {
        Paper {
            common: self.experiment.common_of(self.quick),
            only: self.only.clone(),
            quick: self.quick,
        }
    }
}

#[derive(Args)]
pub(crate) struct PeerOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Which: zeo
    #[arg(long, value_name = "NAME", value_parser = peer::named, default_value = "zeo")]
    peer: &'static dyn Peer,
    /// Members that read at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    members: usize,
    /// Sets the peer's clients also in manners that take long (ZEO object by object: half an hour for a small module)
    #[arg(long)]
    all_manners: bool,
}

impl PeerOptions {
    pub(crate) fn peer(&self) -> PeerRun {
        PeerRun {
            common: self.experiment.common(),
            peer: self.peer,
            members: self.members.max(1),
            all_manners: self.all_manners,
        }
    }
}

#[derive(Args)]
pub(crate) struct LossyOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// The share of packets that vanish, in either direction
    #[arg(long, value_name = "SHARE", value_parser = quantity::share, default_value = "1%")]
    loss: f64,
    /// Fetches under way at the same time
    #[arg(long, value_name = "N", default_value_t = 32)]
    flight: usize,
    /// Fetches in all
    #[arg(long, value_name = "N", default_value_t = 2000)]
    fetches: usize,
}

impl LossyOptions {
    pub(crate) fn lossy(&self) -> Lossy {
        Lossy {
            common: self.experiment.common(),
            loss: self.loss,
            flight: self.flight.max(1),
            fetches: self.fetches.max(1),
        }
    }
}

#[derive(Args)]
pub(crate) struct IdleOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Bytes of the object
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    bytes: usize,
    /// How long nothing is asked for before
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, default_value = "2s")]
    silence: Duration,
    /// Of the link
    #[arg(long, default_value = "1gbit")]
    rate: Rate,
}

impl IdleOptions {
    pub(crate) fn idle(&self) -> Idle {
        Idle {
            common: self.experiment.common(),
            bytes: self.bytes.max(1),
            silence: self.silence,
            rate: self.rate,
        }
    }
}

#[derive(Args)]
pub(crate) struct ChainOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Transactions that wait for each other
    #[arg(long, value_name = "N", default_value_t = 25)]
    waiting: u64,
    /// Transactions that do not
    #[arg(long, value_name = "N", default_value_t = 1000)]
    early: u64,
}

impl ChainOptions {
    pub(crate) fn chain(&self) -> Chain {
        Chain {
            common: self.experiment.common(),
            transactions: (self.waiting.max(1), self.early.max(1)),
        }
    }
}

#[derive(Args)]
pub(crate) struct ScaleOptions {
    /// The program that measures: `scale` of the product's benchmarks
    #[arg(long, value_name = "PROGRAM")]
    bench: PathBuf,
    /// Pages that a member holds in the largest village
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pages: usize,
    /// Where the raw samples and the charts go
    #[arg(long, value_name = "DIRECTORY")]
    out: PathBuf,
}

impl ScaleOptions {
    pub(crate) fn scale(&self) -> Scale {
        Scale {
            bench: self.bench.clone(),
            pages: self.pages.max(1_000),
            out: self.out.clone(),
        }
    }
}

#[derive(Args)]
pub(crate) struct OceanOptions {
    #[command(flatten)]
    experiment: Experiment,
    /// Fewer distances, groups and transactions, each once: some minutes instead of hours
    #[arg(long)]
    pub(crate) quick: bool,
}

impl OceanOptions {
    pub(crate) fn common(&self) -> Common {
        self.experiment.common_of(self.quick)
    }
}
