//! A status as Prometheus reads it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::privileges::PrivilegesStatus;
use crate::status::{
    AgreementStatus, ChildStatus, HistoryStatus, Status, StorageStatus, TrafficLine,
};

/// The content type of what [`text`] gives.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a node in the OpenMetrics text format.
///
/// # Errors
///
/// A metric was described wrongly; our own mistake.
pub(crate) fn text(status: Status) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("thorp");
    registry.register_collector(Box::new(Reading(status)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Reading(Status);

type Labels = Vec<(&'static str, String)>;

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        let to = &mut encoder;
        let about = vec![
            ("role", status.role.to_owned()),
            ("name", status.name.clone()),
            ("version", status.version.to_owned()),
        ];
        gauges(to, "node", "What this node is", [(about, 1.0)])?;
        gauge(
            to,
            "uptime_seconds",
            "How long it runs",
            status.uptime_s as f64,
        )?;
        let healthy = f64::from(u8::from(status.health.ok));
        gauge(
            to,
            "healthy",
            "Whether it does all that it is there for",
            healthy,
        )?;
        let notes = status.notes.iter();
        let notes = notes.map(|(note, count)| (vec![("note", note.clone())], *count));
        counters(to, "notes", "Branches of the protocol's rules taken", notes)?;
        let sizes = status.sizes.iter();
        let sizes = sizes.map(|(table, size)| (vec![("table", (*table).to_owned())], *size as f64));
        gauges(to, "table_size", "Sizes of tables in memory", sizes)?;
        let homes = status.homes.iter();
        let homes = homes.map(|h| (vec![("home", h.name.clone())], h.position as f64));
        gauges(to, "position", "How far a home's stream was applied", homes)?;
        let parents = status.parents.iter();
        let parents = parents.map(|parent| {
            let connected = f64::from(u8::from(parent.connected));
            (vec![("parent", parent.name.clone())], connected)
        });
        gauges(
            to,
            "parent_connected",
            "Whether a parent is reached",
            parents,
        )?;
        let parents = status.parents.iter();
        let parents = parents.filter_map(|parent| {
            let seconds = parent.round_trip_ms? / 1e3;
            Some((vec![("parent", parent.name.clone())], seconds))
        });
        gauges(
            to,
            "parent_round_trip_seconds",
            "The round trip to a parent when it was reached",
            parents,
        )?;
        traffic(to, status)?;
        if let Some(agreement) = &status.agreement {
            agreed(to, agreement)?;
        }
        if let Some(history) = &status.history {
            remembered(to, history)?;
        }
        granted(to, &status.privileges)?;
        children(to, &status.children)?;
        match &status.storage {
            Some(storage) => stored(to, storage),
            None => Ok(()),
        }
    }
}

/// The history of a home (rule R9).
fn remembered(to: &mut DescriptorEncoder<'_>, history: &HistoryStatus) -> fmt::Result {
    let incarnation = f64::from(history.incarnation);
    gauge(
        to,
        "incarnation",
        "How often an operator opened it as closed",
        incarnation,
    )?;
    let closed = f64::from(u8::from(history.closed.is_some()));
    gauge(to, "closed", "Whether it lets in operators only", closed)?;
    let met = history.met.iter().map(|met| {
        let labels = vec![
            ("by", met.by.clone()),
            ("incarnation", met.incarnation.to_string()),
            ("life", met.life.to_string()),
        ];
        (labels, met.position as f64)
    });
    gauges(
        to,
        "other_history_position",
        "How far another history of this home was, as the receipt proves that a node brought",
        met,
    )
}

fn traffic(to: &mut DescriptorEncoder<'_>, status: &Status) -> fmt::Result {
    let lines = |value: fn(&TrafficLine, bool) -> u64| {
        [("up", status.up), ("down", status.down)]
            .into_iter()
            .flat_map(move |(edges, line)| {
                [("sent", true), ("received", false)].map(|(way, sent)| {
                    let labels = vec![("edges", edges.to_owned()), ("way", way.to_owned())];
                    (labels, value(&line, sent))
                })
            })
    };
    let bytes = |line: &TrafficLine, sent| {
        if sent {
            line.bytes_sent
        } else {
            line.bytes_received
        }
    };
    counters(
        to,
        "bytes",
        "Bytes on edges to parents and children",
        lines(bytes),
    )?;
    let frames = |line: &TrafficLine, sent| {
        if sent {
            line.frames_sent
        } else {
            line.frames_received
        }
    };
    counters(
        to,
        "frames",
        "Frames on edges to parents and children",
        lines(frames),
    )
}

fn agreed(to: &mut DescriptorEncoder<'_>, agreement: &AgreementStatus) -> fmt::Result {
    gauge(
        to,
        "votes_in_doubt",
        "Votes for transactions over several homes whose outcome is not known",
        agreement.in_doubt as f64,
    )?;
    gauge(
        to,
        "votes_in_doubt_oldest_seconds",
        "How long the oldest of them has been in doubt",
        agreement.oldest_s,
    )?;
    counter(
        to,
        "votes_asked",
        "Questions to other homes about votes in doubt",
        agreement.asked,
    )?;
    let by = |who: &str, count| (vec![("by", who.to_owned())], count);
    let resolved = [
        by("member", agreement.resolved_by_member),
        by("home", agreement.resolved_by_homes),
        by("operator", agreement.resolved_by_operators),
    ];
    counters(
        to,
        "votes_resolved",
        "Votes whose outcome was told, by whom",
        resolved,
    )?;
    counter(
        to,
        "votes_ended_otherwise",
        "News that a transaction ended otherwise elsewhere than here",
        agreement.ended_otherwise,
    )
}

/// What is granted to those below, and who waits because of that (rules C1 to C5).
fn granted(to: &mut DescriptorEncoder<'_>, privileges: &PrivilegesStatus) -> fmt::Result {
    let of = |mode: &str, count: u64| (vec![("mode", mode.to_owned())], count as f64);
    let leases = [
        of("write", privileges.write_leases),
        of("read", privileges.read_leases),
    ];
    gauges(
        to,
        "leases",
        "Leases that nodes below hold, of a child in a segment each",
        leases,
    )?;
    gauge(
        to,
        "pulls",
        "Hard reads that wait for what nodes with leases to write have answered",
        privileges.pulls as f64,
    )?;
    let of_homes = [
        ("locks", "Locks that sessions hold", privileges.locks),
        (
            "lock_waiters",
            "Sessions that wait for locks",
            privileges.lock_waiters,
        ),
        (
            "answers_withheld",
            "Answers to commits that wait until readers with leases have seen them",
            privileges.answers_withheld,
        ),
    ];
    for (name, help, count) in of_homes {
        if let Some(count) = count {
            gauge(to, name, help, count as f64)?;
        }
    }
    let Some(waited) = privileges.writers_waited_s else {
        return Ok(());
    };
    counter_of_seconds(
        to,
        "writers_waited_seconds",
        "Time that answers to commits have waited for readers with leases",
        waited,
    )
}

fn children(to: &mut DescriptorEncoder<'_>, children: &[ChildStatus]) -> fmt::Result {
    let named = |child: &ChildStatus| {
        vec![
            ("child", child.name.clone()),
            ("kind", child.kind.to_owned()),
            ("edge", child.edge.to_string()),
        ]
    };
    gauge(to, "children", "Children connected", children.len() as f64)?;
    let stuck = children.iter().filter(|child| child.stuck).count();
    gauge(
        to,
        "children_stuck",
        "Children that lag and acknowledge nothing",
        stuck as f64,
    )?;
    let lags = children.iter().map(|child| {
        let lag: u64 = child.homes.iter().map(|at| at.lag).sum();
        (named(child), lag as f64)
    });
    gauges(
        to,
        "child_lag",
        "Positions that a child has not acknowledged",
        lags,
    )?;
    let queues = children.iter();
    let queues = queues.map(|child| (named(child), child.queued_bytes as f64));
    gauges(
        to,
        "child_queue_bytes",
        "Bytes that wait to be written to a child",
        queues,
    )
}

fn stored(to: &mut DescriptorEncoder<'_>, storage: &StorageStatus) -> fmt::Result {
    gauge(
        to,
        "room",
        "Whether commits are taken",
        f64::from(u8::from(storage.room)),
    )?;
    let tables = storage.tables.iter();
    let tables = tables.map(|(t, line)| (vec![("table", (*t).to_owned())], line.bytes as f64));
    gauges(to, "store_bytes", "Bytes in the store", tables)?;
    if let Some(limit) = storage.limit_bytes {
        gauge(
            to,
            "store_limit_bytes",
            "The most that the store may hold",
            limit as f64,
        )?;
    }
    counter(
        to,
        "opened",
        "How often the home was opened",
        storage.opened.times,
    )?;
    counter(
        to,
        "commit_batches",
        "Batches made durable",
        storage.batches,
    )?;
    counter(
        to,
        "commit_groups",
        "Syncs that made batches durable",
        storage.groups,
    )?;
    counter(
        to,
        "commit_bytes",
        "Bytes of batches made durable",
        storage.batch_bytes,
    )?;
    counter_of_seconds(to, "commit_seconds", "Time in syncs", storage.commit_s)
}

fn gauge(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    metric.encode_gauge(&value)
}

fn gauges(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, f64)>,
) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        let labels = refs(&labels);
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn counter(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
}

fn counter_of_seconds(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    seconds: f64,
) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, f64>(&seconds, None)
}

fn counters(
    to: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut metric = to.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        let labels = refs(&labels);
        let mut one = metric.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
    }
    Ok(())
}

fn refs(labels: &Labels) -> impl EncodeLabelSet + '_ {
    let labels = labels.iter();
    let labels = labels.map(|(name, value)| (*name, value.as_str()));
    labels.collect::<Vec<_>>()
}
