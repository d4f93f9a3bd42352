//! Two homes, a site and members; accounts at both homes.

use super::thorp;
use std::path::{Path, PathBuf};
use thorp_client::{JoinConfig, Member, Ref, Result, Session, Transaction};
use thorp_testing::{HomeProcess, OF_A_TEST, PATIENCE, Process, eventually};

pub(crate) const NAMES: [&str; 2] = ["alps", "dale"];
/// Of each account, at first.
pub(crate) const BALANCE: i64 = 1000;
/// Every so manieth member joins straight at both homes.
const STRAIGHT: usize = 4;

/// From, to, how much.
pub(crate) type Transfer = (usize, usize, i64);

/// Two homes, the second let in by the first, and a site below both.
pub(crate) struct Village {
    dirs: [PathBuf; 2],
    knows: [bool; 2],
    /// Of both homes, at each start.
    flags: Vec<String>,
    pub(crate) homes: [Option<HomeProcess>; 2],
    identity: String,
    site: String,
    _site: Process,
}

impl Village {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_knowing(dir, [true; 2])
    }

    /// Homes that know each other, or do not.
    pub(crate) fn start_knowing(dir: &Path, knows: [bool; 2]) -> Self {
        Self::start_all(dir, knows, &[])
    }

    /// Homes that have these flags at each start.
    pub(crate) fn start_with(dir: &Path, flags: &[&str]) -> Self {
        Self::start_all(dir, [true; 2], flags)
    }

    fn start_all(dir: &Path, knows: [bool; 2], flags: &[&str]) -> Self {
        let dirs = NAMES.map(|name| dir.join(name));
        for dir in &dirs {
            std::fs::create_dir(dir).unwrap();
        }
        // A first home that is told of others gets its certificate before it starts.
        let authority = dirs[0].join("home/authority").display().to_string();
        assert_eq!(thorp().run(&["ca", "init", &authority]).code, 0);
        let invite = |name: &str, role: &str, out: &Path| {
            let said = thorp().run(&[
                "invite",
                name,
                "--role",
                role,
                "--dir",
                &authority,
                "--out",
                out.to_str().unwrap(),
            ]);
            assert_eq!(said.code, 0, "{}", said.err);
        };
        invite("alps", "home", &dirs[0].join("home/identity"));
        let alps = start_home(&dirs, 0, knows[0], flags);
        invite("dale", "home", &dirs[1].join("identity"));
        invite("valley", "site", &dir.join("valley"));
        let dale = start_home(&dirs, 1, knows[1], flags);
        let site = format!("unix:{}/site.sock", dir.display());
        let of_site = dir.join("valley").display().to_string();
        let identity = alps.identity.clone();
        let parents = [("alps", &alps), ("dale", &dale)];
        let parents = parents.map(|(name, home)| format!("--home={name}={}", home.via));
        let site_dir = dir.join("site").display().to_string();
        let mut command = thorp().command(&["site", "--dir", &site_dir, "--identity", &of_site]);
        command
            .args(["--listen", &site])
            .args(parents)
            .args(OF_A_TEST);
        let going = Process::start(command);
        going.ready();
        Village {
            dirs,
            knows,
            flags: flags.iter().map(|flag| String::from(*flag)).collect(),
            homes: [Some(alps), Some(dale)],
            identity,
            site,
            _site: going,
        }
    }

    /// Where the site listens.
    pub(crate) fn site(&self) -> &str {
        &self.site
    }

    /// The directory of an ordinary certificate.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn home(&self, which: usize) -> &HomeProcess {
        self.homes[which].as_ref().unwrap()
    }

    /// `kill -9`, and waiting for the end.
    pub(crate) fn kill(&mut self, which: usize) {
        self.homes[which] = None;
    }

    pub(crate) fn restart(&mut self, which: usize) {
        self.restart_with(which, &[]);
    }

    pub(crate) fn restart_with(&mut self, which: usize, flags: &[&str]) {
        let always = self.flags.iter().map(String::as_str);
        let flags: Vec<&str> = always.chain(flags.iter().copied()).collect();
        self.homes[which] = Some(start_home(&self.dirs, which, self.knows[which], &flags));
    }

    /// The directory of a home.
    pub(crate) fn home_dir(&self, which: usize) -> PathBuf {
        self.dirs[which].join("home")
    }

    /// The identity of a new operator.
    pub(crate) fn operator(&self, dir: &Path) -> String {
        let out = dir.join("olga").display().to_string();
        let authority = &self.home(0).authority;
        let invite = [
            "invite", "olga", "--role", "operator", "--dir", authority, "--out", &out,
        ];
        assert_eq!(thorp().run(&invite).code, 0);
        out
    }

    /// At the site; the last one straight at both homes.
    pub(crate) fn join(&self, number: usize) -> Member {
        self.join_with(number, |config| config)
    }

    /// The same, with other settings.
    pub(crate) fn join_with(
        &self,
        number: usize,
        set: impl FnOnce(JoinConfig) -> JoinConfig,
    ) -> Member {
        let config = match number % STRAIGHT {
            3 => JoinConfig::new(&self.home(0).via).and_home(&self.home(1).via),
            _ => JoinConfig::new(&self.site),
        };
        let config = config.identity(&self.identity).join_timeout(PATIENCE);
        Member::join(set(config.name(format!("member-{number}")))).unwrap()
    }

    /// A command whose program has joined at the site.
    pub(crate) fn out_at_site(&self, command: &[&str]) -> String {
        let at_site = ["--via", &self.site, "--identity", &self.identity];
        let said = thorp().run(&[command, &at_site].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    }

    pub(crate) fn agreement(&self, which: usize) -> serde_json::Value {
        let home = self.home(which);
        let said = thorp().run(&["status", &home.http, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        json["agreement"].clone()
    }

    /// The stores are whole just after a kill, by their own checksums.
    pub(crate) fn check(&mut self) {
        for which in 0..2 {
            self.kill(which);
            let report = thorp().run(&["check", self.dirs[which].join("home").to_str().unwrap()]);
            assert_eq!(report.code, 0, "{}{}", report.out, report.err);
            self.restart(which);
        }
    }

    pub(crate) fn eventually_no_doubt(&self) {
        for which in 0..2 {
            eventually("nothing is in doubt", || {
                self.agreement(which)["in_doubt"] == 0
            });
        }
    }
}

fn start_home(dirs: &[PathBuf; 2], which: usize, knows: bool, more: &[&str]) -> HomeProcess {
    let other = 1 - which;
    let way = format!("{}=unix:{}/home.sock", NAMES[other], dirs[other].display());
    let identity = dirs[which].join("identity").display().to_string();
    let mut flags = more.to_vec();
    if knows {
        flags.extend(["--other-home", &way]);
    }
    if which == 1 {
        flags.extend(["--identity", &identity]);
    }
    thorp().home_as(NAMES[which], &dirs[which], &flags)
}

/// Named objects, alternating between the homes.
pub(crate) fn found(member: &Member, path: &str, count: usize, value: i64) -> Vec<Ref<i64>> {
    let segments = NAMES.map(|name| member.open_or_create(&format!("thorp://{name}/{path}")));
    let segments = segments.map(Result::unwrap);
    let made = member.transact(|tx| {
        let made = (0..count).map(|n| tx.create_typed(&segments[n % 2], &value));
        made.collect()
    });
    made.unwrap()
}

/// What somebody sees who was not there before.
pub(crate) fn newest(village: &Village, accounts: &[Ref<i64>]) -> Vec<i64> {
    let all = |tx: &mut Transaction| accounts.iter().map(|account| tx.get(account)).collect();
    let strict = Session::new().strict(true).attempts_max(1000);
    village.join(3).transact_with(strict, all).unwrap()
}

pub(crate) fn pay(
    tx: &mut Transaction,
    accounts: &[Ref<i64>],
    (from, to, sum): Transfer,
) -> Result<()> {
    let rest = tx.get(&accounts[from])? - sum;
    tx.put(&accounts[from], &rest)?;
    let more = tx.get(&accounts[to])? + sum;
    tx.put(&accounts[to], &more)
}
