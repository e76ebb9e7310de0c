//! The open subscriptions are a set, in the order in which they were opened.

use rocco::internals::limits::{OWNED_ID_BYTES_MAX, SUBSCRIPTIONS_MAX};
use rocco::internals::mcp::revision::RevisionId;
use rocco::internals::mcp::subscriptions::Subscriptions;
use rocco::internals::wire::message::Id;

/// An id of one byte: of a few texts up to and beyond the bound, and of a few numbers, some of
/// which look alike.
fn with_id<T>(byte: u8, take: impl FnOnce(Id<'_>) -> T) -> T {
    let number = u64::from(byte >> 2);
    match byte & 3 {
        0 => take(Id::Unsigned(number)),
        1 => take(Id::Signed(-(number as i64))),
        2 => take(Id::String(&number.to_string())),
        _ => take(Id::String(
            &"x".repeat(OWNED_ID_BYTES_MAX - 32 + number as usize),
        )),
    }
}

fn owned(id: Id<'_>) -> String {
    format!("{id:?}")
}

/// Pairs of bytes: what is done, and with which id.
pub fn body(data: &[u8]) {
    let known = RevisionId::all().last().expect("there are revisions");
    let (mut subscriptions, mut set) = (Subscriptions::new(), Vec::<String>::new());
    let (steps, _) = data.as_chunks::<2>();
    for &[deed, byte] in steps {
        with_id(byte, |id| {
            let at = set.iter().position(|open| *open == owned(id));
            assert_eq!(subscriptions.contains(id), at.is_some());
            match (deed % 8, at) {
                (0, _) => close(&mut subscriptions, &mut set),
                (1..=2, at) => {
                    subscriptions.cancel(id);
                    at.map(|at| set.remove(at));
                }
                (_, Some(_)) => {}
                (_, None) => {
                    let short = !matches!(id, Id::String(text) if text.len() > OWNED_ID_BYTES_MAX);
                    let fits = set.len() < SUBSCRIPTIONS_MAX && short;
                    assert_eq!(subscriptions.open(id, known).is_ok(), fits);
                    set.extend(fits.then(|| owned(id)));
                }
            }
        });
    }
    close(&mut subscriptions, &mut set);
}

fn close(subscriptions: &mut Subscriptions, set: &mut Vec<String>) {
    let mut closed = Vec::new();
    while subscriptions.close_first(|id, _| closed.push(owned(id))) {}
    assert_eq!(closed, std::mem::take(set));
}
