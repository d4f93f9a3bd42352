//! Homes and sites: storage, sockets, configuration and metrics joined.
