//! The bodies that the property tests run as well.

#[path = "../../properties/bodies/mod.rs"]
pub mod bodies;
