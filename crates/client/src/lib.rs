//! The client library: sessions, transactions and typed objects.
