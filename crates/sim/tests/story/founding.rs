//! How a village begins: `village H(R(m0 m1) R2(m2)) where P.x=a Q.z=b with R.cache=0`, or with
//! several homes `village H1(R(m0) H2) H2(R H1) where P.x=a s2:P.y=b with H2.wall=90000`.
//! Nothing of this is written down: every story begins with streams that stand
//! at one position, and with members that the home has registered.

use super::names::{self, Homes};
use super::node::{Machine, Node, WALL_MS_FIRST};
use super::village::Village;
use std::collections::BTreeMap;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::{
    Action, CallId, CallRequest, CommitId, CommitRequest, Direction, EdgeId, Event, HomeId,
    MemberId, Message, NewValue, NodeKind, Now, Outbox, PageId, PageWrites, Part, Peer, Position,
    Registration, SegmentId, Slot, StateMachine, Up, WriteOp, message,
};
use thorp_protocol::{Home, HomeAction, HomeCommand};

/// The edge and the id of the member who made the first objects and left.
const FOUNDER_EDGE: EdgeId = EdgeId(u64::MAX);
const FOUNDER: MemberId = MemberId(u128::MAX);

/// Founds a village.
pub(crate) fn found(village: &mut Village, line: &str) {
    village.quiet = true;
    let (line, limits) = line.split_once(" with ").unwrap_or((line, ""));
    let (tree, objects) = line.split_once(" where ").unwrap_or((line, ""));
    let pairs = parse_tree(tree);
    for (parent, child) in &pairs {
        for name in [parent, child] {
            let node = village.nodes.entry(name.clone());
            node.or_insert_with(|| Node::new(name));
        }
    }
    let homes = village.of_kind(NodeKind::Home);
    let homes = homes.iter().map(|home| village.node(home).home());
    let homes = Homes(homes.collect());
    for node in village.nodes.values_mut() {
        node.homes = homes.clone();
    }
    for (parent, child) in &pairs {
        if village.node(parent).kind == NodeKind::Home {
            // Only homes look at this.
            village.node(child).other_homes.push(parent.clone());
        }
    }
    set_limits(village, limits);
    for home in village.of_kind(NodeKind::Home) {
        village.start(&home);
        make_objects(village, &home, objects);
    }
    for (parent, child) in &pairs {
        if village.machine(child).is_none() {
            village.start(child);
        }
        village.connect(parent, child);
        village.settle(true, &[]);
    }
    village.wait(0);
    village.settle(true, &[]);
    village.quiet = false;
}

/// Parents and children of `H(R(m0 m1) m2)`, parents first.
fn parse_tree(tree: &str) -> Vec<(String, String)> {
    let spaced = tree.replace('(', " ( ").replace(')', " ) ");
    let mut pairs = Vec::new();
    let mut parents: Vec<String> = Vec::new();
    let mut last = String::new();
    for word in spaced.split_whitespace() {
        match word {
            "(" => parents.push(last.clone()),
            ")" => {
                parents.pop().expect("as many ) as (");
            }
            name => {
                last = String::from(name);
                if let Some(parent) = parents.last() {
                    pairs.push((parent.clone(), last.clone()));
                }
            }
        }
    }
    pairs
}

fn set_limits(village: &mut Village, limits: &str) {
    for limit in limits.split_whitespace() {
        let (name, number) = limit.split_once('=').expect("NODE.limit=number");
        let (node, name) = name.split_once('.').expect("NODE.limit=number");
        let number: u64 = number.parse().expect("a limit is a number");
        if name == "wall" {
            village.node(node).wall_ms_ahead = number as i64 - WALL_MS_FIRST as i64;
            continue;
        }
        village.node(node).limits.insert(String::from(name), number);
    }
}

/// One member made segment `s` and these objects, and left.
fn make_objects(village: &mut Village, home: &str, objects: &str) {
    let now = village.node(home).now(0);
    let node = village.node(home);
    let (id, homes) = (node.home(), node.homes.clone());
    let Some(Machine::Home(machine)) = node.machine.as_mut() else {
        return;
    };
    let mut founder = Founder {
        home: machine,
        now,
        disk: &mut node.disk,
        calls: 0,
        id,
        homes,
    };
    founder.sync();
    founder.tell(Event::Connected {
        edge: FOUNDER_EDGE,
        direction: Direction::Down,
        peer: Peer {
            kind: NodeKind::Member,
            node: FOUNDER,
            name: String::from("founder"),
            is_operator: false,
            is_carried: false,
        },
    });
    founder.tell(Event::Received {
        edge: FOUNDER_EDGE,
        message: Message::Claims(Vec::new()),
    });
    founder.call(CallRequest::Register(None));
    // Segments are counted at each home: this one's has the home's own number.
    for number in 1..=id.0 {
        let path = match number == id.0 {
            true => String::from("s"),
            false => format!("unused {number}"),
        };
        founder.call(CallRequest::Open { path, create: true });
    }
    founder.call(CallRequest::Reserve {
        segment: SegmentId(id.0),
        pages: EXTENT_PAGES,
    });
    founder.commit(objects);
    founder.tell(Event::Disconnected { edge: FOUNDER_EDGE });
}

struct Founder<'a> {
    home: &'a mut Home,
    now: Now,
    disk: &'a mut super::disk::Disk,
    calls: u64,
    id: HomeId,
    homes: Homes,
}

impl Founder<'_> {
    fn tell(&mut self, event: Event<HomeCommand>) {
        let mut outbox = Outbox::new();
        self.home.handle(self.now, event, &mut outbox);
        let mut loads = Vec::new();
        for action in outbox.actions {
            match action {
                Action::Role(HomeAction::Append(batch)) => self.disk.append(batch),
                Action::Role(HomeAction::Load(page)) => loads.push(page),
                _ => {}
            }
        }
        self.sync();
        for page in loads {
            let result = self.disk.load(page);
            self.tell(Event::Command(HomeCommand::Loaded { page, result }));
        }
    }

    fn sync(&mut self) {
        if let Some(mark) = self.disk.sync(usize::MAX) {
            self.tell(Event::Command(HomeCommand::Durable(mark)));
        }
    }

    fn send(&mut self, message: Up) {
        self.tell(Event::Received {
            edge: FOUNDER_EDGE,
            message: Message::Up(message),
        });
    }

    fn call(&mut self, request: CallRequest) {
        self.calls += 1;
        let call = CallId {
            member: FOUNDER,
            number: self.calls,
        };
        self.send(Up::Call(message::Call {
            call,
            home: self.id,
            request,
        }));
    }

    fn commit(&mut self, objects: &str) {
        let mut writes: BTreeMap<PageId, BTreeMap<Slot, WriteOp>> = BTreeMap::new();
        for word in objects.split_whitespace() {
            let (name, value) = word.split_once('=').expect("OBJECT=value");
            let (object, generation) = names::object_id(name).expect("an object");
            if self.homes.of(object.page.segment) != self.id {
                continue;
            }
            let value = NewValue::Inline(names::bytes_of(value).into());
            let op = WriteOp::Create { generation, value };
            writes
                .entry(object.page)
                .or_default()
                .insert(object.slot, op);
        }
        let writes = writes.into_iter().map(|(page, slots)| PageWrites {
            page,
            slots: slots.into_iter().collect(),
        });
        let part = Part {
            home: self.id,
            evidence: Position(u64::from(self.id.0)),
            reads: Vec::new(),
            writes: writes.collect(),
            under: None,
        };
        self.send(Up::Commit(CommitRequest {
            id: CommitId {
                member: FOUNDER,
                sequence: 1,
            },
            registration: Registration(1),
            part,
            with: Vec::new(),
            depends_on: Vec::new(),
            after: thorp_model::Stamp::default(),
        }));
    }
}
