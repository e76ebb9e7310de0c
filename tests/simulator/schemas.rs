//! The official schemas, where their folder is there. The mutants are built without this layer.

#[path = "../support/mod.rs"]
mod support;

use serde_json::Value;

/// Holds a reply against the schema of its revision, as the answer to a method if that is known.
pub fn check(revision: &str, method: Option<&str>, reply: &Value) -> Result<(), String> {
    match support::schema::schemas() {
        Some(schemas) => schemas.check(revision, method, reply),
        None => Ok(()),
    }
}
