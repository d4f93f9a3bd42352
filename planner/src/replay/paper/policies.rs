//! The policies of sections 2.1 and 3.6 on traces, by how requests are dealt, by local policy, and by balance.

use super::{Named, percent};
use crate::evict::{self, belady_hits};
use crate::replay::Times;
use crate::replay::{Kind, Knobs, Outcome, Server, Village, replay};
use crate::report::{Axis, Chart, Section, Series, Table};
use crate::trace::{Dealing, Trace, dealt};

/// All of them.
pub(super) fn sections(traces: &[Named]) -> Vec<Section> {
    let traces: Vec<Scene> = traces.iter().map(Scene::new).collect();
    vec![
        compared(&traces),
        by_dealing(&traces),
        by_local(&traces),
        by_balance(&traces),
    ]
}

/// A part of a trace with the village that replays it.
struct Scene {
    name: &'static str,
    trace: Trace,
    village: Village,
}

impl Scene {
    fn new(named: &Named) -> Self {
        let pages = named.trace.pages.iter().take(REQUESTS_MOST);
        let trace = Trace::of(named.name, pages.map(|&page| u64::from(page)));
        let part = |of: usize| (trace.footprint / of).max(1);
        let server = |of| Server {
            pages: part(of),
            busy_most: 1.0,
        };
        let village = Village {
            clients: CLIENTS,
            client_pages: part(32),
            servers: [32, 32, 16, 8].map(server).to_vec(),
            home_pages: part(16),
            footprint: trace.footprint,
            local: evict::Kind::Lru,
            times: Times::default(),
            seed: 1,
        };
        Scene {
            name: named.name,
            trace,
            village,
        }
    }

    fn outcome(&self, kind: Kind, knobs: &Knobs, rule: Dealing) -> Outcome {
        self.of(&self.village, kind, knobs, rule)
    }

    /// Nothing where the village cannot be, which it can.
    fn of(&self, village: &Village, kind: Kind, knobs: &Knobs, rule: Dealing) -> Outcome {
        let clients = dealt(&self.trace, rule, village.clients, village.seed);
        match (clients, kind.policy(village, knobs)) {
            (Ok(clients), Ok(mut policy)) => replay(
                village,
                &mut *policy,
                &self.trace.pages,
                &clients,
                &mut |_| {},
            ),
            _ => Outcome::default(),
        }
    }

    fn faster(&self, outcome: &Outcome, alone: &Outcome) -> String {
        let times = &self.village.times;
        format!("{:.2}", alone.mean_ms(times) / outcome.mean_ms(times))
    }
}

fn compared(scenes: &[Scene]) -> Section {
    let tables = scenes.iter().map(|scene| {
        let mut table = Table::new(
            &format!("{}: where requests are answered", scene.name),
            &[
                "policy",
                "own memory",
                "others'",
                "home's",
                "disk",
                "time, ms",
                "times as fast",
                "pages sent on, of 100 requests",
                "asked of the home, of 100",
                "load, most : mean",
            ],
        );
        let outcome = |kind| scene.outcome(kind, &Knobs::default(), RULE);
        let alone = outcome(Kind::Alone);
        for kind in Kind::ALL {
            let outcome = outcome(kind);
            let servers = CLIENTS..CLIENTS + scene.village.servers.len();
            table.row(vec![
                kind.title().into(),
                percent(outcome.part(outcome.local)),
                percent(outcome.part(outcome.remote())),
                percent(outcome.part(outcome.home)),
                percent(outcome.part(outcome.disk)),
                format!("{:.3}", outcome.mean_ms(&scene.village.times)),
                scene.faster(&outcome, &alone),
                format!("{:.0}", outcome.part(outcome.traffic.forwarded) * 100.0),
                format!("{:.0}", outcome.part(outcome.traffic.home_asked) * 100.0),
                outcome
                    .imbalance(servers)
                    .map_or("-".into(), |most| format!("{most:.1}")),
            ]);
        }
        table.row(least_possible(scene));
        table
    });
    Section {
        heading: "Policies of cooperative caching (thesis, sections 2.1.2, 2.1.3 and 3.6)".into(),
        words: vec![
            format!("{CLIENTS} clients with memory for 1/32 of all pages each; four servers with 1/32, 1/32, 1/16 and 1/8; a home with 1/16. Requests are dealt {RULE}; of each trace at most the first {REQUESTS_MOST}. N is 2; 80 % of clients' memory is for all where a policy divides it; b is 0.5."),
            "The thesis tells what Dahlin and others found for file systems: N-chance has the shortest time and the least load of the home, direct cooperation the longest time, central coordination the highest load; hashing takes the load from the home without changing times; weighted LRU is a little slower than N-chance. And Feeley and others: GMS is better than N-chance where idle memory is unevenly spread.".into(),
            "Here, too, direct cooperation gains least, and hashing takes the load from the home at the same times; central coordination loads the home most, but on cloudPhysics, where N-chance does. N-chance is the fastest of all only there: there LRU, even the ideal one, loses what will be needed next (figure 3.6 shows it, too), and sending pages to anybody does not always. On the other two central, hashed and weighted LRU are faster, and so is GMS with its uneven servers. The difference to what Dahlin found is in the traces: a client's own memory answers a sixth to a half of these requests, rather than most of them, so that it costs little to give 80 % of it to all.".into(),
        ],
        tables: tables.collect(),
        charts: Vec::new(),
    }
}

/// What no policy can do better, since all memory together could not.
fn least_possible(scene: &Scene) -> Vec<String> {
    let Scene { trace, village, .. } = scene;
    let memory = village.clients * village.client_pages
        + village
            .servers
            .iter()
            .map(|server| server.pages)
            .sum::<usize>()
        + village.home_pages;
    let disk = trace.pages.len() as u64 - belady_hits(&trace.pages, memory, trace.footprint);
    let mut row = vec!["-".to_owned(); 10];
    row[0] = "least possible (Belady's MIN)".into();
    row[4] = percent(disk as f64 / trace.pages.len() as f64);
    row
}

fn by_dealing(scenes: &[Scene]) -> Section {
    let rules = [
        Dealing::RoundRobin,
        Dealing::Random,
        Dealing::Runs { mean: 50.0 },
        Dealing::Runs { mean: 1000.0 },
        Dealing::ByObject,
    ];
    let mut columns = vec!["policy".to_owned()];
    columns.extend(rules.iter().map(Dealing::to_string));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let table = |scene: &Scene| {
        let mut table = Table::new(
            &format!(
                "{}: requests that need no disk, and times as fast as each alone",
                scene.name
            ),
            &columns,
        );
        let alone = rules.map(|rule| scene.outcome(Kind::Alone, &Knobs::default(), rule));
        for kind in Kind::ALL {
            let cell = |(rule, alone): (&Dealing, &Outcome)| {
                let outcome = scene.outcome(kind, &Knobs::default(), *rule);
                format!(
                    "{}, {}",
                    percent(outcome.without_disk()),
                    scene.faster(&outcome, alone)
                )
            };
            let mut row = vec![kind.title().to_owned()];
            row.extend(rules.iter().zip(&alone).map(cell));
            table.row(row);
        }
        table
    };
    Section {
        heading: "How requests are dealt to clients".into(),
        words: vec!["The traces name no clients, so that it is a rule of ours who asks for what. Where an object is always asked for by the same client, nothing is shared, and only the memory of servers and of clients that need it less is left to be gained; where everybody asks for everything, clients have copies of the same pages, and policies that let go of copies gain most.".into()],
        tables: scenes.iter().filter(|scene| scene.name != "orm-busy").map(table).collect(),
        charts: Vec::new(),
    }
}

fn by_local(scenes: &[Scene]) -> Section {
    let policies = [
        Kind::Alone,
        Kind::Direct,
        Kind::Greedy,
        Kind::Central,
        Kind::NChance,
        Kind::Hashed,
        Kind::Gms,
        Kind::Balanced,
    ];
    let mut columns = vec!["what clients let go of"];
    columns.extend(policies.map(Kind::title));
    let table = |scene: &Scene| {
        let mut table = Table::new(
            &format!("{}: time of a request, ms (needing no disk)", scene.name),
            &columns,
        );
        for local in evict::Kind::ALL {
            let village = Village {
                local,
                ..scene.village.clone()
            };
            let mut row = vec![local.to_string()];
            row.extend(policies.map(|kind| {
                let outcome = scene.of(&village, kind, &Knobs::default(), RULE);
                format!(
                    "{:.3} ({})",
                    outcome.mean_ms(&village.times),
                    percent(outcome.without_disk())
                )
            }));
            table.row(row);
        }
        table
    };
    Section {
        heading: "Modern evictors at the clients".into(),
        words: vec![
            "The policies that leave it to the client which of its pages has to go, with evictors that are younger than the papers. The memory that is shared stays LRU. Under GMS and the load-balanced family ages still say whether a client gives up one of its own pages or one that it keeps for others, whether that is kept elsewhere and where, and what is lost there; the evictor names which of its own pages it is, where the thesis takes the oldest.".into(),
            format!("Two have no place for an evictor: {}; {}. With another page to go each would be another policy.", no_evictor(Kind::Weighted), no_evictor(Kind::GlobalLru)),
            "On multi3 SIEVE makes GMS and the load-balanced family the fastest of all that is in the table; on cloudPhysics N-chance is it with any evictor. S3-FIFO and W-TinyLFU, which gain most where copies are kept as they come (greedy forwarding), gain little under GMS on multi3 and lose a little on cloudPhysics: what they let go of came lately, and so counts as young where it is sent.".into(),
        ],
        tables: scenes.iter().filter(|scene| scene.name != "orm-busy").map(table).collect(),
        charts: Vec::new(),
    }
}

fn no_evictor(kind: Kind) -> &'static str {
    kind.why_no_evictor().unwrap_or_default()
}

fn by_balance(scenes: &[Scene]) -> Section {
    let mut table = Table::new(
        "By the load balancing rate b (equation 3.1)",
        &[
            "trace",
            "b",
            "disk",
            "more than global LRU",
            "time, ms",
            "load of servers, most : mean by memory",
        ],
    );
    let mut curves = Vec::new();
    for scene in scenes {
        let global = scene.outcome(Kind::GlobalLru, &Knobs::default(), RULE);
        let mut points = Vec::new();
        for balance in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let outcome = scene.outcome(
                Kind::Balanced,
                &Knobs {
                    balance,
                    ..Knobs::default()
                },
                RULE,
            );
            let more = outcome.disk as f64 / global.disk as f64 - 1.0;
            points.push((balance, more * 100.0));
            table.row(vec![
                scene.name.into(),
                balance.to_string(),
                percent(outcome.part(outcome.disk)),
                // Nothing has no sign.
                format!("{:+.2} %", (more * 10_000.0).round() / 100.0 + 0.0),
                format!("{:.3}", outcome.mean_ms(&scene.village.times)),
                format!("{:.2}", uneven(scene, &outcome)),
            ]);
        }
        curves.push(Series::line(scene.name, points));
    }
    Section {
        heading: "Balancing the load of memory servers (thesis, section 3.6)".into(),
        words: vec![
            "With b = 0 pages go to where the oldest are, as in GMS; with b = 1 to servers by their memory, whatever the ages. The load of a server is what it sends and takes, by the memory that it lends: 1 is what the thesis wants. With servers that stay, b costs next to nothing and brings little: ages alone spread the load well. What b is for, servers that come and go, is figure 3.7.".into(),
            "The home's memory is one of those that pages go to. It is never busy in this simulation: what it sends and takes is not counted as load, and equation 3.3 is applied to it as to a server that has done nothing, so that clients may borrow all of it.".into(),
            "The thesis leaves open how often ages are gathered and how many pages count as old; how little depends on that, until a fifth of all pages do, is in the second table.".into(),
        ],
        tables: vec![table, by_epoch(scenes)],
        charts: vec![Chart {
            name: "balance".into(),
            title: "More disk accesses than global LRU, by the load balancing rate".into(),
            x: Axis::linear("load balancing rate b"),
            y: Axis::linear("more disk accesses than global LRU, %"),
            series: curves,
        }],
    }
}

fn by_epoch(scenes: &[Scene]) -> Table {
    let olds = [0.005, 0.02, 0.05, 0.2];
    let mut columns = vec!["trace".to_owned(), "epochs of at most".to_owned()];
    columns.extend(olds.map(|old| format!("M: {} of all pages", percent(old))));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("Disk accesses under GMS, by its epochs", &columns);
    for scene in scenes.iter().filter(|scene| scene.name != "cloudPhysics") {
        for epoch_ms in [100.0, 1000.0, 10_000.0] {
            let mut row = vec![scene.name.to_owned(), format!("{} s", epoch_ms / 1000.0)];
            row.extend(olds.map(|oldest| {
                let outcome = scene.outcome(
                    Kind::Gms,
                    &Knobs {
                        epoch_ms,
                        oldest,
                        ..Knobs::default()
                    },
                    RULE,
                );
                percent(outcome.part(outcome.disk))
            }));
            table.row(row);
        }
    }
    table
}

/// How much more the busiest server did than its share by memory.
fn uneven(scene: &Scene, outcome: &Outcome) -> f64 {
    let servers = scene
        .village
        .servers
        .iter()
        .map(|server| server.pages as f64);
    let loads = outcome.traffic.loads[CLIENTS..]
        .iter()
        .map(|&load| load as f64);
    let (pages, load): (f64, f64) = (servers.clone().sum(), loads.clone().sum());
    let shares = servers
        .zip(loads)
        .map(|(of, did)| (did / load.max(1.0)) / (of / pages));
    shares.fold(0.0, f64::max)
}

const CLIENTS: usize = 8;
/// Of each trace: orm-busy has five million.
const REQUESTS_MOST: usize = 200_000;
const RULE: Dealing = Dealing::Runs { mean: 50.0 };
