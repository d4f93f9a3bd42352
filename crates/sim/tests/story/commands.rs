//! What a story can say. Each command is one line of words:
//!
//! ```text
//! village H(R(m0 m1) R2(m2)) where P.x=a P.y=b with R.cache=0
//! m0 reads P.x          m0 writes P.x=b     m0 creates P.w=c    m0 deletes P.x
//! m0 appends P.x=bb     m0 inserts P.x=bb   (the home runs such a procedure)
//! m0 patches P.x+4=bb   m0 commits          m0 commits strictly m0 commits early    m0 gives up
//! m0/b reads P.x        (another transaction of the same member; m0/B is of another session, too)
//! m0/b commits once answered    (it waits for what it has read, and commits when it hears of that)
//! m0 updates P.x append=b    m0 updates P.x append=b within 500ms    (it waits so long for a lease)
//! m0 follows s          m0 follows s no more    m0 pulls s within 500ms
//! m0 locks s            m0 locks s s2 to read within 500ms    m0 unlocks (the lock that it got last)
//! m0/b runs under its locks    (what it writes names them)
//! m0/b only reads       (so it says, until it writes: it goes on as of before what changes)
//! m0/b stands here      (as a visit does: it only reads, and all as of now)
//! m0 fetches P          m0 prefetches P (and does not wait)
//! m0 evicts P           m0 watches s         m0 watches s2..s9
//! m0 opens s2           m0 removes s2       m0 lists s          m0 reserves s
//! m0 begins 1..9 20000  (it stages the first page of so many values of so many bytes, and unstages each)
//! m0 writes first.rights=admin m0, read m1
//! m0 stages 1 9000*a    m0 unstages 1       m0 writes P.x=staged:1
//! m0 stages 1 9000*a first 1                (its first page; all others are still to come)
//! m0 asks for doubts    m0 settles m1#1 as abort    (with m0.operator=1 its certificate is an operator's)
//! m0 asks for the history    m0 confirms 0       m0 confirms 0 apart
//! m0 asks H1 for its transactions   m0 asks H1 of H2 for m1#1   (H1 passes on what H2 has of that)
//! deliver m0->R         deliver m0->R all   deliver all         settle except R->m1
//! again m0->R commit m0#1   (what was delivered comes once more)
//! late m0->R commit m0#1    (the same, on the edge that it came on)
//! forge R->H m0#1 at @100000+1   (a rogue decides so on that commit, at the stamp of another home)
//! forge m0->H1 m0#1 under 2 with H9 reads P.x   (a rogue names that home in a part that only reads)
//! forge m0->R m0#1 under 2 writes P.x=c   (a rogue sends this under an id, which may have another content)
//! forge m1->H m1#9 under 3 saves 1 of m0: S.x append=b   (a rogue sends an update of the log of another)
//! forge m0->H m0#9 under 3 saves 1 of m0 for m1: S.x append=b   (a log says that another has written it)
//! falsify m0->R P.x=evil    (a helper's answer that is the first under way there; also P stamped 99, P labelled 9)
//! falsify R->H S.x append=z    (an update that is the first under way there)
//! hasten R->m1          (the last message under way there goes first)
//! cut R-m0              m0 joins R2         m0 loses R (which does not know)
//! sync H                sync H 1            crash H             restart H wall=80000
//! copy H                restore H           (crashes it: its disk is as it was when it was copied)
//! restore H unseen by R (R does not notice yet that it has lost H)
//! confirm H             confirm H apart     (an operator opens its disk; it is not running)
//! begin H again         (an operator has opened it while it ran: its next life begins)
//! makeup m1 900        (m1 makes up what it claims next: that it is so far in a life that never was)
//! receipts shown        (from now on; they come at once with what follows them on a link, as claims do)
//! hold H                load H              (pages are read from its disk later, then)
//! damage H P            mend H P
//! left H 9000           (so much more fits on its disk; also: left H 0 room 2000, left H 0 installs nothing)
//! room H no             wait 500ms          flood m0->R 300 calls
//! remember W = m0 watermark
//! show m0 P             expect m0 P = {x="a"}
//! ```
//!
//! `3 times m0 reads P.x; settle` does so three times; `quietly` at the end of a command leaves what it causes out.

use super::node::{Given, HOME};
use super::program::{How, Waiting};
use super::village::Village;
use super::{forging, founding, names, query, rights, updates};
use std::collections::BTreeMap;
use thorp_model::limits::{EXTENT_PAGES, OVERFLOW_CHUNK_BYTES, STAGE_PAGES_MAX};
use thorp_model::{
    Attempt, CallId, CallRequest, CommitId, CommitRequest, Decision, Generation, HomeId,
    Incarnation, JointQuestion, Lack, LogId, Message, NewValue, ObjectId, PageId, PageWrites, Part,
    Participant, Position, Principal, Procedure, RIGHTS_SLOT, Registration, Ruling, SegmentId,
    SlotSet, SpaceBound, Stamp, Up, WriteOp, message, rights_page,
};
use thorp_protocol::{HomeCommand, MemberCommand, Request};

/// A story on its way.
#[derive(Default)]
pub(crate) struct Teller {
    pub(crate) village: Village,
    pub(crate) remembered: BTreeMap<String, String>,
    /// What was expected and is not so.
    pub(crate) failed: Vec<String>,
}

impl Teller {
    /// Does a command; what it causes is written down in the village.
    pub(crate) fn command(&mut self, line: &str) {
        let (line, quiet) = match line.strip_suffix(" quietly") {
            Some(line) => (line, true),
            None => (line, false),
        };
        if let Some((count, commands)) = line.split_once(" times ") {
            for _ in 0..number(count) {
                for command in commands.split("; ") {
                    self.command(&format!("{command}{}", if quiet { " quietly" } else { "" }));
                }
            }
            return;
        }
        self.village.quiet = quiet;
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            "village" => founding::found(&mut self.village, rest),
            "deliver" => self.deliver(rest),
            "settle" => self.village.settle(true, &except(rest)),
            "again" | "late" => {
                let (what, kind) = rest.split_once(' ').expect("a->b KIND");
                let (from, to) = link(what);
                self.village.again(from, to, kind, first == "late");
            }
            "forge" => self.forge(rest),
            "falsify" => {
                let (way, what) = rest.split_once(' ').expect("a->b what");
                let (from, to) = link(way);
                let words: Vec<&str> = what.split_whitespace().collect();
                let letter = self.village.first_of(from, to);
                forging::falsify(letter.expect("a message under way"), &words);
            }
            "hasten" => {
                let (from, to) = link(rest);
                self.village.hasten(from, to);
            }
            "cut" => self.cut(rest),
            "copy" => self.village.node(rest).disk.keep_copy(),
            "restore" => {
                let (home, child) = rest.split_once(" unseen by ").unwrap_or((rest, ""));
                self.village.crash(home, Some(child));
                self.village.node(home).disk.go_back();
            }
            "confirm" => {
                let (home, how) = rest.split_once(' ').unwrap_or((rest, ""));
                self.village.node(home).disk.reopen(how == "apart", None);
            }
            "begin" => self.begin_again(rest),
            "makeup" => {
                let (who, far) = rest.split_once(' ').expect("WHO POSITION");
                self.village.making_up = Some((String::from(who), number(far)));
            }
            "receipts" => self.village.shows_receipts = rest == "shown",
            "crash" => self.village.crash(rest, None),
            "restart" => self.restart(rest),
            "sync" => self.sync(rest),
            "hold" => self.village.node(rest).disk.held = Some(Vec::new()),
            "load" => self.village.load_held(rest),
            "damage" | "mend" => {
                let (home, name) = rest.split_once(' ').expect("HOME PAGE");
                let disk = &mut self.village.node(home).disk;
                disk.set_damaged(page(name), first == "damage");
            }
            "room" => self.room(rest),
            "left" => self.left(rest),
            "wait" => self.village.wait(number(rest.trim_end_matches("ms"))),
            "flood" => self.flood(rest),
            "show" => {
                let value = query::answer(&self.village, rest);
                self.village.say(&format!("    {value}"));
            }
            "remember" => {
                let (name, what) = rest.split_once(" = ").expect("NAME = what");
                let value = query::answer(&self.village, what);
                self.remembered.insert(String::from(name), value);
            }
            "expect" => self.expect(rest),
            who => self.member(who, rest),
        }
        self.village.quiet = false;
    }

    fn expect(&mut self, line: &str) {
        if let Err(found) = query::check(&self.village, &self.remembered, line) {
            self.village.say(&format!("    FAILED: it is {found}"));
            self.failed.push(format!("expect {line}: it is {found}"));
        }
    }

    // --- The world ---

    fn deliver(&mut self, rest: &str) {
        if let Some(rest) = rest.strip_prefix("all") {
            return self.village.settle(false, &except(rest.trim_start()));
        }
        let (what, count) = rest.split_once(' ').unwrap_or((rest, "1"));
        let (from, to) = link(what);
        let count = match count {
            "all" => self.village.queued(from, to) as u64,
            count => number(count),
        };
        for _ in 0..count {
            if !self.village.deliver(from, to) {
                return self.village.say("    nothing is under way there");
            }
        }
    }

    fn cut(&mut self, rest: &str) {
        let (a, b) = rest.split_once('-').expect("two nodes: a-b");
        let edge = self.village.edge(a, b).expect("an edge");
        self.village.cut(edge);
        self.village.work();
    }

    fn restart(&mut self, rest: &str) {
        let (name, wall) = rest.split_once(" wall=").unwrap_or((rest, ""));
        if !wall.is_empty() {
            // What the wall clock shows from now on.
            let node = self.village.node(name);
            node.wall_ms_ahead = number(wall) as i64 - super::node::WALL_MS_FIRST as i64;
        }
        self.village.start(name);
    }

    /// As its driver does: all that the home wrote is durable, then its disk is opened, then it starts.
    fn begin_again(&mut self, rest: &str) {
        let home = rest.strip_suffix(" again").expect("HOME again");
        self.village.node(home).disk.sync(usize::MAX);
        self.village.node(home).disk.carry_out();
        self.village.crash(home, None);
        self.village.start(home);
    }

    fn sync(&mut self, rest: &str) {
        let (home, count) = rest.split_once(' ').unwrap_or((rest, ""));
        let count = if count.is_empty() {
            usize::MAX
        } else {
            number(count) as usize
        };
        self.village.sync(home, count);
    }

    fn room(&mut self, rest: &str) {
        let (home, room) = rest.split_once(' ').expect("NODE yes or no");
        let header = format!("{home}'s disk has room: {room}");
        self.village.later(
            home,
            header,
            Given::Home(HomeCommand::Lacks((room != "yes").then_some(Lack::OF_ALL))),
        );
        self.village.work();
    }

    /// How much the disk could take beside all that was synced.
    fn left(&mut self, rest: &str) {
        let (home, free) = rest.split_once(' ').expect("NODE bytes");
        let (free, installs) = match free.strip_suffix(" installs nothing") {
            Some(free) => (free, false),
            None => (free, true),
        };
        let (free, room) = free.split_once(" room ").unwrap_or((free, free));
        let (free, room) = (number(free), number(room));
        let as_of = self.village.node(home).disk.synced();
        let beside = if room == free {
            String::new()
        } else {
            format!(", {room} with the kept room")
        };
        let installed = if installs {
            ""
        } else {
            ", and no installed pages"
        };
        let header = format!("{home}'s disk could take {free} bytes{beside}{installed}");
        self.village.later(
            home,
            header,
            Given::Home(HomeCommand::Space {
                free,
                room,
                of: SpaceBound::Limit,
                installs,
                as_of,
            }),
        );
        self.village.work();
    }

    /// What no right member would send.
    fn forge(&mut self, rest: &str) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let &[way, commit, ref what @ ..] = &words[..] else {
            panic!("forge a->b COMMIT what");
        };
        let (from, to) = link(way);
        let (member, sequence) = commit.split_once('#').expect("MEMBER#NUMBER");
        let commit = CommitId {
            member: self.village.node(member).id,
            sequence: number(sequence),
        };
        let message = match what {
            ["at", stamp] => decision(to, commit, query::size_of(stamp)),
            ["under", registration, "with", other, "reads", name] => {
                let registration = Registration(number(registration));
                let mut request = self.reading(to, (commit, registration), object(name).0);
                let other = names::home_id(other).expect("a home");
                let with = [request.home(), other];
                request.with = Vec::from(with.map(|home| Participant { home, registration }));
                Up::Commit(request)
            }
            ["under", registration, "writes", what] => {
                let registration = Registration(number(registration));
                Up::Commit(writing((commit, registration), what))
            }
            ["under", registration, "saves", number, "of", of, target, op] => {
                let log = LogId(self.village.node(of.trim_end_matches(':')).id);
                let registration = Registration(self::number(registration));
                Up::Save(Box::new(forging::saving(
                    (commit, registration),
                    (log, self::number(number)),
                    (target, op),
                )))
            }
            [
                "under",
                registration,
                "saves",
                number,
                "of",
                of,
                "for",
                other,
                target,
                op,
            ] => {
                let log = self.village.node(of);
                let who = Principal {
                    name: log.id.name(),
                    is_operator: false,
                };
                let id = LogId(log.id);
                let registration = Registration(self::number(registration));
                let number = self::number(number);
                let of_commit = (commit, registration);
                let save = forging::saving(of_commit, (id, number), (target, op));
                let author = self.village.node(other.trim_end_matches(':')).id;
                let save = forging::for_another(save, (who, of), author);
                Up::Save(Box::new(save))
            }
            _ => panic!(
                "at STAMP, or under NUMBER with HOME reads OBJECT, or writes OBJECT=VALUE, or saves NUMBER of MEMBER [for MEMBER]: OBJECT PROCEDURE"
            ),
        };
        self.village.put(from, to, Message::Up(message));
        self.village.say("    it is on its way");
    }

    /// A commit that only reads an object, as it is at a home now.
    fn reading(
        &self,
        to: &str,
        (id, registration): (CommitId, Registration),
        object: ObjectId,
    ) -> CommitRequest {
        let home = names::home_id(to).expect("a home");
        let machine = self.village.machine(to).expect("it runs");
        let call = CallId {
            member: id.member,
            number: id.sequence,
        };
        let mut request = empty_commit(call, registration);
        request.part.home = home;
        request.part.evidence = machine.position(home).unwrap_or_default();
        request.part.reads = vec![(object.page, SlotSet::of(object.slot))];
        request
    }

    /// Many requests that no right member would send: fetches and neighbours' helps `from` a page, commits `under` a
    /// registration.
    fn flood(&mut self, rest: &str) {
        let (rest, from_page) = rest.split_once(" from ").unwrap_or((rest, "1"));
        let (rest, registration) = rest.split_once(" under ").unwrap_or((rest, "0"));
        let registration = Registration(number(registration));
        let first_page = number(from_page) as u32;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let &[what, count, kind] = &words[..] else {
            panic!("flood a->b COUNT calls");
        };
        let (from, to) = link(what);
        let member = self.village.node(from).id;
        let count = number(count);
        for number in 0..count {
            let call = CallId {
                member,
                number: 1000 + number,
            };
            let message = match kind {
                "calls" => Up::Call(message::Call {
                    call,
                    home: HOME,
                    request: CallRequest::List {
                        prefix: String::new(),
                        after: String::new(),
                    },
                }),
                "commits" => Up::Commit(empty_commit(call, registration)),
                "watches" => Up::Watch(message::Watch {
                    home: HOME,
                    epoch: query::epoch(&self.village, from, to),
                    segment: SegmentId(1 + number as u32),
                    on: true,
                }),
                "fetches" | "helps" | "aheads" => Up::Fetch(message::Fetch {
                    home: HOME,
                    epoch: query::epoch(&self.village, from, to),
                    page: PageId::new(1, first_page + number as u32),
                    attempt: Attempt(1000 + number),
                    peers: kind == "helps",
                    ahead: kind == "aheads",
                    updates: 0,
                }),
                other => panic!("a flood of {other}"),
            };
            self.village.put(from, to, Message::Up(message));
        }
        self.village
            .say(&format!("    {count} {kind} are on their way to {to}"));
    }

    // --- Members ---

    fn member(&mut self, who: &str, rest: &str) {
        let (name, transaction) = who.split_once('/').unwrap_or((who, ""));
        let (verb, what) = rest.split_once(' ').unwrap_or((rest, ""));
        match verb {
            "reads" => {
                let (object, _) = object(what);
                self.village.read(name, transaction, object);
            }
            "writes" | "creates" | "deletes" | "patches" | "appends" | "inserts" => {
                self.write(name, transaction, verb, what);
            }
            "only" => {
                let program = self.village.node(name).program.as_mut();
                program.expect("a member").only_reads(transaction);
            }
            "commits" => {
                let how = match what {
                    "strictly" => How::Strictly,
                    "early" => How::Early,
                    "once answered" => How::OnceAnswered,
                    _ => How::Plainly,
                };
                self.village.commit(name, transaction, how);
            }
            "gives" => {
                let program = self.village.node(name).program.as_mut();
                program.expect("a member").give_up(transaction);
            }
            "stands" if what == "here" => {
                let program = self.village.node(name).program.as_mut();
                let stands = program.expect("a member").stands(transaction);
                assert!(stands, "{name} stands nowhere yet");
            }
            "runs" if what == "under its locks" => {
                let program = self.village.node(name).program.as_mut();
                program.expect("a member").runs_under_its_locks(transaction);
            }
            "fetches" => self
                .village
                .fetch(name, page(what), Waiting::Fetch(page(what))),
            "prefetches" => {
                let place = self.village.node(name).homes.place(page(what));
                let waiting = Waiting::Fetch(place.page);
                self.village.ask(name, waiting, Request::Prefetch(place));
            }
            "evicts" => {
                let homes = self.village.node(name).homes.clone();
                let pages = what.split_whitespace().map(|name| homes.place(page(name)));
                let evict = Given::Member(MemberCommand::Evict(pages.collect()));
                self.village.later(name, format!("{name} evicts"), evict);
                self.village.work();
            }
            "joins" => self.village.connect(what, name),
            "loses" => self.village.lose(what, name),
            _ => self.call(name, verb, what),
        }
    }

    fn write(&mut self, name: &str, transaction: &str, verb: &str, what: &str) {
        let (target, value) = what.split_once('=').unwrap_or((what, ""));
        let (target, offset) = target.split_once('+').unwrap_or((target, "0"));
        let (object, generation) = object(target);
        let program = self.village.node(name).program.as_mut().expect("a member");
        let new = match value.strip_prefix("staged:") {
            Some(token) => NewValue::Staged(program.staged[&number(token)]),
            None if object.slot == RIGHTS_SLOT
                && object.page == rights_page(object.page.segment) =>
            {
                NewValue::Inline(rights::bytes_of(value).into())
            }
            None => NewValue::Inline(names::bytes_of(value).into()),
        };
        let op = write_op(verb, generation, new, offset, value);
        if let Some(said) = program.write(transaction, object, op) {
            self.village.say(&format!("    {name} {said}"));
        }
    }

    fn call(&mut self, name: &str, verb: &str, what: &str) {
        let path = String::from(what);
        let request = match verb {
            "opens" => CallRequest::Open { path, create: true },
            "finds" => CallRequest::Open {
                path,
                create: false,
            },
            "removes" => CallRequest::Remove {
                segment: names::segment_id(what).expect("a segment"),
            },
            "lists" => CallRequest::List {
                prefix: path,
                after: String::new(),
            },
            "reserves" => CallRequest::Reserve {
                segment: names::segment_id(what).expect("a segment"),
                pages: EXTENT_PAGES,
            },
            "updates" | "follows" | "pulls" => {
                let homes = self.village.node(name).homes.clone();
                let request = updates::request(&homes, verb, what);
                return self.village.ask(name, Waiting::Call(None), request);
            }
            "locks" => updates::lock(what),
            "unlocks" => {
                let program = self.village.node(name).program.as_mut().expect("a member");
                let (_, fence) = program.locks.pop().expect("a lock");
                CallRequest::Unlock { fence }
            }
            "stages" => return self.stage(name, what),
            "asks" if what == "for the history" => CallRequest::History,
            "asks" if what.starts_with('H') => return self.asks_joint(name, what),
            "asks" => CallRequest::Doubts { after: None },
            "confirms" => {
                let (seen, how) = what.split_once(' ').unwrap_or((what, ""));
                let seen = Incarnation::new(number(seen) as u16);
                CallRequest::Confirm {
                    seen: seen.expect("an incarnation"),
                    apart: how == "apart",
                }
            }
            "settles" => self.settles(what),
            "begins" => return self.begin(name, what),
            "unstages" => CallRequest::Unstage {
                registration: Default::default(),
                token: number(what),
            },
            "watches" | "unwatches" => return self.watch(name, verb == "watches", what),
            other => panic!("nobody can do this: {other}"),
        };
        let ask = Request::Call {
            home: HOME,
            request,
        };
        self.village.ask(name, Waiting::Call(None), ask);
    }

    /// `H1 for its transactions`, or `H1 of H2 for m0#1`: what the second home has of that.
    fn asks_joint(&mut self, name: &str, what: &str) {
        let (homes, wanted) = what.split_once(" for ").expect("HOME for WANTED");
        let (home, at) = homes.split_once(" of ").unwrap_or((homes, homes));
        let [home, at] = [home, at].map(|home| HomeId(number(&home[1..]) as u32));
        let question = match wanted.split_once('#') {
            Some((member, sequence)) => {
                let commit = CommitId {
                    member: self.village.node(member).id,
                    sequence: number(sequence),
                };
                let stamp = Stamp {
                    clock: u64::MAX,
                    home,
                };
                JointQuestion::Of(vec![(stamp, commit)])
            }
            None => JointQuestion::List {
                after: None,
                with: None,
            },
        };
        let request = CallRequest::Joint { at, question };
        let ask = Request::Call { home, request };
        self.village.ask(name, Waiting::Call(None), ask);
    }

    /// `m0#1 as commit`, or `as abort`.
    fn settles(&mut self, what: &str) -> CallRequest {
        let (commit, ruling) = what.split_once(" as ").expect("COMMIT as RULING");
        let (member, sequence) = commit.split_once('#').expect("MEMBER#NUMBER");
        let ruling = match ruling {
            "commit" => Ruling::Commit,
            "abort" => Ruling::Abort,
            other => panic!("{other} is no ruling"),
        };
        let commit = CommitId {
            member: self.village.node(member).id,
            sequence: number(sequence),
        };
        CallRequest::Settle { commit, ruling }
    }

    /// Watches a segment, or all of `s2..s5`.
    fn watch(&mut self, name: &str, on: bool, what: &str) {
        let (first, last) = what.split_once("..").unwrap_or((what, what));
        let [first, last] = [first, last].map(|s| names::segment_id(s).expect("a segment").0);
        for segment in (first..=last).map(SegmentId) {
            let ask = Request::Watch {
                home: HOME,
                segment,
                on,
            };
            self.village.ask(name, Waiting::Call(None), ask);
        }
    }

    /// Stages the first page of each of many values, and unstages it.
    fn begin(&mut self, name: &str, what: &str) {
        let (tokens, bytes) = what.split_once(' ').expect("FIRST..LAST BYTES");
        let (first, last) = tokens.split_once("..").expect("FIRST..LAST");
        for token in number(first)..=number(last) {
            let stage = CallRequest::Stage {
                segment: SegmentId(1),
                registration: Default::default(),
                token,
                bytes: number(bytes),
                index: 0,
                chunks: vec![vec![0; OVERFLOW_CHUNK_BYTES].into()],
            };
            let registration = Default::default();
            let unstage = CallRequest::Unstage {
                registration,
                token,
            };
            for request in [stage, unstage] {
                let home = HOME;
                let ask = Request::Call { home, request };
                self.village.ask(name, Waiting::Call(None), ask);
            }
        }
    }

    /// Stages a value in pieces, or so many pages of it.
    fn stage(&mut self, name: &str, what: &str) {
        let (token, value) = what.split_once(' ').expect("TOKEN value");
        let (value, count) = value.split_once(" first ").unwrap_or((value, ""));
        let count = match count {
            "" => usize::MAX,
            count => number(count) as usize,
        };
        let (token, bytes) = (number(token), names::bytes_of(value));
        let chunks = bytes.chunks(OVERFLOW_CHUNK_BYTES).take(count);
        let chunks: Vec<&[u8]> = chunks.collect();
        for (piece, chunks) in chunks.chunks(STAGE_PAGES_MAX).enumerate() {
            let request = CallRequest::Stage {
                segment: SegmentId(1),
                registration: Default::default(),
                token,
                bytes: bytes.len() as u64,
                index: (piece * STAGE_PAGES_MAX) as u32,
                chunks: chunks.iter().map(|chunk| (*chunk).into()).collect(),
            };
            let ask = Request::Call {
                home: HOME,
                request,
            };
            self.village.ask(name, Waiting::Call(Some(token)), ask);
        }
    }
}

fn write_op(
    verb: &str,
    generation: Generation,
    value: NewValue,
    offset: &str,
    bytes: &str,
) -> WriteOp {
    match verb {
        "creates" => WriteOp::Create { generation, value },
        "deletes" => WriteOp::Delete { generation },
        "patches" => WriteOp::Patch {
            generation,
            offset: number(offset) as u32,
            bytes: names::bytes_of(bytes).into(),
        },
        "appends" => applied(generation, Procedure::Append(names::bytes_of(bytes).into())),
        "inserts" => applied(generation, Procedure::Insert(names::bytes_of(bytes).into())),
        _ => WriteOp::Write { generation, value },
    }
}

fn applied(generation: Generation, procedure: Procedure) -> WriteOp {
    WriteOp::Apply {
        generation,
        procedures: vec![procedure],
    }
}

/// A commit that writes over an object.
fn writing((id, registration): (CommitId, Registration), what: &str) -> CommitRequest {
    let (name, value) = what.split_once('=').expect("OBJECT=VALUE");
    let (object, generation) = object(name);
    let call = CallId {
        member: id.member,
        number: id.sequence,
    };
    let mut request = empty_commit(call, registration);
    let value = NewValue::Inline(names::bytes_of(value).into());
    request.part.writes = vec![PageWrites {
        page: object.page,
        slots: vec![(object.slot, WriteOp::Write { generation, value })],
    }];
    request
}

/// The transaction ended so, at a stamp of another home.
fn decision(to: &str, commit: CommitId, clock: u64) -> Up {
    let home = names::home_id(to).expect("a home");
    let stamp = Stamp {
        clock,
        home: HomeId(home.0 + 1),
    };
    Up::Decide(message::Decide {
        home,
        commit,
        registration: Registration::default(),
        decision: Decision::Commit(stamp),
    })
}

fn empty_commit(call: CallId, registration: Registration) -> CommitRequest {
    CommitRequest {
        id: CommitId {
            member: call.member,
            sequence: call.number,
        },
        registration,
        part: Part {
            home: HOME,
            evidence: Position(0),
            reads: Vec::new(),
            writes: Vec::new(),
            under: None,
        },
        with: Vec::new(),
        depends_on: Vec::new(),
        after: thorp_model::Stamp::default(),
    }
}

/// The links of `except a->b c->d`.
fn except(rest: &str) -> Vec<(String, String)> {
    let links = rest.strip_prefix("except ").unwrap_or("");
    let links = links.split_whitespace().map(link);
    links
        .map(|(from, to)| (String::from(from), String::from(to)))
        .collect()
}

fn link(text: &str) -> (&str, &str) {
    text.split_once("->").expect("a link: a->b")
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn page(name: &str) -> PageId {
    names::page_id(name).unwrap_or_else(|| panic!("{name:?} is no page"))
}

fn object(name: &str) -> (ObjectId, Generation) {
    names::object_id(name).unwrap_or_else(|| panic!("{name:?} is no object"))
}
