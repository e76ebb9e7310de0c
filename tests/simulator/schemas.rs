//! The official schemas, where their folder is there.

use serde_json::Value;

/// Holds a reply against the schema of its revision, as the answer to a method if that is known.
pub fn check(revision: &str, method: Option<&str>, reply: &Value) -> Result<(), String> {
    match crate::support::schema::schemas() {
        Some(schemas) => schemas.check(revision, method, reply),
        None => Ok(()),
    }
}
