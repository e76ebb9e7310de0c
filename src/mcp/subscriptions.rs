//! Subscriptions: the open `subscriptions/listen` requests.
//!
//! The tools of a server do not change while it runs, so a subscription gets its acknowledgement
//! and no other notification. A subscription is remembered until it is cancelled or the input ends,
//! since its id is in use until then (2026-07-28, Base Protocol, Patterns, Subscriptions).

use super::errors::{RpcError, RpcErrorCode};
use super::revision::RevisionId;
use crate::limits::SUBSCRIPTIONS_MAX;
use crate::mcp::owned::OwnedId;
use crate::wire::json::{Object, Value};
use crate::wire::message::Id;

/// The ids of the open subscriptions, in memory that is claimed once.
#[derive(Debug)]
pub struct Subscriptions {
    open: Vec<(OwnedId, RevisionId)>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self::new()
    }
}

impl Subscriptions {
    /// No subscriptions.
    pub fn new() -> Self {
        Self {
            open: Vec::with_capacity(SUBSCRIPTIONS_MAX),
        }
    }

    /// Whether a subscription with this id is open.
    #[inline]
    pub fn contains(&self, id: Id<'_>) -> bool {
        self.open.iter().any(|(kept, _)| kept.id() == id)
    }

    /// Opens a subscription.
    ///
    /// # Errors
    ///
    /// If too many subscriptions are open, or the id is too long to be kept.
    pub fn open(&mut self, id: Id<'_>, revision_id: RevisionId) -> Result<(), RpcError<'static>> {
        assert!(!self.contains(id), "an id in use is refused before");
        if self.open.len() == SUBSCRIPTIONS_MAX {
            return Err(RpcError::new(
                RpcErrorCode::Internal,
                "too many subscriptions are open",
            ));
        }
        let kept = OwnedId::new(id).ok_or(RpcError::new(
            RpcErrorCode::InvalidRequest,
            "the id is too long for a subscription",
        ))?;
        self.open.push((kept, revision_id));
        Ok(())
    }

    /// Closes the subscription with this id, if it is open.
    pub fn cancel(&mut self, id: Id<'_>) {
        self.open.retain(|(kept, _)| kept.id() != id);
    }

    /// Closes the subscription that was opened first. Returns false if none is open.
    pub fn close_first(&mut self, close: impl FnOnce(Id<'_>, RevisionId)) -> bool {
        if self.open.is_empty() {
            return false;
        }
        let (kept, revision_id) = self.open.remove(0);
        close(kept.id(), revision_id);
        true
    }
}

/// Checks the filter of a subscription. Which notifications it selects does not matter: none will
/// come.
///
/// # Errors
///
/// If `notifications` is missing or is not an object, or a known member of it is of the wrong type.
pub fn check_filter(params: Option<Object<'_>>) -> Result<(), RpcError<'static>> {
    let [filter] = params
        .unwrap_or(Object::EMPTY)
        .take(["notifications"])
        .map_err(|_| RpcError::invalid_params("notifications is given more than once"))?;
    let filter = filter
        .and_then(|filter| filter.as_object())
        .ok_or(RpcError::invalid_params("notifications must be an object"))?;
    for (name, value) in filter.iter() {
        let fits = match name {
            "toolsListChanged" | "promptsListChanged" | "resourcesListChanged" => {
                matches!(value, Value::Bool(_))
            }
            "resourceSubscriptions" => matches!(value, Value::Array(_)),
            _ => true,
        };
        if !fits {
            return Err(RpcError::invalid_params(
                "a member of notifications is of the wrong type",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::OWNED_ID_BYTES_MAX;

    fn newest() -> RevisionId {
        RevisionId::all().last().unwrap()
    }

    #[test]
    fn ids_are_kept_by_type_and_value() {
        let mut subscriptions = Subscriptions::new();
        let ids = [
            Id::Unsigned(1),
            Id::String("1"),
            Id::Signed(-1),
            Id::String(""),
        ];
        for id in ids {
            subscriptions.open(id, newest()).unwrap();
        }
        subscriptions.cancel(Id::String("1"));
        subscriptions.cancel(Id::String("2"));
        assert_eq!(
            ids.map(|id| subscriptions.contains(id)),
            [true, false, true, true]
        );
        assert!(subscriptions.close_first(|id, _| assert_eq!(id, Id::Unsigned(1))));
        assert!(subscriptions.close_first(|id, _| assert_eq!(id, Id::Signed(-1))));
        assert!(subscriptions.close_first(|id, _| assert_eq!(id, Id::String(""))));
        assert!(!subscriptions.close_first(|_, _| unreachable!()));
        assert!(!subscriptions.contains(Id::Unsigned(1)));
    }

    #[test]
    fn both_bounds_are_exact() {
        let mut subscriptions = Subscriptions::new();
        let long = "x".repeat(OWNED_ID_BYTES_MAX + 1);
        assert!(subscriptions.open(Id::String(&long), newest()).is_err());
        assert!(subscriptions.open(Id::String(&long[1..]), newest()).is_ok());
        for number in 1..SUBSCRIPTIONS_MAX {
            assert!(
                subscriptions
                    .open(Id::Unsigned(number as u64), newest())
                    .is_ok()
            );
        }
        assert!(subscriptions.open(Id::Unsigned(0), newest()).is_err());
    }
}
