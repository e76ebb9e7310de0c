//! No test can hang, in whatever way: see `support::watchdog`.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::watchdog;

/// Asks the test below to hang.
const HANG: &str = "ROCCO_TEST_HANG";

/// It runs itself, with a limit of a second, and hangs then beside a process of its own.
#[test]
fn a_test_that_hangs_is_ended_and_told() {
    if std::env::var_os(HANG).is_some() {
        let mut child = Command::new("sleep").arg("3600").spawn().unwrap();
        child.wait().unwrap();
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    for threads in ["1", "2"] {
        let start = Instant::now();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_test_that_hangs_is_ended_and_told"])
            .args(["--test-threads", threads])
            .env(HANG, "1")
            .env(watchdog::VARIABLE, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(101), "{told}");
        for words in [
            "test a_test_that_hangs_is_ended_and_told HANGS: it has not ended within 1s.",
            "no_test_hangs::a_test_that_hangs_is_ended_and_told",
            "1 processes are below this one:",
            "sleep 3600",
        ] {
            assert!(told.contains(words), "{words:?} is not in: {told}");
        }
        println!("told after {:?}", start.elapsed());
    }
}

/// Every test binary, that of the library's own tests included, has a watchdog.
#[test]
fn every_test_binary_has_a_watchdog() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut binaries = vec![root.join("src/lib.rs"), root.join("src/main.rs")];
    for entry in fs::read_dir(root.join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let main = path.join("main.rs");
        match path.is_dir() {
            true if main.exists() => binaries.push(main),
            false if path.extension().is_some_and(|end| end == "rs") => binaries.push(path),
            _ => {}
        }
    }
    for path in binaries {
        let text = fs::read_to_string(&path).unwrap();
        let has = text.contains("\nmod support;\n") || text.contains("\nmod watchdog;\n");
        assert!(has || !text.contains("#[test]"), "{}", path.display());
    }
}
