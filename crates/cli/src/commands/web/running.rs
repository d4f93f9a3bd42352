//! A proxy that runs by a configuration, and goes on by the next one.

use super::beside::{Beside, Running};
use super::config::WebConfig;
use super::{ProxyOptions, files, source, usage};
use crate::failure::{Code, Failure};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thorp_versions::Followed;
use thorp_web::{Door, Proxy, Recipe, Tls, WatchedProxy};

/// The proxy of this process: its answers rest on the table of a keeper.
pub(super) type OwnProxy = Proxy<Arc<Followed>>;

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
        if config.postgres.url.is_none() && recipe.has_routes() {
            let what = "the recipe has routes, and nothing says when their answers change";
            let action = "name the database with --postgres, or leave the routes out of the recipe";
            return Err(Failure::new(what, action).with(Code::Usage));
        }
        let tls = tls(&config)?;
        let beside = Beside::of(&config, &recipe)?;
        Ok(Parts {
            config,
            recipe,
            tls,
            beside,
        })
    }

    /// What answers of routes are checked against. Without a database none is.
    fn reader(&self) -> Arc<Followed> {
        let nothing = || Arc::new(Followed::new(PathBuf::new(), self.recipe.terms("")));
        self.beside.as_ref().map_or_else(nothing, Beside::reader)
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
        let (recipe, reader) = (Arc::clone(&parts.recipe), parts.reader());
        let cache_bytes = parts.config.cache.0;
        let proxy = Proxy::new(&parts.origins(), recipe, reader, cache_bytes).map_err(usage)?;
        proxy.audit(parts.config.audit);
        Ok(Ready { parts, proxy })
    }

    /// Starts what runs beside the proxy.
    pub(super) fn start(self) -> Proxying {
        let Parts {
            config,
            recipe,
            tls,
            beside,
        } = self.parts;
        files::raise_limit();
        let door = Arc::new(Door::new(Arc::new(self.proxy), tls));
        let table = beside.as_ref().map(Beside::table);
        Proxying {
            watched: Arc::new(WatchedProxy::new(Arc::clone(&door), table)),
            door,
            reader: beside.as_ref().map(Beside::reader),
            beside: beside.map(Beside::run),
            config,
            recipe,
        }
    }
}

/// A proxy that runs.
pub(super) struct Proxying {
    pub(super) door: Arc<Door<Arc<Followed>>>,
    pub(super) watched: Arc<WatchedProxy<Arc<Followed>>>,
    pub(super) config: WebConfig,
    recipe: Arc<Recipe>,
    reader: Option<Arc<Followed>>,
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
        let name = &parts.config.postgres.name;
        let is_other_table = parts.recipe.terms(name) != self.recipe.terms(name)
            || parts.config.recipe != self.config.recipe;
        let reader = match &self.reader {
            Some(reader) if !is_other_table => Arc::clone(reader),
            _ => parts.reader(),
        };
        let is_other_proxy = *parts.recipe != *self.recipe
            || is_other_table
            || parts.config.origins != self.config.origins
            || parts.config.cache != self.config.cache;
        if is_other_proxy {
            let (recipe, before) = (Arc::clone(&parts.recipe), self.door.proxy());
            let (origins, cache_bytes) = (parts.origins(), parts.config.cache.0);
            let next = before.successor(&origins, recipe, Arc::clone(&reader), cache_bytes);
            self.door.renew(Arc::new(next.map_err(usage)?));
        }
        if let Some(tls) = parts.tls {
            self.door.renew_tls(tls);
        }
        self.door.proxy().audit(parts.config.audit);
        let table = parts.beside.as_ref().map(Beside::table);
        if let Some(beside) = parts.beside.filter(|_| is_other_table) {
            self.reader = Some(reader);
            // The keeper of before notes other keys. It leaves the database before the next one comes.
            let before = self.beside.take();
            let left = match before {
                Some(before) => before.end().await,
                None => Ok(()),
            };
            self.beside = Some(beside.run());
            if let Err(failure) = left {
                eprintln!("{}", failure.what());
            }
        }
        self.recipe = parts.recipe;
        self.config = parts.config;
        Ok(table)
    }

    /// Ends what runs beside it.
    pub(super) async fn end(self) -> Result<(), Failure> {
        match self.beside {
            Some(beside) => beside.end().await,
            None => Ok(()),
        }
    }
}
