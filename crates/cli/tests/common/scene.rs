//! What an example needs: a village of its own, and what is there before.

use super::database::{self, Database};
use super::dev_village::{DevVillage, User, document, stopped_home};
use super::shop;
use super::two_homes;
use super::votes::leave_a_vote;
use std::fs;
use std::process::Command;
use tempfile::TempDir;
use thorp_testing::{Intruder, Process, eventually, finish};

/// What is done before the examples of a command, whose name begins so. `$STOPPED` is the directory of a stopped home.
const BEFORE: [(&str, &str); 42] = [
    ("context add", ANNA),
    ("context rm", ANNA),
    (
        "context rm",
        "thorp context add alps --via alps:7420 --identity anna-identity",
    ),
    ("home", "thorp invite dale --role home --out dale-identity"),
    (
        "site",
        "thorp invite office --role site --out office-identity",
    ),
    ("site", "thorp invite office-log --out office-log"),
    ("invite", "thorp ca init village"),
    ("join", "thorp context rm dev"),
    ("ca", "thorp ca init village"),
    ("ca init", "thorp ca init alps/authority"),
    ("ca revoke", ANNA),
    ("check", "cp -a \"$STOPPED\" alps"),
    ("salvage", "cp -a \"$STOPPED\" alps"),
    (
        "confirm",
        "thorp salvage \"$STOPPED\" alps; thorp salvage \"$STOPPED\" closed",
    ),
    (
        "confirm",
        "thorp invite olga --role operator --dir \"$STOPPED\" --out olga",
    ),
    ("inspect", HELLO),
    ("rm", HELLO),
    (
        "rm",
        "thorp put thorp://dev/a --text a; thorp put thorp://dev/b --text b",
    ),
    ("get", HELLO),
    ("cp", HELLO),
    (
        "cp",
        "thorp put thorp://dev/plans --text plan; thorp get 'thorp://dev/plans#1.0.1'",
    ),
    ("mv", HELLO),
    (
        "mv",
        "thorp put thorp://dev/notes --text a; thorp get 'thorp://dev/notes#2.0.1'",
    ),
    ("root", HELLO),
    ("shell", HELLO),
    ("shell", "printf 'ls\nget --root greeting\n' > script"),
    ("dump", HELLO),
    (
        "load",
        "thorp put thorp://dev/notes --text hello; thorp dump thorp://dev/notes notes.jsonl",
    ),
    ("watch", HELLO),
    ("web", "printf '[tables]\n' > shop.toml; : > auction.toml"),
    ("web", "printf '[[routes]]\npath = \"/\"\n' > pages.toml"),
    (
        "web",
        "printf 'origins = [\"http://127.0.0.1:8000\"]\n' > web.toml",
    ),
    ("put", "echo plan > plan.pdf"),
    (
        "updates",
        "thorp put thorp://dev/notes --root greeting --text hello; thorp put thorp://dev/notes --root greeting --text hi --consistency eventual --log notes-log",
    ),
    ("rights", "thorp put thorp://dev/plans --text plan"),
    (
        "lock",
        "thorp put thorp://dev/plans --text plan; thorp put thorp://dev/parts --text part; printf '#!/bin/sh\nthorp put thorp://dev/plans --text next\n' > renumber.sh; chmod +x renumber.sh",
    ),
    (
        "rights revoke",
        "thorp rights grant thorp://dev/plans carry site",
    ),
    (
        "audit",
        "thorp put thorp://dev/plans --text plan; thorp rights grant thorp://dev/plans read anna",
    ),
    // The home writes it a little later.
    ("audit", "until thorp audit dev --identity olga; do :; done"),
    (
        "group",
        "thorp group add thorp://dev/@staff anna ben --identity olga",
    ),
    ("ifc export", "thorp ifc import house.ifc thorp://dev/house"),
    (
        "completions",
        "mkdir -p .zfunc .local/share/bash-completion/completions .config/fish/completions",
    ),
];
const ANNA: &str = "thorp invite anna --out anna-identity";
const HELLO: &str = "thorp put thorp://dev/notes --text hello --root greeting";
/// Who has an operator `olga` in the village.
const WITH_OLGA: [&str; 3] = ["audit", "group", "doubt"];

/// Commands that go on until they are stopped, and what a test adds to them: no port that another test could have, and
/// no life after the test's.
const GOES_ON: [(&str, &str); 8] = [
    ("thorp dev", "--until-stdin-closes"),
    (
        "thorp home",
        "--listen 127.0.0.1:0 --http 127.0.0.1:0 --until-stdin-closes",
    ),
    (
        "thorp site",
        "--listen 127.0.0.1:0 --http 127.0.0.1:0 --until-stdin-closes",
    ),
    ("thorp ca serve", "--until-stdin-closes"),
    ("thorp watch", ""),
    ("thorp web watchdog", "--until-stdin-closes"),
    ("thorp web keeper", "--until-stdin-closes"),
    ("thorp web", "--listen 127.0.0.1:0 --until-stdin-closes"),
];

/// Commands beside `thorp web` that end. Their examples need a database.
const OF_DATABASE: [&str; 3] = ["web setup", "web check", "web status"];

/// One that ends and needs none.
const OF_REQUESTS: &str = "web updates";

/// Commands beside `thorp web` that ask a proxy.
const OF_PROXY: [&str; 1] = ["web why"];

/// Whether this machine lacks what the examples of a command need. It says so.
pub(crate) fn is_lacking(command: &str) -> bool {
    let lacks = OF_DATABASE.contains(&command) && !database::is_there();
    if lacks {
        thorp_testing::report_skipped(env!("CARGO_CRATE_NAME"), "a PostgreSQL server");
    }
    lacks
}

/// A village, and what stands for addresses and tokens of the examples.
pub(crate) struct Scene {
    // They end before their directories go.
    running: Vec<Box<dyn std::any::Any>>,
    user: User,
    stopped: TempDir,
    replaced: Vec<(&'static str, String)>,
}

impl Scene {
    pub(crate) fn of(command: &str) -> Self {
        let mut scene = match command {
            "dev" => Scene::empty(User::new()),
            _ => Scene::in_village(DevVillage::start()),
        };
        scene.write_files();
        let is_for = |begins: &str| format!("{command} ").starts_with(&format!("{begins} "));
        let olga = WITH_OLGA.iter().any(|begins| is_for(begins));
        let olga = olga.then_some("thorp invite olga --role operator --out olga");
        if ["check", "salvage", "confirm"].contains(&command) {
            stopped_home(scene.stopped.path());
        }
        let before = BEFORE.iter().filter(|(begins, _)| is_for(begins));
        for script in olga.into_iter().chain(before.map(|(_, script)| *script)) {
            let said = finish(scene.shell(script));
            assert_eq!(
                said.code, 0,
                "{command}: {script}\n{}{}",
                said.out, said.err
            );
        }
        match command {
            "confirm" => scene.run_closed_home(),
            "web setup" => scene.run_database(),
            "web check" => scene.set_up_database(),
            "web status" => {
                scene.run_keeper();
                scene.run_keeper_of_requests();
                scene.run_proxy();
            }
            OF_REQUESTS => scene.run_keeper_of_requests(),
            "web why" => scene.run_proxy(),
            "doubt settle" => scene.leave_in_doubt(),
            _ => {}
        }
        scene
    }

    fn empty(user: User) -> Self {
        Scene {
            user,
            stopped: tempfile::tempdir().unwrap(),
            // Each with contexts of its own.
            replaced: vec![(
                "thorp dev",
                "env XDG_CONFIG_HOME=$PWD/$$ thorp dev".to_owned(),
            )],
            running: Vec::new(),
        }
    }

    fn in_village(village: DevVillage) -> Self {
        let at = |part| village.address(part).to_owned();
        let token = "thorp invite node-$$ --dir thorp-dev --via SITE | grep -o 'thorp2-[^ ]*'";
        let replaced = vec![
            ("127.0.0.1:7420", at("home")),
            ("127.0.0.1:7421", at("site")),
            ("127.0.0.1:7430", village.http(0).to_owned()),
            ("localhost:7431", village.http(1).to_owned()),
            ("127.0.0.1:7440", "127.0.0.1:0".to_owned()),
            ("127.0.0.1:7432", "127.0.0.1:0".to_owned()),
            (
                "thorp2-…",
                format!("$({})", token.replace("SITE", &at("site"))),
            ),
        ];
        let DevVillage { user, dev, .. } = village;
        Scene {
            replaced,
            running: vec![Box::new(dev)],
            ..Scene::empty(user)
        }
    }

    /// Files that the examples name, and a stand-in for a Python that has ifcopenshell.
    fn write_files(&self) {
        let write = |name: &str, bytes: &[u8]| fs::write(self.user.path(name), bytes).unwrap();
        write("house.ifc", super::MODEL.as_bytes());
        let recorded = |who: &str| {
            let row = |at| format!("{at},{who},read,7/{},8192\n", at % 9);
            let rows: String = (0..90).map(row).collect();
            format!("time_us,client,op,object,size\n{rows}")
        };
        write("anna.csv", recorded("anna").as_bytes());
        write("ben.csv", recorded("ben").as_bytes());
        let pages: String = (0..200).map(|n| format!("page-{}\n", n % 100)).collect();
        write("blocks.txt", pages.as_bytes());
        write("w106.oracleGeneral.zst", &zstd(&oracle(200)));
        let script = "gzip blocks.txt; printf '#!/bin/sh\\n' > python; chmod +x python";
        assert_eq!(finish(self.user.shell(script)).code, 0);
    }

    /// The home `alps`, which a salvaged store has closed.
    fn run_closed_home(&mut self) {
        let at = format!("unix:{}", self.user.path("closed.sock").display());
        let home = "exec thorp home --name alps --dir closed --identity \"$STOPPED/identity\"";
        let flags = "--http 127.0.0.1:0 --until-stdin-closes";
        let process = Process::start(self.shell(&format!("{home} --listen {at} {flags}")));
        process.ready();
        self.replaced = vec![("127.0.0.1:7420", at)];
        self.running.push(Box::new(process));
    }

    /// The home `alps` is in doubt about a transaction, and the other home of it is gone.
    fn leave_in_doubt(&mut self) {
        let dir = self.user.path("two");
        fs::create_dir(&dir).unwrap();
        let mut village = two_homes::Village::start(&dir);
        let member = village.join(3);
        let notes = member.create("thorp://alps/notes").unwrap();
        let object = member.transact(|tx| tx.create(&notes, "old")).unwrap();
        two_homes::found(&member, "bank", 2, two_homes::BALANCE);
        village.eventually_no_doubt();
        let homes = member.homes();
        let dale = homes.iter().find(|home| home.name == "dale").unwrap().id;
        village.kill(1);
        let alps = village.home(0).via.clone();
        let mut lost = Intruder::enter(village.identity(), &alps);
        let commit = leave_a_vote(&mut lost, dale, (1, &object));
        let olga = village.operator(&dir);
        self.replaced = vec![
            ("9b0b94badc64ae45:17", commit.to_string()),
            ("127.0.0.1:7420", alps),
            ("--identity olga", format!("--identity {olga}")),
        ];
        self.running.push(Box::new(village));
    }

    /// A database `shop`.
    fn run_database(&mut self) {
        let database = Database::start();
        let at = database.address();
        self.replaced = vec![
            ("postgresql://postgres@localhost/shop", at.clone()),
            ("postgresql:///shop", at),
        ];
        self.running.push(Box::new(database));
    }

    /// A database that a keeper can follow.
    fn set_up_database(&mut self) {
        self.run_database();
        self.run("thorp web setup --postgres postgresql:///shop --recipe shop.toml --apply");
    }

    /// A database with a keeper that is live.
    fn run_keeper(&mut self) {
        self.set_up_database();
        let keeper = "thorp web keeper --postgres postgresql:///shop --recipe shop.toml";
        let process = self.start(keeper).unwrap();
        process.ready();
        // It ends before its database.
        self.running.insert(0, Box::new(process));
        eventually("the keeper is live", || {
            let status = "thorp web status --postgres postgresql:///shop";
            finish(self.shell(&self.with_what_is_here(status))).code == 0
        });
    }

    /// A keeper of requests that is live. No keeper was before it.
    fn run_keeper_of_requests(&mut self) {
        let process = self
            .start("thorp web keeper --requests --request-seconds 1")
            .unwrap();
        process.ready();
        self.running.insert(0, Box::new(process));
        eventually("the keeper of requests is live", || {
            finish(self.shell("thorp web status --requests")).code == 0
        });
    }

    /// A proxy with an operator's port, which has stored an answer.
    fn run_proxy(&mut self) {
        let origin = shop::origin("Cache-Control: max-age=600", "an item");
        let flags = "--listen 127.0.0.1:0 --status 127.0.0.1:0 --json --until-stdin-closes";
        let line = format!("exec thorp web --origin {origin} {flags}");
        let process = Process::start(self.shell(&line));
        let document = document(&process);
        let at = |part: &str| document[part].as_str().unwrap().to_owned();
        let (address, status) = (at("address"), at("status"));
        shop::get(&address, &address);
        self.replaced.retain(|(from, _)| *from != "127.0.0.1:7432");
        self.replaced.push(("127.0.0.1:8080", address));
        self.replaced.push(("127.0.0.1:7432", status));
        self.running.insert(0, Box::new(process));
    }

    fn run(&self, script: &str) {
        let said = finish(self.shell(&self.with_what_is_here(script)));
        assert_eq!(said.code, 0, "{script}\n{}{}", said.out, said.err);
    }

    /// Starts an example that goes on until it is stopped; None of any other.
    pub(crate) fn start(&self, example: &str) -> Option<Process> {
        let ends = |command: &&str| example.starts_with(&format!("thorp {command}"));
        let mut that_end = OF_DATABASE.iter().chain(&OF_PROXY).chain([&OF_REQUESTS]);
        if that_end.any(ends) {
            return None;
        }
        let is_it = |begins: &str| example.starts_with(begins) && !example.contains(PRINTS);
        let (_, more) = GOES_ON.iter().find(|(begins, _)| is_it(begins))?;
        let line = self.with_what_is_here(example);
        // The comment goes, so that more can be added.
        let line = line.split("  #").next().unwrap();
        Some(Process::start(self.shell(&format!("exec {line} {more}"))))
    }

    /// The example with the addresses and tokens of this village.
    pub(crate) fn with_what_is_here(&self, example: &str) -> String {
        let replace = |line: String, (from, to): &(&str, String)| line.replace(from, to);
        self.replaced.iter().fold(example.to_owned(), replace)
    }

    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.user.shell(script);
        command
            .env("STOPPED", self.stopped.path().join("home"))
            .env("THORP_PYTHON", self.user.path("python"));
        command
    }
}

/// A home does not start with that.
pub(crate) const PRINTS: &str = "--print-config";

/// So many requests as the library libCacheSim writes them.
fn oracle(count: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..count {
        bytes.extend(at.to_le_bytes());
        bytes.extend(u64::from(at % 50).to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    bytes
}

/// One frame of one block that is not compressed (RFC 8878).
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    let is_last = 1;
    let block = is_last | len << 3;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend(len.to_le_bytes());
    frame.extend(&block.to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}
