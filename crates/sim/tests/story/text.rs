//! Messages and effects as a person reads them.

use super::{names, rights};
use std::collections::BTreeMap;
use thorp_model::{
    Audience, CallId, CallRequest, CallResponse, Carriers, Claim, Closed, CommitId, CommitRequest,
    Content, Decision, Doubt, Down, Fence, FetchResult, HomeId, Image, InCustody, InvalidCommit,
    JointAnswer, JointQuestion, KnownHistory, LockMode, LogHead, MemberId, Message, NameId,
    NewValue, NotKept, Outcome, Overflow, PageChange, PageId, PageSlots, PeerImage, Position,
    Privilege, Procedure, Readers, Receipt, Refusal, Reported, SegmentId, SegmentInfo, Slot,
    SlotChange, SlotSet, Step, Up, UpdateId, Verdict, WriteOp, message,
};

/// What a child claims of homes.
fn claimed(claims: &[(HomeId, Claim)]) -> String {
    let claims = claims.iter();
    let claims = claims.map(|(home, of)| format!("{}{}", names::of_home(*home), claim(of)));
    match &claims.collect::<Vec<String>>()[..] {
        [] => String::from("claims: nothing"),
        claims => format!("claims: {}", claims.join(", ")),
    }
}

fn claim(claim: &Claim) -> String {
    format!("{}, on {}", claim.position, point(&claim.receipt))
}

/// The point of a receipt: a life, and how far it was.
fn point(receipt: &Receipt) -> String {
    let at = &receipt.point;
    format!(
        "{} of life {}.{} (mark {})",
        at.position, at.life.counter, at.life.random, at.mark.0
    )
}

/// The number of a lock: the time of its home, and a count.
pub(crate) fn lock(fence: Fence) -> String {
    format!("lock {}+{}", fence.0 >> 20, fence.0 & 0xf_ffff)
}

/// Who is who.
pub(crate) type People = BTreeMap<MemberId, String>;

/// Writes messages; knows the people's names.
pub(crate) struct Pen<'a>(pub(crate) &'a People);

impl Pen<'_> {
    /// A whole message.
    pub(crate) fn message(&self, message: &Message) -> String {
        match message {
            Message::Alive => String::from("alive"),
            Message::Claims(claims) => claimed(claims),
            Message::Homes(homes) => {
                let others = if homes.is_all { "" } else { ", perhaps others" };
                format!("homes: {}{others}", homes.names.join(" "))
            }
            Message::Up(up) => names::of_home(up.home()) + &self.up(up),
            Message::Down(down) => names::of_home(down.home()) + &self.down(down),
        }
    }

    /// What kind of message it is, and about what.
    pub(crate) fn kind(&self, message: &Message) -> String {
        let text = self.message(message);
        let ends = [": ", " (", " {", ", "].iter();
        let end = ends.filter_map(|mark| text.find(mark)).min();
        String::from(&text[..end.unwrap_or(text.len())])
    }

    fn up(&self, up: &Up) -> String {
        match up {
            Up::Fetch(message::Fetch {
                page,
                attempt,
                peers,
                ahead,
                updates,
                ..
            }) => {
                let how = if *peers {
                    "neighbours may answer"
                } else {
                    "in the stream"
                };
                let ahead = if *ahead { ", ahead" } else { "" };
                let told = match updates {
                    0 => String::new(),
                    updates => format!(", and the values of {updates} changes"),
                };
                let page = names::page(*page);
                format!("fetch {page} (attempt {attempt}, {how}{ahead}{told})")
            }
            Up::Evict(message::Evict { page, entry, .. }) => {
                format!("evicted {} (entry {entry})", names::page(*page))
            }
            Up::Ack(message::Ack { position, .. }) => format!("ack {position}"),
            Up::Peer(peer) => self.peer(peer),
            Up::Commit(request) => self.commit(request),
            Up::Decide(message::Decide {
                commit, decision, ..
            }) => format!("decide {}: {}", self.id(*commit), decided(*decision)),
            Up::Settled(message::Settled { commit, .. }) => format!("settled {}", self.id(*commit)),
            Up::Call(message::Call { call, request, .. }) => {
                format!("call {}: {}", self.call(*call), self.request(request))
            }
            Up::Report(message::Report { report, pages, .. }) => {
                let pages: Vec<String> = pages.iter().map(reported).collect();
                format!("report {report}: {}", pages.join(", "))
            }
            Up::Denied(message::Denied {
                name,
                segment,
                count,
                site,
                ..
            }) => {
                let site = site.iter().map(|site| format!(", says {site}"));
                let site: String = site.collect();
                format!(
                    "denied {name} {} {count} times{site}",
                    names::segment(*segment)
                )
            }
            Up::Judge(judge) => format!("judge {}: {}", judge.question, claim(&judge.claim)),
            Up::Save(save) => {
                let update = self.update_id(save.update);
                let by = save.author.iter();
                let by = by.map(|author| format!(" of {}", self.who(author.by.member)));
                let by: String = by.collect();
                format!("save {update}{by}, {}", self.commit(&save.request))
            }
            Up::Keep(keep) => self.keep(keep),
            Up::Kept(kept) => self.kept(kept),
            Up::Update(told) => self.told(told),
            Up::GiveBack(back) => {
                let segments = back.segments.iter().map(|segment| names::segment(*segment));
                let segments: Vec<String> = segments.collect();
                let reads = match back.privilege {
                    Privilege::Write => "",
                    Privilege::Read { .. } => " to read",
                };
                format!("give back {}{reads}", segments.join(" "))
            }
            Up::Seen(seen) if seen.after == Position(0) => format!("seen {}", seen.position),
            Up::Seen(seen) => format!("seen {}, behind {}", seen.position, seen.after),
            Up::Heads(heads) => {
                let heads: Vec<String> = heads.heads.iter().map(|head| self.head(head)).collect();
                format!("logs [{}]", heads.join(", "))
            }
            Up::Watch(message::Watch { segment, on, .. }) => {
                let more = if *on { "" } else { " no more" };
                format!("watch {}{more}", names::segment(*segment))
            }
        }
    }

    fn down(&self, down: &Down) -> String {
        match down {
            Down::Begin(message::Begin {
                position,
                watermark,
                silent_ms,
                readers,
                receipt,
                verdict,
                ..
            }) => {
                let readers = readers_of(readers);
                let incarnation = match receipt.incarnation.get() {
                    0 => String::new(),
                    number => format!(", incarnation {number}"),
                };
                let forget = match verdict {
                    Verdict::Known => "",
                    Verdict::Forget => ", forget",
                };
                let silent = match silent_ms {
                    0 => String::new(),
                    ms => format!(", silent for {ms} ms"),
                };
                let watermark = names::stamp(*watermark);
                format!(
                    "stream begins (at {position}, watermark {watermark}{silent}{readers}{incarnation}{forget})"
                )
            }
            Down::End(_) => String::from("stream ends"),
            Down::Receipt(receipt) => format!("receipt {}", point(receipt)),
            Down::Judged(judged) => {
                let verdict = match judged.verdict {
                    Verdict::Known => "known",
                    Verdict::Forget => "forget",
                };
                format!("judged {}: {verdict}", judged.question)
            }
            Down::Resynchronised(message::Resynchronised {
                report,
                entry,
                position,
                changed,
                open,
                ..
            }) => {
                let open: Vec<String> = open.iter().map(|page| names::page(*page)).collect();
                let open = match &open[..] {
                    [] => String::new(),
                    open => format!(", {} later", open.join(" ")),
                };
                let changed: Vec<String> = changed.iter().map(|page| names::page(*page)).collect();
                let what = match &changed[..] {
                    [] => String::from("nothing has changed"),
                    changed => format!("changed: {}", changed.join(" ")),
                };
                format!("resynchronised {report}, as of {position}, {what}{open} (entry {entry})")
            }
            Down::Step(step) => self.step(step),
            Down::Saved(saved) => {
                let update = self.update_id(saved.update);
                let what = if saved.is_executed {
                    "saved"
                } else {
                    "refused"
                };
                format!("{what} {update}, {}", self.step(&saved.step))
            }
            Down::Update(told) => self.told(told),
            Down::Keep(keep) => self.keep(keep),
            Down::Kept(kept) => self.kept(kept),
            Down::Withheld(withheld) => {
                format!("the answer to {} follows", self.id(withheld.commit))
            }
            Down::SeenWanted(wanted) => {
                let segments = wanted.segments.iter();
                let segments: Vec<String> = segments.map(|of| names::segment(*of)).collect();
                format!(
                    "say when {} is seen in {}",
                    wanted.position,
                    segments.join(" ")
                )
            }
            Down::Get(get) => {
                let segments = get.segments.iter().map(|segment| names::segment(*segment));
                let segments: Vec<String> = segments.collect();
                let void = get.void.iter().map(|(segment, name)| {
                    let (name, segment) = (rights::name(*name), names::segment(*segment));
                    format!(", not of {name} in {segment}")
                });
                format!("pull of {}{}", segments.join(" "), void.collect::<String>())
            }
            Down::Recall(recall) => {
                let segments = recall.segments.iter().map(|of| names::segment(*of));
                let segments: Vec<String> = segments.collect();
                format!("recall of leases in {}", segments.join(" "))
            }
            Down::Tell(tell) => format!("tell updates of {}", names::segment(tell.segment)),
            Down::Image(message::FetchResponse {
                page,
                attempt,
                entry,
                position,
                result: answer,
                ..
            }) => match answer {
                FetchResult::Image(i) => {
                    let what = image(*page, i);
                    format!("image {what}, as of {position} (attempt {attempt}, entry {entry})")
                }
                FetchResult::Refused(why) => {
                    format!(
                        "no image {}: {why:?} (attempt {attempt})",
                        names::page(*page)
                    )
                }
            },
            Down::Redirect(message::Redirect {
                page,
                requester,
                attempt,
                entry,
                ..
            }) => format!(
                "redirect {} (to {}, attempt {attempt}, entry {entry})",
                names::page(*page),
                self.who(*requester)
            ),
            Down::Peer(peer) => self.peer(peer),
            Down::Voted(message::Voted { commit, stamp, .. }) => {
                format!("voted for {} at {}", self.id(*commit), names::stamp(*stamp))
            }
            Down::Refused(message::Refused {
                commit, refusal, ..
            }) => format!("refused {}: {}", self.id(*commit), refused(refusal)),
            Down::Committed(message::Committed {
                commit, position, ..
            }) => format!("told {}: committed at {position}", self.id(*commit)),
            Down::Heartbeat(message::Heartbeat {
                position,
                watermark,
                ..
            }) => format!(
                "heartbeat {position} (watermark {})",
                names::stamp(*watermark)
            ),
            Down::CallResult(message::CallResult { call, result, .. }) => match result {
                Ok(response) => format!("answer {}: {}", self.call(*call), self.response(response)),
                Err(error) => format!("answer {}: {error}", self.call(*call)),
            },
            Down::Unwatched(message::Unwatched { segment, .. }) => {
                format!("not watched {}", names::segment(*segment))
            }
            Down::Joined(message::Joined { page, .. }) => format!("joined {}", names::page(*page)),
            Down::Hint(message::Hint { page, next, .. }) => {
                let next: Vec<String> = next.iter().map(|page| names::page(*page)).collect();
                format!("hint {}, then {}", names::page(*page), next.join(" "))
            }
        }
    }

    fn keep(&self, keep: &message::Keep) -> String {
        let by = keep.author.by;
        let log = match keep.log {
            NameId(0) => String::from("whose log?"),
            log => format!("in the log of {}", rights::name(log)),
        };
        format!("keep {} of {}, {log}", by.sequence, self.who(by.member))
    }

    fn kept(&self, kept: &message::Kept) -> String {
        let (by, who) = (kept.by.sequence, self.who(kept.by.member));
        match kept.result {
            Ok(InCustody { id, is_leased }) => {
                let lease = if is_leased { ", with a lease" } else { "" };
                format!("kept {by} of {who} as {}{lease}", self.update_id(id))
            }
            Err(NotKept::OtherLog(log)) => {
                format!(
                    "not kept {by} of {who}: the log is of {}",
                    rights::name(log)
                )
            }
            Err(why) => format!("not kept {by} of {who}: {why:?}"),
        }
    }

    fn peer(&self, peer: &PeerImage) -> String {
        let (attempt, entry, position) = (peer.attempt, peer.entry, peer.position);
        let to = self.who(peer.requester);
        match &peer.image {
            Some(i) => {
                let what = image(peer.page, i);
                format!(
                    "helper's {what}, as of {position} (to {to}, attempt {attempt}, entry {entry})"
                )
            }
            None => {
                let page = names::page(peer.page);
                format!("helper's refusal of {page} (to {to}, attempt {attempt}, entry {entry})")
            }
        }
    }

    fn commit(&self, request: &CommitRequest) -> String {
        let mut text = format!("commit {}:", self.id(request.id));
        let part = &request.part;
        text += &format!(" evidence {}", part.evidence);
        if !request.with.is_empty() {
            let homes = request.with.iter().map(|with| format!("H{}", with.home));
            text += &format!(", with {}", homes.collect::<Vec<_>>().join(" "));
        }
        for id in &request.depends_on {
            text += &format!(", builds on {}", self.id(*id));
        }
        for (page, slots) in &part.reads {
            text += &format!(", read {}", slot_set(*page, slots));
        }
        for writes in &part.writes {
            for (slot, op) in &writes.slots {
                text += &format!(", {}", write(writes.page, *slot, op));
            }
        }
        text
    }

    fn step(&self, step: &Step) -> String {
        let changes: Vec<String> = step.changes.iter().map(change).collect();
        let reply = step.commit.map(|id| format!(" is {}", self.id(id)));
        let changes = if changes.is_empty() {
            String::from("nothing held here")
        } else {
            changes.join(", ")
        };
        format!(
            "step {}{}: {changes}{}",
            step.position,
            reply.unwrap_or_default(),
            readers_of(&step.readers)
        )
    }

    fn request(&self, request: &CallRequest) -> String {
        match request {
            CallRequest::Register(delegation) => {
                let sites = delegation.iter().flat_map(|given| &given.text.sites);
                let sites: Vec<String> = sites.map(|site| rights::name(*site)).collect();
                match sites.as_slice() {
                    [] | [_] => String::from("register"),
                    several => format!("register, by {}", several.join(" and ")),
                }
            }
            CallRequest::Open { path, create } => {
                format!(
                    "open \"{path}\"{}",
                    if *create {
                        ", make it if there is none"
                    } else {
                        ""
                    }
                )
            }
            CallRequest::List { prefix, after } => format!("list \"{prefix}\" after \"{after}\""),
            CallRequest::Remove { segment } => format!("remove segment {segment}"),
            CallRequest::Reserve { segment, .. } => {
                format!("reserve in {}", names::segment(*segment))
            }
            CallRequest::Stage {
                token,
                bytes,
                index,
                chunks,
                ..
            } => format!(
                "stage value {token} of {bytes} bytes, chunks from {index}: {}",
                chunks.len()
            ),
            CallRequest::Unstage { token, .. } => format!("unstage value {token}"),
            CallRequest::Watermark { at_least } => {
                format!("promise {}", names::stamp(*at_least))
            }
            CallRequest::Outcome { commit, .. } => format!("outcome of {}", self.id(*commit)),
            CallRequest::Doubts { .. } => String::from("doubts"),
            CallRequest::Settle { commit, ruling } => {
                format!("settle {} as {ruling}", self.id(*commit))
            }
            CallRequest::History => String::from("history"),
            CallRequest::Confirm { seen, apart } => {
                let how = if *apart { ", apart" } else { "" };
                format!("confirm what is closed in incarnation {seen}{how}")
            }
            CallRequest::Follow { segment, logs } => {
                let logs: Vec<String> = logs.iter().map(|log| self.who(log.0)).collect();
                let segment = names::segment(*segment);
                format!("follow {segment}, with logs [{}]", logs.join(", "))
            }
            CallRequest::Lease {
                segments,
                privilege,
            } => {
                let segments = segments.iter().map(|segment| names::segment(*segment));
                let segments: Vec<String> = segments.collect();
                let reads = match privilege {
                    Privilege::Write => String::new(),
                    Privilege::Read { mods: 0 } => String::from(" to read"),
                    Privilege::Read { mods } => format!(" to read, {mods} mods"),
                };
                format!("lease {}{reads}", segments.join(" "))
            }
            CallRequest::Pull { segments, .. } => {
                let segments = segments.iter().map(|segment| names::segment(*segment));
                let segments: Vec<String> = segments.collect();
                format!("pull {}", segments.join(" "))
            }
            CallRequest::Lock { segments, mode, .. } => {
                let segments = segments.iter().map(|segment| names::segment(*segment));
                let segments: Vec<String> = segments.collect();
                let reads = match mode {
                    LockMode::Write => "",
                    LockMode::Read => " to read",
                };
                format!("lock {}{reads}", segments.join(" "))
            }
            CallRequest::KeepLock { fence } => format!("keep {}", lock(*fence)),
            CallRequest::Unlock { fence } => format!("unlock {}", lock(*fence)),
            CallRequest::Joint { at, question } => {
                format!("of H{at}: {}", self.joint_question(question))
            }
        }
    }

    /// A home's answer.
    pub(crate) fn response(&self, response: &CallResponse) -> String {
        match response {
            CallResponse::Registered(registration) => format!("registered as {registration}"),
            CallResponse::Segment(info) => segment_info(info),
            CallResponse::Segments { segments, more } => {
                let all: Vec<String> = segments.iter().map(segment_info).collect();
                format!(
                    "[{}]{}",
                    all.join(", "),
                    if *more { " and more" } else { "" }
                )
            }
            CallResponse::Removed => String::from("removed"),
            CallResponse::Extent { first, pages } => format!("{pages} pages from {first}"),
            CallResponse::Staged(o) => format!("staged in {}", overflow(PageId::new(1, 0), *o)),
            CallResponse::Unstaged => String::from("unstaged"),
            CallResponse::Watermark(stamp) => format!("promised {}", names::stamp(*stamp)),
            CallResponse::Outcome(o) => outcome(o),
            CallResponse::Voted(stamp) => format!("voted at {}", names::stamp(*stamp)),
            CallResponse::Doubts { doubts, more } => {
                let all: Vec<String> = doubts.iter().map(|doubt| self.doubt(doubt)).collect();
                let more = if *more { " and more" } else { "" };
                format!("[{}]{more}", all.join(", "))
            }
            CallResponse::Settled(o) => format!("settled: {}", outcome(o)),
            CallResponse::History(history) => known_history(history),
            CallResponse::Opened(incarnation) => format!("opened with incarnation {incarnation}"),
            CallResponse::Joint(answer) => self.joint_answer(answer),
            CallResponse::Following { position, logs } => {
                let logs = logs.iter().map(|state| {
                    let refused = match state.refused.is_empty() {
                        true => String::new(),
                        false => format!(", refused {:?}", state.refused),
                    };
                    format!("{} up to {}{refused}", self.who(state.log.0), state.saved)
                });
                let logs: Vec<String> = logs.collect();
                format!("following from {position}, logs [{}]", logs.join(", "))
            }
            CallResponse::Leased { lease_ms } => format!("leased for {lease_ms} ms"),
            CallResponse::Pulled => String::from("pulled"),
            CallResponse::Locked { fence, lease_ms } => {
                format!("{} for {lease_ms} ms", lock(*fence))
            }
            CallResponse::Unlocked => String::from("unlocked"),
        }
    }

    /// An update as a story names it.
    pub(crate) fn update_id(&self, id: UpdateId) -> String {
        format!("update {} of {}", id.number, self.who(id.log.0))
    }

    fn told(&self, told: &message::Told) -> String {
        let update = self.update_id(told.update.id);
        format!("tell {update}, not saved at {}", told.since)
    }

    fn head(&self, head: &LogHead) -> String {
        format!("{} up to {}", self.who(head.log.0), head.number)
    }

    fn joint_question(&self, question: &JointQuestion) -> String {
        match question {
            JointQuestion::Homes => String::from("its other homes"),
            JointQuestion::List { .. } => String::from("its transactions over several homes"),
            JointQuestion::Of(of) => {
                let of: Vec<String> = of.iter().map(|(_, commit)| self.id(*commit)).collect();
                format!("its part of {}", of.join(", "))
            }
        }
    }

    fn joint_answer(&self, answer: &JointAnswer) -> String {
        match answer {
            JointAnswer::Homes { homes, unheard } => {
                let homes: Vec<String> = homes.iter().map(|h| format!("H{}", h.home)).collect();
                format!(
                    "other homes [{}], {} not heard",
                    homes.join(", "),
                    unheard.len()
                )
            }
            JointAnswer::List {
                joints,
                more,
                since,
            } => {
                let all = joints.iter().map(|joint| {
                    let homes: Vec<String> = joint.homes.iter().map(|h| format!("H{h}")).collect();
                    format!("{} of {}", self.id(joint.commit), homes.join(" "))
                });
                let all: Vec<String> = all.collect();
                let more = if *more { " and more" } else { "" };
                let since = names::stamp(*since);
                format!("remembered since {since} [{}]{more}", all.join(", "))
            }
            JointAnswer::NotReached => String::from("not reached"),
            JointAnswer::Of(parts) => format!("{parts:?}"),
        }
    }

    fn doubt(&self, doubt: &Doubt) -> String {
        let others = doubt.others.iter().map(|other| {
            let name = other.name.as_deref().unwrap_or("unknown");
            let way = if other.is_reached {
                "reached"
            } else {
                "not reached"
            };
            let vote = other
                .vote
                .map(|stamp| format!(", voted at {}", names::stamp(stamp)));
            format!(
                "H{} \"{name}\" {way}{}",
                other.home,
                vote.unwrap_or_default()
            )
        });
        let others: Vec<String> = others.collect();
        let name = doubt.name.as_deref().unwrap_or("unknown");
        format!(
            "{} of \"{name}\" voted at {} for {} ms, with {}",
            self.id(doubt.commit),
            names::stamp(doubt.stamp),
            doubt.age_ms,
            others.join(" and ")
        )
    }

    /// A commit.
    pub(crate) fn id(&self, id: CommitId) -> String {
        format!("{}#{}", self.who(id.member), id.sequence)
    }

    fn call(&self, call: CallId) -> String {
        format!("{}~{}", self.who(call.member), call.number)
    }

    fn who(&self, member: MemberId) -> String {
        self.0
            .get(&member)
            .cloned()
            .unwrap_or_else(|| format!("{member:?}"))
    }
}

fn known_history(history: &KnownHistory) -> String {
    let KnownHistory {
        incarnation,
        point,
        closed,
        shared,
    } = history;
    let (life, position) = (point.life.counter, point.position);
    let own = format!("incarnation {incarnation}, on {position} of life {life}");
    match closed {
        None => format!("{own}, open"),
        Some(Closed::OtherHistory(met)) => {
            let (life, there) = (met.point.life.counter, met.point.position);
            let shared = shared.map(|end| format!(", shared up to {}", end.position));
            format!(
                "{own}, closed: {} brought {there} of life {life}{}",
                met.by,
                shared.unwrap_or_default()
            )
        }
        Some(why) => format!("{own}, closed: {why}"),
    }
}

fn segment_info(info: &SegmentInfo) -> String {
    let id = names::segment(info.id);
    format!("segment {id} \"{}\" of {} pages", info.path, info.extent)
}

/// How a commit ended.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        // Over several homes each has a position of its own.
        Outcome::Committed {
            position: Position(0),
            ..
        } => String::from("committed"),
        Outcome::Committed { position, .. } => format!("committed at {position}"),
        Outcome::Refused(refusal) => format!("refused, {}", refused(refusal)),
    }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Conflict { object } if object.slot.0 == u16::MAX => {
            format!("conflict on all of {}", names::page(object.page))
        }
        Refusal::Conflict { object } => format!("conflict on {}", names::object(*object)),
        Refusal::Invalid {
            reason: InvalidCommit::Generation { object, found },
        } => format!("{} is of generation {found}", names::object(*object)),
        Refusal::Invalid { reason } => format!("invalid: {reason:?}"),
        other => String::from(other.kind()),
    }
}

/// A page and what is in it.
pub(crate) fn image(page: PageId, image: &Image) -> String {
    format!(
        "{} v{} {}",
        names::page(page),
        image.version(),
        content(page, image)
    )
}

/// What is in a page.
pub(crate) fn content(page: PageId, image: &Image) -> String {
    let mut slots = Vec::new();
    for (slot, generation, content) in image.iter() {
        if generation.0 == 0 && content == Content::Free {
            continue;
        }
        let name = names::of_generation(names::slot(page, slot), generation);
        slots.push(match content {
            Content::Free => format!("{name} deleted"),
            // What generation the object has now, nobody knows here.
            Content::Hole => format!("{}=?", names::slot(page, slot)),
            Content::Value(bytes) => format!("{name}={}", names::value_of(page, slot, bytes)),
            Content::Overflow(o) => format!("{name} in {}", overflow(page, o)),
        });
    }
    format!("{{{}}}", slots.join(" "))
}

/// Where a long object lies.
pub(crate) fn overflow(near: PageId, overflow: Overflow) -> String {
    let pages = overflow.page_numbers().map(|page| {
        let segment = near.segment;
        names::page(PageId { segment, page })
    });
    let pages: Vec<String> = pages.collect();
    match &pages[..] {
        [first, .., last] => format!("{first}..{last} ({} bytes)", overflow.bytes),
        _ => format!("{} ({} bytes)", pages.join(""), overflow.bytes),
    }
}

fn change(change: &PageChange) -> String {
    let page = change.page;
    let PageSlots::Some(slots) = &change.slots else {
        return format!("all of {} invalid", names::page(page));
    };
    let slots = slots
        .iter()
        .map(|(slot, change)| slot_change(page, *slot, change));
    let slots: Vec<String> = slots.collect();
    slots.join(", ")
}

fn slot_change(page: PageId, slot: Slot, change: &SlotChange) -> String {
    let object = format!("{}.{}", names::page(page), names::slot(page, slot));
    match change {
        SlotChange::Invalid => format!("{object} invalid"),
        SlotChange::Value { generation, bytes } => {
            let object = names::of_generation(object, *generation);
            format!("{object}={}", names::value_of(page, slot, bytes.bytes()))
        }
        SlotChange::Patch {
            generation,
            offset,
            bytes,
        } => {
            let object = names::of_generation(object, *generation);
            format!("{object}+{offset}={}", names::value(bytes.bytes()))
        }
        SlotChange::Overflow {
            generation,
            overflow: o,
        } => {
            let object = names::of_generation(object, *generation);
            format!("{object} in {}", overflow(page, *o))
        }
        SlotChange::Deleted { generation } => {
            format!("{} deleted", names::of_generation(object, *generation))
        }
    }
}

/// A page in a report.
fn reported(reported: &Reported) -> String {
    let holes = if reported.complete { "" } else { " with holes" };
    let name = names::page(reported.page);
    format!("{name} as of {}{holes}", reported.as_of)
}

/// Slots of one page.
pub(crate) fn slot_set(page: PageId, slots: &SlotSet) -> String {
    let name = names::page(page);
    if *slots == SlotSet::ALL {
        return format!("all of {name}");
    }
    let slots = slots
        .iter()
        .map(|slot| format!("{name}.{}", names::slot(page, slot)));
    let slots: Vec<String> = slots.collect();
    slots.join(" ")
}

fn write(page: PageId, slot: Slot, op: &WriteOp) -> String {
    let object = format!("{}.{}", names::page(page), names::slot(page, slot));
    let object = names::of_generation(object, op.generation());
    match op {
        WriteOp::Create { value, .. } => format!("create {object}={}", new_value(page, value)),
        WriteOp::Write { value, .. } => format!("write {object}={}", new_value(page, value)),
        WriteOp::Patch { offset, bytes, .. } => {
            format!("patch {object}+{offset}={}", names::value(bytes.bytes()))
        }
        WriteOp::Delete { .. } => format!("delete {object}"),
        WriteOp::Apply { procedures, .. } => {
            let each: Vec<String> = procedures.iter().map(procedure).collect();
            format!("apply {object} {}", each.join(" "))
        }
    }
}

fn procedure(procedure: &Procedure) -> String {
    match procedure {
        Procedure::Append(bytes) => format!("append={}", names::value(bytes.bytes())),
        Procedure::Insert(bytes) => format!("insert={}", names::value(bytes.bytes())),
        other => format!("{other:?}"),
    }
}

fn new_value(page: PageId, value: &NewValue) -> String {
    match value {
        NewValue::Inline(bytes) => names::value(bytes.bytes()),
        NewValue::Staged(o) => overflow(page, *o),
    }
}

/// Where something stands.
pub(crate) fn position(position: Option<Position>) -> String {
    position.map_or_else(|| String::from("nowhere"), |position| position.to_string())
}

fn decided(decision: Decision) -> String {
    match decision {
        Decision::Commit(stamp) => format!("commit at {}", names::stamp(stamp)),
        Decision::Abort => String::from("abort"),
    }
}

fn people(names: &[NameId]) -> String {
    let names = names.iter().map(|name| rights::name(*name));
    names.collect::<Vec<_>>().join(" ")
}

/// What a site is told about rights.
fn readers_of(readers: &[(SegmentId, Audience)]) -> String {
    let of = |(segment, audience): &(SegmentId, Audience)| {
        let who = match &audience.readers {
            Readers::Members => String::from("all"),
            Readers::Names(names) => people(names),
        };
        let by = match &audience.carriers {
            all if *all == Carriers::ALL_SITES => String::new(),
            none if *none == Carriers::NOBODY => String::from(" by no site"),
            Carriers { sites, names } => {
                let sites = if *sites { "sites " } else { "" };
                format!(" by {sites}{}", people(names))
            }
        };
        format!(", {} is for {who}{by}", names::segment(*segment))
    };
    readers.iter().map(of).collect()
}
