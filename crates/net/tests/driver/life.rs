//! Time, inspections, shutdown, and a driver that outlives its machine.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thorp_model::{Action, EdgeId, Event, Outbox};
use thorp_net::driver::{Driver, Ended, NoWorld, NotTaken, World, now};
use tokio::sync::oneshot;

use crate::common::Village;
use crate::toy::{ToyCommand, ToyEvent, child, heartbeat, parent, silent, start, toy};

#[tokio::test]
async fn ticks_come_at_the_deadline_never_before() {
    let village = Village::new();
    let (config, _) = parent(&village).await;
    let (mut driver, _handle) = Driver::new(config);
    let begin = now().mono;
    let (mut machine, heard) = toy(Box::new(move |now, input, _| {
        assert_eq!(*input, Event::Tick);
        assert!(now.mono >= begin.plus(10));
    }));
    machine.deadline = Some(begin.plus(10));
    let shutdown = tokio::time::sleep(Duration::from_millis(205));
    let mut world = NoWorld;
    let ended = driver.run(&mut machine, &mut world, Outbox::new(), shutdown);
    assert_eq!(ended.await, Ended::Shutdown);
    let ticks = heard.try_iter().count();
    assert!((10..=20).contains(&ticks), "{ticks} ticks in 200 ms");
}

#[tokio::test]
async fn inputs_of_a_handle_keep_their_order_and_inspections_see_what_came_before() {
    let village = Village::new();
    let (config, _) = parent(&village).await;
    let mut node = start(config, silent());
    let handle = node.handle.clone();
    let looked = std::thread::spawn(move || {
        for number in 1..=1000 {
            handle
                .event(Event::Command(ToyCommand::Echo(number)))
                .unwrap();
        }
        handle.inspect(|toy| toy.deadline.is_none()).wait()
    });
    for number in 1..=1000 {
        assert_eq!(node.next().await, Event::Command(ToyCommand::Echo(number)));
    }
    assert_eq!(looked.join().unwrap(), Some(true));
    node.task.abort();
    assert!(node.task.await.is_err());
    assert_eq!(node.handle.inspect(|_| ()).await, None);
    assert_eq!(node.handle.event(Event::Tick), Err(NotTaken::Gone));
}

#[tokio::test]
async fn requests_are_bounded() {
    let village = Village::new();
    let (mut config, _) = parent(&village).await;
    config.limits.asks_waiting_max = 2;
    let (mut driver, handle) = Driver::<crate::toy::Toy>::new(config);
    let request = ToyCommand::Request;
    assert_eq!(handle.command(request(1)), Ok(()));
    assert_eq!(handle.command(request(2)), Ok(()));
    assert_eq!(handle.command(request(3)), Err(NotTaken::TooMany));
    // An echo is taken all the same, and counts for nothing.
    for number in 3..=5 {
        assert_eq!(handle.command(ToyCommand::Echo(number)), Ok(()));
    }
    let (mut machine, heard) = toy(silent());
    let shutdown = tokio::time::sleep(Duration::from_millis(20));
    driver
        .run(&mut machine, &mut NoWorld, Outbox::new(), shutdown)
        .await;
    assert_eq!(heard.try_iter().count(), 5);
    assert_eq!(handle.command(request(3)), Ok(()));
    assert_eq!(handle.command(request(4)), Ok(()));
    assert_eq!(handle.command(request(5)), Err(NotTaken::TooMany));
    driver.forget_inputs();
    assert_eq!(handle.command(request(5)), Ok(()));
}

#[tokio::test]
async fn a_halted_driver_runs_another_core_with_the_same_listener_and_handle() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let (mut driver, handle) = Driver::new(config);
    let mut member = start(child(&village, &address), silent());
    let halter = handle.clone();
    tokio::spawn(async move {
        while halter.edges().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        halter.halt();
        let _ = halter.event(Event::Command(ToyCommand::Echo(1)));
    });
    let (mut machine, _heard) = toy(silent());
    let mut world = NoWorld;
    let ended = driver.run(&mut machine, &mut world, Outbox::new(), pending());
    assert_eq!(ended.await, Ended::Halted);
    driver.forget_inputs();
    assert!(handle.edges().is_empty());

    let (mut machine, heard) = toy(silent());
    let done = tokio::time::sleep(Duration::from_millis(500));
    driver
        .run(&mut machine, &mut NoWorld, Outbox::new(), done)
        .await;
    let inputs: Vec<ToyEvent> = heard.try_iter().collect();
    assert!(
        matches!(&inputs[..], [Event::Connected { edge, .. }] if *edge > EdgeId(1)),
        "{inputs:?}"
    );
    assert!(matches!(member.next().await, Event::Connected { .. }));
    assert!(matches!(member.next().await, Event::Disconnected { .. }));
    assert!(matches!(member.next().await, Event::Connected { .. }));
}

/// Busy until somebody says otherwise; then it has something to say.
struct Disk(Arc<AtomicBool>);

impl World<Infallible> for Disk {
    fn act(&mut self, action: Infallible) {
        match action {}
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_the_disk_and_flushes_what_follows() {
    let village = Village::new();
    let (config, address) = parent(&village).await;
    let (mut driver, handle) = Driver::new(config);
    let mut member = start(child(&village, &address), silent());
    let busy = Arc::new(AtomicBool::new(true));
    let (mut machine, _heard) = toy(Box::new(|_, input, outbox| {
        if let Event::Command(_) = input {
            for number in 0..10_000 {
                outbox
                    .actions
                    .push(Action::Send(EdgeId(1), heartbeat(number)));
            }
        }
    }));
    let (shut, shutdown) = oneshot::channel::<()>();
    let disk = Arc::clone(&busy);
    tokio::spawn(async move {
        while handle.edges().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(shut);
        tokio::time::sleep(Duration::from_millis(50)).await;
        handle.event(Event::Command(ToyCommand::Echo(1))).unwrap();
        disk.store(false, Ordering::Relaxed);
    });
    let mut world = Disk(busy);
    let shutdown = async { drop(shutdown.await) };
    let ended = driver.run(&mut machine, &mut world, Outbox::new(), shutdown);
    assert_eq!(ended.await, Ended::Shutdown);
    drop(driver);
    member.next().await;
    for number in 0..10_000 {
        let Event::Received { message, .. } = member.next().await else {
            panic!("message {number} is missing");
        };
        assert_eq!(message, heartbeat(number));
    }
    assert!(matches!(member.next().await, Event::Disconnected { .. }));
}

#[tokio::test]
async fn a_disk_that_never_ends_does_not_hold_up_a_shutdown() {
    let village = Village::new();
    let (mut config, _) = parent(&village).await;
    let flush_time_max = Duration::from_millis(100);
    config.limits.flush_time_max = flush_time_max;
    let (mut driver, _handle) = Driver::new(config);
    let (mut machine, _heard) = toy(silent());
    let mut world = Disk(Arc::new(AtomicBool::new(true)));
    let begin = Instant::now();
    let shutdown = std::future::ready(());
    driver
        .run(&mut machine, &mut world, Outbox::new(), shutdown)
        .await;
    // That it ends at all is what is tested; and it has waited for the disk.
    assert!(begin.elapsed() >= flush_time_max);
}
