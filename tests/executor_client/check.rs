//! `rocco mcp --check` with an executor.

use std::fs;
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use super::front::{ExecutorAddr, Place, WAYS};
use crate::support::skip::leave_out;
use crate::support::wait::output;

/// What it prints, and whether it is content.
fn check(place: &Place, options: &[String]) -> (String, bool) {
    let mut command = place.command(env!("CARGO_BIN_EXE_rocco"));
    let output = output(command.args(["mcp", "--check"]).args(options));
    assert!(output.stderr.is_empty(), "{output:?}");
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), code == Some(0))
}

#[test]
fn a_good_executor_is_shown() {
    let mut place = Place::new();
    place.start_daemon("");
    for way in WAYS {
        let (said, well) = check(&place, &place.options(way, ""));
        assert!(well, "{said}");
        for line in [
            "tools/list  larry_submit_task(",
            "tools/call  {\"tasks\":[",
            "executor    fake 1, durable: crash, 2 at once, 32 waiting, 3600 s each, features: \
             progress page list teleport",
            "All is well",
        ] {
            assert!(said.contains(line), "{line:?} is missing in {said}");
        }
    }
    assert_eq!(place.count("taken"), 0, "no task is submitted to look");
    place.nothing_is_left();
}

/// Those that say nothing are waited for side by side.
#[test]
fn a_bad_executor_is_named_with_the_reason() {
    std::thread::scope(|scope| {
        for (modes, words) in [
            ("wrong-protocol", "rocco-exec/2"),
            ("nameless", "does not name the executor"),
            ("refuses-hello", "not today"),
            (
                "no-hello",
                "FAILED      the executor did not answer hello within 5 seconds; ",
            ),
            ("exit", "FAILED      the executor did not say hello: "),
        ] {
            for way in WAYS {
                scope.spawn(move || named_with_the_reason(modes, words, way));
            }
        }
    });
}

fn named_with_the_reason(modes: &str, words: &str, way: ExecutorAddr) {
    let mut place = Place::new();
    if way == ExecutorAddr::Socket {
        place.start_daemon(modes);
    }
    let (said, well) = check(&place, &place.options(way, modes));
    assert!(
        !well && said.contains("FAILED") && said.contains(words),
        "{modes}: {said}"
    );
    let steers = |character: char| character.is_control() && character != '\n';
    assert!(!said.contains(steers), "{said:?}");
    place.nothing_is_left();
}

#[test]
fn an_executor_that_is_missing_is_a_failure() {
    let place = Place::new();
    let socket = place.path("nobody");
    for (options, what, remedy) in [
        (
            ["--executor".into(), "/no/such/program 'a b'".into()],
            "the executor /no/such/program cannot be started: No such file",
            "see what it prints on stderr: /no/such/program 'a b'",
        ),
        (
            ["--executor-socket".into(), socket.clone()],
            &format!("nobody serves the executor's socket {socket}: No such file")[..],
            "see that a daemon listens there: rocco executor --socket /",
        ),
    ] {
        let (said, well) = check(&place, &options);
        assert!(!well && said.contains("FAILED"), "{said}");
        // The server of the check and the check itself have the same words for it.
        assert_eq!(said.matches(what).count(), 2, "{said}");
        assert!(said.contains("--check and the --executor or "), "{said}");
        assert!(said.contains(remedy), "{said}");
    }
}

/// A daemon that hangs has as many waiting as it will have, and whoever connects would wait too.
#[test]
fn an_executor_that_takes_nobody_is_a_failure() {
    let place = Place::new();
    let path = place.path("hangs");
    let listener = UnixListener::bind(&path).unwrap();
    // SAFETY: listen(2) takes a descriptor that is open, and an integer.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let _waits = UnixStream::connect(&path).unwrap();
    let fault = format!("FAILED      nobody serves the executor's socket {path}: Resource temp");
    let (said, well) = check(&place, &["--executor-socket".into(), path]);
    assert!(!well && said.contains(&fault), "{said}");
}

/// Whoever is the first to listen on a path would be told all that is to be done.
#[test]
fn the_daemon_of_another_user_is_not_believed() {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        leave_out("ROOT", "only root can act as another user");
        return;
    }
    let place = Place::new();
    let (folder, path) = (place.path("open"), place.path("open/socket"));
    fs::create_dir(&folder).unwrap();
    for dir in [place.path(""), folder] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let bound = path.clone();
    let stranger = std::thread::spawn(move || {
        // The call itself changes this thread alone, where the library's would change them all.
        // SAFETY: setresuid(2) takes three integers.
        let outcome = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) };
        assert_eq!(outcome, 0);
        UnixListener::bind(bound).unwrap()
    });
    let listener = stranger.join().unwrap();
    let (said, well) = check(&place, &["--executor-socket".into(), path]);
    assert!(!well && said.contains("belongs to user 65534"), "{said}");
    // The server of the check has found the same, and nothing was said to that daemon.
    assert!(said.contains("executor_not_connected"), "{said}");
    listener.set_nonblocking(true).unwrap();
    let mut heard = String::new();
    for stream in listener.incoming().map_while(Result::ok) {
        let mut stream = stream;
        stream.read_to_string(&mut heard).unwrap();
    }
    assert_eq!(heard, "");
}
