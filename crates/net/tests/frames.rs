//! Frames between two nodes that are who they say they are.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, not their helpers"
)]

mod common;

use std::time::Duration;

use common::{ANSWER, GREETING, Village, any, at_home, at_member};
use thorp_net::{
    Config, Error, FRAME_BYTES_MAX, FrameReceiver, FrameSender, Limits, Listener, Role, SendError,
    Traffic,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Waits until the peer has been written everything.
async fn drained(sender: &FrameSender) {
    while sender.queued().frames > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn next(receiver: &mut FrameReceiver) -> Vec<u8> {
    receiver.recv().await.unwrap().unwrap()
}

#[tokio::test]
async fn greetings_and_frames_over_tcp_and_unix_sockets() {
    let village = Village::new();
    for address in [any(), village.unix()] {
        let (home, member) = village.connect(&address, at_home(), at_member()).await;
        assert_eq!(
            (member.peer().role, &member.peer().hello[..]),
            (Role::HOME, &b"from alps"[..])
        );
        assert_eq!(
            (home.peer().role, &home.peer().hello[..]),
            (Role::MEMBER, &b"from anna"[..])
        );
        assert_eq!(
            (&member.peer().certified, &home.peer().certified),
            (village.home.certified(), village.member.certified())
        );
        let ((up, mut down), (home_out, mut home_in)) = (member.split(), home.split());
        up.try_send(b"question".to_vec()).unwrap();
        up.try_send(vec![]).unwrap();
        assert_eq!(next(&mut home_in).await, b"question");
        assert_eq!(next(&mut home_in).await, b"");
        home_out.try_send(vec![7; 8192]).unwrap();
        assert_eq!(next(&mut down).await, vec![7; 8192]);
        drained(&up).await;
        let want = Traffic {
            bytes_sent: 4 + 8 + 4,
            frames_sent: 2,
            bytes_received: 4 + 8192,
            frames_received: 1,
        };
        assert_eq!(up.traffic(), want);
    }
}

#[tokio::test]
async fn the_socket_file_is_private_replaced_when_dead_and_taken_away() {
    use std::os::unix::fs::PermissionsExt;
    let village = Village::new();
    let path = village.dir.join("home.sock");
    // A dead process leaves its file behind.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listener = Listener::bind(&village.unix(), &village.home, at_home())
        .await
        .unwrap();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let error = Listener::bind(&village.unix(), &village.home, at_home())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    drop(listener);
    assert!(!path.exists());
    std::fs::write(&path, "no socket").unwrap();
    Listener::bind(&village.unix(), &village.home, at_home())
        .await
        .unwrap_err();
    assert!(
        path.exists(),
        "a file that is no socket is nobody's to take away"
    );
}

#[tokio::test]
async fn the_longest_frames_pass_whole_both_ways() {
    let village = Village::new();
    let [(home_out, mut home_in), (up, mut down)] = village.pair().await;
    let frame: Vec<u8> = (0..FRAME_BYTES_MAX)
        .map(|index| ((index * 31) >> 7) as u8)
        .collect();
    let too_long = SendError::TooLong {
        bytes: FRAME_BYTES_MAX + 1,
        bytes_max: FRAME_BYTES_MAX,
    };
    assert_eq!(up.try_send(vec![0; FRAME_BYTES_MAX + 1]), Err(too_long));
    for sender in [&home_out, &up] {
        sender.try_send(frame.clone()).unwrap();
        sender.try_send(b"after".to_vec()).unwrap();
    }
    let (at_home, at_member) = tokio::join!(
        async { [next(&mut home_in).await, next(&mut home_in).await] },
        async { [next(&mut down).await, next(&mut down).await] }
    );
    for [long, after] in [at_home, at_member] {
        assert!(long == frame, "the long frame arrived changed");
        assert_eq!(after, b"after");
    }
}

#[tokio::test]
async fn thousands_of_small_frames_cross_each_other_in_order() {
    const FRAMES: u32 = 20_000;
    let village = Village::new();
    let [(home_out, mut home_in), (up, mut down)] = village.pair().await;
    let send = |sender: &FrameSender| {
        for number in 0..FRAMES {
            let mut frame = number.to_le_bytes().to_vec();
            frame.resize(4 + number as usize % 97, 0xAB);
            sender.try_send(frame).unwrap();
        }
    };
    send(&home_out);
    send(&up);
    async fn check(receiver: &mut FrameReceiver) {
        for number in 0..FRAMES {
            let frame = next(receiver).await;
            assert_eq!(frame.len(), 4 + number as usize % 97);
            assert_eq!(frame[..4], number.to_le_bytes());
        }
    }
    tokio::join!(check(&mut home_in), check(&mut down));
    drained(&up).await;
    drained(&home_out).await;
    let traffic = up.traffic();
    assert_eq!(
        (traffic.frames_sent, traffic.frames_received),
        (u64::from(FRAMES), u64::from(FRAMES))
    );
    assert_eq!(traffic.bytes_sent, home_out.traffic().bytes_received);
}

#[tokio::test]
async fn a_recv_that_is_given_up_loses_nothing() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut raw = village.raw(listener.address()).await;
    raw.write_all(GREETING).await.unwrap();
    let (_sender, mut receiver) = listener
        .accept()
        .await
        .unwrap()
        .accept(b"")
        .unwrap()
        .split();
    for byte in b"\x05\x00\x00\x00abcde" {
        // Nothing is complete yet, so giving up is what must happen.
        tokio::time::timeout(Duration::from_millis(2), receiver.recv())
            .await
            .unwrap_err();
        raw.write_all(&[*byte]).await.unwrap();
        raw.flush().await.unwrap();
    }
    assert_eq!(next(&mut receiver).await, b"abcde");
}

#[tokio::test]
async fn a_goodbye_is_heard_after_the_last_frame() {
    let village = Village::new();
    let [(home_out, mut home_in), (up, mut down)] = village.pair().await;
    for number in 0..100 {
        up.try_send(vec![number; 1000]).unwrap();
    }
    up.close();
    assert_eq!(up.try_send(vec![]), Err(SendError::Closed));
    for number in 0..100 {
        assert_eq!(next(&mut home_in).await, vec![number; 1000]);
    }
    assert!(home_in.recv().await.unwrap().is_none());
    // The other direction is still open.
    home_out.try_send(b"still here".to_vec()).unwrap();
    assert_eq!(next(&mut down).await, b"still here");
    drop(home_out);
    assert!(down.recv().await.unwrap().is_none());
}

#[tokio::test]
async fn a_connection_that_dies_is_not_taken_for_a_goodbye() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    for (bytes, lost) in [
        (&b"\x01\x00\x00\x00a"[..], true),
        (b"\x01\x00", false),
        (b"\x09\x00\x00\x00abc", false),
    ] {
        let mut raw = village.raw(listener.address()).await;
        raw.write_all(GREETING).await.unwrap();
        let (_sender, mut receiver) = listener
            .accept()
            .await
            .unwrap()
            .accept(b"")
            .unwrap()
            .split();
        let mut answer = vec![0; ANSWER.len()];
        raw.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, ANSWER);
        raw.write_all(bytes).await.unwrap();
        raw.flush().await.unwrap();
        // The socket closes, TLS does not.
        drop(raw.into_inner().0);
        if lost {
            assert_eq!(next(&mut receiver).await, b"a");
        }
        let error = receiver.recv().await.unwrap_err();
        match lost {
            true => assert!(matches!(error, Error::Lost), "{error}"),
            false => assert!(matches!(error, Error::Truncated { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_goodbye_in_the_middle_of_a_frame_is_none() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut raw = village.raw(listener.address()).await;
    raw.write_all(GREETING).await.unwrap();
    let (_sender, mut receiver) = listener
        .accept()
        .await
        .unwrap()
        .accept(b"")
        .unwrap()
        .split();
    raw.write_all(b"\x09\x00\x00\x00abc").await.unwrap();
    raw.shutdown().await.unwrap();
    let error = receiver.recv().await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Truncated {
                bytes: 7,
                bytes_due: 13
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn a_frame_above_the_limit_is_not_read() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    for announced in [FRAME_BYTES_MAX as u32 + 1, u32::MAX] {
        let mut raw = village.raw(listener.address()).await;
        raw.write_all(GREETING).await.unwrap();
        let (_sender, mut receiver) = listener
            .accept()
            .await
            .unwrap()
            .accept(b"")
            .unwrap()
            .split();
        raw.write_all(&announced.to_le_bytes()).await.unwrap();
        let error = receiver.recv().await.unwrap_err();
        assert!(
            matches!(
                error,
                Error::FrameTooLong {
                    bytes_max: FRAME_BYTES_MAX,
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[tokio::test]
async fn garbage_below_tls_is_an_error() {
    let village = Village::new();
    let mut listener = Listener::bind(&any(), &village.home, at_home())
        .await
        .unwrap();
    let mut raw = village.raw(listener.address()).await;
    raw.write_all(GREETING).await.unwrap();
    let (_sender, mut receiver) = listener
        .accept()
        .await
        .unwrap()
        .accept(b"")
        .unwrap()
        .split();
    let (mut socket, _) = raw.into_inner();
    socket
        .write_all(b"\x17\x03\x03\x00\x20this is not what the cipher wants")
        .await
        .unwrap();
    let error = receiver.recv().await.unwrap_err();
    assert!(matches!(error, Error::Tls(_)), "{error}");
}

#[tokio::test]
async fn a_peer_that_does_not_read_fills_its_queue_and_is_cut_off() {
    const QUEUE: usize = 1 << 20;
    let village = Village::new();
    let home = Config {
        limits: Limits {
            queue_bytes_max: QUEUE,
            ..Limits::default()
        },
        ..at_home()
    };
    let (home, member) = village.connect(&any(), home, at_member()).await;
    let ((out, mut inward), (_up, mut down)) = (home.split(), member.split());
    let mut sent: u64 = 0;
    let full = loop {
        match out.try_send(vec![1; 8192]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(out.queued().bytes <= QUEUE);
        // Lets the writer fill the buffers of the two systems.
        tokio::task::yield_now().await;
    };
    assert!(matches!(full, SendError::Full(_)), "{full}");
    out.abort();
    assert_eq!(out.queued().bytes, 0);
    assert_eq!(out.try_send(vec![]), Err(SendError::Closed));
    assert!(matches!(inward.recv().await, Err(Error::CutOff)));
    drop((out, inward));
    // The peer gets what was under way, and then no goodbye.
    let mut received = 0;
    let error = loop {
        match down.recv().await {
            Ok(Some(_)) => received += 1,
            Ok(None) => panic!("a cut is not a goodbye"),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            error,
            Error::Lost | Error::Truncated { .. } | Error::Io { .. }
        ),
        "{error}"
    );
    assert!(received < sent);
}

#[tokio::test]
async fn a_receiver_that_waits_pushes_back_and_loses_nothing() {
    let village = Village::new();
    let [(home_out, _home_in), (_up, mut down)] = village.pair().await;
    let send = async {
        let mut waited = false;
        for number in 0..4000u32 {
            while home_out.queued().bytes > 1 << 20 {
                waited = true;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            home_out
                .try_send(number.to_le_bytes().repeat(2048))
                .unwrap();
        }
        assert!(waited, "32 MiB fit into no system's buffers");
    };
    let receive = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        for number in 0..4000u32 {
            assert_eq!(next(&mut down).await[..4], number.to_le_bytes());
        }
    };
    tokio::join!(send, receive);
}

#[tokio::test]
async fn a_goodbye_does_not_wait_for_ever_for_a_peer_that_does_not_read() {
    let village = Village::new();
    let linger = Duration::from_millis(50);
    let home = Config {
        limits: Limits {
            close_linger_max: linger,
            ..Limits::default()
        },
        ..at_home()
    };
    let (home, _member) = village.connect(&any(), home, at_member()).await;
    let (out, mut inward) = home.split();
    for _ in 0..3 {
        out.try_send(vec![0; FRAME_BYTES_MAX]).unwrap();
    }
    out.close();
    let error = inward.recv().await.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(
        out.queued().bytes,
        0,
        "what could not be sent is given back"
    );
}
