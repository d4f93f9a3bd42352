//! The live view: a thread looks at the node, this one draws and reads keys.

use super::screen::draw;
use super::snapshot::Snapshot;
use super::view::View;
use crate::commands::node_status::Source;
use crate::commands::signals;
use crate::failure::Failure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Shows a node until a key or a signal ends it. The screen is as before then.
pub(super) fn show(source: Source, mut view: View) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    signals::on_each(move || stopped.store(true, Ordering::Relaxed))?;
    let (sender, looks) = channel();
    thread::spawn(move || keep_looking(&source, &sender));
    let mut terminal = ratatui::try_init().map_err(|error| of_terminal(&error))?;
    let shown = run(&mut terminal, &mut view, &looks, &stop);
    let restored = ratatui::try_restore();
    shown.and(restored).map_err(|error| of_terminal(&error))
}

/// Ends when nobody listens any more.
fn keep_looking(source: &Source, looks: &Sender<Result<Snapshot, Failure>>) {
    loop {
        thread::sleep(EVERY);
        if looks.send(Snapshot::of(source)).is_err() {
            return;
        }
    }
}

fn run(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    looks: &Receiver<Result<Snapshot, Failure>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut has_keys = false;
    while !stop.load(Ordering::Relaxed) {
        for look in looks.try_iter() {
            match look {
                Ok(snapshot) => view.add(snapshot),
                Err(failure) => view.lost = Some(failure.what().to_owned()),
            }
        }
        terminal.draw(|frame| draw(frame, view, has_keys))?;
        if event::poll(KEY_WITHIN)?
            && let Event::Key(key) = event::read()?
        {
            match Wish::of(key) {
                Some(Wish::End) => return Ok(()),
                Some(Wish::Keys) => has_keys = !has_keys,
                None => {}
            }
        }
    }
    Ok(())
}

/// What a key means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    End,
    Keys,
}

impl Wish {
    fn of(key: KeyEvent) -> Option<Self> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::End),
            KeyCode::Char('q') | KeyCode::Esc => Some(Wish::End),
            KeyCode::Char('?' | 'h') => Some(Wish::Keys),
            _ => None,
        }
    }
}

fn of_terminal(error: &io::Error) -> Failure {
    let todo = "look once, without the screen: `thorp top --once`";
    Failure::new(format!("the terminal: {error}"), todo)
}

/// Between two looks at the node.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// How long a key is waited for before the screen is drawn again.
const KEY_WITHIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_end_it_or_show_the_keys() {
        let plain = |code| Wish::of(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(plain(KeyCode::Char('q')), Some(Wish::End));
        assert_eq!(plain(KeyCode::Char('?')), Some(Wish::Keys));
        assert_eq!(plain(KeyCode::Char('c')), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(Wish::of(interrupt), Some(Wish::End));
    }
}
