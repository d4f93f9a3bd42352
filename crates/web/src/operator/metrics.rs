//! The figures of a proxy and of its keeper, as Prometheus reads them.

use super::document::{ProxyStatus, Total};
use crate::status::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;

/// The content type of what [`text`] gives.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics in the OpenMetrics text format.
///
/// # Errors
///
/// A metric was described wrongly; our own mistake.
pub(super) fn text(status: ProxyStatus) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("thorp_web");
    registry.register_collector(Box::new(Reading(status)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Reading(ProxyStatus);

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = &self.0;
        let to = &mut Metrics(&mut encoder);
        to.gauge("uptime_seconds", "How long it runs", status.uptime_s as f64)?;
        to.flag("live", "Whether answers of routes can be hits", status.live)?;
        to.sizes(&status.entries, &status.others)?;
        to.counter(
            "hits",
            "Requests of routes answered from the cache",
            status.hits,
        )?;
        let help = "Requests of routes that got the answer to the request of another";
        to.counter("joined", help, status.joined)?;
        let help = "Requests of routes that were no hits";
        to.counters("missed", help, "reason", pairs(&status.missed))?;
        let help = "Requests of routes that went past the cache";
        to.counters("bypassed", help, "reason", pairs(&status.bypassed))?;
        let help = "Answers to routes that were not stored";
        to.counters("refused", help, "reason", pairs(&status.refused))?;
        let help = "Unsafe requests, where they are the source, by what became of them";
        to.counters("updated", help, "result", pairs(&status.updated))?;
        to.counter(
            "dropped",
            "Entries dropped because of a change",
            status.dropped,
        )?;
        let audit = &status.audit;
        let audits = [
            (String::from("same"), audit.same),
            (String::from("different"), audit.different),
            (String::from("changed"), audit.changed),
            (String::from("failed"), audit.failed),
            (String::from("skipped"), audit.skipped),
        ];
        let help = "Hits compared with the origin, by what was found";
        to.counters("audits", help, "result", audits)?;
        let reloads = [
            (String::from("taken"), status.reloads.taken),
            (String::from("refused"), status.reloads.refused),
        ];
        let help = "How often the configuration was read again";
        to.counters("reloads", help, "result", reloads)?;
        let live = status.homes.iter();
        let live = live.map(|home| (home.name.as_str(), f64::from(u8::from(home.live))));
        let help = "Whether answers that rest on a Thorp home can be hits";
        to.gauges("home_live", help, "home", live)?;
        match &status.keeper {
            Some(keeper) => to.keeper(keeper, status),
            None => Ok(()),
        }
    }
}

fn pairs(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = (String, u64)> {
    counts
        .iter()
        .map(|(reason, count)| (reason.clone(), *count))
}

/// Writes metrics.
struct Metrics<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Metrics<'_, '_> {
    fn sizes(&mut self, entries: &Total, others: &Total) -> fmt::Result {
        let of = |value: fn(&Total) -> f64| [("routes", value(entries)), ("others", value(others))];
        let help = "Answers of routes, and addresses without a route, that are stored";
        self.gauges("stored", help, "of", of(|total| total.count as f64))?;
        let help = "Their bytes";
        self.gauges("stored_bytes", help, "of", of(|total| total.bytes as f64))?;
        let help = "How many bytes they may have";
        self.gauges(
            "stored_bytes_max",
            help,
            "of",
            of(|total| total.bytes_max as f64),
        )
    }

    fn keeper(&mut self, keeper: &Status, status: &ProxyStatus) -> fmt::Result {
        self.flag(
            "keeper_live",
            "Whether commits, or unsafe requests, wait for the keeper",
            keeper.live,
        )?;
        let help = "Whether all commits of the last minute have waited for it";
        self.flag("keeper_coherent", help, keeper.coherent)?;
        let help = "Updates that it has noted, and that are not known to be visible";
        self.gauge("keeper_open_updates", help, keeper.open_updates as f64)?;
        let help = "Commits that change something, or unsafe requests";
        self.counter("keeper_commits", help, keeper.commits)?;
        let help = "Those of them that ended all answers";
        self.counter("keeper_unknown", help, keeper.unknown)?;
        let help = "Commits that did not wait for it";
        self.counter("keeper_not_waited", help, keeper.not_waited)?;
        let help = "Those of them that have waited for it";
        self.counter("keeper_waits", help, keeper.waits)?;
        let help = "How long these have waited together";
        self.seconds_in_all("keeper_waited_seconds", help, keeper.waited_us)?;
        let help = "The longest of these waits";
        let longest = keeper.waited_us_max as f64 / 1e6;
        self.gauge("keeper_waited_seconds_max", help, longest)?;
        let help = "How often keys have changed";
        self.counter("keeper_key_changes", help, status.key_changes)?;
        let keys = status.keys.iter();
        let keys = keys.map(|line| (line.key.clone(), line.changes));
        let help = "The same for each of the keys that change most";
        self.counters("keeper_changes_of_key", help, "key", keys)
    }

    fn flag(&mut self, name: &str, help: &str, value: bool) -> fmt::Result {
        self.gauge(name, help, f64::from(u8::from(value)))
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&value)
    }

    fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (of, value) in values {
            let labels = labels(label, of);
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
    }

    fn seconds_in_all(&mut self, name: &str, help: &str, micros: u64) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, f64>(&(micros as f64 / 1e6), None)
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        values: impl IntoIterator<Item = (String, u64)>,
    ) -> fmt::Result {
        let mut metric = self
            .0
            .encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let labels = labels(label, &of);
            let mut one = metric.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }
}

fn labels<'a>(label: &'static str, value: &'a str) -> impl EncodeLabelSet + 'a {
    vec![(label, value)]
}
