//! How many cases a property is tried with.

use proptest::prelude::ProptestConfig;

/// As many cases as are asked for by `PROPTEST_CASES`, or as fit into a usual run of the tests.
/// proptest's own file of seeds is off, since a seed means something else after any change of a
/// strategy.
pub(crate) fn config(usual: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..ProptestConfig::default()
    };
    let cases = if asked { config.cases } else { usual };
    ProptestConfig { cases, ..config }
}
