//! Finding segments and objects by their names.

use super::Member;
use crate::due::due_since;
use crate::limits::RETRY_PAUSE;
use crate::name::{SegmentName, Spot};
use crate::runtime::block_on;
use crate::segment::{Segment, SegmentEntry};
use crate::{Error, ErrorKind, Reference, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thorp_model::{CallRequest, CallResponse, HomeId, HomeNames, SegmentId, SegmentInfo};

impl Member {
    // --- Segments ---

    /// Opens a segment: `thorp://HOME/path`.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) if the name is none, [`NotFound`](ErrorKind::NotFound) if there is no such home
    /// or segment, [`HomeUnreachable`](ErrorKind::HomeUnreachable), [`Busy`](ErrorKind::Busy), and
    /// [`Closed`](ErrorKind::Closed).
    pub fn open(&self, name: &str) -> Result<Segment> {
        block_on(self.open_async(name))
    }

    /// As [`Member::open`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn open_async(&self, name: &str) -> Result<Segment> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        self.open_at(home, name.path, false).await
    }

    /// Makes a segment; fails with [`AlreadyExists`](ErrorKind::AlreadyExists) if there is one. (Two members that make
    /// it at the same moment may both get it.)
    ///
    /// # Errors
    ///
    /// As [`Member::open_or_create`]; [`AlreadyExists`](ErrorKind::AlreadyExists).
    pub fn create(&self, name: &str) -> Result<Segment> {
        block_on(self.create_async(name))
    }

    /// As [`Member::create`].
    ///
    /// # Errors
    ///
    /// As [`Member::create`].
    pub async fn create_async(&self, name: &str) -> Result<Segment> {
        let parsed = SegmentName::parse(name)?;
        let home = self.home(parsed.home).await?;
        match self.open_at(home, parsed.path, false).await {
            Ok(_) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a segment {name} already"),
            )),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.open_at(home, parsed.path, true).await
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a segment, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// As [`Member::open`]; [`Full`](ErrorKind::Full) and [`TooLarge`](ErrorKind::TooLarge) if its home takes no more
    /// segments.
    pub fn open_or_create(&self, name: &str) -> Result<Segment> {
        block_on(self.open_or_create_async(name))
    }

    /// As [`Member::open_or_create`].
    ///
    /// # Errors
    ///
    /// As [`Member::open_or_create`].
    pub async fn open_or_create_async(&self, name: &str) -> Result<Segment> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        self.open_at(home, name.path, true).await
    }

    /// The segments whose names begin so: `thorp://HOME/beginning-of-path`.
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub fn list(&self, prefix: &str) -> Result<Vec<SegmentEntry>> {
        block_on(self.list_async(prefix))
    }

    /// As [`Member::list`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn list_async(&self, prefix: &str) -> Result<Vec<SegmentEntry>> {
        let name = SegmentName::parse_prefix(prefix)?;
        let home = self.home(name.home).await?;
        let infos = self.infos(home, name.path).await?;
        let entry = |info: SegmentInfo| SegmentEntry {
            name: SegmentName::format(name.home, &info.path),
            pages: info.extent.0,
        };
        Ok(infos.into_iter().map(entry).collect())
    }

    /// Removes a segment with all its objects. Removing what is not there is no error.
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub fn remove(&self, name: &str) -> Result<()> {
        block_on(self.remove_async(name))
    }

    /// As [`Member::remove`].
    ///
    /// # Errors
    ///
    /// As [`Member::open`].
    pub async fn remove_async(&self, name: &str) -> Result<()> {
        let name = SegmentName::parse(name)?;
        let home = self.home(name.home).await?;
        let open = CallRequest::Open {
            path: name.path.to_owned(),
            create: false,
        };
        let segment = match self.call(home, open).await {
            Ok(CallResponse::Segment(info)) => info.id,
            Ok(_) => return Err(other_answer()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let answer = self.call(home, CallRequest::Remove { segment }).await?;
        self.shared().allocators.forget_path(home, name.path);
        match answer {
            CallResponse::Removed => Ok(()),
            _ => Err(other_answer()),
        }
    }

    /// A reference as text: `thorp://HOME/path#PAGE.SLOT.GENERATION[+OFFSET]`. Asks the home, if this member has not
    /// met the segment yet.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if its home or segment is not known, and as [`Member::open`].
    pub fn format(&self, reference: &Reference) -> Result<String> {
        block_on(self.format_async(reference))
    }

    /// As [`Member::format`].
    ///
    /// # Errors
    ///
    /// As [`Member::format`].
    pub async fn format_async(&self, reference: &Reference) -> Result<String> {
        let id = reference.object.page.segment;
        let home = self.shared().homes.name(reference.home).ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "the reference leads to a home that this member has never heard of",
            )
        })?;
        let path = self.path(reference.home, id).await?;
        Ok(Spot::format(&SegmentName::format(&home, &path), reference))
    }

    /// The reference that a text names. A read shows whether there is such an object.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) if the text is no reference, and as [`Member::open`].
    pub fn parse(&self, text: &str) -> Result<Reference> {
        block_on(self.parse_async(text))
    }

    /// As [`Member::parse`].
    ///
    /// # Errors
    ///
    /// As [`Member::parse`].
    pub async fn parse_async(&self, text: &str) -> Result<Reference> {
        let (name, spot) = Spot::parse(text)?;
        let home = self.home(name.home).await?;
        let allocator = match self.shared().allocators.by_path(home, name.path) {
            Some(allocator) => allocator,
            None => Arc::clone(self.open_at(home, name.path, false).await?.allocator()),
        };
        Ok(spot.reference(home, allocator.segment))
    }

    // --- How ---

    async fn call(&self, home: HomeId, request: CallRequest) -> Result<CallResponse> {
        let due = self.session.fetch_due();
        self.shared().requests.call(home, request, due).await
    }

    /// A home by its name. It is waited for: perhaps its stream has not begun.
    pub(super) async fn home(&self, name: &str) -> Result<HomeId> {
        let shared = self.shared();
        let mut changes = shared.homes.changes();
        let begun = Instant::now();
        loop {
            changes.mark_unchanged();
            if let Some(home) = shared.homes.by_name(name) {
                return Ok(home);
            }
            let all = self.runtime.home_names().filter(|homes| homes.is_all);
            if let Some(all) = all.filter(|all| all.names.iter().all(|known| known != name)) {
                return Err(no_such_home(name, &all));
            }
            let is_any_live = shared.homes.is_any_live();
            let patience = match is_any_live {
                true => UNKNOWN_HOME_PATIENCE.min(self.session.fetch_timeout),
                false => self.session.fetch_timeout,
            };
            let due = due_since(begun, patience).min(self.session.due(patience));
            if !shared.requests.changed(&mut changes, due).await? {
                return Err(Error::unreachable(match self.runtime.is_below_a_site() {
                    true => format!("home {name} cannot be reached by way of this site"),
                    false => format!("home {name} cannot be reached"),
                }));
            }
        }
    }

    /// The homes of the village, whether or not they can be reached: those that the site of this member is to reach, or
    /// those that the member has joined itself. Waits for the site's word, or for the streams of these homes. Those of them
    /// that can be reached are in [`Member::homes`] when this returns. If nobody says in time which there are, these are the
    /// homes that the member knows, and [`HomeNames::is_all`] is false.
    ///
    /// # Errors
    ///
    /// [`Closed`](ErrorKind::Closed).
    pub fn home_names(&self) -> Result<HomeNames> {
        block_on(self.home_names_async())
    }

    /// As [`Member::home_names`].
    ///
    /// # Errors
    ///
    /// As [`Member::home_names`].
    pub async fn home_names_async(&self) -> Result<HomeNames> {
        let shared = self.shared();
        let (mut changes, due) = (shared.homes.changes(), self.session.fetch_due());
        // A site tells after the streams that it has; of a home that was joined here the stream begins soon.
        let has_begun = |name: &String| shared.homes.by_name(name).is_some();
        let is_complete =
            |told: &HomeNames| self.runtime.is_below_a_site() || told.names.iter().all(has_begun);
        loop {
            changes.mark_unchanged();
            match self.runtime.home_names() {
                Some(told) if is_complete(&told) => return Ok(told),
                told if Instant::now() >= due => {
                    return Ok(told.unwrap_or_else(|| self.known_homes()));
                }
                _ => {}
            }
            let next = due.min(Instant::now() + RETRY_PAUSE);
            shared.requests.changed(&mut changes, next).await?;
        }
    }

    fn known_homes(&self) -> HomeNames {
        let known = self.shared().homes.all().into_iter().map(|home| home.name);
        let known: BTreeSet<String> = known.collect();
        HomeNames {
            names: known.into_iter().collect(),
            is_all: false,
        }
    }

    async fn open_at(&self, home: HomeId, path: &str, create: bool) -> Result<Segment> {
        let request = CallRequest::Open {
            path: path.to_owned(),
            create,
        };
        match self.call(home, request).await {
            Ok(CallResponse::Segment(info)) => {
                let allocator = self.shared().allocators.named(home, info.id, &info.path);
                Ok(Segment::new(self.clone(), allocator))
            }
            Ok(_) => Err(other_answer()),
            Err(error) => {
                let home = self.shared().homes.name(home).unwrap_or_default();
                let name = SegmentName::format(&home, path);
                Err(match error.kind() {
                    kind @ ErrorKind::NotFound => Error::new(
                        kind,
                        format!("there is no segment {name}, or this node may not read it"),
                    ),
                    ErrorKind::BadName | ErrorKind::NoRight => error.with_subject(&name),
                    _ => error,
                })
            }
        }
    }

    /// The path of a segment that this member may know only from a reference.
    async fn path(&self, home: HomeId, id: SegmentId) -> Result<String> {
        let known = || {
            let allocator = self.shared().allocators.find(home, id)?;
            allocator.path().map(str::to_owned)
        };
        if let Some(path) = known() {
            return Ok(path);
        }
        for info in self.infos(home, "").await? {
            self.shared().allocators.named(home, info.id, &info.path);
        }
        known().ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("segment {id} does not exist (any more)"),
            )
        })
    }

    async fn infos(&self, home: HomeId, prefix: &str) -> Result<Vec<SegmentInfo>> {
        let (mut infos, mut after) = (Vec::<SegmentInfo>::new(), String::new());
        loop {
            let prefix = prefix.to_owned();
            match self.call(home, CallRequest::List { prefix, after }).await? {
                CallResponse::Segments { segments, more } => {
                    infos.extend(segments);
                    after = infos
                        .last()
                        .map(|info| info.path.clone())
                        .unwrap_or_default();
                    if !more {
                        return Ok(infos);
                    }
                }
                _ => return Err(other_answer()),
            }
        }
    }
}

fn no_such_home(name: &str, all: &HomeNames) -> Error {
    let words = match all.names.is_empty() {
        true => format!("there is no home called {name}"),
        false => format!(
            "there is no home called {name}; known are: {}",
            all.names.join(", ")
        ),
    };
    Error::new(ErrorKind::NotFound, words)
}

fn other_answer() -> Error {
    Error::invalid("the home answered something else")
}

/// How long to wait for a home that is unknown here while another one is live.
const UNKNOWN_HOME_PATIENCE: Duration = Duration::from_secs(2);
