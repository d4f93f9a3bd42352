//! `thorp dev`: a village in one process.

mod addresses;
mod own_context;
mod temporary;
mod welcome;

use super::node::{refused, shutdown_or};
use crate::failure::{Code, Failure};
use crate::text::absolute;
use addresses::Addresses;
use clap::Args;
use own_context::OwnContext;
use rustix::fs::Mode;
use rustix::process::umask;
use std::path::{Path, PathBuf};
use temporary::{Temporary, remove_running};
use thorp_client::Contexts;
use thorp_net::{AuthorityServer, CertificateAuthority};
use thorp_server::{
    HomeConfigFile, HomeServer, LogConfig, ParentEntry, ServerError, SiteConfigFile, SiteServer,
    init_logs,
};
use thorp_store::OpenError;
use tokio::sync::watch;
use welcome::Welcome;

/// What `thorp dev` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Where it keeps everything; made if it is not there [default: thorp-dev]
    #[arg(long, value_name = "DIR", conflicts_with = "temporary")]
    dir: Option<PathBuf>,
    /// Keep everything in a directory that goes at the end, and the context with it
    #[arg(long)]
    temporary: bool,
    /// The name of the home, as in thorp://NAME/path, and of the context
    #[arg(long, value_name = "NAME", default_value = "dev")]
    name: String,
    /// Tell in JSON what runs, once it does
    #[arg(long)]
    json: bool,
    /// error, warn, info, debug or trace; single parts too: info,thorp_net=debug
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log_level: String,
    /// Shut down when standard input ends: for programs that start this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs until it is told to end.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if NAMES.contains(&&*options.name) {
        let what = format!("a site or a member is called {} here", options.name);
        return Err(Failure::new(what, "take another --name").with(Code::Usage));
    }
    let log = LogConfig {
        level: options.log_level.clone(),
        ..LogConfig::default()
    };
    init_logs(&log).map_err(|error| super::node::config_failure(&error))?;
    // What a home writes is for its own user (threat 12).
    umask(Mode::RWXG | Mode::RWXO);
    let contexts = Contexts::of_user()?;
    // Dropped, it is removed.
    let temporary = match options.temporary {
        true => Some(Temporary::make()?),
        false => None,
    };
    let dir = match (&temporary, &options.dir) {
        (Some(dir), _) => dir.path(),
        (None, Some(dir)) => dir,
        (None, None) => Path::new(DEFAULT_DIR),
    };
    let context = OwnContext::of(contexts, &options.name, &absolute(dir));
    context.check_free()?;
    let ran = serve(options, dir, &context);
    if options.temporary {
        context.remove();
    }
    ran
}

/// Runs the village in a directory.
fn serve(options: &Options, dir: &Path, context: &OwnContext) -> Result<(), Failure> {
    let runtime = thorp_server::runtime()
        .map_err(|error| Failure::new(format!("the system gives no runtime: {error}"), ""))?;
    runtime.block_on(async {
        let of_one_run = options.temporary.then(|| (dir.to_owned(), context.clone()));
        // Before anything is there: whoever ends it at once, or twice, leaves nothing of what is temporary.
        let shutdown = shutdown_or(options.until_stdin_closes, move || {
            if let Some((dir, context)) = &of_one_run {
                context.remove();
                remove_running(dir);
            }
        })?;
        let village = Village::start(&options.name, dir).await?;
        let is_current = context.write(&village.authority_dir, &village.running)?;
        let welcome = Welcome {
            options,
            dir,
            running: &village.running,
            is_current,
            closed: village.home.why_closed(),
        };
        welcome.tell()?;
        village.run(shutdown).await;
        Ok(())
    })
}

/// A home, a site below it, and the authority's process.
struct Village {
    home: HomeServer,
    site: SiteServer,
    authority: AuthorityServer,
    authority_dir: PathBuf,
    running: Running,
}

/// Where a village is found.
struct Running {
    site: String,
    home: String,
    authority: String,
    /// Of the home, and of the site.
    status: Vec<String>,
}

impl Village {
    /// The first time it makes everything. Afterwards it takes the same ports, unless somebody else has them.
    async fn start(name: &str, dir: &Path) -> Result<Self, Failure> {
        let before = Addresses::load(dir);
        let config = HomeConfigFile {
            name: Some(name.to_owned()),
            data_dir: Some(dir.to_owned()),
            listen: vec![before.home.free()],
            http: Some(before.status_of_home.free_for_status()),
            ..HomeConfigFile::default()
        };
        let home = HomeServer::start(config).await;
        let home = home.map_err(|error| failure(&error, dir))?;
        let authority_dir = CertificateAuthority::find(dir);
        let authority = CertificateAuthority::open(&authority_dir)
            .map_err(|error| Failure::new(error.to_string(), OTHER_DIR))?;
        let at = before.authority.free();
        let authority = AuthorityServer::bind(authority, &at, None).await;
        let authority = authority.map_err(|error| Failure::new(error.to_string(), OTHER_DIR))?;
        let parent = ParentEntry {
            name: Some(name.to_owned()),
            addresses: home.addresses().to_vec(),
            one_way_ms: 0,
        };
        let config = SiteConfigFile {
            name: Some(SITE.to_owned()),
            data_dir: Some(dir.join(SITE)),
            authority_dir: Some(authority_dir.clone()),
            listen: vec![before.site.free()],
            http: Some(before.status_of_site.free_for_status()),
            parent: vec![parent],
            ..SiteConfigFile::default()
        };
        let site = SiteServer::start(&config).await;
        let site = site.map_err(|error| refused(&error))?;
        let after = Addresses::of(&home, &site, &authority);
        after.save(dir)?;
        let running = Running {
            site: after.site.to_string(),
            home: after.home.to_string(),
            authority: after.authority.to_string(),
            status: [after.status_of_home, after.status_of_site]
                .map(|place| place.to_string())
                .to_vec(),
        };
        Ok(Village {
            home,
            site,
            authority,
            authority_dir,
            running,
        })
    }

    /// The home ends last: what the others still send it is done.
    async fn run(self, shutdown: impl Future<Output = ()>) {
        let (first, last) = (watch::Sender::new(false), watch::Sender::new(false));
        let others = async {
            tokio::join!(
                self.site.run(rung(&first)),
                self.authority.run(rung(&first)),
                async {
                    shutdown.await;
                    first.send_replace(true);
                }
            );
            last.send_replace(true);
        };
        tokio::join!(self.home.run(rung(&last)), others);
    }
}

async fn rung(bell: &watch::Sender<bool>) {
    // The sender lives as long as whoever waits here.
    let _ = bell.subscribe().wait_for(|rung| *rung).await;
}

fn failure(error: &ServerError, dir: &Path) -> Failure {
    match error {
        ServerError::Store(OpenError::InUse { .. }) => {
            let what = format!("a village runs in {} already", dir.display());
            let todo = "use that one: `thorp context ls` shows its context; another one needs a --dir and a --name of its own, or \
                        --temporary and a --name";
            Failure::new(what, todo)
        }
        ServerError::OtherHome { .. } => Failure::new(
            error.to_string(),
            "give the --name that it has, or another --dir",
        ),
        _ => refused(error),
    }
}

const OTHER_DIR: &str = "give another --dir";
const DEFAULT_DIR: &str = "thorp-dev";
const SITE: &str = "site";
/// Nodes of a village that `thorp dev` runs, beside the home.
const NAMES: [&str; 3] = [SITE, own_context::MEMBER, "local"];

const HELP: &str = "\
Runs a home, a site below it and the authority's process, on this machine only and on free ports. It makes \
the certificates that they need, and the context with which commands and programs join. Started again in the same \
directory, it has the same data, and the same ports if they are free. SIGTERM and SIGINT shut it down in order.

Examples:
  thorp dev                            # in ./thorp-dev
  thorp dev --temporary                # nothing of it stays
  thorp dev --name play --dir play     # another one beside it";
