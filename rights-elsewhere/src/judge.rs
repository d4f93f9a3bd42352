//! What casbin decides.

use crate::request::{Answer, Request};
use crate::village::{NAMES, OPERATOR};
use casbin::{CoreApi, DefaultModel, Enforcer, MemoryAdapter, MgmtApi};
use thorp_model::NameId;

/// Decides requests by one rights list. It knows the list as a text, and nothing of Thorp's code for lists.
pub(crate) struct Judge(Enforcer);

/// A subject has what it is given itself and what is given to anything that it belongs to (`g`). A right includes others
/// (`g2`). An operator may do everything.
const RULES: &str = "
[request_definition]
r = sub, act

[policy_definition]
p = sub, act

[role_definition]
g = _, _
g2 = _, _

[policy_effect]
e = some(where (p.eft == allow))

[matchers]
m = g(r.sub, p.sub) && g2(p.act, r.act)
";

impl Judge {
    /// A judge by this list.
    pub(crate) fn new(list: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime without I/O starts");
        Judge(runtime.block_on(enforcer(list)))
    }

    /// What somebody has to be answered.
    pub(crate) fn decide(&self, name: &str, request: Request) -> Answer {
        let may = |right: &str| {
            let decided = self.0.enforce((name, right));
            decided.expect("a request has a subject and a right")
        };
        match (may(request.needs()), may("read")) {
            (true, _) => Answer::Given,
            (false, true) => Answer::NoRight,
            (false, false) => Answer::Hidden,
        }
    }
}

async fn enforcer(list: &str) -> Enforcer {
    let model = DefaultModel::from_str(RULES).await.expect("a model");
    let mut enforcer = Enforcer::new(model, MemoryAdapter::default())
        .await
        .expect("an enforcer");
    let entries = list.lines().map(|line| {
        let (right, subject) = line.split_once(' ').expect("RIGHT SUBJECT");
        vec![subject.to_owned(), right.to_owned()]
    });
    let everything = vec!["operators".to_owned(), "admin".to_owned()];
    for entry in entries.chain([everything]) {
        enforcer.add_policy(entry).await.expect("a new entry");
    }
    let pair = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
    for (higher, lower) in [("admin", "write"), ("write", "read")] {
        let includes = enforcer.add_named_grouping_policy("g2", pair(higher, lower));
        includes.await.expect("a new rule");
    }
    // Whom a name belongs to. Groups will be such rules.
    let mut belongs = vec![pair(OPERATOR, "operators")];
    for name in NAMES {
        belongs.push(pair(name, "@members"));
        belongs.push(pair(name, &format!("#{}", NameId::of(name))));
    }
    for rule in belongs {
        enforcer
            .add_grouping_policy(rule)
            .await
            .expect("a new rule");
    }
    enforcer
}
