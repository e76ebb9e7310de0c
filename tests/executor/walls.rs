//! The walls around whole tasks: what a hostile agent or gate tries, and what is left of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use super::bench::{Bench, git, task_with};

/// The walls that stand here, by the words of `--sandbox`.
const WALLS: [&str; 3] = ["require", "landlock", "bubblewrap"];

fn standing(bench: &Bench) -> Vec<&'static str> {
    let stands = |walls: &&&str| {
        let probe = Command::new(env!("CARGO_BIN_EXE_rocco"))
            .args(["executor", "--sandbox", walls, "--state"])
            .arg(bench.path("probe"))
            .args(["--allow-repo"])
            .arg(&bench.root)
            .args(["--", "/bin/true"])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&probe.stderr);
        if !probe.status.success() {
            crate::support::skip::leave_out("BWRAP", &format!("--sandbox {walls}: {said}"));
        }
        probe.status.success()
    };
    WALLS.iter().filter(stands).copied().collect()
}

/// Attack 26: keys, other repositories and the state were there to be read.
#[test]
fn an_agent_reads_nothing_of_the_users() {
    let bench = Bench::new("reads");
    fs::write(bench.path("key"), "secret\n").unwrap();
    let other = bench.add_repo("other");
    fs::write(other.join("private"), "secret\n").unwrap();
    for walls in standing(&bench) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let root = bench.root.display();
        let goal = format!(
            "sh cat {root}/key {root}/other/private {root}/state/tasks/*/task.json \
             {root}/repo/a.txt {root}/gates.json; true\n\
             sh cat /proc/[0-9]*/environ; git -C {root}/other show; \
             git clone {root}/other stolen; \
             find {root} -name work -prune -o -type f \
             -exec cat {{}} +; \
             rm -rf stolen; true\n\
             write a.txt x"
        );
        let id = executor.start(&bench.repo, &goal);
        let record = executor.record(&id);
        assert_eq!(record["outcome"], "succeeded", "{walls}: {record}");
        let log = executor.part(&id, "log");
        for seen in ["secret", "task_id", "first", "argv"] {
            assert!(!log.contains(seen), "{walls}: {seen}: {log}");
        }
        executor.close();
    }
}

/// What an agent has left is not measured again behind a gate that cannot change it: it counts all
/// the same, wherever it is.
#[test]
fn an_agent_and_a_gate_have_one_disk_between_them() {
    let bench = Bench::new("shared-disk");
    let fill = "head -c 12000000 /dev/zero >";
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls, "--disk", "20"]);
        for (goal, code) in [
            ("sh true".to_owned(), None),
            (format!("sh {fill} $HOME/big"), Some("disk_exceeded")),
            (format!("sh {fill} $TMPDIR/big"), Some("disk_exceeded")),
            (format!("sh {fill} .git/big"), Some("disk_exceeded")),
            (
                format!("sh git init -q in; {fill} in/.git/big"),
                Some("disk_exceeded"),
            ),
        ] {
            let goal = format!("{goal}\nwrite a.txt new");
            let acceptance = json!({"acceptance": ["gate:fills_half"]});
            let record = executor.done(task_with(&bench.repo, &goal, acceptance));
            let told = record["error"]["code"].as_str();
            assert_eq!(told, code, "{walls}: {goal}: {record}");
        }
        executor.close();
    }
}

/// Attack 3: `git status` in a clone that was kept ran what the agent had configured, as the user.
#[test]
fn a_kept_clone_runs_nothing_of_the_agents() {
    let bench = Bench::new("kept");
    let marker = bench.path("marker");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let run = format!("touch {}; false", marker.display());
        let configures = configures(&run);
        let goal = format!(
            "sh git config core.fsmonitor '{run}'; git init -q inner; \
             git -C inner config core.fsmonitor '{run}'; mkdir -p deep/.GIT; echo new > a.txt\n\
             sh {configures}\n\
             exit 1"
        );
        let id = executor.start(&bench.repo, &goal);
        let record = executor.record(&id);
        assert_eq!(record["outcome"], "failed", "{walls}: {record}");
        executor.close();
        let work = bench.task_dir(&id).join("work");
        let _ = fs::remove_file(&marker);
        let status = git(&work, &["status", "--short"]);
        assert!(status.contains("a.txt"), "{walls}: {status}");
        for inner in ["inner", "deep", "x/y/z"] {
            git(&work.join(inner), &["status", "--short"]);
            assert!(!work.join(inner).join(".git").exists(), "{walls}");
        }
        git(&work, &["diff"]);
        git(&work, &["add", "-A"]);
        git(&work, &["log", "-p", "--show-signature"]);
        let author = ["-c", "user.name=u", "-c", "user.email=u@localhost"];
        git(
            &work,
            &[&author[..], &["commit", "-q", "-m", "kept"]].concat(),
        );
        git(&work, &["checkout", "-q", "--detach", "HEAD~"]);
        assert!(!marker.exists(), "{walls}: the agent's command ran");
    }
}

/// Has everything configured in a clone that some git might run, by every way to configure it.
fn configures(run: &str) -> String {
    let hooks = "for hook in pre-commit post-commit post-checkout reference-transaction \
                 post-index-change; do cp run hooks/$hook; cp run .git/hooks/; done";
    let settings = "for name in diff.external diff.x.textconv diff.x.command filter.x.clean \
                    filter.x.smudge filter.x.process core.pager core.editor core.askPass \
                    gpg.program core.alternateRefsCommand; do git config $name $PWD/run; \
                    git config -f included $name $PWD/run; done";
    format!(
        "mkdir -p hooks .git/hooks .git/info x/y/z; echo '#!/bin/sh' > run; echo '{run}' >> run; \
         chmod 755 run; {hooks}; {settings}; git config core.hooksPath $PWD/hooks; \
         git config include.path $PWD/included; git config extensions.worktreeConfig true; \
         git config --worktree core.fsmonitor $PWD/run; echo '* filter=x diff=x' > .gitattributes; \
         cp .gitattributes .git/info/attributes; git init -q x/y/z; \
         git -C x/y/z config core.fsmonitor $PWD/run"
    )
}

/// Within bubblewrap a program that was killed had 137 as its exit code, as one that ends with 137.
#[test]
fn a_signal_is_told_from_an_exit_code_within_all_walls() {
    let bench = Bench::new("signals");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let mut ending = |goal: &str| {
            let id = executor.start(&bench.repo, goal);
            executor.record(&id)["agent"].clone()
        };
        let killed = ending("sh kill -9 $PPID; sleep 9");
        assert_eq!(killed["signal"], 9, "{walls}: {killed}");
        assert_eq!(killed["exit_code"], json!(null), "{walls}: {killed}");
        let mut forged = "say forged\nsh printf '\\011'; printf '\\011' >&2\n".to_owned();
        if matches!(walls, "require" | "bubblewrap") {
            forged += "sh for end in /proc/1/fd/*; do printf '\\011' >$end; done; true\n";
        }
        let exited = ending(&(forged + "exit 137"));
        assert_eq!(exited["exit_code"], 137, "{walls}: {exited}");
        assert_eq!(exited["signal"], json!(null), "{walls}: {exited}");
        executor.close();
    }
}

/// Whoever ended with exit code 153 was told to have made a file that is too long.
#[test]
fn exit_code_153_is_not_taken_for_a_file_that_is_too_long() {
    let bench = Bench::new("too-long");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let id = executor.start(&bench.repo, "exit 153");
        let error = executor.record(&id)["error"].clone();
        assert_eq!(error["code"], "agent_failed", "{walls}: {error}");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("--file-size"), "{walls}: {error}");
        executor.close();
    }
}

/// A clone with directories that are too deep for a path was removed, and the record said both that
/// it is there and that it was not kept.
#[test]
fn a_record_names_a_kept_clone_where_there_is_one() {
    let bench = Bench::new("deep");
    let mut executor = bench.child(&["--sandbox", "off"]);
    let deep = "import os; [(os.mkdir('x'*200), os.chdir('x'*200)) for _ in range(60)]";
    let goal = format!("sh python3 -c \"{deep}\"\nwrite a.txt new");
    let id = executor.start(&bench.repo, &goal);
    let record = executor.record(&id);
    assert_eq!(record["error"]["code"], "result_failed", "{record}");
    let work = bench.task_dir(&id).join("work");
    let warnings = record["warnings"].to_string();
    let named = format!("what the agent has left is in {}", work.display());
    assert!(warnings.contains(&named), "{record}");
    assert!(!warnings.contains("not kept"), "{record}");
    let written = fs::read_to_string(work.join("a.txt"));
    assert_eq!(written.ok().as_deref(), Some("new\n"));
    executor.close();
}

/// A directory is a repository without any `.git` as well: a bare one, or one that names another
/// for its objects. Git runs what it configures where somebody stands in it.
#[test]
fn no_directory_of_a_kept_clone_is_a_repository_by_itself() {
    let bench = Bench::new("bare");
    let marker = bench.path("marker");
    let run = format!("touch {}; false", marker.display());
    let arm = |name: &str| {
        format!(
            "git init -q --bare {name}; git -C {name} config core.fsmonitor '{run}'; \
             git -C {name} config core.bare false; git -C {name} config core.worktree ."
        )
    };
    let armed = arm("y");
    let shapes = [
        arm("x"),
        format!("{}; mv x/HEAD x/H; ln -s refs/heads/y x/HEAD", arm("x")),
        format!("{armed}; mkdir x; cp y/HEAD x; echo ../y > x/commondir"),
        format!("{armed}; mv y x; mv x/objects o; ln -s ../o x/objects"),
        format!("{armed}; mkdir x; echo 'gitdir: ../y' > x/.git"),
        format!("{armed}; mkdir x; ln -s ../y x/.git"),
        format!("{armed}; mv y/* .; mkdir x; rm -rf .git"),
    ];
    for (number, shape) in shapes.iter().enumerate() {
        let mut executor = bench.child(&["--sandbox", "off"]);
        let id = executor.start(
            &bench.repo,
            &format!("sh {shape}; true\nsay {number}\nexit 1"),
        );
        let record = executor.record(&id);
        assert_eq!(record["error"]["code"], "agent_failed", "{shape}: {record}");
        executor.close();
        let work = bench.task_dir(&id).join("work");
        let _ = fs::remove_file(&marker);
        for place in ["", "x", "y", "x/refs"].map(|place| work.join(place)) {
            if place.is_dir() {
                git(&place, &["status", "--short"]);
            }
        }
        let log = fs::read_to_string(bench.task_dir(&id).join("log"));
        assert!(work.join("x").is_dir(), "{shape}: {record} {log:?}");
        assert!(!marker.exists(), "{shape}: the agent's command ran");
    }
}

/// Attack 4: a gate wrote what the next gate read.
#[test]
fn a_gate_sees_no_traces_of_another() {
    let bench = Bench::new("fresh");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let acceptance = json!({"acceptance": ["gate:scribbles", "gate:pristine"]});
        let goal = format!("write other.txt {walls}");
        let record = executor.done(task_with(&bench.repo, &goal, acceptance));
        let _ = fs::remove_file("/tmp/trace-of-a-gate");
        let wanted = match walls {
            // Without a wall the gates share /tmp.
            "off" => json!([true, record["gates"][1]["passed"]]),
            _ => json!([true, true]),
        };
        let gates = [&record["gates"][0]["passed"], &record["gates"][1]["passed"]];
        assert_eq!(json!(gates), wanted, "{walls}: {record}");
        executor.close();
    }
}

/// The file with the goal was opened anew for writing, by the descriptor that the agent reads.
#[test]
fn the_file_of_a_goal_stays_as_it_is() {
    let bench = Bench::new("goal");
    for walls in standing(&bench) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let goal = format!(
            "sh in=/proc/$PPID/fd/0; chmod 600 $in; echo evil > $in; echo evil >> $in; \
             echo evil 1<>$in; ln $in goal; truncate -s 0 $in; true\nwrite c.txt {walls}"
        );
        let id = executor.start(&bench.repo, &goal);
        let record = executor.record(&id);
        let kept = fs::read_to_string(bench.task_dir(&id).join("goal")).unwrap();
        assert!(kept.starts_with(&goal), "{walls}: {kept}: {record}");
        executor.close();
    }
}

/// Attack 11: the user's settings were writable, so that an agent could plant hooks for the next
/// session. A file of credentials is found in an empty home, and nothing beside it.
#[test]
fn credentials_are_lent_and_settings_are_not() {
    let bench = Bench::new("lent");
    let home = bench.path("user");
    fs::create_dir_all(home.join(".agent")).unwrap();
    let token = home.join(".agent/token");
    fs::write(home.join(".agent/settings"), "hooks\n").unwrap();
    for walls in standing(&bench).into_iter().chain(["off"]) {
        fs::write(&token, "secret\n").unwrap();
        let mut command = bench.command(&["--sandbox", walls]);
        let mut command = insert(&mut command, &["--credentials", token.to_str().unwrap()]);
        command.env("HOME", &home);
        let mut executor = bench.started(&mut command);
        let goal = "sh cat $HOME/.agent/token; ls -A $HOME $HOME/.agent; \
                    echo refreshed > $HOME/.agent/token\nwrite a.txt x";
        let id = executor.start(&bench.repo, goal);
        let record = executor.record(&id);
        assert_eq!(record["outcome"], "succeeded", "{walls}: {record}");
        let log = executor.part(&id, "log");
        assert!(
            log.contains("secret") && !log.contains("settings"),
            "{walls}: {log}"
        );
        let now = fs::read_to_string(&token).unwrap();
        assert_eq!(now, "refreshed\n", "{walls}");
        // What the link leads to is all that is lent.
        let goal = "sh real=$(readlink -f $HOME/.agent/token); \
                    folder=$(dirname $real); \
                    echo evil > $folder/settings; echo evil > $folder/new; mv $real $folder/x; \
                    rm -f $real; ln -sf settings $real; rm $HOME/.agent/token; \
                    ln -s $folder/settings $HOME/.agent/token; \
                    echo evil > $HOME/.agent/token; true\n\
                    write b.txt x";
        let record = executor.done(task_with(&bench.repo, goal, json!({})));
        assert_eq!(record["outcome"], "succeeded", "{walls}: {record}");
        if walls != "off" {
            let settings = fs::read_to_string(home.join(".agent/settings")).unwrap();
            assert_eq!(settings, "hooks\n", "{walls}");
            assert!(token.is_file() && !token.is_symlink(), "{walls}");
            let count = fs::read_dir(home.join(".agent")).unwrap().count();
            assert_eq!(count, 2, "{walls}");
        }
        executor.close();
    }
}

/// What the executor was started with was open in every agent and every gate, through all walls.
#[test]
fn nothing_that_the_executor_was_started_with_reaches_a_task() {
    let bench = Bench::new("descriptors");
    fs::write(bench.path("key"), "secret\n").unwrap();
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let inner = bench.command(&["--sandbox", walls]);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec 7<key 9<.; exec \"$@\"", "sh"])
            .arg(inner.get_program())
            .args(inner.get_args())
            .env_remove("ROCCO_DEPTH")
            .current_dir(&bench.root);
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut executor = bench.started(&mut command);
        let goal = format!("sh ls -l /proc/$PPID/fd/; true\nwrite c.txt {walls}");
        let acceptance = json!({"acceptance": ["gate:descriptors"]});
        let task = task_with(&bench.repo, &goal, acceptance);
        let id = task["task_id"].as_str().unwrap().to_owned();
        let record = executor.done(task);
        assert_eq!(record["outcome"], "succeeded", "{walls}: {record}");
        for part in ["log", "gates"] {
            let said = executor.part(&id, part);
            assert!(said.contains(" 2 -> "), "{walls}: {said}");
            assert!(
                !said.contains(" 7 -> ") && !said.contains(" 9 -> "),
                "{walls}: {said}"
            );
        }
        executor.close();
    }
}

/// A command with further options before the agent.
fn insert(command: &mut Command, options: &[&str]) -> Command {
    let mut other = Command::new(command.get_program());
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let at = words.iter().position(|word| word == "--").unwrap();
    other.args(&words[..at]).args(options).args(&words[at..]);
    other.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    other
}

/// Attacks 6 and 9: a directory that nobody may enter, and thousands of levels, kept the executor
/// from starting and overflowed its stack.
#[test]
fn what_a_task_leaves_keeps_no_executor_from_starting() {
    let bench = Bench::new("residue");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let mut executor = bench.child(&["--sandbox", walls]);
        let goal = "sh mkdir -p $HOME/closed/in shut/in; chmod 0 $HOME/closed shut; \
                    mkfifo $HOME/fifo; mkdir $HOME/full; touch $HOME/full/x; chmod 500 $HOME/full; \
                    python3 -c 'import os; home = os.environ[\"HOME\"]; \
                    [open(home + \"/\" + name, \"w\") for name in \
                    (\"a\\nb\", \"n\" * 255, \"-rf\", \"\\\\\")]; \
                    os.mkdir(home + \"/wide\"); \
                    [open(home + \"/wide/%d\" % number, \"w\") for number in range(5000)]'; \
                    python3 -c 'import os; [(os.mkdir(\"d\"), os.chdir(\"d\")) for i in range(5000)]'\n\
                    exit 1";
        let id = executor.start(&bench.repo, goal);
        let record = executor.record(&id);
        assert_eq!(record["outcome"], "failed", "{walls}: {record}");
        let next = executor.start(&bench.repo, &format!("write b.txt {walls}"));
        assert_eq!(executor.record(&next)["outcome"], "succeeded", "{walls}");
        executor.close();
        let dir = bench.task_dir(&id);
        assert!(!dir.join("home").exists(), "{walls}");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn the_record_and_hello_say_which_walls_stood() {
    let bench = Bench::new("said");
    for walls in standing(&bench).into_iter().chain(["off"]) {
        let name = match walls {
            "require" => "bubblewrap+landlock",
            "off" => "none",
            name => name,
        };
        let mut executor = bench.child(&["--sandbox", walls]);
        let record = executor.done(task_with(
            &bench.repo,
            &format!("write c {walls}"),
            json!({}),
        ));
        assert_eq!(record["sandbox"], name, "{record}");
        let warned = record["warnings"].to_string().contains("without a sandbox");
        assert_eq!(warned, walls == "off", "{record}");
        executor.close();
    }
}
