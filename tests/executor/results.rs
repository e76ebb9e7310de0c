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
        said.contains("a is a symbolic link that leads out"),
        "{said}"
    );
    for inside in ["b is a", "in is a", "kept is a"] {
        assert!(!said.lines().any(|line| line.starts_with(inside)), "{said}");
    }
    // One that was there leads out since the task has put a link in its way.
    let goal = "sh rm -r via; mkdir -p src/deep; ln -s . via";
    let record = executor.done(task(&new_id(), &bench.repo, goal));
    let said = told(&record);
    assert!(
        said.contains("old is a symbolic link that leads out"),
        "{said}"
    );
    assert!(!said.contains("kept is"), "{said}");
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
        said[0].contains(".gitmodules (git, for submodules)"),
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
    executor.close();
    let mut strict = bench.child(&["--strict-scope"]);
    let record = strict.done(task_with(&bench.repo, goal, files()));
    assert_eq!(record["error"]["code"], "out_of_scope", "{record}");
    let record = strict.done(task_with(&bench.repo, "write src/d.txt x", files()));
    assert_eq!(record["outcome"], "succeeded", "{record}");
}
