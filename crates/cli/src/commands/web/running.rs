//! A proxy that runs by a configuration, and goes on by the next one.

use super::beside::{Beside, Running};
use super::config::WebConfig;
use super::{ProxyOptions, files, noting, source, usage};
use crate::failure::{Code, Failure};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{AnySource, Door, NotBegun, Proxy, Recipe, Tls, WatchedProxy};

/// The proxy of this process: its answers rest on the table of a keeper, or on those of Thorp homes.
pub(super) type OwnProxy = Proxy<AnySource>;

/// What a configuration names, read and found good. Nothing of it runs.
struct Parts {
    config: WebConfig,
    recipe: Arc<Recipe>,
    tls: Option<Tls>,
    beside: Option<Beside>,
}

impl Parts {
    fn read(config: WebConfig) -> Result<Self, Failure> {
        config.check()?;
        let recipe = config.recipe.as_deref().map(source::recipe).transpose()?;
        // Without a recipe, no answer is coherent.
        let recipe = Arc::new(recipe.unwrap_or_default());
        noting::fits(&config, &recipe)?;
        let tls = tls(&config)?;
        let beside = Beside::of(&config, &recipe)?;
        Ok(Parts {
            config,
            recipe,
            tls,
            beside,
        })
    }

    /// What answers of routes are checked against. Without a source none is.
    fn source(&self) -> AnySource {
        let nothing = || Arc::new(Followed::new(PathBuf::new(), self.recipe.terms("")));
        let nothing = || AnySource::Table(nothing());
        self.beside.as_ref().map_or_else(nothing, Beside::source)
    }

    fn origins(&self) -> String {
        self.config.origins.join(",")
    }
}

/// What clients speak. None: HTTP without TLS.
fn tls(config: &WebConfig) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) else {
        return Ok(None);
    };
    let read = |path: &PathBuf| fs::read(path).map_err(|error| Failure::file(path, &error));
    let tls = Tls::from_pem(&read(certificate)?, &read(key)?);
    tls.map(Some).map_err(|error| {
        let action = "give PEM files with --tls-certificate and --tls-key";
        Failure::new(error.to_string(), action).with(Code::Usage)
    })
}

/// A proxy, and what has to be so that it can run. Nothing runs yet.
pub(super) struct Ready {
    parts: Parts,
    proxy: OwnProxy,
}

impl Ready {
    /// Reads all that a configuration names.
    pub(super) fn read(config: WebConfig) -> Result<Self, Failure> {
        let parts = Parts::read(config)?;
        let (recipe, reader) = (Arc::clone(&parts.recipe), parts.source());
        let cache_bytes = parts.config.cache.0;
        let proxy = Proxy::new(&parts.origins(), recipe, reader, cache_bytes).map_err(usage)?;
        proxy.audit(parts.config.audit);
        let requests = parts.beside.as_ref().and_then(Beside::requests);
        let proxy = match requests {
            Some(requests) => proxy.with_requests(requests),
            None => proxy,
        };
        Ok(Ready { parts, proxy })
    }

    /// Starts what runs beside the proxy.
    pub(super) async fn start(self) -> Result<Proxying, Failure> {
        let Parts {
            config,
            recipe,
            tls,
            beside,
        } = self.parts;
        files::raise_limit();
        let door = Arc::new(Door::new(Arc::new(self.proxy), tls));
        let table = beside.as_ref().and_then(Beside::table);
        let source = beside.as_ref().map(Beside::source);
        let beside = match beside {
            Some(beside) => Some(beside.run().await?),
            None => None,
        };
        Ok(Proxying {
            watched: Arc::new(WatchedProxy::new(Arc::clone(&door), table)),
            door,
            source,
            beside,
            config,
            recipe,
        })
    }
}

/// Another recipe cannot take the place of this one now.
fn not_noted(error: NotBegun) -> Failure {
    let what = match error {
        NotBegun::NoKeeper => "no keeper notes that the recipe changes",
        _ => "too many requests are under way to change the recipe",
    };
    let todo = "send SIGHUP again when `thorp web status --requests` says that the keeper is live";
    Failure::new(what, todo)
}

/// A proxy that runs.
pub(super) struct Proxying {
    pub(super) door: Arc<Door<AnySource>>,
    pub(super) watched: Arc<WatchedProxy<AnySource>>,
    pub(super) config: WebConfig,
    recipe: Arc<Recipe>,
    source: Option<AnySource>,
    beside: Option<Running>,
}

impl Proxying {
    /// Reads the configuration again. If anything is wrong with it, all goes on as before.
    pub(super) async fn reload(&mut self, options: &ProxyOptions) {
        match self.next(options).await {
            Ok(table) => {
                self.watched.reloaded(Ok(table));
                eprintln!("reloaded: the new configuration is in force");
            }
            Err(failure) => {
                eprintln!(
                    "not reloaded: {}. The old configuration stays in force",
                    failure.what()
                );
                failure
                    .advice()
                    .for_each(|advice| eprintln!("  -> {advice}"));
                self.watched.reloaded(Err(failure.what().to_owned()));
            }
        }
    }

    /// Everything that can fail comes before the first change.
    async fn next(&mut self, options: &ProxyOptions) -> Result<Option<PathBuf>, Failure> {
        let config = WebConfig::effective(options)?;
        self.config.may_become(&config)?;
        let parts = Parts::read(config)?;
        let is_other_table = self.needs_other_keeper(&parts);
        let source = match &self.source {
            Some(source) if !is_other_table => source.clone(),
            _ => parts.source(),
        };
        let is_other_recipe = *parts.recipe != *self.recipe;
        let is_other_proxy = is_other_recipe
            || is_other_table
            || parts.config.origins != self.config.origins
            || parts.config.cache != self.config.cache;
        if is_other_proxy {
            let (recipe, before) = (Arc::clone(&parts.recipe), self.door.proxy());
            let (origins, cache_bytes) = (parts.origins(), parts.config.cache.0);
            let next = before.successor(&origins, recipe, source.clone(), cache_bytes);
            let next = next.map_err(usage)?;
            if is_other_recipe {
                // Requests that are noted stay so: there is one connection to their keeper.
                before.yields().await.map_err(not_noted)?;
            }
            self.door.renew(Arc::new(next));
        }
        if let Some(tls) = parts.tls {
            self.door.renew_tls(tls);
        }
        self.door.proxy().audit(parts.config.audit);
        let table = parts.beside.as_ref().and_then(Beside::table);
        if let Some(beside) = parts.beside.filter(|_| is_other_table) {
            self.source = Some(source);
            // The keeper of before notes other keys. It leaves the database before the next one comes.
            let before = self.beside.take();
            let left = match before {
                Some(before) => before.end().await,
                None => Ok(()),
            };
            let runs = beside.run().await.map(|beside| self.beside = Some(beside));
            for failure in [left.err(), runs.err()].into_iter().flatten() {
                eprintln!("{}", failure.what());
            }
        }
        self.recipe = parts.recipe;
        self.config = parts.config;
        Ok(table)
    }

    /// Whether the keeper notes other keys than the next recipe needs. One of requests notes what proxies say, and homes name their own keys.
    fn needs_other_keeper(&self, next: &Parts) -> bool {
        let name = &next.config.keeper.name;
        let is_other = next.recipe.terms(name) != self.recipe.terms(name)
            || next.config.recipe != self.config.recipe;
        is_other && next.config.postgres.url.is_some()
    }

    /// Ends what runs beside it.
    pub(super) async fn end(self) -> Result<(), Failure> {
        match self.beside {
            Some(beside) => beside.end().await,
            None => Ok(()),
        }
    }
}
