//! Every limit of the protocol, in one place (rule 15).

use core::time::Duration;

/// Bytes of an encoded page image. The home keeps pages within it (foundation 1).
pub const PAGE_BYTES: usize = 8192;

/// Slots of a page. With each slot charged at least [`SLOT_CHARGE_MIN`], a
/// page full of spilled objects still fits.
pub const SLOTS_MAX: u16 = 240;

/// Bytes before the slot table of an image.
pub const IMAGE_HEADER_BYTES: usize = 24;

/// Bytes of a slot's entry in the slot table.
pub const SLOT_ENTRY_BYTES: usize = 8;

/// Bytes of the head of an object that runs over overflow pages.
pub const OVERFLOW_HEAD_BYTES: usize = 16;

/// The least that a slot is charged, so that any object of a full page can be
/// spilled in place.
pub const SLOT_CHARGE_MIN: usize = SLOT_ENTRY_BYTES + OVERFLOW_HEAD_BYTES;

/// Bytes of a value in one overflow page: its single slot.
pub const OVERFLOW_CHUNK_BYTES: usize = PAGE_BYTES - IMAGE_HEADER_BYTES - SLOT_ENTRY_BYTES;

/// Bytes of a value that a commit may carry itself; longer ones are staged (foundation 3).
pub const INLINE_VALUE_BYTES_MAX: usize = OVERFLOW_CHUNK_BYTES;

/// Bytes of one object.
pub const OBJECT_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a frame on the wire.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Bytes of a commit's reads and writes together.
pub const COMMIT_BYTES_MAX: usize = 12 << 20;

/// What a page with slots that were read is charged: more than it takes in memory, or on the wire.
pub const PAGE_READ_BYTES: usize = 48;

/// Pages that one commit may have read at a home. On the wire two bytes can stand for one, so
/// this is looked at before they are in memory.
pub const READ_PAGES_MAX: usize = COMMIT_BYTES_MAX / PAGE_READ_BYTES;

/// Bytes of what a commit makes of the log: a patch of an object that the home
/// had spilled becomes its whole value. It may be told of many more pages than
/// it carries bytes of, also: each page that ends is an entry of its own.
pub const COMMIT_EFFECT_BYTES_MAX: usize = 2 * COMMIT_BYTES_MAX;

/// Procedures that a commit runs on one object.
pub const PROCEDURES_OF_OBJECT_MAX: usize = 64;

/// What each procedure of a commit is charged beside its bytes: the home takes a whole object apart for it, and puts it together
/// again. A set of 8 KiB costs it up to a millisecond. So one commit holds it up for 0.4 s at most.
pub const PROCEDURE_CHARGE_BYTES: usize = 32 << 10;

/// Pages of which one commit may change objects: the home keeps an image of each
/// until the commit is durable.
pub const COMMIT_PAGES_MAX: usize = 16_384;

/// Positions of a home of which a member remembers what they changed, to know whether what a program has read is still
/// so when it is ahead of its answers (rule 14).
pub const RECENT_STEPS_MAX: usize = 256;

/// Pages in all of them.
pub const RECENT_PAGES_MAX: usize = 8192;

/// Commits that one commit may build on: its member's own unanswered ones.
pub const DEPENDS_ON_MAX: usize = COMMITS_IN_FLIGHT_MAX;

/// Bytes of a key in a home's store.
pub const KEY_BYTES_MAX: usize = 64;

/// Bytes of a segment's path.
pub const SEGMENT_PATH_BYTES_MAX: usize = 512;

/// Bytes of a segment's rights list (rule R3).
pub const RIGHTS_BYTES_MAX: usize = 2048;

/// Bytes of what a home tells a site about the readers of all its segments (rule R4).
pub const READERS_BYTES_MAX: usize = 4 << 20;

/// Kinds of events that a home audits and has not written yet (rule R8).
pub const AUDIT_PENDING_MAX: usize = 256;

/// Names that a home knows for its audit. Sites bring at most half of them.
pub const AUDIT_NAMES_MAX: usize = 4096;

/// Bytes of a name that a site reports.
pub const REPORTED_NAME_BYTES_MAX: usize = 200;

/// Pairs of name and segment that a parent counts denials of, between two reports (rule R8).
pub const DENIALS_MAX: usize = 64;

/// Names of which a home knows apart what they took of the room that it keeps back on a full store (rule R7).
pub const ROOM_NAMES_MAX: usize = 1024;

/// Segments of one home.
pub const SEGMENTS_MAX: usize = 65_536;
/// Homes of which a child claims something (rule R9).
pub const CLAIMS_MAX: usize = 256;
/// Names of homes that a node is told by the one above it (rule 1).
pub const HOME_NAMES_MAX: usize = 256;
/// Bytes of each of these names: those of a name in a certificate (rule R1).
pub const HOME_NAME_BYTES_MAX: usize = 200;
/// Claims of one home that sites below have brought and that wait for the home's word, shared by the names of the sites (rules
/// R7 and R9).
pub const CLAIMS_PASSED_MAX: usize = 65_536;

/// Messages to one home that nobody answers and that a site passes on from one heartbeat of the home to the next (rule R7).
pub const UNANSWERED_MAX: usize = 16_384;
/// The same of one name.
pub const UNANSWERED_PER_NAME_MAX: usize = UNANSWERED_MAX / 16;

/// Segments that one name has made and that are there (rule R7). It also has no more than it leaves free.
pub const SEGMENTS_PER_NAME_MAX: usize = SEGMENTS_MAX / 2;

/// Ids of segments that one incarnation of a home gives: 20 bits, below those of the next one (rule R9).
pub const SEGMENT_IDS_MAX: u32 = 1 << 20;

/// Page numbers of a segment that one name is given: of those for objects, and of those for overflow pages (rule R7). It
/// also has no more than it leaves.
pub const PAGE_NUMBERS_PER_NAME_MAX: u32 = 1 << 30;

/// What a name may have of its own pages and the free space of the store together, in percent (rule R7): with 50 it has no
/// more than it leaves free.
pub const STORE_PERCENT_PER_NAME_MAX: u8 = 50;

/// Names of which a home knows what they have used of one segment; what others have used counts as that of one.
pub const USAGE_NAMES_MAX: usize = 64;

/// A home stores what a name has used of a segment when so many more pages, 64 KiB, are there because of it, or gone. A
/// restart forgets less than that.
pub const USAGE_PAGES_UNSAVED_MAX: u32 = 8;

/// Or so many more page numbers were given to it.
pub const USAGE_NUMBERS_UNSAVED_MAX: u32 = 65_536;

/// Lives that a home knows of its own history (rule R9). A claim that rests on an older one makes its child forget.
pub const LIVES_MAX: usize = 1_024;
/// The last incarnation of a home: 12 bits (rule R9).
pub const INCARNATIONS_MAX: u16 = 4_095;
/// Openings by operators that a store remembers, until its home has written them to its audit (rules R8 and R9).
pub const OPENINGS_KEPT_MAX: usize = 64;

/// Pages granted at a time to a creator (foundation 2).
pub const EXTENT_PAGES: u32 = 32;

/// Overflow pages staged by one message.
pub const STAGE_PAGES_MAX: usize = 64;

/// Children of one parent.
pub const CHILDREN_MAX: usize = 4096;

/// Groups that a rights list may name (rule R3).
pub const GROUPS_PER_LIST_MAX: usize = 16;

/// Names of nodes that sent wrong images of a home's pages, at a redirector (rule R6).
pub const WRONG_HELPERS_MAX: usize = 1024;

/// Pages for which a directory has one member entered: 32 GiB of full pages,
/// and more of the emptiest ones than a cache of the usual size takes. It costs
/// the parent at most 256 MiB. Raise it if your members have larger caches.
pub const ENTRIES_PER_MEMBER_MAX: usize = 1 << 22;

/// As [`ENTRIES_PER_MEMBER_MAX`], of a site with all that is below it.
pub const ENTRIES_PER_SITE_MAX: usize = 1 << 26;

/// All processes of a member's name are entered for as many pages as so many full ones (rule R7).
pub const PROCESSES_ENTERED_MAX: usize = 4;

/// Enterings of one epoch. An edge that has used them up ends, and its child
/// begins anew: rule 2 needs numbers that rise.
pub const ENTERINGS_MAX: u32 = u32::MAX - 1;

/// Pages that a directory looks at with one input, for children that have gone.
pub const SWEPT_PAGES_MAX: usize = 1024;

/// Page requests of one child that a parent has not answered.
pub const FETCHES_PER_CHILD_MAX: usize = 1024;

/// Pages a child asks for at one time; a redirector, for all that are below it.
/// Also the requests that a redirector has with helpers.
pub const FETCHES_MAX: usize = 1024;

/// Requests of one program that wait for one page; it is asked to come again
/// beyond that. What is asked for ahead waits for nothing.
pub const WAITING_PER_PAGE_MAX: usize = 4096;

/// Between two *alive* messages on an edge (rule 13).
pub const ALIVE_MS: u64 = 1_000;

/// So many of its own periods without a word from a neighbour make a node give
/// it up. The bytes of a long frame count while enough of them arrive.
pub const ALIVE_MISSED_MAX: u32 = 15;

/// The shortest period that a configuration may ask for.
pub const ALIVE_MS_MIN: u64 = 10;

/// The fewest missed periods that a configuration may ask for: of two nodes with
/// one period each, one may look just before the other's word comes.
pub const ALIVE_MISSED_MIN: u32 = 2;

/// Pages in one piece of a report to a new parent (rule 13): some 64 KiB.
pub const REPORT_PAGES_MAX: usize = 4096;

/// Pieces of a child's report that its parent has not answered: with full ones
/// 131,072 pages, a gibibyte, are resynchronised in one round trip.
pub const REPORTS_UNDER_WAY_MAX: usize = 32;

/// Pages of one home that a redirector asks its parent about for all who report to it: 16 GiB
/// of full pages, for some 50 MiB of its own memory. What is more counts as changed.
pub const REPORTED_MAX: usize = 1 << 21;

/// Pages of one home of which a redirector knows whether they were asked for again after they
/// were invalidated (rule 8).
pub const HISTORY_PAGES_MAX: usize = 65_536;

/// After so many invalidations that were followed by a request, a page is asked for above with
/// the next one.
pub const WANTED_AGAIN_MIN: u8 = 2;

/// How much of a page's past counts: one request for each invalidation counts one, a refetch that
/// nobody used takes half of it. So what has become cold is refetched a few times more at most.
pub const WANTED_AGAIN_MAX: u8 = 7;

/// Of so many changes of a page its home tells the values, after one request for it; then who holds
/// it has to ask again, so that it shows whether anybody wants to know.
pub const UPDATES_MAX: u8 = 1 << WANTED_AGAIN_MAX;

/// Bytes of such values in one step to one child: beyond them it is told of holes.
pub const UPDATE_BYTES_MAX: usize = 256 << 10;

/// Pages that one child asks for ahead, at one time. All children together have half of
/// [`FETCHES_MAX`] for that; a page that several ask for is one.
pub const FETCHES_AHEAD_PER_CHILD_MAX: usize = 256;

/// Pages of one home that a redirector refetches at one time before anybody has asked for them:
/// what its members wait for comes behind at most these.
pub const REFETCHES_MAX: usize = 32;

/// Pages of one home of which a redirector knows what those below waited for next (rule 9), in some 8 MiB.
pub const SUCCESSOR_PAGES_MAX: usize = 65_536;

/// Pages that it knows to follow one.
pub const SUCCESSORS_OF_A_PAGE_MAX: usize = 3;

/// How often a page counts as having followed another one.
pub const SUCCESSOR_COUNT_MAX: u8 = 7;

/// What a child waits for so much later is no successor.
pub const SUCCESSOR_MS_MAX: u64 = 5_000;

/// Pages looked at for what is likely next: the child may have most of them.
pub const SUCCESSORS_LOOKED_MAX: usize = 32;

/// Pages in one hint (rule 9).
pub const HINT_PAGES_MAX: usize = 16;

/// Pages in the first hints to a child, until it shows whether they are right.
pub const HINT_PAGES_FIRST: usize = 4;

/// After so many hints a child that asks for nothing ahead is told no more.
pub const HINTS_UNHEEDED_MAX: u8 = 16;

/// Pages of one home that a redirector has on their way because they are likely to be wanted: what its
/// members wait for comes behind at most these.
pub const SUCCESSORS_UNDER_WAY_MAX: usize = 32;

/// Pages that a redirector asked for ahead, of which it remembers that nobody below has asked for them
/// yet: beyond that the oldest count as wasted.
pub const UNASKED_MAX: usize = 256;

/// Messages kept for a page that is on its way (rule 9).
pub const KEPT_CHANGES_MAX: usize = 256;

/// Bytes of values in them: some pages. Who would have to keep more asks again, to be answered in the stream.
pub const KEPT_CHANGE_BYTES_MAX: usize = 64 << 10;

/// Pages whose image was overtaken by the stream, remembered until they are asked for again (rule 9).
pub const OVERTAKEN_MAX: usize = 256;

/// Helpers tried for one request before the parent answers in its stream (rule 9).
pub const HELPER_TRIES_MAX: u32 = 2;

/// How long a redirected request may take before the requester asks again,
/// this time for an answer in the stream.
pub const PEER_FETCH_MS_MAX: u64 = 500;

/// How long a child waits for any page before it asks again.
pub const FETCH_RETRY_MS: u64 = 5_000;

/// Commits of one member that wait for their answers; so also what a parent takes of it to each
/// home. Twice as many may be decided there: those that went another way are answered, too.
pub const COMMITS_IN_FLIGHT_MAX: usize = 64;

/// Bytes of commits that a node has on their way up one edge without an answer;
/// and as many of values that are being staged. Together half of what may wait
/// to be sent on an edge: a node never ends the edge to its own parent. A single
/// one that is larger passes alone.
pub const SEND_WINDOW_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// Outcomes remembered for each member: what it may still ask for (rule 11).
pub const OUTCOMES_PER_MEMBER: u64 = 256;

/// Members whose outcomes a home remembers; the longest silent is forgotten first.
pub const REGISTRATIONS_MAX: usize = 16_384;

/// What the store keeps of one outcome, in bytes, with all that the engine adds.
pub const OUTCOME_BYTES: u64 = 128;

/// So many outcomes of a name are kept however full the store is (rule R7).
pub const OUTCOMES_PER_NAME_MIN: u64 = 1024;

/// Commits parked at a home until their pages are read from disk.
pub const PARKED_MAX: usize = 4096;

/// Bytes of such commits and of the pages that stay in memory for them. One
/// commit alone may wait whatever it needs, or it could never be judged.
pub const PARKED_BYTES_MAX: usize = 128 << 20;

/// Bytes of commits accepted and not yet durable.
pub const PENDING_BYTES_MAX: usize = 64 << 20;

/// What a refusal *busy* asks the caller to wait.
pub const BUSY_RETRY_MS: u32 = 50;

/// Objects of which a home knows the last change; below that it goes by page
/// versions. Sized so that refusals on page grounds vanish (rule 6).
pub const CHANGES_KNOWN_MAX: usize = 1 << 20;

/// Bytes of commits that a node keeps until their positions arrive (rule 8).
pub const PENDING_WRITES_COMMIT_BYTES_MAX: usize = 64 << 20;

/// Calls of one child that wait for an answer. A site below a site has as many for all its members.
pub const CALLS_PER_CHILD_MAX: usize = 256;

/// Of these, what a program may use: its member asks for every outcome that was
/// lost, and to be registered, without being told busy by its own parent.
pub const CALLS_OF_A_PROGRAM_MAX: usize = CALLS_PER_CHILD_MAX - COMMITS_IN_FLIGHT_MAX - 1;

/// Between heartbeats down a stream, and between acknowledgements up.
pub const HEARTBEAT_MS: u64 = 500;

/// How far ahead a home reserves its clock (rule 12).
pub const CLOCK_RESERVE_MS: u64 = 10_000;

/// Bytes of modified objects before installation begins.
pub const MOB_BYTES_HIGH: usize = 16 << 20;

/// Records in the log before installation begins, however little is modified: as many as the
/// smallest changes that fit below [`MOB_BYTES_HIGH`].
pub const LOG_RECORDS_HIGH: usize = MOB_BYTES_HIGH / 64;

/// How many times as many bytes may be modified until commits are told *busy*:
/// then installation has fallen behind, and with it the trimming of the log.
pub const MOB_FULL_TIMES: usize = 4;

/// Pages installed by one batch, when installation begins.
pub const INSTALL_PAGES_MIN: usize = 64;

/// Pages installed by one batch, when it has fallen behind.
pub const INSTALL_PAGES_MAX: usize = 1024;

/// Log records trimmed by one batch.
pub const LOG_TRIM_MAX: u64 = 4096;

/// Pages of a removed segment deleted by one batch.
pub const PAGES_REMOVED_MAX: u32 = 1024;

/// Bytes of page images that a home keeps in memory.
pub const HOME_CACHE_BYTES: usize = 256 << 20;

/// Bytes of page images that a redirector keeps in memory, if not told otherwise.
pub const SITE_CACHE_BYTES: usize = 256 << 20;

/// What a redirector charges a page in its memory besides the image's bytes.
pub const SITE_PAGE_OVERHEAD_BYTES: usize = 128;

/// Bytes of page images that a member keeps in memory, if not told otherwise.
pub const MEMBER_CACHE_BYTES: usize = 256 << 20;

/// Segments of one home that a member watches.
pub const WATCHES_PER_CHILD_MAX: usize = 256;

/// Segments of one home that a site watches for all below it. None of their names watches more of them than it leaves free
/// (rule R7).
pub const WATCHES_PER_SITE_MAX: usize = 4 * WATCHES_PER_CHILD_MAX;

/// Commits of all names that are under way at one node. No name has more of them than it leaves free (rule R7).
pub const COMMITS_UNDER_WAY_MAX: usize = CHILDREN_MAX * COMMITS_IN_FLIGHT_MAX;

/// Commits of one name, by all of its processes: those of 16.
pub const COMMITS_PER_NAME_MAX: usize = 16 * COMMITS_IN_FLIGHT_MAX;

/// As [`COMMITS_UNDER_WAY_MAX`], of calls.
pub const CALLS_UNDER_WAY_MAX: usize = CHILDREN_MAX * CALLS_PER_CHILD_MAX;

/// As [`COMMITS_PER_NAME_MAX`], of calls.
pub const CALLS_PER_NAME_MAX: usize = 16 * CALLS_PER_CHILD_MAX;

/// As [`COMMITS_UNDER_WAY_MAX`], of pages that members wait for.
pub const FETCHES_UNDER_WAY_MAX: usize = CHILDREN_MAX * FETCHES_PER_CHILD_MAX;

/// As [`COMMITS_PER_NAME_MAX`], of pages that members wait for.
pub const FETCHES_PER_NAME_MAX: usize = 16 * FETCHES_PER_CHILD_MAX;

/// Values that one member has staged and not committed.
pub const STAGED_PER_MEMBER_MAX: usize = 64;

/// Tokens of staged values that have ended which a home remembers of each member, so that no piece
/// that comes late begins one of them anew.
pub const STAGED_ENDED_MAX: usize = 4 * STAGED_PER_MEMBER_MAX;

/// How long a home keeps what a member has staged without hearing of that
/// member: without a piece of a value and without a commit. Counted anew when
/// the home starts. Who comes later has its commit refused, and stages again.
pub const STAGED_SILENT_MS_MAX: u64 = 3_600_000;

/// Homes that take part in one transaction (rule 10).
pub const PARTICIPANTS_MAX: usize = 16;

/// Votes that a home keeps: in doubt, or not yet heard of by every home (rule 10).
pub const VOTES_MAX: usize = 65_536;

/// How long a name gets no vote after it has left a second vote to the homes, in milliseconds; each further one doubles
/// that (rule R7).
pub const DOUBT_BUSY_MS_MIN: u64 = 250;

/// The longest such wait, in milliseconds.
pub const DOUBT_BUSY_MS_MAX: u64 = 8_000;

/// How long a name leaves no vote to the homes until one of those counts no more, in milliseconds.
pub const DOUBT_FORGIVEN_MS: u64 = 30_000;

/// Names that a home remembers for that.
pub const DOUBTERS_MAX: usize = 1024;

/// Bytes of the parts that a home has voted for and that may still become commits: a few members'
/// largest ones. Once a part has ended, only how it ended is kept.
pub const VOTES_BYTES_MAX: usize = 256 << 20;

/// Votes in doubt in one answer to an operator (rule R7).
pub const DOUBTS_LISTED_MAX: usize = 256;

/// Transactions over several homes that a home remembers after they have committed (rule R9).
pub const JOINT_KEPT_MAX: usize = 65_536;

/// Of these in one answer to an operator or to another home, and in one question (rule R9).
pub const JOINTS_LISTED_MAX: usize = 512;

/// Questions about these that a home has passed on to other homes and that are not answered (rule R9).
pub const JOINTS_PASSED_MAX: usize = 64;

/// How long a home waits for the outcome of what it voted for before it asks
/// the other homes (rule 10).
pub const IN_DOUBT_MS: u64 = 2_000;

/// Between such questions.
pub const IN_DOUBT_RETRY_MS: u64 = 1_000;

/// How long a home keeps a vote that has ended before it asks the other homes
/// whether they have heard, because the member does not say so.
pub const UNSETTLED_MS: u64 = 30_000;

/// How far ahead of its own time a home moves its clock because a reader asks for a
/// watermark (rule 5, trap 15). A decided commit moves it as far as it has to: see
/// [`DECIDED_AHEAD_MS_MAX`].
pub const CLOCK_DRIFT_MS_MAX: u64 = 60_000;

/// How long a home shows that a stamp came from further ahead.
pub const DRIFT_SHOWN_MS: u64 = 60_000;

/// How far ahead of its own time a home moves its clock on a member's word that the other homes
/// voted so high (rule 10). Right clocks of homes are never so far apart, wrong ones may be: then
/// the home asks the others. A rogue moves it no further, however often it tries.
pub const DECIDED_AHEAD_MS_MAX: u64 = 86_400_000;

/// How long a transaction that only read waits for a watermark before it is validated at its
/// homes (rule 5).
pub const WATERMARK_WAIT_MS: u64 = 1_000;

/// Other homes that ask one for the outcomes of what they share, and other homes to which one
/// knows an edge (rule 10).
pub const OTHER_HOMES_MAX: usize = 256;

/// How far ahead of its own clock a home lets a delegation end (rule R2).
pub const DELEGATION_MS_MAX: u64 = 3_600_000;

/// How far ahead of its own clock a member lets its delegations end. Half of what homes allow: the
/// clock of a member may be wrong by the other half, either way.
pub const DELEGATION_MS: u64 = DELEGATION_MS_MAX / 2;

/// How old a delegation is when the member renews it.
pub const DELEGATION_RENEWED_MS: u64 = DELEGATION_MS / 3;

/// Sites that a delegation names, and that a parent names on the way to a home.
pub const SITES_ON_WAY_MAX: usize = 8;

/// Delegations of one name that a site above other sites knows.
pub const DELEGATIONS_OF_A_NAME_MAX: usize = 256;

/// Bytes of the certificate and the signature of a delegation.
pub const PROOF_BYTES_MAX: usize = 8 << 10;

/// Bytes of a consistency as text.
pub const CONSISTENCY_TEXT_BYTES_MAX: usize = 512;

/// The longest bound in time that a session may name.
pub const CONSISTENCY_TIME_MAX: Duration = Duration::from_hours(24);

/// The largest bound in unseen updates that a session may name: a counter of them is never near its end.
pub const CONSISTENCY_MODS_MAX: u32 = 1_000_000;

/// The longest round trip that a session may name as its cutoff.
pub const CONSISTENCY_CUTOFF_MAX: Duration = Duration::from_mins(1);

/// Updates that the log of a member keeps, of all homes. A log that is full refuses, and loses nothing (rule C6).
pub const LOG_UPDATES_MAX: usize = 65_536;

/// Bytes of them.
pub const LOG_BYTES_MAX: usize = 256 << 20;

/// Bytes of updates that members give to the log of their site, and that the site has on their way into it (rule C6).
pub const KEEP_BYTES_MAX: usize = 64 << 20;

/// How long the log of a site lets an answer wait for a lease, in milliseconds, whatever the member asks for.
pub const KEEP_PATIENCE_MS_MAX: u32 = 600_000;

/// How often a conflict routine sends again what one refused update writes. Then it goes to the list of rejected ones (rule C6).
pub const CONFLICT_ATTEMPTS_MAX: u32 = 3;

/// Updates of one log that it has on their way to a home: half of what a member may have there, so that its commits go on.
pub const UPDATES_IN_FLIGHT_MAX: usize = COMMITS_IN_FLIGHT_MAX / 2;

/// Bytes of updates of others that a member shows. What is more, it shows when it is saved.
pub const TENTATIVE_BYTES_MAX: usize = 16 << 20;

/// Segments of all homes that a member follows (rule C6).
pub const FOLLOWED_SEGMENTS_MAX: usize = 256;

/// Logs of one segment that a follower knows the state of. It shows no updates of more.
pub const FOLLOWED_LOGS_MAX: usize = 1024;

/// Logs and segments of one name of which a home knows the last number (rule C7). No silence makes it forget one.
pub const LOGS_OF_NAME_MAX: usize = 16_384;

/// Logs and segments of all names of which a home knows the last number.
pub const LOGS_MAX: usize = 131_072;

/// Refusals of one log in one segment that a home keeps until the log knows of them. Then it takes no more updates of it.
pub const REFUSED_UPDATES_MAX: usize = 256;

/// Segments in one request for a lease (rule C4).
pub const LEASED_SEGMENTS_MAX: usize = 64;

/// Leases that one child may hold of one home, for all below it.
pub const LEASES_PER_CHILD_MAX: usize = 4096;

/// Names in one pull whose leases are void (rule R5). Those above it are asked as if their leases stood.
pub const VOID_LEASES_TOLD_MAX: usize = 64;

/// Process starts of one name that hold leases at one parent, of each kind.
pub const LEASE_STARTS_OF_NAME_MAX: usize = 64;

/// How long a session may wait for a lock, in milliseconds. Longer is told as the most.
pub const LOCK_PATIENCE_MS_MAX: u32 = 3_600_000;

/// Segments in one pull (rule C3).
pub const PULL_SEGMENTS_MAX: usize = 16;

/// Logs that one answer to a pull names. Who has more lets the pull wait until its lease ends.
pub const PULL_HEADS_MAX: usize = 4096;

/// Those that one member names: its own logs, of its last process starts.
pub const PULL_HEADS_OF_MEMBER_MAX: usize = 256;

/// Answers of one name that a home keeps back until readers have seen what they tell (rule C2). Its next commits there are refused as
/// busy.
pub const WITHHELD_PER_NAME_MAX: usize = 1024;

/// Answers of all names.
pub const WITHHELD_MAX: usize = 65_536;

/// Names that a node remembers because it had to await the end of their leases to read, or to write (rules C2 and C4).
pub const SLOW_HOLDERS_MAX: usize = 1024;

/// Pulls of a segment within [`READ_LEASE_WITHIN_MS`] after which a member asks for a read lease there (rule C1).
pub const READ_LEASE_AFTER_PULLS: u32 = 3;

/// How close these pulls have to follow each other, in milliseconds.
pub const READ_LEASE_WITHIN_MS: u64 = 10_000;

/// The longest read lease, in milliseconds, however long leases to write are (rule C4). A reader that is cut off keeps an
/// answer back for as long: a program that waits 30 s for a commit has to outlast it, and a restart of the home.
pub const READ_LEASE_MS_MAX: u32 = 10_000;

/// Segments of one lock (rule C5).
pub const LOCK_SEGMENTS_MAX: usize = 64;

/// Locks that the sessions of one name hold or wait for at a home.
pub const LOCKS_OF_NAME_MAX: usize = 256;

/// Those of all names.
pub const LOCKS_MAX: usize = 4_096;

/// A lock that somebody else wants gets no more time when that has lasted for so long, in milliseconds.
pub const LOCK_WANTED_MS_MAX: u64 = 600_000;

/// Whoever wants a lock, or to write where another holds one, and has not tried for so many milliseconds, wants it no more (rule C5).
pub const LOCK_WANT_FORGOTTEN_MS: u64 = 30_000;

/// Ended locks that a home remembers, so that a session that ends one again hears the same (rule C5).
pub const LOCKS_ENDED_MAX: usize = 1_024;

/// The largest bound of unseen changes for which a home keeps count. A reader that allows more is treated as if it allowed so many (rule C2).
pub const READ_LEASE_MODS_MAX: u32 = 64;

/// Pulls of one name that a home has under way.
pub const PULLS_PER_NAME_MAX: usize = 64;

/// Pulls of all names.
pub const PULLS_MAX: usize = 1024;

/// How long a lease lasts, if the home is not told otherwise (rule C4).
pub const LEASE_MS: u32 = 60_000;

/// The shortest lease that a home may be configured for.
pub const LEASE_MS_MIN: u32 = 1_000;

/// The longest.
pub const LEASE_MS_MAX: u32 = 3_600_000;

/// Keys that name what a transaction has read at one home, for a web answer. With more, it names pages; with more of those, segments; with
/// more of those, all of the home.
pub const READ_KEYS_MAX: usize = 64;
