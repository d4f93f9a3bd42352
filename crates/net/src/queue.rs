//! The frames that wait for one peer, bounded in bytes and in number, each with the moment it may be written.
//!
//! No clock is read here: the caller says what time it is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::clock::later;
use crate::config::BATCH_BYTES_MAX;
use crate::frame::Frame;
use crate::{Limits, LinkDelay, Queued, SendError};

/// Every frame has this many bytes in front: its length, little-endian.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The outgoing queue of one connection.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Waiting and being written, together: what is handed to the writer still takes memory.
    held: Queued,
    one_way: Duration,
    closed: bool,
    frame_bytes_max: usize,
    bytes_max: usize,
    frames_max: usize,
}

#[derive(Debug)]
struct Waiting {
    frame: Frame,
    /// None: at once. What stands before it in the queue goes before it all the same.
    due: Option<Instant>,
}

/// What the writer is to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Write the frames of the batch, then release them.
    Write,
    /// The first frame is not due before this moment.
    WaitUntil(Instant),
    /// Nothing to write until something is pushed or the queue closed.
    Idle,
    /// Everything is written and nothing more will come.
    Finished,
}

impl Queue {
    pub(crate) fn new(limits: &Limits, delay: LinkDelay) -> Self {
        Self {
            waiting: VecDeque::new(),
            held: Queued::default(),
            one_way: delay.one_way,
            closed: false,
            frame_bytes_max: limits.frame_bytes_max.min(u32::MAX as usize),
            bytes_max: limits.queue_bytes_max,
            frames_max: limits.queue_frames_max,
        }
    }

    /// Puts a frame at the end. The state does not change when it is refused.
    pub(crate) fn push(&mut self, now: Instant, frame: impl Into<Frame>) -> Result<(), SendError> {
        let frame = frame.into();
        if self.closed {
            return Err(SendError::Closed);
        }
        if frame.len() > self.frame_bytes_max {
            return Err(SendError::TooLong {
                bytes: frame.len(),
                bytes_max: self.frame_bytes_max,
            });
        }
        let bytes = self.held.bytes.saturating_add(PREFIX_BYTES + frame.len());
        if bytes > self.bytes_max || self.held.frames >= self.frames_max {
            return Err(SendError::Full(self.held));
        }
        self.held.bytes = bytes;
        self.held.frames += 1;
        let due = (!self.one_way.is_zero()).then(|| later(now, self.one_way));
        self.waiting.push_back(Waiting { frame, due });
        Ok(())
    }

    /// Moves what may be written now into `batch`: about [`BATCH_BYTES_MAX`], one frame at the least.
    pub(crate) fn next(&mut self, now: Instant, batch: &mut Vec<Frame>) -> Next {
        let mut bytes = 0;
        while let Some(first) = self.waiting.front() {
            if let Some(due) = first.due.filter(|due| *due > now) {
                return if batch.is_empty() {
                    Next::WaitUntil(due)
                } else {
                    Next::Write
                };
            }
            bytes += PREFIX_BYTES + first.frame.len();
            if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
                return Next::Write;
            }
            batch.extend(self.waiting.pop_front().map(|waiting| waiting.frame));
        }
        match (batch.is_empty(), self.closed) {
            (false, _) => Next::Write,
            (true, true) => Next::Finished,
            (true, false) => Next::Idle,
        }
    }

    /// Frames handed out by [`Self::next`] are written: their room is free again.
    pub(crate) fn release(&mut self, written: Queued) {
        debug_assert!(written.bytes <= self.held.bytes && written.frames <= self.held.frames);
        self.held.bytes = self.held.bytes.saturating_sub(written.bytes);
        self.held.frames = self.held.frames.saturating_sub(written.frames);
    }

    /// Nothing more will be pushed; what waits is still written.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Drops everything: nothing will be written any more.
    pub(crate) fn discard(&mut self) {
        self.closed = true;
        self.waiting = VecDeque::new();
        self.held = Queued::default();
    }

    /// Frames pushed from now on take the new delay. They never overtake what was pushed before.
    pub(crate) fn set_delay(&mut self, delay: LinkDelay) {
        self.one_way = delay.one_way;
    }

    pub(crate) fn held(&self) -> Queued {
        self.held
    }

    pub(crate) fn one_way(&self) -> Duration {
        self.one_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queue(one_way: Duration) -> Queue {
        let limits = Limits {
            frame_bytes_max: 100,
            queue_bytes_max: 4 * (PREFIX_BYTES + 100),
            queue_frames_max: 50,
            ..Limits::default()
        };
        Queue::new(&limits, LinkDelay { one_way })
    }

    fn take(queue: &mut Queue, now: Instant) -> (Next, Vec<Vec<u8>>) {
        let mut batch = Vec::new();
        let next = queue.next(now, &mut batch);
        let heads = batch.iter().map(|frame| frame.head().to_vec());
        (next, heads.collect())
    }

    #[test]
    fn without_delay_everything_waiting_goes_in_one_batch() {
        let (mut queue, now) = (queue(Duration::ZERO), Instant::now());
        for byte in 0..5 {
            queue.push(now, vec![byte]).unwrap();
        }
        assert_eq!(
            take(&mut queue, now),
            (Next::Write, (0..5).map(|byte| vec![byte]).collect())
        );
        assert_eq!(take(&mut queue, now), (Next::Idle, vec![]));
    }

    #[test]
    fn a_delayed_link_is_a_pipe_not_a_row_of_sleeps() {
        let (mut queue, start) = (queue(100 * MS), Instant::now());
        for step in 0..40u32 {
            queue.push(start + step * MS, vec![step as u8]).unwrap();
        }
        // Not one of them before its time, and the last one just 39 ms after the first.
        assert_eq!(
            take(&mut queue, start),
            (Next::WaitUntil(start + 100 * MS), vec![])
        );
        for step in 0..40u32 {
            assert_eq!(
                take(&mut queue, start + (100 + step) * MS),
                (Next::Write, vec![vec![step as u8]])
            );
        }
        assert_eq!(take(&mut queue, start + 140 * MS), (Next::Idle, vec![]));
    }

    #[test]
    fn a_shorter_delay_lets_nobody_overtake() {
        let (mut queue, start) = (queue(100 * MS), Instant::now());
        queue.push(start, vec![1]).unwrap();
        queue.set_delay(LinkDelay::default());
        queue.push(start, vec![2]).unwrap();
        assert_eq!(
            take(&mut queue, start + 99 * MS).0,
            Next::WaitUntil(start + 100 * MS)
        );
        assert_eq!(
            take(&mut queue, start + 100 * MS),
            (Next::Write, vec![vec![1], vec![2]])
        );
    }

    #[test]
    fn the_longest_delay_holds_a_frame_and_everything_behind_it() {
        let (mut queue, start) = (queue(Duration::MAX), Instant::now());
        queue.push(start, vec![1]).unwrap();
        queue.set_delay(LinkDelay::default());
        queue.push(start, vec![2]).unwrap();
        let next = take(&mut queue, start + Duration::from_secs(3600));
        assert!(matches!(next, (Next::WaitUntil(_), batch) if batch.is_empty()));
    }

    #[test]
    fn full_is_said_and_room_comes_back_only_when_written() {
        let (mut queue, now) = (queue(Duration::ZERO), Instant::now());
        for _ in 0..4 {
            queue.push(now, vec![0; 100]).unwrap();
        }
        let full = Queued {
            bytes: 4 * (PREFIX_BYTES + 100),
            frames: 4,
        };
        assert_eq!(queue.push(now, vec![]), Err(SendError::Full(full)));
        let (_, batch) = take(&mut queue, now);
        assert_eq!(batch.len(), 4);
        assert_eq!(
            queue.push(now, vec![]),
            Err(SendError::Full(full)),
            "handed out is not yet written"
        );
        queue.release(full);
        queue.push(now, vec![]).unwrap();
        assert_eq!(
            queue.held(),
            Queued {
                bytes: PREFIX_BYTES,
                frames: 1
            }
        );
    }

    #[test]
    fn empty_frames_are_bounded_too() {
        let (mut queue, now) = (queue(Duration::ZERO), Instant::now());
        for _ in 0..50 {
            queue.push(now, vec![]).unwrap();
        }
        assert!(matches!(queue.push(now, vec![]), Err(SendError::Full(_))));
    }

    #[test]
    fn a_frame_above_the_limit_is_refused() {
        let mut queue = queue(Duration::ZERO);
        let error = queue.push(Instant::now(), vec![0; 101]).unwrap_err();
        assert_eq!(
            error,
            SendError::TooLong {
                bytes: 101,
                bytes_max: 100
            }
        );
        assert_eq!(queue.held(), Queued::default());
    }

    #[test]
    fn closing_lets_what_waits_go_out() {
        let (mut queue, now) = (queue(5 * MS), Instant::now());
        queue.push(now, vec![7]).unwrap();
        queue.close();
        assert_eq!(queue.push(now, vec![8]), Err(SendError::Closed));
        assert_eq!(take(&mut queue, now).0, Next::WaitUntil(now + 5 * MS));
        assert_eq!(take(&mut queue, now + 5 * MS), (Next::Write, vec![vec![7]]));
        assert_eq!(take(&mut queue, now + 5 * MS).0, Next::Finished);
    }
}
