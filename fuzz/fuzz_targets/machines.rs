//! A home, a redirector and a member are sent whatever decodes, by children and
//! parents that keep to no rule at all: none of them may panic, and what they
//! send can be encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;
use thorp_model::codec::{decode, encode};
use thorp_model::{
    Action, Direction, EdgeId, Event, HomeId, MemberId, Millis, NodeKind, Now, Op, Outbox, PageId,
    Peer, Reader, Scan, StateMachine, StorageError, Table,
};
use thorp_protocol::{
    Home, HomeAction, HomeCommand, HomeConfig, LoadResult, Member, MemberConfig, Redirector,
    RedirectorConfig,
};

type Records = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

#[derive(Default)]
struct Disk(Mutex<Records>);

impl Reader for Disk {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let disk = self.0.lock().expect("one thread");
        Ok(disk.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        _: Table,
        _: &[u8],
        _: &[u8],
        _: &mut dyn FnMut(&[u8], &[u8]) -> Scan,
    ) -> Result<(), StorageError> {
        Ok(())
    }
}

struct World {
    home: Home,
    redirector: Redirector,
    member: Member,
    disk: Disk,
    now: u64,
}

impl World {
    fn new() -> Self {
        let node = MemberId(1);
        let disk = Disk::default();
        let mut outbox = Outbox::new();
        let mut config = HomeConfig::new(HomeId(1), "h".into(), node);
        config.mob_bytes_high = 1;
        let home = Home::open(config, &disk, Now::default(), &mut outbox).expect("an empty disk");
        let redirector = Redirector::new(RedirectorConfig::new(node, "r".into()));
        let member = Member::new(MemberConfig::new(node, "m".into()));
        let mut world = World {
            home,
            redirector,
            member,
            disk,
            now: 0,
        };
        world.work(outbox);
        for node in 0..3 {
            for (edge, direction, kind) in [
                (1, Direction::Down, NodeKind::Member),
                (2, Direction::Down, NodeKind::Redirector),
                (3, Direction::Up, NodeKind::Redirector),
                (4, Direction::Up, NodeKind::Home),
            ] {
                let peer = Peer {
                    kind,
                    node: MemberId(u128::from(edge as u64) + 1),
                    name: String::new(),
                    is_operator: false,
                    is_carried: false,
                };
                let edge = EdgeId(edge as u64);
                world.handle(
                    node,
                    Event::Connected {
                        edge,
                        direction,
                        peer,
                    },
                );
            }
        }
        world
    }

    fn now(&mut self) -> Now {
        self.now += 100;
        Now {
            mono: Millis(self.now),
            wall: Millis(self.now),
        }
    }

    /// Hands an event to the home (0), the redirector (1) or the member (2).
    fn handle(&mut self, node: usize, event: Event<Infallible>) {
        if node == 0 {
            return self.hand_to_home(event.for_role());
        }
        let now = self.now();
        match node {
            1 => check(run(&mut self.redirector, now, event)),
            _ => check(run(&mut self.member, now, event.for_role())),
        }
    }

    fn hand_to_home(&mut self, event: Event<HomeCommand>) {
        let now = self.now();
        let outbox = run(&mut self.home, now, event);
        self.work(outbox);
    }

    fn work(&mut self, outbox: Outbox<HomeAction>) {
        for action in outbox.actions {
            match action {
                Action::Role(HomeAction::Append(batch)) => {
                    for op in batch.ops {
                        self.write(op);
                    }
                    self.hand_to_home(Event::Command(HomeCommand::Durable(batch.mark)));
                }
                Action::Role(HomeAction::Load(page)) => self.load(page),
                other => check_one(other),
            }
        }
    }

    fn write(&self, op: Op) {
        let mut disk = self.disk.0.lock().expect("one thread");
        match op {
            Op::Put { table, key, value } => disk.insert((table, key), value),
            Op::Delete { table, key } => disk.remove(&(table, key)),
        };
    }

    fn load(&mut self, page: PageId) {
        let key = thorp_model::records::page_key(page);
        let value = self.disk.get(Table::Pages, &key).expect("it cannot fail");
        let image = value.map(|value| {
            thorp_model::records::decode_page(&key, &value).expect("the home wrote it")
        });
        let result = LoadResult::Found(image);
        self.hand_to_home(Event::Command(HomeCommand::Loaded { page, result }));
    }
}

fn run<M: StateMachine>(machine: &mut M, now: Now, event: Event<M::Command>) -> Outbox<M::Action> {
    let mut outbox = Outbox::new();
    machine.handle(now, event, &mut outbox);
    outbox
}

fn check<A>(outbox: Outbox<A>) {
    outbox.actions.into_iter().for_each(check_one);
}

fn check_one<A>(action: Action<A>) {
    if let Action::Send(_, message) = action {
        encode(&message).expect("what is sent can be encoded");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    let mut rest = bytes;
    // A byte says who is sent it and on which edge, another how long it is.
    while let [to, length, more @ ..] = rest {
        let (message, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        let node = usize::from(to % 3);
        let edge = EdgeId(u64::from(to / 3 % 5));
        match decode(message) {
            Ok(message) => world.handle(node, Event::Received { edge, message }),
            Err(_) => world.handle(node, Event::Tick),
        }
    }
});
