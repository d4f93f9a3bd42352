//! What can go wrong, by what the caller should do about it.

use std::fmt;
use std::time::Duration;
use thorp_model::{
    CallError, CommitId, FetchRefusal, InvalidCommit, Lack, ObjectId, Refusal, SpaceBound,
};

/// What calls of this crate give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed: a [kind](ErrorKind) for programs, words for people.
///
/// ```
/// use thorp_client::{Error, ErrorKind};
///
/// fn advice(error: &Error) -> &'static str {
///     match error.kind() {
///         ErrorKind::Conflict => "run the transaction again",
///         ErrorKind::Busy { .. } => "wait a little, then run it again",
///         ErrorKind::OutcomeUnknown(_) => "ask for the outcome later",
///         _ => "let a person look at it",
///     }
/// }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    words: String,
    home: Option<String>,
    object: Option<String>,
    /// What a full store lacks.
    lack: Option<Lack>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What the caller of a failed call should DO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was read has changed: run the transaction again ([`Member::transact`](crate::Member::transact) does).
    Conflict,
    /// Too much is under way: run it again after a while.
    Busy {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The home's store is full. Reads go on; free some space there.
    Full,
    /// The home could not be reached in time, and nothing was changed there. Try later.
    HomeUnreachable,
    /// The commit was sent and its outcome did not come in time. Call [`Member::outcome`](crate::Member::outcome)
    /// later, and do not run the transaction again before that.
    OutcomeUnknown(CommitId),
    /// The member asked the home too late, which no longer remembers whether it committed this. Or the home has gone
    /// back in time since, and does not know the commit. Or the member's response is no outcome. Look at the objects before you run the transaction again.
    OutcomeLost,
    /// The lock of a visit is over, because it could not be kept in time or its holder may not write any more. Nothing was
    /// changed. Open another visit, and read again.
    LockLost,
    /// The home has gone back in time: it continues from an older state of its store, for example from a restored backup.
    /// What this program has read there or holds of it may be lost, and nothing was changed. A program gets this once for
    /// each home and time; its next transaction sees the home as it is now. References to lost objects are
    /// [`Gone`](ErrorKind::Gone).
    HomeWentBack,
    /// The object was deleted, or its slot now holds another one: forget the reference.
    Gone,
    /// No such segment, root or home: create it, or mend the name.
    NotFound,
    /// There is one of that name already: open it.
    AlreadyExists,
    /// More than one object, commit or transaction may have: make it smaller.
    TooLarge,
    /// That is no name of a segment or an object: mend the name.
    BadName,
    /// The call cannot be right: mend the program.
    Invalid,
    /// The member may not do that there, or a site between it and the home may not carry the segment.
    NoRight,
    /// The member was closed: join again.
    Closed,
    /// What is stored is damaged, or is not of the expected type: a person must look at it.
    DataDamaged,
    /// The program itself gave up ([`Error::aborted`]).
    Aborted,
}

impl Error {
    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The home that it is about, where a transaction touched several.
    pub fn home(&self) -> Option<&str> {
        self.0.home.as_deref()
    }

    /// The object that it is about, as `thorp://HOME/path#PAGE.SLOT.GENERATION`: in conflicts without the generation, and
    /// without the segment if this member does not know its name.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// What a person can do about it: one sentence, or empty.
    pub fn advice(&self) -> &'static str {
        match &self.0.lack {
            Some(lack) if lack.of == SpaceBound::Limit => {
                "free some room at the home (`thorp rm`), or raise its --limit-bytes"
            }
            _ => self.kind().advice(),
        }
    }

    /// The same, of a store that lacks something.
    pub(crate) fn lacking(mut self, lack: Lack) -> Self {
        self.0.lack = Some(lack);
        self
    }

    /// The same, about an object.
    pub(crate) fn about(mut self, object: String) -> Self {
        self.0.object = Some(object);
        self
    }

    /// The same, with what it is about in front.
    pub(crate) fn with_subject(mut self, subject: &str) -> Self {
        self.0.words = format!("{subject}: {}", self.0.words);
        self
    }

    /// A commit was refused. `name` says what people call an object.
    pub(crate) fn refused(refusal: Refusal, name: impl FnOnce(ObjectId) -> String) -> Self {
        let (object, before, after) = match &refusal {
            Refusal::Conflict { object } => (
                *object,
                "object",
                "was changed by another transaction: run it again",
            ),
            Refusal::Invalid {
                reason: InvalidCommit::Patch { object },
            } => (*object, "a patch does not lie within object", ""),
            Refusal::Invalid {
                reason: InvalidCommit::Generation { object, .. },
            } => (
                *object,
                "object",
                "is not the one meant: it was deleted, and another one is there",
            ),
            _ => return refusal.into(),
        };
        let name = name(object);
        let mut error = Self::from(refusal);
        error.0.words = format!("{before} {name} {after}").trim_end().to_owned();
        error.about(name)
    }

    /// The same, about one of several homes.
    pub(crate) fn of_home(mut self, name: &str) -> Self {
        self.0.words = format!("home {name}: {}", self.0.words);
        self.0.home = Some(name.to_owned());
        self
    }

    /// Whether running the whole transaction again may help.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Conflict | ErrorKind::Busy { .. })
    }

    /// For programs: ends a transaction from inside [`Member::transact`](crate::Member::transact).
    ///
    /// ```
    /// # use thorp_client::{Error, ErrorKind};
    /// let error = Error::aborted("no money on the account");
    /// assert_eq!(error.kind(), ErrorKind::Aborted);
    /// assert_eq!(error.to_string(), "no money on the account");
    /// ```
    pub fn aborted(words: impl Into<String>) -> Self {
        Self::new(ErrorKind::Aborted, words)
    }

    /// As [`Error::aborted`], because of an error of the program's own, which becomes the source.
    pub fn aborted_by(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        let mut this = Self::new(ErrorKind::Aborted, error.to_string());
        this.0.source = Some(Box::new(error));
        this
    }

    pub(crate) fn new(kind: ErrorKind, words: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            words: words.into(),
            home: None,
            object: None,
            lack: None,
            source: None,
        }))
    }

    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, words)
    }

    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "the member is closed: join again")
    }

    pub(crate) fn unreachable(words: impl Into<String>) -> Self {
        Self::new(ErrorKind::HomeUnreachable, words)
    }

    pub(crate) fn went_back(words: impl Into<String>) -> Self {
        Self::new(ErrorKind::HomeWentBack, words)
    }

    pub(crate) fn late() -> Self {
        Self::unreachable("the home did not answer in time")
    }

    pub(crate) fn damaged(words: impl Into<String>) -> Self {
        Self::new(ErrorKind::DataDamaged, words)
    }

    pub(crate) fn busy(retry_after: Duration) -> Self {
        Self::new(
            ErrorKind::Busy { retry_after },
            format!("too much is under way: try again after {retry_after:?}"),
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.words)
    }
}

impl fmt::Debug for Error {
    /// A program whose `main` returns an error prints it so: the sentence, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.advice() {
            "" => fmt::Display::fmt(self, f),
            advice => write!(f, "{self}\n  -> {advice}"),
        }
    }
}

impl ErrorKind {
    /// What a person can do about it: one sentence, or empty.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Conflict | Self::Busy { .. } => "others were busy there: try again",
            Self::Full => "free some room at the home (`thorp rm`), or on its volume",
            Self::HomeUnreachable => "look at it with `thorp status`, and try again",
            Self::OutcomeUnknown(_) => "look whether it was done before trying again",
            Self::OutcomeLost => "look at the objects: it may have been done",
            Self::HomeWentBack => "look at everything anew: what was committed last may be lost",
            Self::LockLost => "take the lock again, and read again: others may have written since",
            Self::Gone => "`thorp inspect SEGMENT --objects` tells which there are",
            Self::BadName => {
                "a segment is thorp://HOME/path, an object in it thorp://HOME/path#PAGE.SLOT.GENERATION"
            }
            Self::Invalid => "mend the call: it cannot be done so",
            Self::NotFound => "`thorp ls` tells what there is",
            Self::AlreadyExists => "take another name, or use what is there",
            Self::TooLarge => "do it in smaller pieces",
            Self::DataDamaged => {
                "run `thorp check` on the home's directory; if that finds no damage, the program expects another type"
            }
            Self::NoRight => "ask an admin of the segment, or an operator of the home",
            Self::Closed => "join again",
            Self::Aborted => "",
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

impl From<FetchRefusal> for Error {
    fn from(refusal: FetchRefusal) -> Self {
        match refusal {
            FetchRefusal::NoSuchSegment => {
                let what = "there is no such page: its segment does not exist (any more) or does not reach so far, or this node may not read it";
                Self::new(ErrorKind::NotFound, what)
            }
            FetchRefusal::Damaged => Self::damaged(
                "a page is damaged on the home's disk: `thorp check` there tells which",
            ),
            FetchRefusal::Busy => Self::busy(BUSY_RETRY),
            FetchRefusal::NotCarried => {
                let what = "a site between this node and the home may not carry the segment: join the home itself or another site, or ask \
                            an admin of the segment for `thorp rights grant SEGMENT carry SITE`";
                Self::new(ErrorKind::NoRight, what)
            }
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let kind = match error {
            CallError::NoSuchSegment | CallError::NoSuchVote => ErrorKind::NotFound,
            CallError::BadPath => ErrorKind::BadName,
            CallError::Invalid | CallError::NotClosed => ErrorKind::Invalid,
            CallError::TooMany => ErrorKind::TooLarge,
            // What a home says to another home.
            CallError::Lost => ErrorKind::OutcomeLost,
            // The home has forgotten this member, which registers again with the next try. Or the home takes no request
            // of this member by this site, which signs anew (rule R2).
            CallError::Busy | CallError::NotRegistered | CallError::NotDelegated(_) => {
                ErrorKind::Busy {
                    retry_after: BUSY_RETRY,
                }
            }
            CallError::Full(_) | CallError::Share(_) => ErrorKind::Full,
            CallError::Awaits { .. } | CallError::InDoubt(_) => ErrorKind::HomeUnreachable,
            // A member asks for privileges by itself, and takes no for an answer.
            CallError::LockLost => ErrorKind::LockLost,
            CallError::Privileged | CallError::Locked { .. } => ErrorKind::Busy {
                retry_after: BUSY_RETRY,
            },
            CallError::NoRight { .. } => ErrorKind::NoRight,
        };
        let this = Self::new(kind, error.to_string());
        match error {
            CallError::Full(lack) => this.lacking(lack),
            _ => this,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match &refusal {
            // What the home never got, and now never will execute, is to be run again.
            Refusal::Conflict { .. }
            | Refusal::InDoubt
            | Refusal::BuiltOnRefused
            | Refusal::Unknown
            | Refusal::Elsewhere => ErrorKind::Conflict,
            Refusal::Busy { retry_after_ms } => ErrorKind::Busy {
                retry_after: Duration::from_millis(u64::from(*retry_after_ms)),
            },
            Refusal::LockLost => ErrorKind::LockLost,
            Refusal::Locked { .. } => ErrorKind::Busy {
                retry_after: LOCKED_RETRY,
            },
            Refusal::NotDelegated(_) | Refusal::NotYet { .. } => ErrorKind::Busy {
                retry_after: BUSY_RETRY,
            },
            Refusal::OtherLog => ErrorKind::Invalid,
            Refusal::Full(_) | Refusal::Share(_) => ErrorKind::Full,
            Refusal::Forgotten | Refusal::Lost => ErrorKind::OutcomeLost,
            Refusal::WentBack => ErrorKind::HomeWentBack,
            Refusal::NoRight { .. } => ErrorKind::NoRight,
            Refusal::Invalid { reason } => kind_of_invalid(*reason),
        };
        let this = Self::new(kind, refusal.to_string());
        match refusal {
            Refusal::Full(lack) => this.lacking(lack),
            _ => this,
        }
    }
}

fn kind_of_invalid(reason: InvalidCommit) -> ErrorKind {
    match reason {
        InvalidCommit::NoSuchSegment => ErrorKind::NotFound,
        InvalidCommit::Generation { .. } => ErrorKind::Gone,
        InvalidCommit::TooLarge => ErrorKind::TooLarge,
        InvalidCommit::Damaged => ErrorKind::DataDamaged,
        InvalidCommit::NotProven => ErrorKind::NoRight,
        // Staged values go when the home has forgotten the member, or with another try.
        InvalidCommit::NotStaged => ErrorKind::Conflict,
        InvalidCommit::Patch { .. }
        | InvalidCommit::ReservedPage
        | InvalidCommit::Malformed
        | InvalidCommit::Participants
        | InvalidCommit::BadRights
        | InvalidCommit::RightsOfSeveral
        | InvalidCommit::UnknownHome { .. }
        | InvalidCommit::Procedure { .. }
        | InvalidCommit::ProcedureOfSeveral => ErrorKind::Invalid,
    }
}

/// Why a program could not become a member.
#[non_exhaustive]
pub enum JoinError {
    /// An address, or the lack of any.
    Address(String),
    /// The identity in the directory given, or the lack of one.
    Identity(thorp_net::IdentityError),
    /// The identity given is that of a home or a site, and a program needs a member's.
    NoMember(thorp_net::CertifiedName),
    /// This member may have to carry its site's redirector, and has no second identity for it.
    NoSite {
        /// The member's name.
        name: String,
        /// What was found instead.
        found: String,
    },
    /// This member may have to carry its site's redirector, and cannot listen.
    Listen {
        /// Where.
        address: String,
        /// Why not.
        error: thorp_net::Error,
    },
    /// No site or home answered in time; what went wrong at the last try.
    Unreachable(String),
    /// The trace that is to be recorded cannot be written.
    Trace {
        /// Where.
        file: std::path::PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A limit of the configuration that cannot be right.
    Limit(String),
    /// The log cannot be used.
    Log(thorp_store::LogError),
    /// Where to join, or as whom: a [`Context`](crate::Context) that is not as it should be, or the lack of any.
    Context(crate::ContextError),
    /// The system refused a thread or a timer.
    System(std::io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Address(words) | JoinError::Limit(words) => write!(f, "{words}"),
            JoinError::Identity(error) => write!(f, "{error}"),
            JoinError::Context(error) => write!(f, "{error}"),
            JoinError::Log(error) => write!(f, "{error}"),
            JoinError::NoMember(found) => write!(
                f,
                "the identity that was given is that of {found}, and a program needs a member's: `thorp invite NAME --out \
                 DIR` makes one"
            ),
            JoinError::NoSite { name, found } => write!(
                f,
                "{name} may have to carry its site's redirector and needs a second identity for that, of role site and \
                 under the same name{found}: `thorp invite NAME --with-site --out DIR` makes both; \
                 SiteOfMembers::identity names another directory than DIR/site"
            ),
            JoinError::Listen { address, error } => write!(
                f,
                "neighbours cannot come in at {address}: {error}; free that address, or listen at another one of this \
                 machine (SiteOfMembers::listen)"
            ),
            JoinError::Unreachable(words) => write!(f, "no site or home answered: {words}"),
            JoinError::Trace { file, error } => write!(
                f,
                "no trace can be recorded in {}: {error}; name another file",
                file.display()
            ),
            JoinError::System(error) => write!(f, "the system refused to start a member: {error}"),
        }
    }
}

impl JoinError {
    /// What a person can do about it: one sentence, or empty.
    pub fn advice(&self) -> String {
        let advice = match self {
            JoinError::Context(error) => return error.advice(),
            JoinError::Address(_) => {
                "give one with --via (or THORP_VIA): tcp://host:port or unix:/path.sock"
            }
            JoinError::Identity(_) => {
                "give a directory that `thorp invite` made with --identity (or THORP_IDENTITY)"
            }
            JoinError::NoMember(_) => {
                "give its directory with --identity (or THORP_IDENTITY); `thorp home` prints one for this machine when it starts"
            }
            JoinError::Unreachable(_) => {
                "check that it runs there, and that --identity is of the same village; `thorp doctor` looks for what is wrong"
            }
            _ => "",
        };
        advice.to_owned()
    }
}

impl fmt::Debug for JoinError {
    /// A program whose `main` returns an error prints it so: the sentence, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.advice() {
            "" => fmt::Display::fmt(self, f),
            advice => write!(f, "{self}\n  -> {advice}"),
        }
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            JoinError::Identity(error) => Some(error),
            JoinError::Context(error) => Some(error),
            JoinError::Log(error) => Some(error),
            JoinError::System(error) | JoinError::Trace { error, .. } => Some(error),
            JoinError::Listen { error, .. } => Some(error),
            JoinError::Address(_)
            | JoinError::NoMember(_)
            | JoinError::NoSite { .. }
            | JoinError::Limit(_)
            | JoinError::Unreachable(_) => None,
        }
    }
}

const BUSY_RETRY: Duration = Duration::from_millis(50);

/// When a commit is sent again that met the lock of another session.
const LOCKED_RETRY: Duration = Duration::from_millis(200);
