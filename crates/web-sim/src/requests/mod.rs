//! The same promise with requests as the source: a keeper, proxies that come and go, and an application that works on behind its answers.
//!
//! It runs what ships: the keeper's side (`Lives`, over `Ledger`), the proxy's side (`OpenUpdates`), which answers end an update, and the
//! coherent cache. What is simulated are processes, their sockets, the file with the lives of proxies, clocks, and the application. Loads and
//! stores of a table are not held up here: the other world does that.

mod application;
mod keeper;
mod keeper_process;
mod plan;
mod proxy;
mod proxy_process;
mod run;
mod world;

pub(crate) use run::run as run_requests;
