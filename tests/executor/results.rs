//! What a result may hold, and what is told of it before somebody opens it.

use std::fs;

use serde_json::{Value, json};

use super::bench::{Bench, git, new_id, task, task_with};

fn warnings(record: &Value) -> Vec<&str> {
    let warnings = record["warnings"].as_array().unwrap();
    warnings.iter().map(|what| what.as_str().unwrap()).collect()
}

fn is_surprising(record: &Value) -> bool {
    let mut warnings = warnings(record).into_iter();
    warnings.any(|what| what.starts_with("runs_when_opened: "))
}

/// A result could bring settings that an editor, a shell or an agent runs when the repository is
/// opened, without a word.
#[test]
fn what_is_run_when_it_is_opened_is_told_or_fails() {
    let bench = Bench::new("opened");
    let mut executor = bench.child(&[]);
    // Many other warnings do not push it out of the record.
    let mut goal = "write .VSCode/tasks.json x\nwrite sub/CLAUDE.md x\nwrite .envrc x\n\
                    write .gitattributes *.bin filter=x\nwrite src/.gitattributes *.rs text\n"
        .to_owned();
    for number in 0..20 {
        goal += &format!("link /etc/{} l{number}\n", "x".repeat(50));
    }
    let record = executor.done(task(&new_id(), &bench.repo, &goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        warnings(&record)[0],
        "runs_when_opened: the task changed files that are run, or obeyed, when they are opened: \
         .gitattributes (filters of git), .VSCode/tasks.json (editors), \
         .envrc (shells that enter a directory), sub/CLAUDE.md (coding agents)"
    );
    let plain = executor.done(task(&new_id(), &bench.repo, "write src/c.txt x"));
    assert!(!is_surprising(&plain), "{plain}");
    executor.close();
    let mut strict = bench.child(&["--refuse-surprises"]);
    let record = strict.done(task(&new_id(), &bench.repo, "write .envrc x"));
    assert_eq!(record["error"]["code"], "runs_when_opened", "{record}");
    let record = strict.done(task(&new_id(), &bench.repo, "write src/c.txt x"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
}

/// What is gone is run by nobody.
#[test]
fn a_file_that_is_removed_is_no_surprise() {
    let bench = Bench::new("removed");
    fs::write(bench.repo.join(".envrc"), "x").unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "envrc"]);
    let mut strict = bench.child(&["--refuse-surprises"]);
    let record = strict.done(task(&new_id(), &bench.repo, "remove .envrc"));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert!(!is_surprising(&record), "{record}");
}

/// Each of these links stays inside by its text.
#[test]
fn links_that_lead_out_together_are_told() {
    let bench = Bench::new("chains");
    std::os::unix::fs::symlink("via/../../x", bench.repo.join("old")).unwrap();
    std::os::unix::fs::symlink("src/b.txt", bench.repo.join("kept")).unwrap();
    fs::create_dir(bench.repo.join("via")).unwrap();
    fs::write(bench.repo.join("via/file"), "x").unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "links"]);
    let mut executor = bench.child(&[]);
    let told = |record: &Value| warnings(record).join("\n");
    let record = executor.done(task(
        &new_id(),
        &bench.repo,
        "link . b\nlink b/../secret a\nlink src/b.txt in",
    ));
    let said = told(&record);
    assert!(
        said.contains("symbolic links that lead out of the repository: a"),
        "{said}"
    );
    assert!(!said.contains("out of the repository: a,"), "{said}");
    // One that was there leads out since the task has put a link in its way.
    let goal = "sh rm -r via; mkdir -p src/deep; ln -s . via";
    let record = executor.done(task(&new_id(), &bench.repo, goal));
    let said = told(&record);
    assert!(
        said.contains("symbolic links that lead out of the repository: old"),
        "{said}"
    );
    assert!(!said.contains("kept"), "{said}");
}

#[test]
fn addresses_of_submodules_that_are_new_are_told() {
    let bench = Bench::new("addresses");
    let modules = |name: &str, address: &str| {
        format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = {address}\n")
    };
    let old =
        modules("kept", "https://example.org/kept") + &modules("moved", "https://example.org/a");
    fs::write(bench.repo.join(".gitmodules"), old).unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "modules"]);
    let mut executor = bench.child(&[]);
    let goal = "sh git config -f .gitmodules submodule.moved.url https://example.net/b\n\
                sh git config -f .gitmodules submodule.new.url https://example.net/c\n\
                sh git config -f .gitmodules submodule.new.path new";
    let record = executor.done(task(&new_id(), &bench.repo, goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let said = warnings(&record);
    assert_eq!(
        said[1],
        "submodules are fetched from an address that is new: moved from https://example.net/b, \
         new from https://example.net/c"
    );
    assert!(
        said[0].contains(".gitmodules (git, for submodules and LFS)"),
        "{record}"
    );
}

/// A submodule that was removed was neither in the files nor in the patch, and strict scope did not
/// see it.
#[test]
fn a_submodule_that_is_removed_is_a_change() {
    let bench = Bench::new("gitlink");
    let head = git(&bench.repo, &["rev-parse", "HEAD"]);
    let link = format!("160000,{head},n");
    git(
        &bench.repo,
        &["update-index", "--add", "--cacheinfo", &link],
    );
    git(&bench.repo, &["commit", "-q", "-m", "module"]);
    fs::create_dir(bench.repo.join("n")).unwrap();
    let goal = "sh rmdir n\nwrite src/c.txt x";
    let files = || json!({"files": ["src"]});
    let mut executor = bench.child(&[]);
    let removal = task_with(&bench.repo, goal, files());
    let id = removal["task_id"].as_str().unwrap().to_owned();
    let record = executor.done(removal);
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(
        record["files"][0],
        json!({"path": "n", "status": "D", "added": 0, "removed": 1})
    );
    assert_eq!(
        record["diffstat"],
        "2 files changed, 1 insertion(+), 1 deletion(-)"
    );
    assert_eq!(record["out_of_scope"], json!(["n"]));
    assert!(executor.part(&id, "diff").contains("-Subproject commit"));
    // A file in its place is a change of it, too.
    let record = executor.done(task_with(&bench.repo, "sh rmdir n; echo x > n", files()));
    assert_eq!(record["files"][0]["status"], "T", "{record}");
    assert_eq!(record["out_of_scope"], json!(["n"]));
    // So is a link, or another place of it.
    for goal in [
        "sh rmdir n; ln -s src n",
        "sh mv n src/n; git rm -q --cached n",
    ] {
        let record = executor.done(task_with(&bench.repo, goal, files()));
        assert_eq!(record["out_of_scope"], json!(["n"]), "{goal}: {record}");
    }
    executor.close();
    let mut strict = bench.child(&["--strict-scope"]);
    let record = strict.done(task_with(&bench.repo, goal, files()));
    assert_eq!(record["error"]["code"], "out_of_scope", "{record}");
    let record = strict.done(task_with(&bench.repo, "write src/d.txt x", files()));
    assert_eq!(record["outcome"], "succeeded", "{record}");
}

/// A repository with a gate that fails, behind a link, and a link that a shell obeys.
fn linked(name: &str) -> Bench {
    let bench = Bench::new(name);
    fs::create_dir(bench.repo.join("real")).unwrap();
    fs::write(bench.repo.join("real/t.sh"), "exit 1\n").unwrap();
    fs::write(bench.repo.join("env.sh"), "").unwrap();
    for (target, link) in [("real", "tests"), ("env.sh", ".envrc")] {
        std::os::unix::fs::symlink(target, bench.repo.join(link)).unwrap();
    }
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "links"]);
    bench
}

const STRICT: [&str; 3] = ["--strict-gates", "--strict-scope", "--refuse-surprises"];

/// A task rewrote the script of a gate where a link leads to it, or had git check out other text,
/// and the gate passed; the same with what a shell runs, and with a repository that has no `.git`.
#[test]
fn what_is_changed_behind_a_link_or_by_attributes_is_told_or_fails() {
    let bench = linked("behind");
    let bare = "sh mkdir -p n/objects n/refs; touch n/HEAD n/config n/objects/.k n/refs/.k";
    let attributes = "write .gitattributes real/t.sh text working-tree-encoding=UTF-7";
    let mut strict = bench.child(&["--strict-gates", "--refuse-surprises"]);
    for (goal, code, told) in [
        ("write real/t.sh exit 0", "gate_touched", "real/t.sh"),
        (attributes, "runs_when_opened", ".gitattributes (git, which"),
        (
            "write .gitattributes * text",
            "gate_touched",
            ".gitattributes",
        ),
        ("write env.sh x", "runs_when_opened", "env.sh (shells"),
        ("link /etc out", "leads_out", "repository: out"),
        ("link .git/config out", "leads_out", "repository: out"),
        (bare, "runs_when_opened", "n (git, as a repository)"),
    ] {
        let wanted = json!({"acceptance": ["gate:linked"]});
        let record = strict.done(task_with(&bench.repo, goal, wanted));
        assert_eq!(record["error"]["code"], code, "{goal}: {record}");
        let message = record["error"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{goal}: {message}");
    }
}

/// What a first task changed was judged by no gate, scope or surprise of the one that continued it,
/// and came with its result.
#[test]
fn a_task_that_continues_another_is_judged_by_what_both_changed() {
    let bench = linked("chain");
    let mut strict = bench.child(&STRICT);
    let first = new_id();
    let asks = "outcome needs_input go on?";
    let goal = format!("write real/t.sh exit 0\nwrite env.sh evil\n{asks}");
    strict.done(task(&first, &bench.repo, &goal));
    let next = |goal: &str, files: Value| {
        let members = json!({
            "follow_up_to": first, "files": files, "acceptance": ["gate:linked"],
        });
        task_with(&bench.repo, goal, members)
    };
    for (files, code) in [
        (json!(["a.txt"]), "out_of_scope"),
        (json!(["."]), "runs_when_opened"),
    ] {
        for goal in ["write a.txt x", "outcome no_change_needed"] {
            let record = strict.done(next(goal, files.clone()));
            assert_eq!(record["error"]["code"], code, "{goal}: {record}");
            assert_eq!(record["verification"], "none", "{record}");
        }
    }
    let record = strict.done(next("sh git checkout -q HEAD~1 env.sh", json!(["."])));
    assert_eq!(record["error"]["code"], "gate_touched", "{record}");
    // What the first one changed is told, and what the user has taken over is judged no more.
    let told = "files that were changed by the tasks that this one continues, and that come with \
                its result: env.sh, real/t.sh";
    let record = strict.done(next("write a.txt x", json!(["."])));
    assert!(warnings(&record).contains(&told), "{record}");
    git(
        &bench.repo,
        &["merge", "-q", &format!("refs/rocco/{first}")],
    );
    let record = strict.done(next("write a.txt x", json!(["a.txt"])));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(record["verification"], "passed", "{record}");
    // A gate passed by what the user had undone.
    git(&bench.repo, &["checkout", "-q", "HEAD~1", "real/t.sh"]);
    git(&bench.repo, &["commit", "-q", "-m", "undo"]);
    let record = strict.done(next("write a.txt x", json!(["."])));
    assert_eq!(record["verification"], "none", "{record}");
    let touched = "gate_touched: the gate linked runs what the task changed: real/t.sh";
    assert!(warnings(&record).contains(&touched), "{record}");
}

/// Files that an agent put into the empty directory of a submodule were lost without a word, and
/// those of a repository there were said to be taken.
#[test]
fn files_in_the_directory_of_a_submodule_are_not_lost_without_a_word() {
    let bench = Bench::new("filled");
    let head = git(&bench.repo, &["rev-parse", "HEAD"]);
    let link = format!("160000,{head},sub");
    let words = ["update-index", "--add", "--cacheinfo", &link];
    git(&bench.repo, &words);
    git(&bench.repo, &["commit", "-q", "-m", "module"]);
    fs::create_dir(bench.repo.join("sub")).unwrap();
    let mut executor = bench.child(&[]);
    let told = "directories of submodules, where the agent has left something that is not part \
                of the result: sub";
    for goal in [
        "write sub/x y\nwrite a.txt x",
        "write sub/x y\noutcome no_change_needed",
        "sh git init -q sub\nwrite a.txt y",
    ] {
        let record = executor.done(task(&new_id(), &bench.repo, goal));
        assert_eq!(record["outcome"], "succeeded", "{record}");
        assert!(warnings(&record).contains(&told), "{goal}: {record}");
        let taken = warnings(&record).join("\n").contains("were taken as files");
        assert!(!taken, "{goal}: {record}");
    }
}

/// A file or a directory with the name of a target had make do nothing, and the gate passed.
#[test]
fn what_make_takes_for_made_is_told_or_fails() {
    let bench = Bench::new("made");
    fs::write(bench.repo.join("Makefile"), "check: unit\n\tfalse\n").unwrap();
    fs::create_dir(bench.repo.join("old")).unwrap();
    fs::write(bench.repo.join("old/x"), "").unwrap();
    fs::create_dir_all(bench.repo.join("sub/deep")).unwrap();
    let rules = "check: unit.ok\n\nunit.ok:\n\tfalse\n";
    fs::write(bench.repo.join("sub/deep/Makefile"), rules).unwrap();
    git(&bench.repo, &["add", "."]);
    git(&bench.repo, &["commit", "-q", "-m", "make"]);
    let mut strict = bench.child(&["--strict-gates"]);
    for (goal, code) in [
        ("write check x", "gate_touched"),
        ("write unit/keep x", "gate_touched"),
        ("write old/new/keep x", "gate_failed"),
        ("write src/unit x", "gate_failed"),
    ] {
        let wanted = json!({"acceptance": ["gate:makes"]});
        let record = strict.done(task_with(&bench.repo, goal, wanted));
        assert_eq!(record["error"]["code"], code, "{goal}: {record}");
    }
    for (goal, code) in [
        ("write sub/deep/check x", "gate_touched"),
        ("write sub/deep/unit.ok x", "gate_touched"),
        ("write sub/deep/other.ok x", "gate_failed"),
        ("write sub/check x", "gate_failed"),
    ] {
        let wanted = json!({"acceptance": ["gate:makes-deep"]});
        let record = strict.done(task_with(&bench.repo, goal, wanted));
        assert_eq!(record["error"]["code"], code, "{goal}: {record}");
    }
}
