//! The disk under a member's log: a thread that makes batches durable while the member goes on.

use super::request_sender::RequestSender;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use thorp_model::{Batch, Lack, Mark, Purpose};
use thorp_protocol::MemberCommand;
use thorp_store::{NotDurable, UpdateLog};

/// Batches on their way to the disk. Dropped, it writes what waits, and closes the log.
pub(crate) struct LogDisk {
    batches: Option<Sender<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl LogDisk {
    /// Starts the thread. It tells the member of each batch how it ended.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(super) fn start(log: UpdateLog, member: Arc<RequestSender>) -> io::Result<LogDisk> {
        let (batches, waiting) = channel();
        let thread = thread::Builder::new().name("thorp-log".to_owned());
        let thread = thread.spawn(move || run(&log, &waiting, &member))?;
        Ok(LogDisk {
            batches: Some(batches),
            thread: Some(thread),
        })
    }

    /// A batch is to be durable after all earlier ones.
    pub(super) fn keep(&self, batch: Batch) {
        if let Some(batches) = &self.batches {
            // The thread ends only with this sender.
            let _ = batches.send(batch);
        }
    }
}

impl Drop for LogDisk {
    fn drop(&mut self) {
        drop(self.batches.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

fn run(log: &UpdateLog, waiting: &Receiver<Batch>, member: &RequestSender) {
    while let Ok(first) = waiting.recv() {
        let mut batches = vec![first];
        batches.extend(waiting.try_iter());
        for command in commit(log, &batches) {
            if let Some(handle) = member.handle() {
                // A member that has gone asks for no answer.
                let _ = handle.command(command);
            }
        }
    }
}

/// Makes batches durable. Where that fails, each counts for itself: one that takes space must not hold up one that frees some.
fn commit(log: &UpdateLog, batches: &[Batch]) -> Vec<MemberCommand> {
    let last = batches.last().map_or(Mark(0), |batch| batch.mark);
    match log.commit(batches) {
        Ok(()) => vec![MemberCommand::Kept(last)],
        Err(why) if batches.len() == 1 => ended(&batches[0], Err(why)).into_iter().collect(),
        Err(_) => {
            let each = batches.iter();
            each.filter_map(|batch| ended(batch, log.commit(std::slice::from_ref(batch))))
                .collect()
        }
    }
}

fn ended(batch: &Batch, result: Result<(), NotDurable>) -> Option<MemberCommand> {
    let lack: Option<Lack> = match result {
        Ok(()) => return Some(MemberCommand::Kept(batch.mark)),
        // An update that stays in the log is sent again at the next start, and its home knows it.
        Err(_) if batch.purpose != Purpose::NewData => return None,
        Err(NotDurable::Full(lack)) => Some(lack),
        Err(NotDurable::Broken(_)) => None,
    };
    Some(MemberCommand::NotKept(batch.mark, lack))
}
