//! Rounds of lists and requests.

use crate::judge::Judge;
use crate::list;
use crate::member::{Asker, Order};
use crate::plot::{Board, Plot};
use crate::request::Answer;
use crate::village::{NAMES, OPERATOR, PLACES, Village};
use std::sync::Arc;
use thorp_client::{Member, Right, RightsList, Segment, Subject};
use thorp_model::Xoshiro256;

/// How many segments have a list of their own in each round.
const PLOTS: usize = 4;

/// What was compared.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) rounds: u64,
    pub(crate) answers: usize,
    pub(crate) given: usize,
    /// Each answer that casbin decides in another way, with all that it depends on.
    pub(crate) differ: Vec<String>,
}

/// A village, and whoever asks in it.
pub(crate) struct Rounds {
    operator: Member,
    board: Board,
    plots: Vec<Segment>,
    askers: Vec<Asker>,
    dice: Xoshiro256,
}

impl Rounds {
    /// Makes the segments, and lets everybody join.
    pub(crate) fn begin(village: &Village, mut dice: Xoshiro256) -> Self {
        let operator = village.join(OPERATOR, 0);
        // A list with a line for each name, so that a home with a wrong rule begins, too.
        let make = |path: &str, right: Right| {
            let segment = operator.create(path).expect("a new segment");
            let mut list = RightsList::default();
            for name in NAMES {
                list.grant(Subject::Name(name.to_owned()), right);
            }
            let set = operator.transact(|tx| tx.set_rights(&segment, &list));
            set.expect("an operator may set every list");
            let object = operator.transact(|tx| tx.create(&segment, b"0".to_vec()));
            (segment, object.expect("the operator may do everything"))
        };
        let (_, number) = make("thorp://alps/board", Right::Read);
        let board = Board { number };
        let (mut plots, mut known) = (Vec::new(), Vec::new());
        for plot in 0..PLOTS {
            let path = format!("thorp://alps/plots/{plot}");
            let (segment, object) = make(&path, Right::Admin);
            plots.push(segment);
            known.push(Plot { path, object });
        }
        let mut everybody = vec![(OPERATOR, 0)];
        for place in 0..PLACES.len() {
            everybody.extend(NAMES.map(|name| (name, place)));
        }
        let start = |(name, place): (&'static str, usize)| {
            let member = village.join(name, place);
            let dice = Xoshiro256::new(dice.bits());
            Asker::start((name, PLACES[place]), member, board.clone(), &known, dice)
        };
        let askers = everybody.into_iter().map(start).collect();
        Rounds {
            operator,
            board,
            plots,
            askers,
            dice,
        }
    }

    /// Runs rounds until so many answers are compared, or one differs where that is enough.
    pub(crate) fn run(&mut self, answers: usize, one_is_enough: bool) -> Ran {
        let mut ran = Ran::default();
        while ran.answers < answers && (ran.differ.is_empty() || !one_is_enough) {
            ran.rounds += 1;
            self.round(&mut ran);
        }
        ran
    }

    fn round(&mut self, ran: &mut Ran) {
        let plots = 0..self.plots.len();
        let lists: Vec<RightsList> = plots.map(|_| list::draw(&mut self.dice)).collect();
        for (segment, list) in self.plots.iter().zip(&lists) {
            let set = self.operator.transact(|tx| tx.set_rights(segment, list));
            set.expect("an operator may set every list");
        }
        let number = ran.rounds.to_string().into_bytes();
        let board = &self.board.number;
        let shown = self.operator.transact(|tx| tx.write(board, number.clone()));
        shown.expect("an operator may write everywhere");
        let lists = Arc::new(lists);
        let order = Order {
            round: ran.rounds,
            lists: Arc::clone(&lists),
        };
        self.askers
            .iter()
            .for_each(|asker| asker.order(order.clone()));
        let judges = lists.iter().map(|list| Judge::new(&list.to_string()));
        let judges: Vec<Judge> = judges.collect();
        for asker in &self.askers {
            for asked in asker.done() {
                let right = judges[asked.plot].decide(asker.name, asked.request);
                ran.answers += 1;
                ran.given += usize::from(asked.answer == Answer::Given);
                if right != asked.answer {
                    let (name, place) = (asker.name, asker.place);
                    let (request, answer) = (asked.request, asked.answer);
                    let list = lists[asked.plot].to_string().replace('\n', "; ");
                    ran.differ.push(format!(
                        "round {}, {name} at the {place}, {request:?}: {answer}; casbin: {right}; the list: {list}",
                        ran.rounds
                    ));
                }
            }
        }
    }
}
