//! Transactions that read as many pages as one message has space for.

use crate::stream::Stream;
use std::time::Duration;
use thorp_bench::Result;
use thorp_model::limits::EXTENT_PAGES;
use thorp_model::{
    CallRequest, CallResponse, CommitId, CommitRequest, Down, Message, PageId, PageNo, Part,
    Position, Registration, SegmentId, Slot, SlotSet, Stamp, Up, message,
};
use thorp_testing::Attacker;

/// Each gives the segment some more page numbers.
const RESERVATIONS: usize = 256;
/// Transactions that are sent before the answers are heard.
const AT_ONCE: usize = 32;
const PATIENCE: Duration = Duration::from_secs(5);

/// Goes on until the process is killed.
pub(crate) fn flood(attacker: &Attacker, address: &str) -> Result<()> {
    let stream = Stream::begin(attacker, address).ok_or("turned away")?;
    let mut reader = Reader { stream };
    let registration = reader.register()?;
    let pages = reader.pages()?;
    let mut under_way = 0;
    loop {
        while under_way < AT_ONCE {
            let request = reader.transaction(registration, &pages);
            reader.stream.edge.send(&Message::Up(Up::Commit(request)));
            under_way += 1;
        }
        match reader.hear()? {
            Down::Committed(_) => under_way -= 1,
            Down::Refused(refused) => return Err(format!("{refused:?}").into()),
            _ => {}
        }
    }
}

struct Reader {
    stream: Stream,
}

impl Reader {
    fn hear(&mut self) -> Result<Down> {
        match self.stream.edge.receive_within(PATIENCE) {
            Some(Some(Message::Down(down))) => Ok(down),
            Some(Some(_)) => self.hear(),
            _ => Err("the home does not answer".into()),
        }
    }

    fn call(&mut self, request: CallRequest) -> Result<CallResponse> {
        self.stream.number += 1;
        let member = self.stream.member;
        let Up::Call(call) = self.stream.call(request) else {
            return Err("no call".into());
        };
        let call = message::Call {
            call: thorp_model::CallId {
                member,
                ..call.call
            },
            ..call
        };
        self.stream.edge.send(&Message::Up(Up::Call(call)));
        loop {
            if let Down::CallResult(answer) = self.hear()? {
                return answer.result.map_err(|error| format!("{error:?}").into());
            }
        }
    }

    fn register(&mut self) -> Result<Registration> {
        match self.call(CallRequest::Register(None))? {
            CallResponse::Registered(registration) => Ok(registration),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// A segment of its own, with many pages that are empty.
    fn pages(&mut self) -> Result<Vec<PageId>> {
        let path = format!("reads-{}", self.stream.member);
        let create = true;
        let segment = match self.call(CallRequest::Open { path, create })? {
            CallResponse::Segment(info) => info.id,
            other => return Err(format!("{other:?}").into()),
        };
        let mut last = 0;
        for _ in 0..RESERVATIONS {
            if let CallResponse::Extent { first, pages } = self.call(CallRequest::Reserve {
                segment,
                pages: EXTENT_PAGES,
            })? {
                last = first.0 + pages;
            }
        }
        Ok(pages_below(segment, last))
    }

    fn transaction(&mut self, registration: Registration, pages: &[PageId]) -> CommitRequest {
        self.stream.number += 1;
        let reads = pages.iter().map(|page| (*page, SlotSet::of(Slot(0))));
        CommitRequest {
            id: CommitId {
                member: self.stream.member,
                sequence: self.stream.number,
            },
            registration,
            part: Part {
                home: self.stream.home,
                evidence: Position(0),
                reads: reads.collect(),
                writes: Vec::new(),
                under: None,
            },
            with: Vec::new(),
            depends_on: Vec::new(),
            after: Stamp::default(),
        }
    }
}

fn pages_below(segment: SegmentId, last: u32) -> Vec<PageId> {
    let numbers = (1..last).map(PageNo);
    numbers.map(|page| PageId { segment, page }).collect()
}
