//! A reader, who does what a page says.

use crate::alike::{first_missing, stable};
use crate::markdown::Block;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use thorp_testing::Process;

/// A reader with a directory, a shell and terminals in which something goes on.
pub(crate) struct Reader {
    page: String,
    dir: TempDir,
    /// The address that stands for 127.0.0.1.
    here: String,
    terminals: BTreeMap<String, Terminal>,
    /// What the last block printed, if a `text` block may follow.
    printed: Option<String>,
}

/// A terminal in which a command goes on.
struct Terminal {
    process: Process,
    /// What was printed until the command was ready, and was looked for by no block yet.
    unread: VecDeque<String>,
}

impl Terminal {
    fn line(&mut self) -> String {
        let unread = self.unread.pop_front();
        unread.unwrap_or_else(|| self.process.line())
    }
}

impl Reader {
    /// Nobody else has the address: neither another page nor another run of this one.
    pub(crate) fn of_page(page: &str, number: usize) -> Self {
        let [high, low] = [std::process::id() >> 8 & 0xff, std::process::id() & 0xff];
        let dir = tempfile::tempdir().unwrap();
        let reader = Reader {
            page: page.to_owned(),
            here: format!("127.{}.{high}.{low}", 100 + number),
            dir,
            terminals: BTreeMap::new(),
            printed: None,
        };
        for directory in ["bin", "state", "work"] {
            fs::create_dir(reader.path(directory)).unwrap();
        }
        reader.install();
        fs::write(reader.path("state/env"), "").unwrap();
        let cwd = reader.work().display().to_string();
        fs::write(reader.path("state/cwd"), cwd).unwrap();
        reader
    }

    /// Does what a block says.
    pub(crate) fn read(&mut self, block: &Block) {
        let printed = self.printed.take();
        match (&*block.language, block.mark("terminal")) {
            ("sh", _) if !block.is_run() => {}
            ("sh", Some(terminal)) => self.printed = Some(self.start(terminal, block)),
            ("sh", None) => self.printed = Some(self.run(block)),
            ("text", _) if block.mark("example").is_some() => {}
            ("text", Some(terminal)) => self.wait_for(terminal, block),
            ("text", None) => self.compare(block, printed.as_deref()),
            _ => self.write(block),
        }
    }

    /// Ends what still runs.
    pub(crate) fn leave(mut self) {
        for terminal in self.terminals.keys().cloned().collect::<Vec<_>>() {
            self.stop(&terminal);
        }
    }

    /// Runs commands in the reader's shell, to their end; what they printed.
    fn run(&mut self, block: &Block) -> String {
        if let Some(terminal) = block.mark("stop") {
            self.stop(terminal);
        }
        let script = format!("{RESUME}\n{}", self.here(&block.text));
        let mut command = self.command("timeout");
        command.args([LONGEST, "sh", "-e", "-c", &script]);
        let ended = command.output().unwrap();
        let printed = String::from_utf8(ended.stdout).unwrap();
        let code = ended.status.code().unwrap_or(-1);
        let expected = block.mark("exit").map_or(0, |code| code.parse().unwrap());
        assert_eq!(code, expected, "{}\n{printed}", self.place(block));
        printed
    }

    /// Starts what goes on: the last command of the block. What it printed until it was ready.
    fn start(&mut self, terminal: &str, block: &Block) -> String {
        self.stop(terminal);
        let text = self.here(block.text.trim_end());
        let (before, last) = text.rsplit_once('\n').unwrap_or(("", &text));
        let mut command = self.command("sh");
        command.args(["-e", "-c", &format!("exec 2>&1\n{before}\nexec {last}")]);
        let process = Process::start(command);
        println!("{}", self.place(block));
        let mut lines = VecDeque::new();
        loop {
            let line = process.line();
            println!("{line}");
            let is_ready = READY.iter().any(|ready| line.starts_with(ready));
            lines.push_back(line);
            if is_ready {
                break;
            }
        }
        let printed = Vec::from_iter(lines.iter().cloned()).join("\n");
        let unread = lines;
        let started = Terminal { process, unread };
        self.terminals.insert(terminal.to_owned(), started);
        printed
    }

    /// As Ctrl-C does: a node ends in order.
    fn stop(&mut self, terminal: &str) {
        if let Some(Terminal { process, .. }) = self.terminals.remove(terminal) {
            assert_eq!(process.terminate(), 0, "{}: terminal {terminal}", self.page);
        }
    }

    fn wait_for(&mut self, terminal: &str, block: &Block) {
        for shown in block.text.lines() {
            println!("{}waits for: {shown}", self.place(block));
            loop {
                let line = self.terminals.get_mut(terminal).unwrap().line();
                println!("{line}");
                if stable(&self.shown(&line)) == stable(shown) {
                    break;
                }
            }
        }
    }

    fn compare(&self, block: &Block, printed: Option<&str>) {
        let Some(printed) = printed.map(|printed| self.shown(printed)) else {
            return;
        };
        let missing = first_missing(&block.text, &printed);
        assert_eq!(
            missing,
            None,
            "{}: printed was\n{printed}",
            self.place(block)
        );
    }

    fn write(&self, block: &Block) {
        if let Some(package) = block.mark("program") {
            let file = self.work().join(package).join("src/main.rs");
            fs::write(file, &block.text).unwrap();
        }
        if let Some(file) = block.mark("file") {
            let file = self.beside_shell(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &block.text).unwrap();
        }
    }

    /// A command with nothing of the environment of whoever runs the tests that `thorp` reads.
    fn command(&self, name: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.path("bin").display());
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(name);
        for variable in ["THORP_VIA", "THORP_IDENTITY", "THORP_CONTEXT", "THORP_HTTP"] {
            command.env_remove(variable);
        }
        command
            .current_dir(self.work())
            .env("PATH", path)
            .env("CHECKOUT", checkout.canonicalize().unwrap())
            .env("STATE", self.path("state"))
            .env("THORP_CONFIG", self.path("config"))
            // The program of a page is built from what the tests were built from.
            .env("CARGO_TARGET_DIR", env!("CARGO_TARGET_TMPDIR"))
            .env("CARGO_NET_OFFLINE", "true");
        command
    }

    /// Puts a `thorp` on the reader's path that is the one under test.
    fn install(&self) {
        let script = THORP
            .replace("BINARY", env!("CARGO_BIN_EXE_thorp"))
            .replace("HERE", &self.here);
        let file = self.path("bin/thorp");
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn here(&self, text: &str) -> String {
        text.replace(LOOPBACK, &self.here)
    }

    fn shown(&self, text: &str) -> String {
        text.replace(&self.here, LOOPBACK)
    }

    fn place(&self, block: &Block) -> String {
        format!("docs/{}:{}:\n{}", self.page, block.line, block.text)
    }

    /// A file, seen from where the last block has left the reader's shell.
    fn beside_shell(&self, file: &str) -> PathBuf {
        let cwd = fs::read_to_string(self.path("state/cwd")).unwrap();
        Path::new(cwd.trim_end()).join(file)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

const LOOPBACK: &str = "127.0.0.1";

/// What a command prints when it has started that goes on.
const READY: [&str; 3] = ["ready", "watching ", "{\"watching\""];

/// Seconds for one block. A page may build a program.
const LONGEST: &str = "900";

/// Before each block of the reader's shell: as the block before left it.
const RESUME: &str = r#"exec 2>&1
. "$STATE/env"
cd "$(cat "$STATE/cwd")"
trap 'code=$?; export -p > "$STATE/env"; pwd > "$STATE/cwd"; exit $code' EXIT"#;

/// A node of a test ends with it, and serves its status at the address of the page.
const THORP: &str = r#"#!/bin/sh
case "$1" in
  home) port=7430 ;;
  site) port=7431 ;;
esac
case "$1 $2" in
  dev\ *|home\ *|site\ *|"ca serve") set -- "$@" --until-stdin-closes ;;
esac
case "$port $*" in
  ' '*|*' --http '*) ;;
  *) set -- "$@" --http "HERE:$port" ;;
esac
exec BINARY "$@"
"#;
