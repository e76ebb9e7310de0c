//! Checks that are left out, since a tool is missing: counted, and told when the test binary ends.
//!
//! Where `ROCCO_REQUIRE_<NAME>` is set a check that is left out fails instead, as .ci/run has it.

use std::sync::{Mutex, Once};

static LEFT_OUT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Leaves a check out, if it may be: `name` is that of the tool in the variable.
pub(crate) fn leave_out(name: &str, why: &str) {
    let variable = format!("ROCCO_REQUIRE_{name}");
    let required = std::env::var_os(&variable).is_some();
    assert!(!required, "{why}, and {variable} is set");
    static AT_THE_END: Once = Once::new();
    AT_THE_END.call_once(|| {
        // SAFETY: the function takes nothing, and lives as long as the process does.
        let taken = unsafe { libc::atexit(tell) };
        assert_eq!(taken, 0);
    });
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread of a test");
    LEFT_OUT.lock().unwrap().push(format!("{test}: {why}"));
}

/// Runs when the process ends, past the capture of test output.
extern "C" fn tell() {
    let left_out = std::mem::take(&mut *LEFT_OUT.lock().unwrap());
    super::watchdog::say(&format!("{} checks were left out:\n", left_out.len()));
    for each in left_out {
        super::watchdog::say(&format!("  {each}\n"));
    }
}
