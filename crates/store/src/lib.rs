//! Durable storage behind the engine interface of the core.
