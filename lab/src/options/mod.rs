//! What can be said on the command line.

use clap::{Args, Parser, Subcommand};

mod experiments;

pub(crate) use experiments::{
    ChainOptions, ColdOptions, CostsOptions, HotOptions, IdleOptions, LossyOptions, OceanOptions,
    PaperOptions, PeerOptions, ScaleOptions,
};

use lab::Outcome;
use lab::net::{COMMANDS, Link, Plan};
use lab::quantity;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser)]
#[command(
    about = "Wide-area networks on one machine, between real TCP stacks. Needs root; removes all it makes, however it ends"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a network and measure what it really does: round trips, loss, throughput
    Ping(Ping),
    /// Make a network and keep it until Ctrl-C
    Up(Up),
    /// Change or ask a network that runs with --control
    Ctl(Ctl),
    /// What a fetch, a commit and a fetch from a neighbour cost where nothing is far: BuddyCache's tables 1 and 2
    Costs(CostsOptions),
    /// Members with empty caches go through the same OO7 module: BuddyCache's figures 7 to 9
    Cold(ColdOptions),
    /// Warm members read what one of them changes: BuddyCache's figures 10 to 12
    Hot(HotOptions),
    /// BuddyCache's whole evaluation, or single tables and figures of it
    Paper(PaperOptions),
    /// The same OO7 module in another system, over the same link
    Peer(PeerOptions),
    /// Fetches over a link that loses packets
    Lossy(LossyOptions),
    /// A large object after a silence
    Idle(IdleOptions),
    /// Transactions that depend on each other, each waited for, and not (rule 14)
    Chain(ChainOptions),
    /// How the work and the memory of a home and its sites grow with members, sites and pages (needs no root)
    Scale(ScaleOptions),
    /// All of that in a row, but for the last
    Ocean(OceanOptions),
    /// Remove what labs have left that were killed together with their guardians
    Clean,
}

#[derive(Args)]
pub(crate) struct Network {
    /// Somebody on the network: NAME[:ADDRESS][:LINK], as in home:20ms,loss=0.1%,rate=100mbit. Of two, delays add up.
    /// Without any there are `site` and `home`
    #[arg(long = "spoke", value_name = "SPOKE")]
    spokes: Vec<String>,
    /// The link of `site`, where no spoke is named
    #[arg(
        long,
        value_name = "LINK",
        default_value = "rtt=40ms",
        conflicts_with = "spokes"
    )]
    link: Link,
    /// What two have between them, in both directions: A,B:LINK, as in home,site:rtt=80ms,jitter=2ms,loss=1%,burst=4
    #[arg(long = "pair", value_name = "PAIR")]
    pairs: Vec<String>,
    /// How long a packet waits for a line before it is dropped
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, default_value = "100ms")]
    queue: Duration,
    /// The largest packet
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Repeats what is lost and what jitters
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The spokes' congestion control: cubic, reno, bbr; without it the machine's
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// A setting of the spokes' kernel, as in net.ipv4.tcp_sack=0
    #[arg(long = "sysctl", value_name = "NAME=VALUE")]
    sysctls: Vec<String>,
    /// The carrying thread waits for its turn like any other
    #[arg(long)]
    no_realtime: bool,
    /// Listens for `thorp-lab ctl` there
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
}

impl Network {
    pub(crate) fn plan(&self) -> Outcome<Plan> {
        let mut plan = match self.spokes[..] {
            [] => Plan::two("site", "home", self.link)?,
            _ => Plan::default(),
        };
        self.spokes
            .iter()
            .try_for_each(|spoke| plan.add_told(spoke))?;
        self.pairs.iter().try_for_each(|pair| plan.ask_told(pair))?;
        self.sysctls
            .iter()
            .try_for_each(|setting| plan.tuning.set(setting))?;
        plan.tuning.congestion.clone_from(&self.congestion);
        (plan.queue, plan.mtu, plan.seed, plan.realtime) =
            (self.queue, self.mtu, self.seed, !self.no_realtime);
        Ok(plan)
    }
}

#[derive(Args)]
pub(crate) struct Ping {
    #[command(flatten)]
    pub(crate) network: Network,
    /// Round trips with TCP, and as many with UDP
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) round_trips: u32,
    /// Datagrams that show what is lost
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) datagrams: u32,
    /// So long at full speed
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, default_value = "4s")]
    pub(crate) flow: Duration,
    /// Writes raw samples there: round_trips.csv, datagrams.csv, throughput.csv, record.json
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) network: Network,
    /// Ends after this time
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) time: Option<Duration>,
}

#[derive(Args)]
#[command(after_help = COMMANDS)]
pub(crate) struct Ctl {
    /// As told with --control
    pub(crate) socket: PathBuf,
    /// What it is to do; --help lists it
    #[arg(required = true, trailing_var_arg = true)]
    pub(crate) words: Vec<String>,
}
