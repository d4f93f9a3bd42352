//! A member on a thread of its own, and what it gets.

use crate::plot::{Board, Plot};
use crate::request::{Answer, Request};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use thorp_client::{Error, Member, Reference, RightsList, Segment, Session};
use thorp_model::Xoshiro256;

/// A member that does what it is sent.
pub(crate) struct Asker {
    /// Its name.
    pub(crate) name: &'static str,
    /// Where it has joined.
    pub(crate) place: &'static str,
    orders: Sender<Order>,
    done: Receiver<Vec<Asked>>,
}

/// One round: its number, and the list of each segment.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) round: u64,
    pub(crate) lists: Arc<Vec<RightsList>>,
}

/// A request in a segment, and its answer.
pub(crate) struct Asked {
    pub(crate) plot: usize,
    pub(crate) request: Request,
    pub(crate) answer: Answer,
}

/// What the thread of a member has.
struct Errands {
    member: Member,
    board: Board,
    /// A segment, and the member's own object there.
    plots: Vec<(Plot, Segment, Reference)>,
    dice: Xoshiro256,
}

impl Asker {
    /// Starts the thread. Each member is an admin still, so it opens each segment and makes an object there.
    pub(crate) fn start(
        (name, place): (&'static str, &'static str),
        member: Member,
        board: Board,
        plots: &[Plot],
        dice: Xoshiro256,
    ) -> Self {
        let (orders, ordered) = channel::<Order>();
        let (sender, done) = channel();
        let plots = plots.to_vec();
        thread::spawn(move || {
            let mut errands = Errands::prepare(member, board, plots, dice);
            // It is ready: the segments may be closed now.
            let _ = sender.send(Vec::new());
            for order in ordered {
                if sender.send(errands.run(&order)).is_err() {
                    return;
                }
            }
        });
        let asker = Asker {
            name,
            place,
            orders,
            done,
        };
        asker.done();
        asker
    }

    /// Sends it a round.
    pub(crate) fn order(&self, order: Order) {
        self.orders.send(order).expect("its thread runs");
    }

    /// What it got in this round.
    pub(crate) fn done(&self) -> Vec<Asked> {
        self.done.recv().expect("its thread runs")
    }
}

impl Errands {
    fn prepare(member: Member, board: Board, plots: Vec<Plot>, dice: Xoshiro256) -> Self {
        let prepare = |plot: Plot| {
            let segment = member.open(&plot.path)?;
            let own = member.transact(|tx| tx.create(&segment, b"own".to_vec()))?;
            Ok::<_, Error>((plot, segment, own))
        };
        let plots = plots.into_iter().map(prepare).collect::<Result<_, _>>();
        Errands {
            plots: plots.expect("each member is an admin still"),
            member,
            board,
            dice,
        }
    }

    fn run(&mut self, order: &Order) -> Vec<Asked> {
        self.wait_for(order.round);
        let plots = 0..self.plots.len();
        let mut wanted: Vec<(usize, Request)> = plots
            .flat_map(|plot| Request::ALL.map(|request| (plot, request)))
            .collect();
        let mut asked = Vec::new();
        while !wanted.is_empty() {
            let (plot, request) = wanted.swap_remove(self.dice.index(wanted.len()));
            let answer = self.ask(plot, request, order);
            asked.push(Asked {
                plot,
                request,
                answer,
            });
        }
        asked
    }

    /// Reads the number of the round at the home. The answer comes down the member's stream, so this stream, and that of
    /// its site, have passed all lists that were committed before.
    fn wait_for(&self, round: u64) {
        let strict = Session::new().strict(true);
        loop {
            let read = self
                .member
                .transact_with(strict, |tx| Ok(tx.read(&self.board.number)?.to_vec()));
            let read = read.expect("every member may read the board");
            if read == round.to_string().as_bytes() {
                return;
            }
        }
    }

    fn ask(&self, plot: usize, request: Request, order: &Order) -> Answer {
        let (known, segment, own) = &self.plots[plot];
        match request {
            Request::Open => Answer::of(self.member.open(&known.path)),
            Request::Read => Answer::of(
                self.member
                    .transact(|tx| Ok(tx.read(&known.object)?.to_vec())),
            ),
            Request::Write => {
                let value = format!("round {}", order.round);
                let value = value.into_bytes();
                Answer::of(self.member.transact(|tx| tx.write(own, value.clone())))
            }
            Request::SetList => {
                let list = &order.lists[plot];
                Answer::of(self.member.transact(|tx| tx.set_rights(segment, list)))
            }
        }
    }
}
