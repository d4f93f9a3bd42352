//! What stands behind the port of clients now: a proxy, and perhaps a certificate. A reload changes them between two requests.

use super::serve::Proxy;
use super::tls::Tls;
use crate::source::Source;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// The proxy that answers the next request, and the certificate of the next connection.
///
/// Invariant: clients speak TLS for as long as it exists, or never.
pub struct Door<V: Source> {
    proxy: RwLock<Arc<Proxy<V>>>,
    tls: Option<RwLock<Tls>>,
}

impl<V: Source> fmt::Debug for Door<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("tls", &self.tls).finish()
    }
}

impl<V: Source + Send + Sync + 'static> Door<V> {
    /// A proxy, and what clients speak. Without a certificate that is HTTP without TLS.
    pub fn new(proxy: Arc<Proxy<V>>, tls: Option<Tls>) -> Self {
        Door {
            proxy: RwLock::new(proxy),
            tls: tls.map(RwLock::new),
        }
    }

    /// The proxy that answers now.
    pub fn proxy(&self) -> Arc<Proxy<V>> {
        Arc::clone(&self.proxy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate of connections that come now.
    pub(super) fn tls(&self) -> Option<Tls> {
        let tls = self.tls.as_ref()?.read();
        Some(tls.unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Another proxy answers from now on. What the one before has begun goes on, and it gives its memory back.
    pub fn renew(&self, proxy: Arc<Proxy<V>>) {
        let mut current = self.proxy.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, proxy);
        drop(current);
        before.retire();
    }

    /// Connections that come from now on have this certificate. False: clients speak no TLS here.
    pub fn renew_tls(&self, tls: Tls) -> bool {
        let Some(current) = &self.tls else {
            return false;
        };
        *current.write().unwrap_or_else(PoisonError::into_inner) = tls;
        true
    }
}
