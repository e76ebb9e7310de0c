//! What an agent must not reach, and what it must not make others run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use super::bench::{Bench, git, new_id, task, task_with};
use crate::support::skip::leave_out;
use crate::support::wait::{output, wait_for};

/// Whether there is a sandbox, or the tests that need one are left out.
fn sandbox_works() -> bool {
    let mut command = Command::new("bwrap");
    command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    command.args(["--unshare-pid", "--unshare-net", "--", "/bin/true"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let works = command.status().is_ok_and(|status| status.success());
    if !works {
        leave_out("BWRAP", "bwrap does not work here");
    }
    works
}

#[test]
fn nothing_that_an_agent_plants_is_run() {
    let bench = Bench::new("planted");
    let marker = bench.show("planted");
    let mut executor = bench.child(&[]);
    let id = new_id();
    let goal = format!("write a.txt changed\nplant {marker}");
    let mut task = task(&id, &bench.repo, &goal);
    task["acceptance"] = json!(["gate:touchy"]);
    let record = executor.done(task);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(
        record["warnings"]
            .to_string()
            .contains("repositories of their own, whose files were taken as files: inner")
    );
    let paths = record["files"].to_string();
    assert!(
        paths.contains("inner/file") && !paths.contains(".git/"),
        "{paths}"
    );
    // What the user does next runs nothing of it either.
    let result = format!("refs/rocco/{id}");
    git(&bench.repo, &["status"]);
    git(&bench.repo, &["diff", "HEAD", &result]);
    git(&bench.repo, &["log", "-p", &result]);
    git(&bench.repo, &["merge", "-q", &result]);
    git(
        &bench.repo,
        &["commit", "-q", "--allow-empty", "-m", "mine"],
    );
    assert!(
        !bench.path("planted").exists(),
        "{}",
        fs::read_to_string(marker).unwrap()
    );
}

/// A repository's own hooks are for its user, and not for the executor.
#[test]
fn hooks_and_monitors_of_the_user_are_not_run_by_a_task() {
    let bench = Bench::new("hooks");
    let marker = bench.path("ran");
    let script = bench.path("hook");
    fs::write(
        &script,
        format!("#!/bin/sh\necho ran >> {}\n", marker.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let shown = script.to_string_lossy();
    for hook in [
        "reference-transaction",
        "post-checkout",
        "pre-commit",
        "post-commit",
    ] {
        fs::copy(&script, bench.repo.join(".git/hooks").join(hook)).unwrap();
    }
    for name in ["core.fsmonitor", "diff.external", "diff.x.textconv"] {
        git(&bench.repo, &["config", name, &shown]);
    }
    let mut executor = bench.child(&[]);
    let record = executor.done(task(&new_id(), &bench.repo, "write a.txt x"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(!marker.exists());
}

#[test]
fn an_agent_knows_nothing_of_the_environment_but_what_is_passed() {
    let bench = Bench::new("environment");
    for (flags, passed) in [
        (&[][..], false),
        (&["--pass-env", "ROCCO_TEST_SECRET"], true),
    ] {
        let mut executor = bench.child(flags);
        let goal = format!("environment\nancestors\nsay {passed}\nwrite a.txt {passed}");
        let task = task_with(&bench.repo, &goal, json!({"acceptance": ["gate:sees"]}));
        let id = task["task_id"].as_str().unwrap().to_owned();
        executor.done(task);
        let log = executor.part(&id, "log");
        assert_eq!(
            log.contains("env ROCCO_TEST_SECRET=secret"),
            passed,
            "{log}"
        );
        let names: Vec<&str> = log
            .lines()
            .filter_map(|line| line.strip_prefix("env ")?.split('=').next())
            // Python, and what may stand before it, add their own.
            .filter(|name| !["ROCCO_TEST_SECRET", "LC_CTYPE", "PWD", "SHLVL"].contains(name))
            .filter(|name| !name.contains("PYENV"))
            .collect();
        let wanted = [
            "HOME",
            "LANG",
            "PATH",
            "ROCCO_DEPTH",
            "ROCCO_OUTCOME",
            "ROCCO_TASK_ID",
            "TMPDIR",
        ];
        assert_eq!(names, wanted);
        assert!(log.contains("env ROCCO_DEPTH=1"));
        // What is to be done is nobody's business who lists processes.
        assert!(
            log.contains("called") && !log.contains("called environment"),
            "{log}"
        );
        let called = log.lines().filter(|line| line.starts_with("called "));
        assert!(
            called.into_iter().all(|line| !line.contains("ancestors")),
            "{log}"
        );
        // A gate runs what the agent wrote: it gets what its definition names, and no more.
        let gates = executor.part(&id, "gates");
        assert!(gates.contains("env ROCCO_TEST_GATE=given"), "{gates}");
        assert!(!gates.contains("ROCCO_TEST_SECRET"), "{gates}");
        executor.close();
    }
}

#[test]
fn a_task_cannot_submit_a_task_whatever_it_says() {
    let bench = Bench::new("depth");
    let _daemon = bench.daemon(&[]);
    let mut front = bench.front();
    let socket = bench.socket();
    let id = front.start(
        &bench.repo,
        &format!("submit {}\nwrite a.txt x", socket.display()),
    );
    // Neither does it see what others do, nor end anything.
    assert_eq!(front.record(&id)["outcome"], "succeeded");
    let log = front.part(&id, "log");
    assert_eq!(log.matches("depth_exceeded").count(), 4, "{log}");
    let list = front.call("task/list", json!({}));
    assert_eq!(list["result"]["tasks"].as_array().unwrap().len(), 1);
}

/// A connection outlives the process that made it, and a line of processes may be of any length.
#[test]
fn whoever_cannot_be_placed_has_no_say_in_tasks() {
    let bench = Bench::new("placed");
    // The longest line is longer than the processes that a task may have without this.
    let _daemon = bench.daemon(&["--processes", "4096"]);
    let mut front = bench.front();
    let socket = bench.socket().display().to_string();
    for (goal, tries) in [
        (format!("outlive {socket}"), 200),
        (format!("descend {socket} 1100"), 1),
        (format!("descend {socket} 3"), 1),
        (format!("orphan {socket}"), 1),
        (format!("hand-over {socket}"), 2),
    ] {
        let id = front.start(&bench.repo, &format!("{goal}\nwrite a.txt x"));
        assert_eq!(front.record(&id)["outcome"], "succeeded", "{goal}");
        let log = front.part(&id, "log");
        assert_eq!(log.matches("turned away").count(), tries, "{goal}: {log}");
        assert!(!log.contains("got through"), "{goal}: {log}");
    }
}

/// A file that git would wait for, and one that its owner cannot read.
#[test]
fn what_git_cannot_read_is_out_of_its_way() {
    let bench = Bench::new("special");
    let mut executor = bench.child(&[]);
    let goal = "write sub/a.txt x\nfifo sub/.gitignore\nfifo .gitattributes\nfifo queue";
    let record = executor.done(task(&new_id(), &bench.repo, goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let goal = "write locked/a.txt x\nlock locked/a.txt\nlock locked\n\
                sh git init -q inner; echo f > inner/f\nlock inner/.git";
    let id = new_id();
    let record = executor.done(task(&id, &bench.repo, goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let path = format!("refs/rocco/{id}:locked/a.txt");
    assert_eq!(git(&bench.repo, &["show", &path]), "x");
    // What git does not take is named, and where the work is.
    let id = new_id();
    let record = executor.done(task(&id, &bench.repo, "write .GIT/config x"));
    let said = record.to_string();
    assert_eq!(record["error"]["code"], "result_failed", "{record}");
    assert!(
        said.contains(".GIT/config") && said.contains("has left is in"),
        "{record}"
    );
}

#[test]
fn links_out_of_the_repository_are_told_and_not_followed() {
    let bench = Bench::new("links");
    fs::write(bench.path("private"), "private\n").unwrap();
    let mut executor = bench.child(&[]);
    let private = bench.show("private");
    let id = new_id();
    let goal = format!("link {private} out\nlink a.txt in\nremove a.txt");
    let record = executor.done(task(&id, &bench.repo, &goal));
    let warnings = record["warnings"].to_string();
    assert!(
        warnings.contains("symbolic links that lead out of the repository: out\""),
        "{warnings}"
    );
    assert!(!executor.part(&id, "diff").contains("private\n+"));
    assert_eq!(
        git(&bench.repo, &["show", &format!("refs/rocco/{id}:out")]),
        private
    );
    // A clone that was replaced by a link is not looked into.
    let secret = bench.add_repo("secret");
    let goal = format!("replace {}", secret.display());
    let record = executor.done(task(&new_id(), &bench.repo, &goal));
    assert_eq!(record["error"]["code"], "result_failed", "{record}");
    // What the agent says is read from a plain file alone.
    let goal = format!("link {private} ../home/outcome.json\nwrite a.txt x");
    let record = executor.done(task(&new_id(), &bench.repo, &goal));
    assert!(record["summary"].is_null(), "{record}");
}

/// What the user moves while a task runs gets its result, and what was put in its place gets none.
#[test]
fn a_repository_is_held_whatever_takes_its_place() {
    let bench = Bench::new("swapped");
    let other = bench.add_repo("other");
    let mut executor = bench.child(&[]);
    let (go, pids) = (bench.path("go"), bench.show("agent.pids"));
    let goal = format!("sleep 0 {pids}\nwait {}\nwrite a.txt x", go.display());
    let id = executor.start(&bench.repo, &goal);
    bench.pids("agent.pids", 1);
    let second = executor.start(&bench.repo, "write a.txt y");
    let moved = bench.path("moved");
    fs::rename(&bench.repo, &moved).unwrap();
    symlink(&other, &bench.repo).unwrap();
    fs::write(&go, "").unwrap();
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        git(&moved, &["show", &format!("refs/rocco/{id}:a.txt")]),
        "x"
    );
    // One that was accepted and had not begun is not led elsewhere.
    let record = executor.record(&second);
    assert_eq!(record["error"]["code"], "workspace_failed", "{record}");
    assert_eq!(git(&other, &["for-each-ref", "refs/rocco"]), "");
}

/// A link that was put into the git directory while a task ran led its result out of the allowed
/// repositories.
#[test]
fn a_link_that_comes_while_a_task_runs_leads_no_result_out() {
    let bench = Bench::new("relinked");
    let outside = Bench::new("relinked-outside");
    let outside = outside.path("outside");
    fs::create_dir(&outside).unwrap();
    let mut executor = bench.child(&[]);
    let (go, pids) = (bench.path("go"), bench.show("agent.pids"));
    let goal = format!("sleep 0 {pids}\nwait {}\nwrite a.txt x", go.display());
    let id = executor.start(&bench.repo, &goal);
    bench.pids("agent.pids", 1);
    let place = bench.repo.join(".git/refs/rocco");
    fs::rename(&place, bench.path("before")).unwrap();
    symlink(&outside, &place).unwrap();
    fs::write(&go, "").unwrap();
    let record = executor.record(&id);
    assert_eq!(record["error"]["code"], "result_failed", "{record}");
    let message = record["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("link in its git directory, \"rocco\""),
        "{record}"
    );
    assert!(fs::read_dir(&outside).unwrap().next().is_none());
}

/// What an executor says that is started with these words, and has nobody to hear.
fn started(bench: &Bench, words: &[&OsStr]) -> Output {
    output(start(bench, words).stdin(Stdio::null()))
}

fn start(bench: &Bench, words: &[&OsStr]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocco"));
    command
        .args(["executor", "--state"])
        .arg(bench.path("state"));
    command.arg("--allow-repo").arg(&bench.repo).args(words);
    command
}

#[test]
fn gates_are_defined_outside_of_what_tasks_may_change() {
    let bench = Bench::new("defined");
    fs::copy(bench.gates(), bench.repo.join("gates.json")).unwrap();
    let inside = bench.repo.join("gates.json");
    let refused = |gates: &Path| {
        let words = [
            OsStr::new("--gates"),
            gates.as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ];
        started(&bench, &words)
    };
    let output = refused(&inside);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("that tasks may change"));
    fs::write(
        bench.path("broken.json"),
        r#"{"test":{"argv":"cargo test"}}"#,
    )
    .unwrap();
    let output = refused(&bench.path("broken.json"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a list of strings"));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

/// A device without an end used up the memory, and a FIFO held the start for ever.
#[test]
fn a_gates_file_that_does_not_end_is_refused_at_once() {
    let bench = Bench::new("gates-file");
    let fifo = bench.path("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let large = bench.path("large");
    fs::File::create(&large).unwrap().set_len(1 << 40).unwrap();
    for (gates, why) in [
        (fifo.as_path(), "it is not a file"),
        ("/dev/zero".as_ref(), "it is not a file"),
        (bench.repo.parent().unwrap(), "it is not a file"),
        (large.as_path(), "it has more than 1048576 bytes"),
    ] {
        let words = [
            OsStr::new("--gates"),
            gates.as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ];
        let output = started(&bench, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.trim_end().ends_with(why), "{said}");
    }
}

/// Each of these was taken at the start, and every task failed by it.
#[test]
fn what_cannot_work_is_refused_at_the_start() {
    let bench = Bench::new("cannot-work");
    for (line, why) in [
        (
            &["--", "/etc/passwd"][..],
            "the agent /etc/passwd is not executable",
        ),
        (&["--", ""], "no agent is named behind --"),
        (
            &["--", "/nowhere/agent"],
            "the agent /nowhere/agent is not there",
        ),
        (
            &["--pass-env", "", "--", "true"],
            "--pass-env \"\" is not the name of a variable",
        ),
        (
            &["--", "rocco-no-such-agent"],
            "and may be named by its path",
        ),
        (
            &["--allow-repo", "/etc/passwd", "--", "true"],
            "--allow-repo /etc/passwd: not a directory",
        ),
        (
            &["--pass-env", "A B", "--", "true"],
            "--pass-env \"A B\" is not the name of a variable",
        ),
        (
            &["--pass-env=A=B", "--", "true"],
            "--pass-env \"A=B\" is not the name of a variable",
        ),
    ] {
        let words: Vec<&OsStr> = ["--sandbox", "off"]
            .iter()
            .chain(line)
            .map(OsStr::new)
            .collect();
        let output = started(&bench, &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(1), 1),
            "{said}"
        );
        assert!(said.trim_end().ends_with(why), "{said}");
    }
}

/// Its directory was called `.`.
#[test]
fn the_directory_of_a_socket_is_named_in_full() {
    let bench = Bench::new("open-socket");
    fs::set_permissions(&bench.root, fs::Permissions::from_mode(0o755)).unwrap();
    let output = bench.refused(&["--socket", "sk"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let wanted = format!("rocco: {} is open to other users", bench.root.display());
    assert!(
        said.starts_with(&wanted) && said.contains("--socket"),
        "{said}"
    );
}

/// A task put a link in the place of what an option had opened, and the next one, or the next
/// executor, opened what it led to.
#[test]
fn what_an_option_names_does_not_lie_where_tasks_write() {
    let bench = Bench::new("swapped");
    fs::create_dir_all(bench.path("w/inner")).unwrap();
    fs::write(bench.path("w/cred"), "x").unwrap();
    fs::copy("/bin/true", bench.path("w/agent")).unwrap();
    symlink(bench.path("w/inner"), bench.path("link")).unwrap();
    let [writable, inner, cred, agent, link] =
        ["w", "w/inner", "w/cred", "w/agent", "link"].map(|name| bench.show(name));
    for (option, path) in [
        ("--readable", &inner),
        ("--readable", &link),
        ("--writable", &inner),
        ("--credentials", &cred),
        ("--allow-repo", &inner),
        ("the command", &agent),
    ] {
        let mut words = vec!["--sandbox", "off", "--writable", &writable];
        match option {
            "the command" => words.extend(["--", path]),
            option => words.extend([option, path, "--", "true"]),
        }
        let words: Vec<&OsStr> = words.into_iter().map(OsStr::new).collect();
        let mut command = start(&bench, &words);
        let output = output(command.env("HOME", &bench.root).stdin(Stdio::null()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{option}: {said}");
        assert!(
            said.contains("could put a link in its place"),
            "{option}: {said}"
        );
        assert!(said.contains(option), "{option}: {said}");
    }
}

/// A state that was not there yet was accepted, and so was a link that a task had meanwhile led to
/// what the user had not named.
#[test]
fn no_link_on_the_way_of_an_option_lies_where_tasks_write() {
    let bench = Bench::new("on-the-way");
    fs::create_dir_all(bench.path("w")).unwrap();
    fs::create_dir_all(bench.path("secret")).unwrap();
    fs::write(bench.path("secret/key"), "x").unwrap();
    fs::copy(bench.gates(), bench.path("secret/gates.json")).unwrap();
    for (link, target) in [
        ("al", "w"),
        ("w/out", "../secret"),
        ("w/key", "../secret/key"),
        ("w/agent", "/bin/true"),
        ("chain", "w/out"),
        ("key", "w/key"),
        ("agent", "al/agent"),
    ] {
        symlink(target, bench.path(link)).unwrap();
    }
    let (link, own) = ("could put a link in its place", "the executor's alone");
    for (option, path, refusal) in [
        ("--state", "al/new/state", link),
        ("--state", "w", own),
        ("XDG_STATE_HOME", "al/new", link),
        ("--socket", "al/new/socket", link),
        ("--readable", "chain", link),
        ("--readable", "al/out", link),
        ("--writable", "chain", link),
        ("--credentials", "key", link),
        ("--gates", "chain/gates.json", link),
        ("--allow-repo", "al/out", link),
        ("the command", "agent", link),
    ] {
        let path = bench.path(path);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocco"));
        command.args(["executor", "--sandbox", "off", "--writable"]);
        command.arg(bench.path("w"));
        command.env("HOME", &bench.root).stdin(Stdio::null());
        match option {
            "XDG_STATE_HOME" => command.env(option, &path),
            "the command" => &mut command,
            _ => command.arg(option).arg(&path),
        };
        if !["--state", "XDG_STATE_HOME"].contains(&option) {
            command.arg("--state").arg(bench.path("state"));
        }
        command.arg("--allow-repo").arg(&bench.repo).arg("--");
        command.arg(match option {
            "the command" => &path,
            _ => Path::new("true"),
        });
        let output = output(&mut command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{option}: {said}");
        assert!(said.contains(refusal), "{option}: {said}");
        assert!(said.contains(&bench.show("w")), "{option}: {said}");
        assert!(!bench.path("w/new").exists(), "{option}");
    }
}

#[test]
fn what_an_agent_prints_cannot_steer_a_terminal() {
    let bench = Bench::new("steer");
    let mut executor = bench.child(&[]);
    let goal = "say \u{1b}[2Jhello\u{7}\nsleep 1\noutcome needs_input \u{1b}[31mred\u{0}?";
    let id = executor.start(&bench.repo, goal);
    let record = executor.record(&id);
    assert_eq!(record["question"], "\\x1b[31mred\\x00?");
    let hello = |update: &serde_json::Value| update["message"] == "\\x1b[2Jhello\\x07";
    assert!(executor.updates.iter().any(hello));
    let told = json!(executor.updates).to_string();
    assert!(
        !told.contains("\\u001b") && !told.contains("\\u0007"),
        "{told}"
    );
}

/// What is a terminal and what is coloured are two questions, and a pipe may lead to a terminal.
#[test]
fn rocco_task_shows_nothing_that_steers_a_terminal() {
    let bench = Bench::new("shown");
    let mut executor = bench.child(&[]);
    let steers = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}\u{e0041}\u{9b}31m";
    let goal = format!("say {steers}\nwrite a.txt {steers}\nwrite {steers} x");
    let id = executor.start(&bench.repo, &goal);
    assert_eq!(executor.record(&id)["outcome"], "succeeded");
    let hidden = ['\u{1b}', '\u{7}', '\u{202e}', '\u{e0041}', '\u{9b}'];
    let id = id.as_str();
    for words in [
        &["log", id][..],
        &["diff", id],
        &["show", id],
        &["list"],
        &["show", id, "--json"],
        &["list", "--json"],
    ] {
        let said = String::from_utf8(bench.task(words).stdout).unwrap();
        assert!(said.contains("owned"), "{words:?}: {said:?}");
        assert!(!said.contains(hidden), "{words:?}: {said:?}");
        // The colours of a state are rocco's own, and there are none here.
        let on_terminal = on_a_terminal(&bench, words);
        assert!(on_terminal.contains("owned"), "{words:?}: {on_terminal:?}");
        assert!(!on_terminal.contains(hidden), "{words:?}: {on_terminal:?}");
    }
    let raw = bench.task(&["log", id, "--raw"]).stdout;
    assert!(String::from_utf8(raw).unwrap().contains(steers));
    assert!(!on_a_terminal(&bench, &["log", id, "--raw"]).contains(hidden));
}

/// What `rocco task` prints on a terminal without colours.
fn on_a_terminal(bench: &Bench, words: &[&str]) -> String {
    let rocco = env!("CARGO_BIN_EXE_rocco");
    let state = bench.show("state");
    let line = format!("{rocco} task --state {state} {}", words.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    String::from_utf8(output(&mut command).stdout).unwrap()
}

#[test]
fn the_sandbox_keeps_an_agent_in_its_clone_and_a_gate_off_the_network() {
    if !sandbox_works() {
        return;
    }
    let bench = Bench::new("sandbox");
    let mut executor = bench.child(&["--sandbox", "require"]);
    let outside = bench.show("repo/outside");
    let state = bench.path("state/tasks");
    let goal = format!(
        "attempt {outside}\nattempt {}/x\nlook {}\nlook /proc\nwrite a.txt x",
        bench.root.display(),
        state.display(),
    );
    let task = task_with(&bench.repo, &goal, json!({"acceptance": ["gate:network"]}));
    let id = task["task_id"].as_str().unwrap().to_owned();
    let record = executor.done(task);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(record["warnings"], json!([]));
    let log = executor.part(&id, "log");
    // What the agent wrote below /tmp is in a /tmp of its own.
    assert!(
        !bench.repo.join("outside").exists() && !bench.path("x").exists(),
        "{log}"
    );
    assert_eq!(record["sandbox"], "bubblewrap+landlock", "{record}");
    assert!(log.contains(&format!("sees ['{id}']")), "{log}");
    assert!(!log.contains(&format!("'{}'", std::process::id())), "{log}");
    assert!(executor.part(&id, "gates").contains("interfaces ['lo']"));
    // The end of the executor is the end of all that is in it.
    let id = executor.start(&bench.repo, "daemon pids\nsleep 3600");
    let pids = bench.task_dir(&id).join("work/pids");
    wait_for("the agent", || pids.exists().then_some(()));
    let before = processes_of(&id);
    assert!(before.len() >= 2, "{before:?}");
    executor.kill();
    super::bench::wait_for_end(&before);
}

/// The processes whose environment names a task.
fn processes_of(id: &str) -> Vec<u32> {
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&format!("ROCCO_TASK_ID={id}"))
        })
        .collect()
}
