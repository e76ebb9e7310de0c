//! Repositories of the user: what their configuration may not have run, where they may lead, and
//! the forms in which they come.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;

use super::bench::{Bench, Executor, git, new_id, task, task_with};

/// A repository's configuration, its `.gitattributes` and its `.git/info/attributes`. RUN is a
/// program that leaves a trace, LINK another repository that objects are borrowed from.
type Configured = (&'static str, &'static str, &'static str);

/// Attack 20, kind by kind: each of these would have git run a program.
const CONFIGURED: [Configured; 24] = [
    (
        "[filter \"x\"]\nclean = RUN\nsmudge = RUN",
        "* filter=x",
        "",
    ),
    (
        "[filter \"a.b\"]\nclean = RUN\nrequired = true",
        "",
        "* filter=a.b",
    ),
    (
        "[filter \"x\"]\nprocess = RUN\nrequired",
        "*.txt filter=x",
        "",
    ),
    ("[filter \"x\"]\nsmudge = RUN", "", "* filter=x"),
    ("[include]\npath = INCLUDED", "* filter=y diff=y", ""),
    (
        "[includeIf \"gitdir:/**\"]\npath = INCLUDED",
        "* filter=y diff=y",
        "",
    ),
    (
        "[core]\nattributesFile = ATTRIBUTES\n[filter \"y\"]\nclean = RUN",
        "",
        "",
    ),
    (
        "[diff \"x\"]\ntextconv = RUN\ncommand = RUN",
        "* diff=x",
        "",
    ),
    ("[diff]\nexternal = RUN", "", ""),
    ("[core]\nalternateRefsCommand = RUN #", "", ""),
    ("[core]\nfsmonitor = RUN", "", ""),
    ("[core]\nhooksPath = HOOKS", "", ""),
    (
        "[core]\nsshCommand = RUN\n[url \"ssh://host/\"]\ninsteadOf = /",
        "",
        "",
    ),
    (
        "[core]\nsshCommand = RUN\n[url \"ssh://host/\"]\ninsteadOf = .",
        "",
        "",
    ),
    (
        "[core]\ngitProxy = RUN\n[url \"git://host/\"]\ninsteadOf = /",
        "",
        "",
    ),
    (
        "[url \"ext::RUN \"]\ninsteadOf = /\n[protocol \"ext\"]\nallow = always",
        "",
        "",
    ),
    (
        "[credential]\nhelper = !RUN\n[url \"http://127.0.0.1:9/\"]\ninsteadOf = /",
        "",
        "",
    ),
    ("[uploadpack]\npackObjectsHook = RUN", "", ""),
    ("[core]\npager = RUN\neditor = RUN\naskPass = RUN", "", ""),
    (
        "[gpg]\nprogram = RUN\n[commit]\ngpgSign = true\n[log]\nshowSignature = true",
        "",
        "",
    ),
    ("[merge \"x\"]\ndriver = RUN", "* merge=x", ""),
    (
        "[submodule \"x\"]\nupdate = !RUN\n[submodule]\nrecurse = true",
        "",
        "",
    ),
    (
        "[trailer \"x\"]\ncommand = RUN\n[trailer \"y\"]\ncmd = RUN",
        "",
        "",
    ),
    (
        "[gc]\nauto = 1\nrecentObjectsHook = RUN\n[maintenance]\nauto = true",
        "",
        "",
    ),
];

const HOOKS: [&str; 6] = [
    "reference-transaction",
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "post-merge",
];

/// Writes a program that leaves a trace of its name, and passes on what it reads.
fn tracer(bench: &Bench, path: &Path) {
    let traces = bench.show("traces");
    fs::write(
        path,
        format!("#!/bin/sh\necho \"$0 $*\" >> {traces}\ncat\n"),
    )
    .unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A repository with all that its user's git would run, and with changes that are in no commit.
fn configured(bench: &Bench, number: usize, row: &Configured) -> PathBuf {
    let name = format!("configured-{number}");
    let repo = bench.add_repo(&name);
    let at = |name: &str| repo.join(".git").join(name);
    let run = at("run");
    tracer(bench, &run);
    fs::create_dir(at("own-hooks")).unwrap();
    for hook in HOOKS {
        tracer(bench, &at("own-hooks").join(hook));
        tracer(bench, &at("hooks").join(hook));
    }
    let run = run.to_str().unwrap();
    let driver =
        format!("[filter \"y\"]\nclean = {run}\nsmudge = {run}\n[diff \"y\"]\ntextconv = {run}\n");
    fs::write(at("included"), driver).unwrap();
    fs::write(at("attributes"), "* filter=y\n").unwrap();
    if !row.1.is_empty() {
        fs::write(repo.join(".gitattributes"), format!("{}\n", row.1)).unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "attributes"]);
    }
    // Alternates, for whoever asks what they have.
    let lender = bench.path("lender");
    if !lender.exists() {
        bench.add_repo("lender");
    }
    let list = format!("{}\n", lender.join(".git/objects").display());
    fs::write(at("objects/info/alternates"), list).unwrap();
    fs::create_dir_all(at("info")).unwrap();
    fs::write(at("info/attributes"), format!("{}\n", row.2)).unwrap();
    fs::write(repo.join("a.txt"), "second\n").unwrap();
    fs::write(repo.join("src/b.txt"), "second\n").unwrap();
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    let config = row.0.replace("RUN", run);
    let config = config.replace("INCLUDED", &text("included"));
    let config = config.replace("ATTRIBUTES", &text("attributes"));
    let config = config.replace("HOOKS", &text("own-hooks"));
    let old = fs::read_to_string(at("config")).unwrap();
    fs::write(at("config"), format!("{old}{config}\n")).unwrap();
    repo
}

fn done(executor: &mut Executor, repo: &Path, goal: &str) -> serde_json::Value {
    let id = new_id();
    let members = json!({"acceptance": ["gate:holds"], "task_id": id});
    let record = executor.done(task_with(repo, goal, members));
    let name = repo.display();
    assert_eq!(record["outcome"], "succeeded", "{name}: {record}");
    assert_eq!(record["verification"], "passed", "{name}: {record}");
    record
}

#[test]
fn nothing_that_a_repository_configures_is_run() {
    let bench = Bench::new("configured");
    let mut executor = bench.child(&[]);
    let mut wrong = Vec::new();
    for (number, row) in CONFIGURED.iter().enumerate() {
        let repo = configured(&bench, number, row);
        let _ = fs::remove_file(bench.path("traces"));
        let goal = "write a.txt right\nwrite c.txt new";
        let record = executor.done(task_with(
            &repo,
            goal,
            json!({"acceptance": ["gate:holds"]}),
        ));
        let traces = fs::read_to_string(bench.path("traces")).unwrap_or_default();
        let warnings = record["warnings"].to_string();
        let is_told = warnings.contains("the working tree has changes");
        if !traces.is_empty() || record["outcome"] != "succeeded" || !is_told {
            wrong.push(format!("{}\n{traces}{record}", row.0));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The same, by what holds for all repositories of a user or of a machine.
#[test]
fn nothing_that_the_user_configures_is_run() {
    let bench = Bench::new("global");
    let run = bench.path("run");
    tracer(&bench, &run);
    let home = bench.path("home");
    let hooks = home.join("hooks");
    fs::create_dir_all(home.join(".config/git")).unwrap();
    fs::create_dir_all(&hooks).unwrap();
    for hook in HOOKS {
        tracer(&bench, &hooks.join(hook));
    }
    let (run, hooks) = (run.display(), hooks.display());
    let config = format!(
        "[filter \"x\"]\nclean = {run}\nsmudge = {run}\n[core]\nhooksPath = {hooks}\n\
         fsmonitor = {run}\nalternateRefsCommand = {run} #\n[uploadpack]\npackObjectsHook = {run}\n\
         [init]\ntemplateDir = {}\n",
        home.display()
    );
    fs::write(home.join(".gitconfig"), &config).unwrap();
    fs::write(home.join("system"), &config).unwrap();
    fs::write(home.join(".config/git/attributes"), "* filter=x\n").unwrap();
    fs::write(bench.repo.join(".gitattributes"), "* filter=x\n").unwrap();
    let mut command = bench.command(&[]);
    command
        .env("HOME", &home)
        .env("GIT_CONFIG_SYSTEM", home.join("system"));
    command
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor");
    command
        .env("GIT_CONFIG_VALUE_0", home.join("run"))
        .env("GIT_TRACE", bench.path("traces"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut executor = bench.started(&mut command);
    done(&mut executor, &bench.repo, "write a.txt right");
    assert!(!bench.path("traces").exists());
    // What an agent without a sandbox writes where the executor once had its configuration.
    let state = bench.path("state/gitconfig");
    fs::write(state, &config).unwrap();
    done(
        &mut executor,
        &bench.repo,
        "write a.txt right\nwrite c.txt x",
    );
    let traces = fs::read_to_string(bench.path("traces")).unwrap_or_default();
    assert!(traces.is_empty(), "{traces}");
}

/// A partial clone would fetch what it lacks, by whatever command its remote names.
#[test]
fn what_a_repository_lacks_is_not_fetched() {
    let bench = Bench::new("lacks");
    let run = bench.path("run");
    tracer(&bench, &run);
    let run = run.display();
    git(&bench.repo, &["config", "uploadpack.allowFilter", "true"]);
    let from = format!("file://{}", bench.repo.display());
    let mut executor = bench.child(&[]);
    for (number, (filter, config)) in [
        (
            "blob:none",
            format!("[core]\nsshCommand = {run}\n[remote \"origin\"]\nurl = ssh://host/x\n"),
        ),
        (
            "tree:0",
            format!("[remote \"origin\"]\nuploadpack = {run}\n"),
        ),
        (
            "blob:none",
            format!("[remote \"origin\"]\nurl = ext::{run}\n[protocol]\nallow = always\n"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let partial = bench.path(&format!("partial-{number}"));
        let to = partial.to_string_lossy().into_owned();
        let filter = format!("--filter={filter}");
        git(
            &bench.root,
            &["clone", "-q", &filter, "--no-checkout", &from, &to],
        );
        let path = partial.join(".git/config");
        let old = fs::read_to_string(&path).unwrap();
        fs::write(&path, old + &config).unwrap();
        let record = executor.done(task(&new_id(), &partial, "write c.txt x"));
        assert_eq!(record["error"]["code"], "workspace_failed", "{record}");
        assert!(
            record["error"]["message"]
                .to_string()
                .contains("partial clone"),
            "{record}"
        );
        let traces = fs::read_to_string(bench.path("traces")).unwrap_or_default();
        assert!(traces.is_empty(), "{config}: {traces}");
    }
}

/// Every form of a repository gets its result.
#[test]
fn repositories_of_every_form_are_worked_in() {
    let bench = Bench::new("forms");
    let mut executor = bench.child(&[]);
    let commit = |repo: &Path| {
        git(repo, &["config", "user.name", "A User"]);
        git(repo, &["config", "user.email", "user@localhost"]);
        fs::write(repo.join("a.txt"), "first\n").unwrap();
        git(repo, &["add", "."]);
        git(repo, &["commit", "-q", "-m", "start"]);
    };
    let init = |name: &str, words: &[&str]| {
        let words = [&["init", "-q", "-b", "main"], words, &[name]].concat();
        git(&bench.root, &words);
        commit(&bench.path(name));
        bench.path(name)
    };
    let sha256 = init("sha256", &["--object-format=sha256"]);
    let reftable = init("reftable", &["--ref-format=reftable"]);
    let both = init("both", &["--ref-format=reftable", "--object-format=sha256"]);
    let detached = init("detached", &[]);
    git(&detached, &["checkout", "-q", "--detach"]);
    let packed = init("packed", &[]);
    git(&packed, &["gc", "-q"]);
    let split = init("split", &[]);
    git(&split, &["update-index", "--split-index"]);
    let old = init("old", &[]);
    fs::remove_file(old.join(".git/HEAD")).unwrap();
    symlink("refs/heads/main", old.join(".git/HEAD")).unwrap();
    let mut repos = vec![sha256, reftable, both, detached, packed, split, old];
    for (name, of) in [("linked", &repos[0]), ("linked-table", &repos[1])] {
        let to = bench.path(name);
        git(
            of,
            &["worktree", "add", "-q", "-b", name, to.to_str().unwrap()],
        );
        fs::write(to.join("own.txt"), "own\n").unwrap();
        git(&to, &["add", "."]);
        git(&to, &["commit", "-q", "-m", "own"]);
        git(of, &["config", "extensions.worktreeConfig", "true"]);
    }
    repos.extend([bench.path("linked"), bench.path("linked-table")]);
    let (borrows, shallow) = (bench.path("borrows"), bench.path("shallow"));
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    git(
        &bench.root,
        &["clone", "-q", "--shared", "repo", &text(&borrows)],
    );
    git(
        &bench.repo,
        &["commit", "-q", "--allow-empty", "-m", "more"],
    );
    let from = format!("file://{}", bench.repo.display());
    git(
        &bench.root,
        &["clone", "-q", "--depth", "1", &from, &text(&shallow)],
    );
    repos.extend([borrows, shallow]);
    for repo in repos {
        let head = git(&repo, &["rev-parse", "HEAD"]);
        let record = done(&mut executor, &repo, "write a.txt right");
        let name = repo.display();
        assert_eq!(record["base_commit"], head.as_str(), "{name}");
        let warnings = record["warnings"].to_string();
        assert!(!warnings.contains("working tree"), "{name}: {warnings}");
        let result = record["ref"].as_str().unwrap();
        assert_eq!(
            git(&repo, &["show", &format!("{result}:a.txt")]),
            "right",
            "{name}"
        );
        assert_eq!(
            git(&repo, &["rev-parse", &format!("{result}^")]),
            head,
            "{name}"
        );
        git(&repo, &["fsck", "--strict", "--connectivity-only"]);
        assert!(
            !git(&repo, &["for-each-ref"]).contains("refs/rocco/base"),
            "{name}"
        );
        assert_eq!(git(&repo, &["status", "--porcelain"]), "", "{name}");
    }
}

/// Attack 14: `.git` of an allowed directory led to a repository outside, which the agent read and
/// which got the result.
#[test]
fn no_detour_leads_out_of_the_allowed_repositories() {
    let bench = Bench::new("detour");
    let outer = Bench::new("private");
    let private = outer.repo.join(".git");
    let linked = bench.path("linked");
    let to = linked.to_str().unwrap();
    git(&outer.repo, &["worktree", "add", "-q", to]);
    let shared = bench.path("shared");
    let from = outer.repo.to_str().unwrap();
    git(
        &bench.root,
        &["clone", "-q", "--shared", from, shared.to_str().unwrap()],
    );
    fs::create_dir(bench.path("file")).unwrap();
    let line = format!("gitdir: {}\n", private.display());
    fs::write(bench.path("file/.git"), line).unwrap();
    fs::create_dir(bench.path("link")).unwrap();
    symlink(&private, bench.path("link/.git")).unwrap();
    let store = bench.add_repo("store");
    fs::remove_dir_all(store.join(".git/objects")).unwrap();
    symlink(private.join("objects"), store.join(".git/objects")).unwrap();
    let mut executor = bench.child(&[]);
    for name in ["linked", "shared", "file", "link", "store"] {
        let answer = executor.call(
            "task/submit",
            task(&new_id(), &bench.path(name), "write a x"),
        );
        assert_eq!(
            answer["error"]["data"]["code"], "repo_not_allowed",
            "{name}: {answer}"
        );
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("--allow-repo"), "{name}: {said}");
    }
    assert!(!git(&outer.repo, &["for-each-ref"]).contains("refs/rocco"));
    executor.close();
    // What is allowed by name is no detour.
    for flags in [["--allow-repo", from], ["--readable", from]] {
        let mut executor = bench.child(&flags);
        done(&mut executor, &shared, "write a.txt right");
        executor.close();
    }
    let mut executor = bench.child(&["--allow-repo", from]);
    done(&mut executor, &linked, "write a.txt right");
}

/// Five thousand paths of 3,600 bytes, which are more than a result may have.
const LONG_NAMES: &str = "import os\n\
    for part in range(15): os.mkdir(chr(97 + part) * 230); os.chdir(chr(97 + part) * 230)\n\
    for number in range(5000): open(str(number).zfill(100), \"w\").close()";

/// Attack 19: a task failed since the executor could not say what its result was, and the result
/// was in the repository all the same.
#[test]
fn a_task_that_its_executor_could_not_do_leaves_no_ref() {
    let bench = Bench::new("taken-back");
    let names = bench.path("names.py");
    fs::write(&names, LONG_NAMES).unwrap();
    let mut executor = bench.child(&[]);
    let long = format!("sh python3 {}", names.display());
    for (goal, code, part) in [
        (long.as_str(), "result_exceeded", "paths"),
        ("sh mkdir ../diff.new", "result_failed", "directory"),
        ("sh mkdir -p ../diff.patch/x", "result_failed", "directory"),
        ("sh mkdir ../gates", "gates_failed", "directory"),
    ] {
        let goal = format!("write a.txt right\n{goal}");
        let members = json!({"acceptance": ["gate:holds"]});
        let record = executor.done(task_with(&bench.repo, &goal, members));
        let (error, refs) = (
            &record["error"],
            git(&bench.repo, &["for-each-ref", "refs/rocco"]),
        );
        let refs = refs
            .lines()
            .filter(|line| !line.contains("refs/rocco/base/"));
        assert_eq!(error["code"], code, "{goal}: {record}");
        assert!(
            error["message"].as_str().unwrap().contains(part),
            "{goal}: {error}"
        );
        assert_eq!(record["ref"], json!(null), "{goal}: {record}");
        assert_eq!(refs.collect::<Vec<_>>(), [""; 0], "{goal}");
        let work = record["warnings"].to_string();
        assert!(work.contains("has left is in"), "{goal}: {work}");
    }
}

/// Somebody is in the way of a result's name in the user's repository: a name below it, a lock, and
/// the name itself.
#[test]
fn a_result_whose_name_is_taken_is_not_told_as_delivered() {
    let bench = Bench::new("taken");
    let mut executor = bench.child(&[]);
    let repo = bench.repo.display();
    for taken in [
        format!("git -C {repo} update-ref refs/rocco/$ROCCO_TASK_ID/x HEAD"),
        format!(
            "mkdir -p {repo}/.git/refs/rocco; touch {repo}/.git/refs/rocco/$ROCCO_TASK_ID.lock"
        ),
        format!("git -C {repo} update-ref refs/rocco/$ROCCO_TASK_ID HEAD"),
    ] {
        let id = new_id();
        let goal = format!("sh {taken}\nwrite a.txt right");
        let members = json!({"acceptance": ["gate:holds"], "task_id": id});
        let record = executor.done(task_with(&bench.repo, &goal, members));
        let name = format!("refs/rocco/{id}");
        let found = git(
            &bench.repo,
            &["for-each-ref", "--format=%(refname) %(objectname)", &name],
        );
        let of_record = match record["ref"].as_str() {
            Some(named) => format!("{named} {}", record["head_commit"].as_str().unwrap()),
            None => String::new(),
        };
        let is_delivered = !of_record.is_empty() && found == of_record;
        let is_told = record["outcome"] == "succeeded";
        assert_eq!(is_told, is_delivered, "{taken}: {found}: {record}");
        assert!(
            is_delivered || of_record.is_empty(),
            "{taken}: {found}: {record}"
        );
    }
}

/// Attack 22: without a sandbox an agent wrote where the executor's git would read, and its hooks
/// ran in the next task.
#[test]
fn what_an_agent_puts_into_the_state_is_not_read_by_git() {
    let bench = Bench::new("state");
    let run = bench.path("run");
    tracer(&bench, &run);
    let config = format!(
        "[filter \"x\"]\nclean = {0}\nsmudge = {0}\n[core]\nfsmonitor = {0}\nhooksPath = {1}\n",
        run.display(),
        bench.root.display()
    );
    for hook in HOOKS {
        tracer(&bench, &bench.path(hook));
    }
    fs::write(bench.path("config"), config).unwrap();
    fs::write(bench.repo.join(".gitattributes"), "* filter=x\n").unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "attributes"]);
    let evil = bench.path("evil");
    git(
        &bench.root,
        &["init", "-q", "--bare", evil.to_str().unwrap()],
    );
    fs::copy(bench.path("config"), evil.join("config")).unwrap();
    let (root, mut executor) = (bench.root.display(), bench.child(&[]));
    for goal in [
        format!("sh cp {root}/config ../../../gitconfig"),
        format!("sh cp -r {root}/evil ../git"),
        format!("sh mkdir ../git; echo {root}/evil > ../git/commondir"),
        format!("sh for i in $(seq 1 200); do cp -r {root}/evil ../../../git/$i; done"),
        format!(
            "sh for i in $(seq 200 400); do mkdir ../../../git/$i; \
                 echo {root}/evil > ../../../git/$i/commondir; done"
        ),
        format!("sh cp {root}/config .git/config; cp {root}/post-checkout .git/hooks-"),
    ] {
        let goal = format!("write a.txt right\n{goal}; true");
        for goal in [goal.as_str(), "write a.txt right\nwrite c.txt new"] {
            let members = json!({"acceptance": ["gate:holds"]});
            let record = executor.done(task_with(&bench.repo, goal, members));
            assert_eq!(record["outcome"], "succeeded", "{goal}: {record}");
        }
        let traces = fs::read_to_string(bench.path("traces")).unwrap_or_default();
        assert!(traces.is_empty(), "{goal}: {traces}");
    }
}
