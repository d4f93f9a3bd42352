//! The authority's process: it answers nodes that join, and nodes whose certificates age.
//!
//! A caller greets as to any node; the answer's hello is its certificate. A node that joins has no certificate of the village yet:
//! it shows one that it has signed itself, so TLS proves that it has the key, and a token. A node that renews shows its
//! certificate.

use std::time::{Duration, Instant};

use tracing::{info, warn};

use crate::driver::Lines;
use crate::identity::{Answer, Standing, authority_serving};
use crate::places::Origin;
use crate::{
    Address, CertificateAuthority, Config, Error, IdentityError, Incoming, Listener, Role,
};

/// Answers joins and renewals. Any machine with the authority's directory may run it.
#[derive(Debug)]
pub struct AuthorityServer {
    authority: CertificateAuthority,
    listener: Listener,
    /// Answers for each address.
    answers: Lines<Origin>,
    said: Lines<Option<Origin>>,
}

impl AuthorityServer {
    /// Listens. Nodes are told `public` as its address, or else the address that it listens on.
    ///
    /// # Errors
    ///
    /// The system refuses, or the authority's directory cannot be written.
    pub async fn bind(
        authority: CertificateAuthority,
        address: &Address,
        public: Option<&Address>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let identity = authority_serving(&authority)?;
        let listener = Listener::bind(address, &identity, Config::new(Role::AUTHORITY)).await?;
        authority.set_address(public.unwrap_or(listener.address()))?;
        Ok(Self {
            authority,
            listener,
            answers: Lines::of(ANSWERS_MAX),
            said: Lines::new(),
        })
    }

    /// Where it listens, with the port that the system chose.
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Answers until `shutdown`.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                arrived = self.listener.accept() => match arrived {
                    Ok(incoming) => self.answer(incoming),
                    Err(failed) => self.say(failed.origin, &failed.address, &failed.error.to_string()),
                },
            }
        }
        // What was just answered is still being written.
        tokio::time::sleep(LAST_WORDS).await;
    }

    fn answer(&mut self, incoming: Incoming) {
        let origin = incoming.origin();
        let address = incoming.peer().address.clone();
        if self.answers.write(Instant::now(), origin).is_none() {
            return incoming.reject("too many requests from this address: try again in a minute");
        }
        let (role, standing) = (incoming.peer().role, &incoming.peer().standing);
        let answered = match role {
            Role::JOIN => self.join(standing, &incoming.peer().hello),
            Role::RENEW => self.authority.renew(standing),
            _ => Err(IdentityError::Token {
                why: "this is the authority, and no home or site: give the address of one of these",
            }),
        };
        match answered {
            Ok(answer) => {
                info!(address, "{} has a new certificate", answer.subject);
                incoming.answer(answer.text.as_bytes());
            }
            Err(error) => {
                let words = error.to_string();
                self.say(Some(origin), &address, &words);
                incoming.reject(&words);
            }
        }
    }

    fn join(&self, standing: &Standing, hello: &[u8]) -> Result<Answer, IdentityError> {
        let hello = String::from_utf8_lossy(hello);
        let (secret, place) = hello.split_once(' ').unwrap_or((&hello, ""));
        let place = place.parse().unwrap_or_default();
        self.authority.join(secret, place, &standing.public_key)
    }

    fn say(&mut self, origin: Option<Origin>, address: &str, words: &str) {
        if let Some(left_out) = self.said.write(Instant::now(), origin) {
            warn!(address, "a caller got no certificate: {words}{left_out}");
        }
    }
}

impl From<Error> for IdentityError {
    fn from(error: Error) -> Self {
        Self::Authority {
            why: error.to_string(),
        }
    }
}

/// Of one address in a minute.
const ANSWERS_MAX: usize = 60;
const LAST_WORDS: Duration = Duration::from_millis(200);
