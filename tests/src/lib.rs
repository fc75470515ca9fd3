//! shared parts of the cross-crate tests
