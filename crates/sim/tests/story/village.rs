//! A little village driven by hand: nodes, the links between them, and what
//! everything that happens causes, written down as it happens.

use super::node::{Given, Machine, Node, Wanted};
use super::program::{Did, How, Waiting};
use super::text::{self, Pen, People, lock};
use super::{effects, forging, names, rights, updates};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use thorp_model::snapshot::Lagging;
use thorp_model::{
    Action, CallRequest, CallResponse, Direction, Down, EdgeId, Event, MemberId, Message, Millis,
    NodeKind, Now, ObjectId, PageId, Peer, RequestId,
};
use thorp_protocol::{HomeAction, HomeCommand, MemberAction, MemberCommand, Request, Response};

/// Messages that one command may deliver: more are a quarrel without end.
const DELIVERIES_MAX: usize = 20_000;

/// A message and the edge that it travels on.
pub(crate) type Letter = (EdgeId, Message);

/// The village.
#[derive(Default)]
pub(crate) struct Village {
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) people: People,
    /// Parent and child of every edge that is there.
    pub(crate) edges: BTreeMap<EdgeId, (String, String)>,
    links: BTreeMap<(String, String), VecDeque<Letter>>,
    /// The messages delivered on each link.
    delivered: BTreeMap<(String, String), Vec<Letter>>,
    /// Edges that the child has lost and the parent does not know to be gone.
    half_open: BTreeSet<EdgeId>,
    last_edge: EdgeId,
    last_id: u64,
    ms: u64,
    /// What is to be done before the next command.
    todo: VecDeque<(String, String, Given)>,
    /// What happened, for the story.
    pub(crate) said: String,
    /// Nothing is written down.
    pub(crate) quiet: bool,
    /// Receipts are written down, too.
    pub(crate) shows_receipts: bool,
    /// Who makes up what it claims next, and how far it says that it is.
    pub(crate) making_up: Option<(String, u64)>,
}

fn is_receipt(message: &Message) -> bool {
    matches!(message, Message::Down(Down::Receipt(_)))
}

fn is_attached(message: &Message) -> bool {
    is_receipt(message) || matches!(message, Message::Claims(_))
}

impl Village {
    // --- Nodes ---

    /// Starts a node that is there and not running.
    pub(crate) fn start(&mut self, name: &str) {
        let ms = self.ms;
        self.last_id += 1;
        let id = MemberId::new(rights::name_id(name), self.last_id);
        let node = self.node(name);
        let wanted = node.start(id, node.now(ms));
        let known_as = format!("{name}{}", "'".repeat(node.lives as usize - 1));
        self.people.insert(id, known_as);
        let header = format!("{name} starts");
        self.perform(name, &header, wanted);
        self.work();
    }

    pub(crate) fn node(&mut self, name: &str) -> &mut Node {
        let node = self.nodes.get_mut(name);
        node.unwrap_or_else(|| panic!("nobody here is called {name}"))
    }

    /// A running node's core.
    pub(crate) fn machine(&self, name: &str) -> Option<&Machine> {
        self.nodes.get(name)?.machine.as_ref()
    }

    /// The power of a node goes, and its connections with it. One child does not notice yet.
    pub(crate) fn crash(&mut self, name: &str, unaware: Option<&str>) {
        self.node(name).machine = None;
        self.node(name).disk.crash();
        let edges: Vec<EdgeId> = self
            .edges
            .iter()
            .filter(|(_, (parent, child))| parent == name || child == name)
            .map(|(edge, _)| *edge)
            .collect();
        for edge in edges {
            let child = self.edges.get(&edge).map(|(_, child)| child.as_str());
            if child.is_some() && child == unaware {
                self.edges.remove(&edge);
            } else {
                self.cut(edge);
            }
        }
        self.work();
    }

    // --- Edges ---

    /// Connects a child to its parent.
    pub(crate) fn connect(&mut self, parent: &str, child: &str) {
        self.last_edge = self.last_edge.next();
        let edge = self.last_edge;
        let pair = (String::from(parent), String::from(child));
        self.edges.insert(edge, pair);
        let ends = [
            (child, parent, Direction::Up),
            (parent, child, Direction::Down),
        ];
        for (name, other, direction) in ends {
            let peer = self.peer(other);
            let connected = Event::Connected {
                edge,
                direction,
                peer,
            };
            self.later(
                name,
                format!("{name} is connected to {other}"),
                Given::Event(connected),
            );
        }
        self.work();
    }

    fn peer(&mut self, name: &str) -> Peer {
        let node = self.node(name);
        Peer {
            kind: node.kind,
            node: node.id,
            name: node.name.clone(),
            is_operator: node.is_operator(),
            is_carried: name.starts_with('C'),
        }
    }

    /// The edge between two nodes, the newest if there are several.
    pub(crate) fn edge(&self, a: &str, b: &str) -> Option<EdgeId> {
        let is = |(p, c): &(String, String)| (p == a && c == b) || (p == b && c == a);
        let edge = self.edges.iter().rfind(|(_, pair)| is(pair));
        edge.map(|(edge, _)| *edge)
    }

    /// How many parents a node has an edge to.
    pub(crate) fn parents(&self, child: &str) -> usize {
        let mut edges = self.edges.values();
        edges.by_ref().filter(|(_, c)| c == child).count()
    }

    /// Only the child loses an edge: the parent has not heard of that, and what
    /// is under way to it still comes.
    pub(crate) fn lose(&mut self, parent: &str, child: &str) {
        let edge = self.edge(parent, child).expect("an edge");
        self.half_open.insert(edge);
        self.drop_letters(parent, child, edge);
        let header = format!("{child} loses {parent}");
        self.later(child, header, Given::Event(Event::Disconnected { edge }));
        self.work();
    }

    fn drop_letters(&mut self, from: &str, to: &str, edge: EdgeId) {
        let link = (String::from(from), String::from(to));
        if let Some(letters) = self.links.get_mut(&link) {
            letters.retain(|(on, _)| *on != edge);
        }
    }

    /// Cuts an edge: what is under way on it is lost.
    pub(crate) fn cut(&mut self, edge: EdgeId) {
        let Some((parent, child)) = self.edges.remove(&edge) else {
            return;
        };
        let half_open = self.half_open.remove(&edge);
        for (from, to) in [(&parent, &child), (&child, &parent)] {
            self.drop_letters(from, to, edge);
            if half_open && *to == child {
                continue;
            }
            let header = format!("{to} loses {from}");
            self.later(
                &to.clone(),
                header,
                Given::Event(Event::Disconnected { edge }),
            );
        }
    }

    // --- Messages ---

    /// Messages under way.
    pub(crate) fn under_way(&self) -> usize {
        let letters = self.links.values().flatten();
        letters.filter(|(_, message)| !is_attached(message)).count()
    }

    /// Messages under way on one link.
    pub(crate) fn queued(&self, from: &str, to: &str) -> usize {
        let link = self.links.get(&(String::from(from), String::from(to)));
        let letters = link.into_iter().flatten();
        letters.filter(|(_, message)| !is_attached(message)).count()
    }

    /// Puts a message on a link.
    pub(crate) fn put(&mut self, from: &str, to: &str, message: Message) {
        match self.edge(from, to) {
            Some(edge) => self.post(from, to, (edge, message)),
            None => self.say("    there is no edge"),
        }
    }

    fn post(&mut self, from: &str, to: &str, letter: Letter) {
        let link = (String::from(from), String::from(to));
        self.links.entry(link).or_default().push_back(letter);
    }

    /// What a link has delivered.
    pub(crate) fn delivered(
        &self,
        from: &str,
        to: &str,
    ) -> impl DoubleEndedIterator<Item = &Letter> {
        let link = (String::from(from), String::from(to));
        self.delivered.get(&link).into_iter().flatten()
    }

    /// Puts the last message of a kind that a link delivered on it once more:
    /// on the edge that is there now, or `late` on the one that it came on.
    pub(crate) fn again(&mut self, from: &str, to: &str, kind: &str, late: bool) {
        let found = {
            let pen = Pen(&self.people);
            let mut delivered = self.delivered(from, to).rev();
            delivered
                .find(|(_, message)| pen.kind(message) == kind)
                .cloned()
        };
        match found {
            Some(letter) if late => self.post(from, to, letter),
            Some((_, message)) => self.put(from, to, message),
            None => self.say("    nothing like that was delivered"),
        }
    }

    /// The last message of a link goes first: it takes a way of its own.
    pub(crate) fn hasten(&mut self, from: &str, to: &str) {
        let link = (String::from(from), String::from(to));
        if let Some(queue) = self.links.get_mut(&link) {
            let last = queue.pop_back();
            if let Some(message) = last {
                queue.push_front(message);
            }
        }
    }

    /// The first message of a link.
    pub(crate) fn first_of(&mut self, from: &str, to: &str) -> Option<&mut Letter> {
        let link = (String::from(from), String::from(to));
        self.links.get_mut(&link)?.front_mut()
    }

    /// Delivers the first message of a link. False if there is none.
    pub(crate) fn deliver(&mut self, from: &str, to: &str) -> bool {
        let link = (String::from(from), String::from(to));
        let letter = self.links.get_mut(&link).and_then(VecDeque::pop_front);
        let Some((edge, message)) = letter else {
            return false;
        };
        let kind = Pen(&self.people).kind(&message);
        self.delivered
            .entry(link)
            .or_default()
            .push((edge, message.clone()));
        let header = format!("{to} gets from {from}: {kind}");
        self.later(to, header, Given::Event(Event::Received { edge, message }));
        self.work();
        true
    }

    /// Delivers what there is, one of each link in turn, except on some links.
    /// With `disks`, disks are synced too.
    pub(crate) fn settle(&mut self, disks: bool, except: &[(String, String)]) {
        for _ in 0..DELIVERIES_MAX {
            let links: Vec<(String, String)> = self
                .links
                .iter()
                .filter(|(link, queue)| !queue.is_empty() && !except.contains(link))
                .map(|(link, _)| link.clone())
                .collect();
            let mut moved = !links.is_empty();
            for (from, to) in links {
                self.deliver(&from, &to);
            }
            if disks {
                moved |= self.sync_all();
            }
            if !moved {
                return;
            }
        }
        panic!("the village does not come to rest");
    }

    // --- Disks ---

    fn sync_all(&mut self) -> bool {
        let dirty = |node: &&Node| node.disk.pending() > 0;
        let homes: Vec<String> = self
            .nodes
            .values()
            .filter(dirty)
            .map(|node| node.name.clone())
            .collect();
        for home in &homes {
            self.sync(home, usize::MAX);
        }
        !homes.is_empty()
    }

    /// Syncs a home's first batches.
    pub(crate) fn sync(&mut self, home: &str, batches: usize) {
        let Some(mark) = self.node(home).disk.sync(batches) else {
            return self.say("    nothing to sync");
        };
        let header = format!("{home}'s disk has batch {}", mark.0);
        self.later(home, header, Given::Home(HomeCommand::Durable(mark)));
        self.work();
    }

    /// What a home asked its disk for while it was slow.
    pub(crate) fn load_held(&mut self, home: &str) {
        for page in self.node(home).disk.held.take().unwrap_or_default() {
            self.load(home, page);
        }
        self.work();
    }

    fn load(&mut self, home: &str, page: PageId) {
        let result = self.node(home).disk.load(page);
        let header = format!("{home} has loaded {}", names::page(page));
        self.later(
            home,
            header,
            Given::Home(HomeCommand::Loaded { page, result }),
        );
    }

    // --- Time ---

    /// What the clocks of members show.
    pub(crate) fn mono(&self) -> Millis {
        Now::MONO_FIRST.plus(self.ms)
    }

    /// Lets time pass; who has a deadline then, gets a tick.
    pub(crate) fn wait(&mut self, ms: u64) {
        self.ms += ms;
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            self.tick(&name);
        }
    }

    fn tick(&mut self, name: &str) {
        let deadline = self.machine(name).and_then(Machine::deadline);
        if deadline.is_some_and(|deadline| deadline.since(Now::MONO_FIRST) <= self.ms) {
            self.later(
                name,
                format!("{name} looks at the clock"),
                Given::Event(Event::Tick),
            );
            self.work();
        }
    }

    // --- Programs ---

    /// A transaction reads; the page is fetched if it has to be.
    pub(crate) fn read(&mut self, name: &str, transaction: &str, object: ObjectId) {
        let Some(program) = self.node(name).program.as_mut() else {
            return;
        };
        match program.read(transaction, object) {
            Did::Misses(page) => {
                let waiting = Waiting::Read(String::from(transaction), object);
                self.say(&format!("    {name} misses {}", names::page(page)));
                self.fetch(name, page, waiting);
            }
            Did::Said(said) => self.say(&format!("    {name} {said}")),
            Did::Asks(_) | Did::Lags(_) => {}
        }
    }

    /// A program asks for a page.
    pub(crate) fn fetch(&mut self, name: &str, page: PageId, waiting: Waiting) {
        let place = self.node(name).homes.place(page);
        self.ask(name, waiting, Request::Fetch(place));
    }

    /// A transaction commits.
    pub(crate) fn commit(&mut self, name: &str, transaction: &str, how: How) {
        let Some(program) = self.node(name).program.as_mut() else {
            return;
        };
        match program.commit(transaction, how) {
            Did::Asks(ask) => {
                program.commits.push(None);
                let at = program.commits.len() - 1;
                let waiting = Waiting::Commit(at, String::from(transaction));
                self.ask(name, waiting, ask);
            }
            Did::Lags(Lagging { stamp, homes }) => {
                let names: Vec<String> = homes.iter().map(|home| format!("H{home}")).collect();
                let wanted = names::stamp(stamp);
                self.say(&format!("    {name} wants {wanted} of {}", names.join(" ")));
                for home in homes {
                    let request = CallRequest::Watermark { at_least: stamp };
                    let waiting = Waiting::Promise(String::from(transaction));
                    self.ask(name, waiting, Request::Call { home, request });
                }
            }
            Did::Said(said) => self.say(&format!("    {name} {said}")),
            Did::Misses(_) => {}
        }
    }

    /// A program asks its member.
    pub(crate) fn ask(&mut self, name: &str, waiting: Waiting, ask: Request) {
        let node = self.node(name);
        let program = node.program.as_mut().expect("only members have programs");
        let ticket = program.ticket(waiting);
        self.later(
            name,
            format!("{name} is asked"),
            Given::Member(MemberCommand::Request {
                id: ticket,
                request: ask,
            }),
        );
        self.work();
    }

    // --- What happens ---

    /// Plans an input for a node.
    pub(crate) fn later(&mut self, name: &str, header: String, given: Given) {
        self.todo.push_back((String::from(name), header, given));
    }

    /// Does everything that is planned, and delivers what comes with something else.
    pub(crate) fn work(&mut self) {
        loop {
            while let Some((name, header, given)) = self.todo.pop_front() {
                let ms = self.ms;
                let node = self.node(&name);
                let now = node.now(ms);
                if let Some(machine) = node.machine.as_mut() {
                    let wanted = machine.handle(now, given);
                    self.perform(&name, &header, wanted);
                }
            }
            if !self.deliver_attached() {
                return;
            }
        }
    }

    /// Claims and receipts keep their place on a link, and no command has to deliver them: whatever of them is the first
    /// of a link, comes at once. False if there is none.
    fn deliver_attached(&mut self) -> bool {
        let first = |queue: &VecDeque<Letter>| queue.front().is_some_and(|(_, m)| is_attached(m));
        let mut links = self.links.iter_mut();
        let found = links.find(|(_, queue)| first(queue));
        let Some(((from, to), queue)) = found else {
            return false;
        };
        let (from, to) = (from.clone(), to.clone());
        let Some((edge, message)) = queue.pop_front() else {
            return false;
        };
        let header = match is_receipt(&message) && !self.shows_receipts {
            true => String::new(),
            false => {
                let text = Pen(&self.people).message(&message);
                format!("{to} gets from {from}: {text}")
            }
        };
        self.later(&to, header, Given::Event(Event::Received { edge, message }));
        true
    }

    fn perform(&mut self, name: &str, header: &str, wanted: Vec<Action<Wanted>>) {
        let notes = wanted.iter().filter_map(|effect| match effect {
            Action::Note(note) => Some(note.name()),
            _ => None,
        });
        let notes: Vec<&str> = notes.collect();
        let notes = match &notes[..] {
            [] => String::new(),
            notes => format!("  [{}]", notes.join(", ")),
        };
        if !header.is_empty() {
            self.say(&format!("    {header}{notes}"));
        }
        for action in wanted {
            self.act(name, action);
        }
    }

    fn act(&mut self, name: &str, action: Action<Wanted>) {
        match action {
            Action::Send(edge, message) => self.send(name, edge, message),
            Action::Close(edge, why) => {
                self.say(&format!("        {name} closes: {why}"));
                self.cut(edge);
            }
            Action::Role(Wanted::Home(HomeAction::Append(batch))) => {
                let what = effects::batch(&batch);
                self.say(&format!(
                    "        {name} writes batch {}: {what}",
                    batch.mark.0
                ));
                self.node(name).disk.append(batch);
            }
            Action::Role(Wanted::Home(HomeAction::Load(page))) => {
                self.say(&format!("        {name} loads {}", names::page(page)));
                match &mut self.node(name).disk.held {
                    Some(held) => held.push(page),
                    None => self.load(name, page),
                }
            }
            Action::Role(Wanted::Home(HomeAction::Close(met))) => {
                let by = &met.by;
                self.say(&format!(
                    "        {name} is closed: {by} has brought another history"
                ));
                self.node(name).disk.close(met.closes());
            }
            Action::Role(Wanted::Home(HomeAction::Reopen(reopen))) => {
                let by = rights::name(reopen.by.id);
                self.say(&format!(
                    "        {name} is opened by {by}: its next life is to begin"
                ));
                self.node(name).disk.want(reopen);
            }
            Action::Role(Wanted::Member(action)) => self.act_of_member(name, action),
            Action::Note(_) => {}
        }
    }

    fn act_of_member(&mut self, name: &str, action: MemberAction) {
        match action {
            MemberAction::Publish(publish) => {
                let updates = updates::shown(&Pen(&self.people), &publish);
                let program = self.node(name).program.as_mut();
                let said = program.map_or_else(String::new, |program| program.publish(&publish));
                let of = match names::of_home(publish.home) {
                    of if of.is_empty() => of,
                    of => format!(" of {}", of.trim_end()),
                };
                self.say(&format!("        {name} shows{of}: {said}{updates}"));
            }
            MemberAction::Respond(ticket, answer) => {
                let program = self.node(name).program.as_mut();
                if let Some(waiting) = program.and_then(|p| p.waiting.remove(&ticket)) {
                    self.answered(name, (ticket, waiting), answer);
                }
            }
            MemberAction::Hint(likely) => {
                let likely: Vec<String> =
                    likely.iter().map(|place| names::page(place.page)).collect();
                self.say(&format!("        {name} may want {}", likely.join(" ")));
            }
            MemberAction::Keep(batch) => {
                let what = effects::batch(&batch);
                let mark = batch.mark;
                self.say(&format!(
                    "        {name} writes batch {} of its log: {what}",
                    mark.0
                ));
                // The disk of a member is quick.
                let disk = &mut self.node(name).disk;
                disk.append(batch);
                disk.sync(usize::MAX);
                let header = format!("{name} has that on its disk");
                let kept = Given::Member(MemberCommand::Kept(mark));
                self.later(name, header, kept);
            }
            MemberAction::Rejected(update, refusal) => {
                let update = Pen(&self.people).update_id(update.id);
                self.say(&format!(
                    "        {name} is told that {update} is rejected: {refusal}"
                ));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.rejected.push(update);
                }
            }
            MemberAction::WentBack(home) => {
                let home = names::of_home(home);
                self.say(&format!("        {name} forgets {home}what it had"));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.went_back += 1;
                }
            }
            // The message shows it.
            MemberAction::StreamBegan { name: home, .. } => {
                if let Some(program) = self.node(name).program.as_mut() {
                    program.begun.insert(home);
                }
            }
            MemberAction::HomesTold { homes, .. } => {
                let Some(program) = self.node(name).program.as_mut() else {
                    return;
                };
                let lost = homes.names.into_iter();
                let lost: Vec<String> = lost.filter(|home| !program.begun.contains(home)).collect();
                program.lost.clone_from(&lost);
                self.say(&format!(
                    "        {name} does not reach: {}",
                    lost.join(" ")
                ));
            }
            MemberAction::Joined(place) => {
                let page = names::page(place.page);
                self.say(&format!("        {name} shares {page}"));
            }
            MemberAction::Locked { home, fence, .. } => {
                if let Some(program) = self.node(name).program.as_mut() {
                    program.locks.retain(|known| *known != (home, fence));
                    program.locks.push((home, fence));
                }
            }
            MemberAction::LockLost { home, fence } => {
                self.say(&format!(
                    "        {name} hears that {} is over",
                    lock(fence)
                ));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.locks.retain(|known| *known != (home, fence));
                }
            }
            // The other actions and messages show these.
            MemberAction::Named(..)
            | MemberAction::Showing(_)
            | MemberAction::Arrived(..)
            | MemberAction::Evicted
            | MemberAction::StreamEnded(_) => {}
        }
    }

    fn send(&mut self, name: &str, edge: EdgeId, mut message: Message) {
        if let Message::Claims(claims) = &mut message
            && let Some((_, far)) = self.making_up.take_if(|(who, _)| who == name)
        {
            *claims = forging::made_up(far);
        }
        let text = Pen(&self.people).message(&message);
        let is_shown = self.shows_receipts || !is_receipt(&message);
        let ends = self.edges.get(&edge).cloned();
        let Some((parent, child)) = ends.filter(|_| !self.half_open.contains(&edge)) else {
            return self.say(&format!("        {name} -> nobody: {text}"));
        };
        let to = if parent == name { child } else { parent };
        if is_shown {
            self.say(&format!("        {name} -> {to}: {text}"));
        }
        self.post(name, &to, (edge, message));
    }

    fn answered(&mut self, name: &str, (ticket, waiting): (RequestId, Waiting), answer: Response) {
        match (waiting, answer) {
            (Waiting::Commit(at, transaction), Response::Shown(id)) => {
                let shown = Pen(&self.people).id(id);
                self.say(&format!("        {name} goes on: {shown} is shown"));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.goes_ahead(&transaction, id);
                    program
                        .waiting
                        .insert(ticket, Waiting::Commit(at, transaction));
                }
            }
            (Waiting::Read(transaction, object), Response::Fetched(_)) => {
                self.read(name, &transaction, object);
            }
            (Waiting::Fetch(page), Response::Fetched(_)) => {
                self.say(&format!("        {name} has {}", names::page(page)));
            }
            (Waiting::Commit(at, transaction), Response::Outcome(id, outcome, _)) => {
                let of = Pen(&self.people).id(id);
                let said = text::outcome(&outcome);
                self.say(&format!("        {name} hears: {of} {said}"));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.ended(at, &transaction, id, &outcome);
                    for patient in program.take_patient() {
                        self.commit(name, &patient, How::OnceAnswered);
                    }
                }
            }
            (Waiting::Promise(transaction), Response::Called(result)) => {
                self.called(name, None, &result);
                let node = self.node(name);
                let program = node.program.as_ref();
                let is_open = program.is_some_and(|p| p.state(&transaction) == "open");
                let mut waiting = program.into_iter().flat_map(|p| p.waiting.values());
                let is_last =
                    !waiting.any(|w| matches!(w, Waiting::Promise(t) if *t == transaction));
                if is_open && is_last {
                    self.commit(name, &transaction, How::Plainly);
                }
            }
            (Waiting::Call(token), Response::Called(result)) => {
                self.called(name, token, &result);
            }
            (Waiting::Call(_), Response::Unwatched { segment, .. }) => {
                let said = format!("not watched {}", names::segment(segment));
                self.say(&format!("        {name} hears: {said}"));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.called = said;
                }
            }
            (_, answer) => {
                let said = updates::response(&Pen(&self.people), &answer);
                let said = said.unwrap_or_else(|| format!("{answer:?}"));
                self.say(&format!("        {name} hears: {said}"));
                if let Some(program) = self.node(name).program.as_mut() {
                    program.called = said;
                }
            }
        }
    }

    fn called(
        &mut self,
        name: &str,
        token: Option<u64>,
        result: &Result<CallResponse, thorp_model::CallError>,
    ) {
        let said = match result {
            Ok(response) => Pen(&self.people).response(response),
            Err(error) => error.to_string(),
        };
        self.say(&format!("        {name} hears: {said}"));
        let Some(program) = self.node(name).program.as_mut() else {
            return;
        };
        program.called = said;
        if let (Some(token), Ok(CallResponse::Staged(overflow))) = (token, result) {
            program.staged.insert(token, *overflow);
        }
    }

    /// Writes a line down.
    pub(crate) fn say(&mut self, line: &str) {
        if !self.quiet {
            writeln!(self.said, "{line}").expect("strings take all");
        }
    }

    /// The names of all nodes of a kind.
    pub(crate) fn of_kind(&self, kind: NodeKind) -> Vec<String> {
        let nodes = self.nodes.values().filter(|node| node.kind == kind);
        nodes.map(|node| node.name.clone()).collect()
    }
}
