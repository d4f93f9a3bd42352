//! A node that keeps no rules.

use std::sync::Arc;
use std::time::Duration;

use thorp_model::{
    Delegation, DelegationText, HomeId, Incarnation, LifeId, Mark, Message, Peer, Point, Position,
    Proof, Receipt, ReceiptKey, SignedText, codec,
};
use thorp_net::driver::{net_config, runtime_of};
use thorp_net::{Address, FrameReceiver, FrameSender, Identity, Listener, dial};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::patience::{SOON, eventually};

/// A node with an ordinary certificate that greets and sends what a test wants. It runs on threads of its own, until it
/// and its edges are dropped.
pub struct Attacker {
    identity: Identity,
    runtime: Arc<Runtime>,
}

/// An edge on which an attacker was let in.
pub struct AttackerEdge {
    sender: FrameSender,
    receiver: FrameReceiver,
    runtime: Arc<Runtime>,
}

impl Attacker {
    /// An attacker with this certificate.
    pub fn new(identity: Identity) -> Self {
        let runtime = Arc::new(runtime_of(2).unwrap());
        Self { identity, runtime }
    }

    /// An attacker with the certificate in a directory.
    pub fn at(identity: &str) -> Self {
        Self::new(Identity::load(identity).unwrap())
    }

    /// How it would greet if it kept the rules. A test changes what it wants.
    pub fn greeting(&self) -> Peer {
        self.identity.greeting(0xbad)
    }

    /// Signs a text with its own key, whosever text it is.
    pub fn sign(&self, text: DelegationText) -> Delegation {
        let proof = self.prove(&text);
        Delegation { text, proof }
    }

    /// The proof that a text is its own, whosever text it is.
    pub fn prove(&self, text: &dyn SignedText) -> Proof {
        self.identity.signer().sign(text)
    }

    /// Calls a node, greets so, and claims to hold nothing.
    ///
    /// # Errors
    ///
    /// The words with which it is turned away.
    pub fn call(&self, address: &str, hello: &Peer) -> Result<AttackerEdge, String> {
        let edge = self.call_and_wait(address, hello)?;
        edge.send(&Message::Claims(Vec::new()));
        Ok(edge)
    }

    /// As [`Attacker::call`], and claims nothing yet: its streams do not begin before that.
    ///
    /// # Errors
    ///
    /// The words with which it is turned away.
    pub fn call_and_wait(&self, address: &str, hello: &Peer) -> Result<AttackerEdge, String> {
        let address = [address.parse::<Address>().unwrap()];
        let (hello, config) = (encoded(hello), net_config(hello.kind));
        let calling = dial(&address, &self.identity, None, &hello, &config);
        let called = self.runtime.block_on(calling);
        let (sender, receiver) = called.map_err(|error| error.to_string())?.split();
        Ok(AttackerEdge {
            sender,
            receiver,
            runtime: Arc::clone(&self.runtime),
        })
    }

    /// Listens, lets all callers in, and greets them so. It says nothing more, and ends with this attacker.
    pub fn listen(&self, address: &str, hello: &Peer) {
        self.listen_and_say(address, hello, &[]);
    }

    /// As [`Attacker::listen`], and sends each caller these messages.
    pub fn listen_and_say(&self, address: &str, hello: &Peer, messages: &[Message]) {
        let frames = messages
            .iter()
            .map(|message| codec::encode(message).unwrap());
        let frames: Vec<Vec<u8>> = frames.collect();
        let address: Address = address.parse().unwrap();
        let (hello, config) = (encoded(hello), net_config(hello.kind));
        let binding = Listener::bind(&address, &self.identity, config);
        let mut listener = self.runtime.block_on(binding).unwrap();
        self.runtime.spawn(async move {
            let mut callers = Vec::new();
            loop {
                // Callers that give up meanwhile are no concern of it.
                if let Ok(caller) = listener.accept().await {
                    let (sender, receiver) = caller.accept(&hello).unwrap().split();
                    for frame in &frames {
                        sender.try_send(frame.clone()).unwrap();
                    }
                    callers.push((sender, receiver));
                }
            }
        });
    }
}

/// A receipt of a home that nobody but a node without a history would take.
pub fn made_up_receipt(home: HomeId) -> Receipt {
    let point = Point {
        life: LifeId {
            counter: 1,
            random: 1,
        },
        mark: Mark(1),
        position: Position(0),
        clock: 0,
    };
    let key = ReceiptKey::new([0xba; 32]);
    Receipt::new(home, Incarnation::default(), point, &key)
}

impl AttackerEdge {
    /// Sends a message.
    pub fn send(&self, message: &Message) {
        self.send_bytes(codec::encode(message).unwrap());
    }

    /// Sends a message, unless the edge is full or has ended; whether it did.
    pub fn offer(&self, message: &Message) -> bool {
        let frame = codec::encode(message).unwrap();
        self.sender.try_send(frame).is_ok()
    }

    /// Sends a frame that may be no message.
    pub fn send_bytes(&self, frame: Vec<u8>) {
        self.sender.try_send(frame).unwrap();
    }

    /// Waits until the other end hangs up, and gives it no other reason to: it hears that this end is alive.
    ///
    /// # Panics
    ///
    /// It does not hang up.
    pub fn eventually_ends(&mut self) {
        eventually("the other end hangs up", || {
            match self.receive_within(ALIVE_EVERY) {
                Some(message) => message.is_none(),
                None => {
                    let alive = codec::encode(&Message::Alive).unwrap();
                    // Fails if it has just hung up.
                    let _ = self.sender.try_send(alive);
                    false
                }
            }
        });
    }

    /// The next message, or none if the other end hangs up.
    ///
    /// # Panics
    ///
    /// Neither happens within [`SOON`], or what comes is no message.
    pub fn receive(&mut self) -> Option<Message> {
        let received = self.receive_within(SOON);
        received.expect("a message or the end, in time")
    }

    /// As [`AttackerEdge::receive`]; none if neither happens within a time.
    pub fn receive_within(&mut self, time: Duration) -> Option<Option<Message>> {
        let receiving = self.receiver.recv();
        let received = async { timeout(time, receiving).await };
        match self.runtime.block_on(received).ok()? {
            Ok(Some(frame)) => Some(Some(codec::decode(&frame).unwrap())),
            // However it ends.
            Ok(None) | Err(_) => Some(None),
        }
    }
}

const ALIVE_EVERY: Duration = Duration::from_millis(200);

fn encoded(hello: &Peer) -> Vec<u8> {
    postcard::to_allocvec(hello).unwrap()
}
