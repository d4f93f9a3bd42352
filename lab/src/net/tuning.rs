//! How the TCP of a spoke is set. A kernel's defaults are for short roads.

use super::namespace::Namespace;
use crate::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;

const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";

/// Settings of the kernel for each namespace.
#[derive(Clone, Debug, Serialize)]
pub struct Tuning {
    /// Who decides how fast to send: `cubic`, `reno`, `bbr`; `None` leaves what the machine has.
    pub congestion: Option<String>,
    /// By name, with dots.
    pub sysctls: BTreeMap<String, String>,
}

impl Default for Tuning {
    fn default() -> Self {
        let fitting = [
            // 64 MiB fill half a second of a gigabit; the defaults stop at six. Reading begins with 4 MiB: a small first
            // window that arrives in one burst can keep a kernel from ever enlarging it.
            ("net.ipv4.tcp_rmem", "4096 4194304 67108864"),
            ("net.ipv4.tcp_wmem", "4096 65536 67108864"),
            // Else a connection that was idle for a moment begins anew, and a request after a pause takes several round trips.
            ("net.ipv4.tcp_slow_start_after_idle", "0"),
            // Else a connection begins with what an earlier one, perhaps before a change of the link, has learnt.
            ("net.ipv4.tcp_no_metrics_save", "1"),
        ];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Tuning {
            congestion: None,
            sysctls: fitting.into_iter().map(own).collect(),
        }
    }
}

impl Tuning {
    /// Takes one setting, as `net.ipv4.name=value`.
    pub fn set(&mut self, setting: &str) -> Outcome<()> {
        let (name, value) = crate::quantity::assignment(setting)?;
        let plain = name.starts_with("net.")
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
        // Others are the whole machine's, not a namespace's.
        if !plain || name.contains("..") {
            return Err(
                format!("{name:?} is no setting of a network: they begin with net.").into(),
            );
        }
        self.sysctls.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    pub(super) fn apply(&self, namespace: &Namespace) -> Outcome<()> {
        for (name, value) in &self.sysctls {
            let written = namespace.within(|| fs::write(path(name), value))?;
            written.map_err(|why| format!("{name}={value} in {}: {why}", namespace.name()))?;
        }
        match &self.congestion {
            Some(congestion) => set_congestion(congestion, namespace),
            None => Ok(()),
        }
    }

    /// What is set there now.
    pub fn report(&self, namespace: &Namespace) -> Outcome<BTreeMap<String, String>> {
        let names = self.sysctls.keys().map(String::as_str).chain([CONGESTION]);
        namespace.within(|| names.map(|name| (name.to_owned(), read(name))).collect())
    }
}

/// A namespace may only choose what the machine allows to all. That list is asked for at the moment of choosing, and not
/// again: it is as it was directly afterwards.
fn set_congestion(congestion: &str, namespace: &Namespace) -> Outcome<()> {
    let allowed = read(ALLOWED);
    let missing = !allowed.split_whitespace().any(|name| name == congestion);
    if missing {
        let longer = format!("{allowed} {congestion}");
        let available = || read("net.ipv4.tcp_available_congestion_control");
        let written = fs::write(path(ALLOWED), longer);
        written.map_err(|why| {
            format!(
                "no congestion control {congestion:?}: {why}; there is {}",
                available()
            )
        })?;
    }
    let chosen = namespace.within(|| fs::write(path(CONGESTION), congestion))?;
    if missing {
        fs::write(path(ALLOWED), allowed)?;
    }
    Ok(chosen.map_err(|why| format!("{congestion} in {}: {why}", namespace.name()))?)
}

fn read(name: &str) -> String {
    let value = fs::read_to_string(path(name)).unwrap_or_default();
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_and_replace_defaults() {
        let mut tuning = Tuning::default();
        tuning.set("net.ipv4.tcp_wmem=1 2 3").expect("a setting");
        assert_eq!(tuning.sysctls["net.ipv4.tcp_wmem"], "1 2 3");
        assert_eq!(path("net.ipv4.tcp_wmem"), "/proc/sys/net/ipv4/tcp_wmem");
    }

    #[test]
    fn what_is_the_machines_is_refused() {
        for setting in [
            "kernel.panic=1",
            "net.ipv4.x",
            "net.../../kernel/panic=1",
            "net./x=1",
            "=1",
        ] {
            assert!(Tuning::default().set(setting).is_err(), "{setting}");
        }
    }
}
