//! A home, a redirector and a member are sent whatever decodes, by children and
//! parents that keep to no rule at all: none of them may panic, and what they
//! send can be encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::Mutex;
use thorp_model::codec::{decode, encode};
use thorp_model::{StateMachine, Direction, Action, Event, LoadResult, Outbox, EdgeId, HomeId, MemberId, Millis, NodeKind, Now, PageId, Peer, Op, Reader, Scan, StorageError, Table};
use thorp_protocol::{Home, HomeConfig, Member, MemberConfig, Redirector, RedirectorConfig};

#[derive(Default)]
struct Disk(Mutex<BTreeMap<(Table, Vec<u8>), Vec<u8>>>);

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
    cores: Vec<Box<dyn StateMachine>>,
    disk: Disk,
    now: u64,
}

impl World {
    fn new() -> Self {
        let node = MemberId(1);
        let disk = Disk::default();
        let mut out = Outbox::new();
        let mut config = HomeConfig::new(HomeId(1), "h".into(), node);
        config.mob_bytes_high = 1;
        let home = Home::open(config, &disk, Now::default(), &mut out).expect("an empty disk");
        let redirector = Redirector::new(RedirectorConfig::new(node, "r".into()));
        let member = Member::new(MemberConfig::new(node, "m".into()));
        let mut world = World {
            cores: vec![Box::new(home), Box::new(redirector), Box::new(member)],
            disk,
            now: 0,
        };
        world.work(0, out);
        for core in 0..3 {
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
                };
                let edge = EdgeId(edge as u64);
                world.handle(core, Event::Connected { edge, direction, peer });
            }
        }
        world
    }

    fn handle(&mut self, core: usize, input: Event) {
        self.now += 100;
        let now = Now {
            mono: Millis(self.now),
            wall: Millis(self.now),
        };
        let mut out = Outbox::new();
        self.cores[core].handle(now, input, &mut out);
        self.work(core, out);
    }

    fn work(&mut self, core: usize, out: Outbox) {
        for effect in out.effects {
            match effect {
                Action::Send(_, message) => {
                    encode(&message).expect("what is sent can be encoded");
                }
                Action::Append(batch) => {
                    for op in batch.ops {
                        self.write(op);
                    }
                    self.handle(core, Event::Durable(batch.mark));
                }
                Action::Load(page) => self.load(core, page),
                _ => {}
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

    fn load(&mut self, core: usize, page: PageId) {
        let key = thorp_model::records::page_key(page);
        let value = self.disk.get(Table::Pages, &key).expect("it cannot fail");
        let image = value.map(|value| {
            thorp_model::records::decode_page(&key, &value).expect("the home wrote it")
        });
        let result = LoadResult::Found(image);
        self.handle(core, Event::Loaded { page, result });
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut world = World::new();
    let mut rest = bytes;
    // A byte says who is sent it and on which edge, another how long it is.
    while let [to, length, more @ ..] = rest {
        let (message, after) = more.split_at(more.len().min(usize::from(*length)));
        rest = after;
        let core = usize::from(to % 3);
        let edge = EdgeId(u64::from(to / 3 % 5));
        match decode(message) {
            Ok(message) => world.handle(core, Event::Received { edge, message }),
            Err(_) => world.handle(core, Event::Tick),
        }
    }
});
