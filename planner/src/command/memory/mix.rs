//! Machines of several kinds, and servers that are asked as a matrix says: how they are told.

use super::limits::{COUNT_MAX, VALUE_MAX};
use crate::Invalid;
use crate::memory::{Class, Cluster, Group, Kind, Network};

/// Machines that are alike.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Alike {
    pub(super) machines: u32,
    pub(super) think_s: f64,
}

/// `16:5,8:1`: how many, and the milliseconds between a page and the next.
pub(super) fn kinds(text: &str) -> Result<Vec<Alike>, Invalid> {
    let kinds: Option<Vec<Alike>> = text.split(',').map(alike).collect();
    let wrong = |why: String| Err(Invalid::new("mix", why));
    match kinds {
        Some(kinds) if kinds.len() <= KINDS_MAX => {
            let all: f64 = kinds.iter().map(|kind| f64::from(kind.machines)).sum();
            match all <= COUNT_MAX {
                true => Ok(kinds),
                false => wrong(format!("must be at most {COUNT_MAX} machines, not {all}")),
            }
        }
        Some(kinds) => wrong(format!(
            "must be at most {KINDS_MAX} kinds of machines, not {}",
            kinds.len()
        )),
        None => wrong(format!(
            "must be machines and their milliseconds from a page to the next, as 16:5,8:1, not {text}"
        )),
    }
}

fn alike(text: &str) -> Option<Alike> {
    let (machines, think_ms) = text.split_once(':')?;
    let machines = machines.trim().parse().ok().filter(|&count| count > 0)?;
    let think_ms: f64 = think_ms.trim().parse().ok()?;
    (0.0..=VALUE_MAX).contains(&think_ms).then_some(Alike {
        machines,
        think_s: think_ms / 1e3,
    })
}

/// `0.5,0.25,0.25/0,0.5,0.5`: rows that are alike in length, each of which sums to 1.
pub(super) fn rows(text: &str) -> Result<Vec<Vec<f64>>, Invalid> {
    let rows = text.split('/').enumerate();
    let rows: Vec<Vec<f64>> = rows
        .map(|(at, row)| probabilities(at + 1, row))
        .collect::<Result<_, _>>()?;
    for (at, row) in rows.iter().enumerate() {
        if row.len() != rows[0].len() {
            let (first, here) = (rows[0].len(), row.len());
            return Err(wrong(
                at + 1,
                format!("has {here} probabilities, and the first one {first}"),
            ));
        }
    }
    match rows[0].len() <= SERVERS_MAX {
        true => Ok(rows),
        false => {
            let why = format!(
                "must be for at most {SERVERS_MAX} servers, not {}",
                rows[0].len()
            );
            Err(Invalid::new("routing", why))
        }
    }
}

fn probabilities(number: usize, row: &str) -> Result<Vec<f64>, Invalid> {
    let probability = |cell: &str| {
        let told = cell.trim().parse::<f64>().ok();
        let told = told.filter(|part| (0.0..=1.0).contains(part));
        told.ok_or_else(|| {
            let what = format!(
                "has \"{}\", which is no probability from 0 to 1",
                cell.trim()
            );
            wrong(number, what)
        })
    };
    let row: Vec<f64> = row.split(',').map(probability).collect::<Result<_, _>>()?;
    let sum: f64 = row.iter().sum();
    if (sum - 1.0).abs() > ROUNDING {
        // Without the digits that adding up leaves.
        let sum = (sum * 1e9).round() / 1e9;
        return Err(wrong(number, format!("sums to {sum}, but has to sum to 1")));
    }
    Ok(row.iter().map(|part| part / sum).collect())
}

fn wrong(number: usize, why: String) -> Invalid {
    Invalid::new("routing", format!("is wrong: row {number} {why}"))
}

/// The network of machines that differ, each of which asks servers evenly as in a cluster.
pub(super) fn unrouted(cluster: &Cluster, kinds: &[Alike]) -> Result<Network, Invalid> {
    let mut network = cluster.network()?;
    let classes = network.classes.iter().flat_map(|class| {
        kinds.iter().map(|kind| Class {
            machines: kind.machines,
            think_s: kind.think_s,
            ..class.clone()
        })
    });
    network.classes = classes.collect();
    Ok(network)
}

/// The network of machines that ask each server as their row says; memory servers come before local ones.
pub(super) fn routed(
    cluster: &Cluster,
    kinds: &[Alike],
    rows: &[Vec<f64>],
) -> Result<Network, Invalid> {
    let nodes = u64::from(cluster.servers) + u64::from(cluster.local_servers);
    let columns = rows[0].len();
    if columns as u64 != nodes {
        let why = format!(
            "must have a probability for each of {nodes} servers ({} memory servers, {} local), not {columns}",
            cluster.servers, cluster.local_servers
        );
        return Err(Invalid::new("routing", why));
    }
    if rows.len() != 1 && rows.len() != kinds.len() {
        let why = format!(
            "must have one row, or one for each of {} kinds of machines, not {}",
            kinds.len(),
            rows.len()
        );
        return Err(Invalid::new("routing", why));
    }
    let class = |(kind, row): (&Alike, &Vec<f64>)| Class {
        machines: kind.machines,
        think_s: kind.think_s,
        putpages_per_getpage: cluster.putpages_per_getpage,
        routing: row.clone(),
    };
    let group = |node: u64| Group {
        kind: match node < u64::from(cluster.servers) {
            true => Kind::Idle,
            false => Kind::Local,
        },
        nodes: 1,
        getpage_s: cluster.getpage_s,
        putpage_s: cluster.putpage_s,
    };
    let network = Network {
        classes: kinds.iter().zip(rows.iter().cycle()).map(class).collect(),
        groups: (0..nodes).map(group).collect(),
    };
    network.check()?;
    Ok(network)
}

/// What thirds that are written with six digits are off.
const ROUNDING: f64 = 5e-6;

/// More would be solved for minutes.
const KINDS_MAX: usize = 8;
const SERVERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_and_what_is_none_is_refused() {
        let two = kinds("16:5, 8:0.5").expect("two kinds");
        assert_eq!((two[0].machines, two[1].think_s), (16, 0.5e-3));
        for wrong in [
            "", "16", "0:5", "2.5:5", "16:-1", "16:nan", "16:inf", "16:5,", "5:1e10",
        ] {
            let why = kinds(wrong).expect_err(wrong).to_string();
            assert!(why.contains("as 16:5,8:1"), "{why}");
        }
        let many = ["1:1"; 9].join(",");
        let why = kinds(&many).expect_err("nine").to_string();
        assert!(why.contains("at most 8 kinds of machines, not 9"), "{why}");
        let why = kinds("1000000:1,1:1").expect_err("too many").to_string();
        assert!(why.contains("at most 1000000 machines"), "{why}");
    }

    #[test]
    fn rows_are_probabilities_that_sum_to_one() {
        let third = rows("0.333333,0.333333,0.333333/1,0,0").expect("rows");
        assert!((third[0].iter().sum::<f64>() - 1.0).abs() < 1e-15);
        for (text, why) in [
            ("0.5,0.4", "row 1 sums to 0.9, but has to sum to 1"),
            ("1,0/0.7,0.2,0.2", "row 2 sums to 1.1"),
            ("1,0/1", "row 2 has 1 probabilities, and the first one 2"),
            ("0.5,x", "row 1 has \"x\", which is no probability"),
            ("1.5,-0.5", "row 1 has \"1.5\""),
            ("nan", "row 1 has \"nan\""),
            ("", "row 1 has \"\""),
        ] {
            let told = rows(text).expect_err(text).to_string();
            assert!(told.contains(why), "{told}");
        }
        let wide = [&["0"; 100][..], &["1"]].concat().join(",");
        assert!(rows(&wide).is_err());
    }
}
