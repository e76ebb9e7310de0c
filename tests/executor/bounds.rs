//! What a task may use up, and what is said of a task that has used up more.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rocco::internals::executor::walls::cgroup::Cgroups;
use serde_json::json;

use super::bench::{Bench, task_with};

/// Far less than what a task that is not ended takes.
const SOON: Duration = Duration::from_secs(30);

/// Attack 16: nothing bounded the disk.
#[test]
fn a_task_that_fills_the_disk_is_ended_and_its_files_are_removed() {
    let bench = Bench::new("disk");
    let mut executor = bench.child(&["--disk", "20"]);
    let fill = "head -c 30000000 /dev/zero";
    for goal in [
        format!("sh {fill} > big"),
        format!("sh {fill} > $HOME/big; sleep 3600"),
        format!("sh {fill} > $TMPDIR/big; sleep 3600"),
        "sh mkdir d && cd d && for i in 1 2 3; do head -c 9000000 /dev/zero > $i; \
         ln $i ../$i; done; sleep 3600"
            .into(),
    ] {
        let started = Instant::now();
        let id = executor.start(&bench.repo, &goal);
        let record = executor.record(&id);
        assert_eq!(record["error"]["code"], "disk_exceeded", "{goal}: {record}");
        assert_eq!(record["outcome"], "failed", "{record}");
        assert!(started.elapsed() < SOON, "{goal}");
        for name in ["work", "home", "tmp", "git"] {
            assert!(!bench.task_dir(&id).join(name).exists(), "{goal}: {name}");
        }
    }
    executor.close();
}

/// A patch of 1 GB was made of a file of 20 MB with fifty names, and each gate had them in full.
#[test]
fn a_result_that_holds_too_much_is_not_written() {
    let bench = Bench::new("result-size");
    let mut executor = bench.child(&["--result-size", "3"]);
    let text = "sh head -c 1000000 /dev/zero | tr '\\0' x > text";
    for (goal, code) in [
        (format!("{text}; ln text b"), None),
        (
            format!("{text}; ln text b; ln text c; ln text d"),
            Some("result_exceeded"),
        ),
        ("sh truncate -s 4M sparse".into(), Some("result_exceeded")),
    ] {
        let id = executor.start(&bench.repo, &goal);
        let record = executor.record(&id);
        assert_eq!(record["error"]["code"].as_str(), code, "{goal}: {record}");
        let patch = bench.task_dir(&id).join("diff.patch");
        assert_eq!(patch.exists(), code.is_none(), "{goal}");
        assert_eq!(bench.task_dir(&id).join("work").exists(), code.is_some());
        assert_eq!(
            record["head_commit"].is_string(),
            code.is_none(),
            "{record}"
        );
    }
    executor.close();
}

#[test]
fn what_takes_no_block_counts_for_nothing() {
    let bench = Bench::new("sparse");
    let mut executor = bench.child(&["--disk", "20", "--file-size", "1000000"]);
    let goal = "sh truncate -s 100G $HOME/sparse; sleep 1.2\nwrite a.txt new";
    let record = executor.done(task_with(&bench.repo, goal, json!({})));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    executor.close();
}

#[test]
fn on_a_full_disk_no_program_is_started() {
    let bench = Bench::new("full");
    let mut executor = bench.child(&["--disk-free", "1073741824"]);
    let goal = format!("say {} >> {}", "x", bench.show("agent.pids"));
    let record = executor.done(task_with(&bench.repo, &goal, json!({})));
    assert_eq!(record["error"]["code"], "disk_full", "{record}");
    assert!(record["agent"].is_null(), "{record}");
    executor.close();
}

/// A gate may not do what an agent may not.
#[test]
fn a_gate_that_fills_the_disk_ends_its_task() {
    let bench = Bench::new("gate-disk");
    let mut executor = bench.child(&["--disk", "20"]);
    let acceptance = json!({"acceptance": ["gate:fills"]});
    let wanted = task_with(&bench.repo, "write a.txt new", acceptance);
    let dir = bench
        .path("state/tasks")
        .join(wanted["task_id"].as_str().unwrap());
    let record = executor.done(wanted);
    assert_eq!(record["error"]["code"], "disk_exceeded", "{record}");
    assert!(record["ref"].is_string(), "{record}");
    // All files were told as removed, and those of the executor's own were kept.
    let told = record["error"]["message"].as_str().unwrap();
    assert!(
        told.ends_with("its clone, and what else its programs had, was removed"),
        "{told}"
    );
    for (name, is_kept) in [
        ("work", false),
        ("home", false),
        ("gate", false),
        ("log", true),
        ("diff.patch", true),
    ] {
        assert_eq!(dir.join(name).exists(), is_kept, "{name}");
    }
    executor.close();
}

#[test]
fn the_record_and_hello_say_over_what_each_bound_is_counted() {
    let bench = Bench::new("reach");
    let mut executor = bench.child(&[]);
    let is_root = rustix::process::geteuid().is_root();
    let (each, processes) = if is_root {
        ("none", "none")
    } else {
        ("process", "user")
    };
    let wanted = json!({"memory": each, "processes": processes, "open_files": each,
                        "file_size": each, "disk": "task"});
    let hello = executor.call("hello", json!({"protocol": "rocco-exec/1"}));
    assert_eq!(hello["result"]["bounds"], wanted, "{hello}");
    let record = executor.done(task_with(&bench.repo, "write a.txt new", json!({})));
    assert_eq!(record["bounds"], wanted, "{record}");
    executor.close();
}

/// A program without a sandbox could open the pipes of its guard by /proc, and report in its place.
#[test]
fn the_pipes_of_a_guard_are_not_open_to_its_program() {
    if rustix::process::geteuid().is_root() {
        return crate::support::skip::leave_out("STRANGER", "root opens everything");
    }
    let bench = Bench::new("guard-pipes");
    let mut executor = bench.child(&[]);
    let goal = "sh guard=$(cut -d' ' -f4 /proc/$PPID/stat); grep -a -c executor-guard \
                /proc/$guard/cmdline; ls /proc/$guard/fd || echo closed\nwrite a.txt new";
    let id = executor.start(&bench.repo, goal);
    let record = executor.record(&id);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let log = executor.part(&id, "log");
    assert!(
        log.contains("closed") && log.lines().any(|line| line == "1"),
        "{log}"
    );
    executor.close();
}

/// Chains of processes, each of which starts the next one and ends, for 20 seconds at most.
const CHAINS: &str = "
import os, time
end = time.monotonic() + 20
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        while time.monotonic() < end:
            if os.fork():
                os._exit(0)
        os._exit(0)
";

/// Attack 21: chains of processes outran those who looked for them. A control group ends them.
#[test]
fn processes_that_fork_faster_than_they_are_found_end_with_their_program() {
    if Cgroups::of_this_process().is_none() {
        return crate::support::skip::leave_out("CGROUP", "no control group can be made here");
    }
    let bench = Bench::new("chains");
    let script = bench.path("chains.py");
    std::fs::write(&script, CHAINS).unwrap();
    let mut executor = bench.child(&[]);
    let goal = format!("sh python3 {}\nwrite a.txt new", script.display());
    let record = executor.done(task_with(&bench.repo, &goal, json!({})));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(running(&script), 0, "{record}");
    executor.close();
}

/// Chains that end by themselves left their processes to the executor, which waited for none.
#[test]
fn what_a_program_leaves_to_its_executor_is_waited_for() {
    let bench = Bench::new("zombies");
    let script = bench.path("chains.py");
    std::fs::write(
        &script,
        CHAINS
            .replace("+ 20", "+ 1")
            .replace("range(4)", "range(1)"),
    )
    .unwrap();
    let mut executor = bench.child(&[]);
    for _ in 0..2 {
        let goal = format!("sh python3 {}\nwrite a.txt new", script.display());
        let record = executor.done(task_with(&bench.repo, &goal, json!({})));
        assert_eq!(record["outcome"], "succeeded", "{record}");
    }
    let ended = children_that_have_ended(executor.child.id());
    assert_eq!(ended, 0);
    executor.close();
}

/// What takes the place of systemd-run: it notes its arguments, and does what a test wants.
fn stand_in_for_systemd(bench: &Bench, then: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = bench.path("tools");
    std::fs::create_dir_all(tools.join("systemd/private")).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\n{then}\n",
        bench.show("asked")
    );
    std::fs::write(tools.join("systemd-run"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tools.join("systemd-run"), executable).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = bench.command(&[]);
    command.env("PATH", format!("{}:{path}", tools.display()));
    command.env("XDG_RUNTIME_DIR", &tools);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[test]
fn an_executor_without_control_groups_asks_for_a_scope_and_does_without() {
    let groups = Cgroups::of_this_process();
    let has_all = |groups: Cgroups| groups.controllers().memory && groups.controllers().processes;
    if groups.is_some_and(has_all) {
        let what = "this process may bound what it starts, and asks for no scope";
        return crate::support::skip::leave_out("SCOPE", what);
    }
    for (then, asked) in [
        (
            "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"",
            2,
        ),
        ("echo no bus >&2; exit 1", 1),
        ("exec sleep 3600", 1),
    ] {
        let bench = Bench::new("user-scope");
        let mut executor = bench.started(&mut stand_in_for_systemd(&bench, then));
        let goal = format!("sh env > {}\nwrite a.txt new", bench.show("environment"));
        let record = executor.done(task_with(&bench.repo, &goal, json!({})));
        assert_eq!(record["outcome"], "succeeded", "{then}: {record}");
        executor.close();
        let lines = std::fs::read_to_string(bench.path("asked")).unwrap();
        assert_eq!(lines.lines().count(), asked, "{then}: {lines}");
        assert!(lines.contains("--user --scope"), "{lines}");
        let environment = std::fs::read_to_string(bench.path("environment")).unwrap();
        assert!(!environment.contains("SCOPE"), "{environment}");
    }
}

/// How many children of a process have ended and are not waited for.
fn children_that_have_ended(parent: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| std::fs::read(entry.path().join("stat")).ok());
    let texts = stats.map(|stat| String::from_utf8_lossy(&stat).into_owned());
    let wanted = format!(") Z {parent} ");
    texts.filter(|stat| stat.contains(&wanted)).count()
}

/// How many processes run that name a file on their command line.
fn running(file: &Path) -> usize {
    let name = file.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    texts
        .filter(|line| line.contains(name) && line.starts_with("python3"))
        .count()
}
