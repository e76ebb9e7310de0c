//! What of an agent's clone is part of its result: what the user's own git would take.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bench::{Bench, git, new_id, task, task_with};
use crate::support::wait::output;

/// A repository, what an agent does in it, and what its record says.
struct Case {
    name: &'static str,
    /// Commands that make the repository. What they leave is committed.
    repo: &'static str,
    agent: &'static str,
    /// What the result changes: each status and path, in order.
    changes: &'static [&'static str],
    /// A part of a warning. None if there is to be no warning.
    warning: Option<&'static str>,
}

const MODULES: &str = "submodules that now stand for a commit of the agent's choice, which may be \
     nowhere but in the clone that it worked in: ";
const LEFT_IN_MODULES: &str = "directories of submodules, where the agent has left something that \
     is not part of the result: sub";
const SUBMODULE: &str =
    "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub; mkdir sub";

/// One executor takes no more than this many tasks a minute, twice.
const CASES_AT_ONCE: usize = 15;

const CASES: &[Case] = &[
    Case {
        name: "an attribute that was there converts nothing that was not touched",
        repo: "printf 'a\\r\\n' > b.bat; git add b.bat; git commit -qm crlf; \
               echo '*.bat text eol=crlf' > .gitattributes",
        agent: "echo x >> a.txt",
        changes: &["M a.txt"],
        warning: None,
    },
    Case {
        name: "an encoding that was there converts nothing that was not touched",
        repo: "printf 'plain' > e.txt; git add e.txt; git commit -qm plain; \
               git update-index --assume-unchanged e.txt; \
               echo 'e.txt working-tree-encoding=UTF-16LE ident' > .gitattributes",
        agent: "echo x >> a.txt",
        changes: &["M a.txt"],
        warning: None,
    },
    Case {
        name: "an attribute of the agent's converts what it touched",
        repo: "printf 'a\\r\\n' > b.bat; printf 'a\\r\\n' > c.bat",
        agent: "echo '*.bat text' > .gitattributes; touch c.bat",
        changes: &["A .gitattributes", "M c.bat"],
        warning: None,
    },
    Case {
        name: "a touch is not a change",
        repo: "true",
        agent: "touch a.txt src/b.txt; cp -p a.txt z; mv z a.txt; echo y > n",
        changes: &["A n"],
        warning: None,
    },
    Case {
        name: "a change of the same length and time is a change",
        repo: "true",
        agent: "touch -r a.txt ../t; printf 'sixty\\n' > a.txt; touch -r ../t a.txt",
        changes: &["M a.txt"],
        warning: None,
    },
    Case {
        name: "modes, links and names are changes",
        repo: "ln -s a.txt link; echo case > Name",
        agent: "chmod +x a.txt; ln -sf src link; mv Name name; rm -r src; echo f > src",
        changes: &[
            "D Name",
            "M a.txt",
            "M link",
            "A name",
            "A src",
            "D src/b.txt",
        ],
        warning: None,
    },
    Case {
        name: "a file that LFS keeps is named",
        repo: "echo '*.png filter=lfs -text' > .gitattributes; \
               echo 'version https://git-lfs.github.com/spec/v1' > l.png",
        agent: "echo raw > l.png; echo 'version https://git-lfs.github.com/spec/v1' > p.png",
        changes: &["M l.png", "A p.png"],
        warning: Some(
            "files that a filter of your git would convert, and that are in the result as the \
             agent left them: l.png (lfs)",
        ),
    },
    Case {
        name: "what the repository excludes is left out and named",
        repo: "printf '.env\\nout\\n' >> .git/info/exclude",
        agent: "echo x >> a.txt; echo K=1 > .env; mkdir -p out/d; touch out/d/1 out/d/2",
        changes: &["M a.txt"],
        warning: Some("is not part of the result: .env, out/"),
    },
    Case {
        name: "a file that is no longer tracked is removed",
        repo: "echo o > o.bin",
        agent: "echo '*.bin' > .gitignore; git rm -q --cached o.bin",
        changes: &["A .gitignore", "D o.bin"],
        warning: Some("is not part of the result: o.bin"),
    },
    Case {
        name: "an ignored file that the agent adds by force is taken",
        repo: "echo '*.log' > .gitignore",
        agent: "touch a.log; echo forced > b.log; git add -f b.log",
        changes: &["A b.log"],
        warning: Some("is not part of the result: a.log"),
    },
    Case {
        name: "an ignored file that the agent commits is taken",
        repo: "echo '*.log' > .gitignore",
        agent: "echo x >> a.txt; echo c > c.log; git add -f . ; git commit -qm mine",
        changes: &["M a.txt", "A c.log"],
        warning: None,
    },
    Case {
        name: "another working tree of the repository is left out",
        repo: "true",
        agent: "echo x >> a.txt; git worktree add -q .claude/worktrees/x -b x",
        changes: &["M a.txt"],
        warning: Some(
            "other working trees of the repository, which are not part of the result: \
             .claude/worktrees/x/",
        ),
    },
    Case {
        name: "work on another branch is named",
        repo: "true",
        agent: "echo x >> a.txt; git checkout -qb wip; git commit -qam w; git checkout -q main",
        changes: &[],
        warning: Some("refs/heads/wip"),
    },
    Case {
        name: "a stash is named",
        repo: "true",
        agent: "echo x >> a.txt; git stash -q; echo y > n",
        changes: &["A n"],
        warning: Some("refs/stash"),
    },
    Case {
        name: "a tag is named, and not the branch that is checked out",
        repo: "git tag v1",
        agent: "git checkout -qb mine; echo x >> a.txt; git commit -qam m; git tag v2 HEAD; \
                git commit -q --allow-empty -m n; git tag -f v1 HEAD~1",
        changes: &["M a.txt"],
        warning: Some("refs/tags/v1, refs/tags/v2"),
    },
    Case {
        name: "a submodule whose directory is gone is removed",
        repo: SUBMODULE,
        agent: "rmdir sub",
        changes: &["D sub"],
        warning: None,
    },
    Case {
        name: "a file in a submodule is named",
        repo: SUBMODULE,
        agent: "echo x >> a.txt; echo n > sub/n",
        changes: &["M a.txt"],
        warning: Some(LEFT_IN_MODULES),
    },
    Case {
        name: "a submodule that was moved to another commit is moved",
        repo: SUBMODULE,
        agent: "git -C sub init -q; git -C sub -c user.name=a -c user.email=a@a commit -q --allow-empty -m s; git add sub",
        changes: &["M sub"],
        warning: Some(MODULES),
    },
    Case {
        name: "a submodule that was moved and not added is named",
        repo: SUBMODULE,
        agent: "echo x >> a.txt; git -C sub init -q; git -C sub -c user.name=a -c user.email=a@a commit -q --allow-empty -m s",
        changes: &["M a.txt"],
        warning: Some(LEFT_IN_MODULES),
    },
    Case {
        name: "a file in the place of a submodule is a file",
        repo: SUBMODULE,
        agent: "rmdir sub; echo f > sub",
        changes: &["T sub"],
        warning: None,
    },
    Case {
        name: "a submodule that was added is there",
        repo: "true",
        agent: "git init -q new; git -C new -c user.name=a -c user.email=a@a commit -q --allow-empty -m s; git add new 2>/dev/null",
        changes: &["A new"],
        warning: Some(MODULES),
    },
    Case {
        name: "a file that is not meant to be there is not gone",
        repo: "true",
        agent: "git update-index --skip-worktree src/b.txt; rm src/b.txt; echo x >> a.txt",
        changes: &["M a.txt"],
        warning: None,
    },
    Case {
        name: "a file that is only in the index is named",
        repo: "true",
        agent: "echo z > src/b.txt; echo z > n; git add .; git commit -qm z; \
                git update-index --skip-worktree src/b.txt n; rm src/b.txt n; echo x >> a.txt",
        changes: &["M a.txt"],
        warning: Some("told not to have, which is not part of the result: n, src/b.txt"),
    },
    Case {
        name: "git directories of every kind are taken out beside each other",
        repo: "true",
        agent: "mkdir -p b/.git x4/.git; git worktree add -q zz; mkdir c; git init -q c/d; echo y > y",
        changes: &["A y"],
        warning: Some("zz/"),
    },
    Case {
        name: "an index that is lost counts as that of the checkout",
        repo: "echo '*.log' > .gitignore; echo l > kept.log; git add -f kept.log",
        agent: "echo rubbish > .git/index; echo x >> kept.log; rm a.txt",
        changes: &["D a.txt", "M kept.log"],
        warning: Some("the index that the agent has left cannot be read"),
    },
    Case {
        name: "a mode that the user's git does not look at is no change, unless it is staged",
        repo: "git config core.fileMode false",
        agent: "chmod +x a.txt; echo x > n; chmod +x n; git update-index --chmod=+x src/b.txt",
        changes: &["A n", "M src/b.txt"],
        warning: None,
    },
    Case {
        name: "a file that the configuration of the repository names is not read, and is told",
        repo: "echo '*.txt' > ../any; git config core.excludesFile ../any",
        agent: "echo n > n.txt",
        changes: &["A n.txt"],
        warning: Some(
            "names files that are not read, by which your git may take other files or \
                       convert them: core.excludesfile",
        ),
    },
    Case {
        name: "a name is ignored in any case where the user's git knows no case",
        repo: "git config core.ignoreCase true; echo IGN > .gitignore",
        agent: "echo x >> a.txt; echo i > ign",
        changes: &["M a.txt"],
        warning: Some("is not part of the result: ign"),
    },
    Case {
        name: "a file with CR that was moved or committed stays as it is",
        repo: "printf 'a\\r\\n' > t; printf 'b\\r\\n' > v; printf 'c\\r\\n' > kept; \
               git add .; git commit -qm crlf; git config core.autocrlf input",
        agent: "git mv t u; git mv v w; printf 'b\\r\\n' >> w; printf 'n\\r\\n' > n; \
                git -c core.autocrlf=false add n; git commit -qm n; printf 'm\\r\\n' > m",
        changes: &["A m", "A n", "D t", "A u", "D v", "A w"],
        warning: None,
    },
    Case {
        name: "a commit of the agent's leaves no process of git's behind",
        repo: "",
        agent: "echo x > c; git add c; GIT_TRACE=$HOME/trace git commit -qm c; \
                grep -q 'maintenance run' $HOME/trace || echo > quiet",
        changes: &["A c", "A quiet"],
        warning: None,
    },
    Case {
        name: "what was staged or committed with new ends of lines is taken",
        repo: "printf 'a\\r\\n' > t; printf 'b\\r\\n' > u; git add .; git commit -qm crlf",
        agent: "echo '* text=auto' > .gitattributes; git add --renormalize t; git add .gitattributes; \
                git commit -qm t; git add --renormalize u",
        changes: &["A .gitattributes", "M t", "M u"],
        warning: None,
    },
    Case {
        name: "a file with CR that was merged, or committed and moved, and then edited keeps CR",
        repo: "printf 'a\\r\\n' > t; git add t; git commit -qm t; git checkout -qb o; \
               printf 'o\\r\\n' > o.txt; git add o.txt; git commit -qm o; git checkout -q -; \
               echo '* text=auto' > .gitattributes",
        agent: "git merge -q o; printf 'm\\r\\n' >> o.txt; git mv t v; printf 'm\\r\\n' >> v; \
                git cat-file blob HEAD:o.txt | grep -q . ",
        changes: &["A o.txt", "D t", "A v"],
        warning: None,
    },
    Case {
        name: "a file that was converted without knowing what the agent's index had is named",
        repo: "git config core.autocrlf input",
        agent: "printf 'n\\r\\n' > n; git -c core.autocrlf=false add n; printf 'm\\r\\n' >> n",
        changes: &["A n"],
        warning: Some("the ends of their lines included: n"),
    },
    Case {
        name: "a commit that is on no branch but the first is named",
        repo: "git branch o",
        agent: "echo c > c; git add c; git commit -qm c; git checkout -q o; echo u > u; \
                git notes add -m n",
        changes: &["A u"],
        warning: Some(
            "has what the working tree had and nothing else: refs/heads/main, \
                       refs/notes/commits",
        ),
    },
    Case {
        name: "a file that a sparse index does not list is not removed",
        repo: "mkdir s t u; echo a > s/a; echo b > t/b; echo b > u/b",
        agent: "echo n >> t/b; echo n > t/n; git add -A; git commit -qm z; \
                git sparse-checkout set --cone --sparse-index s; echo y > y",
        changes: &["A y"],
        warning: Some("was told not to have, which is not part of the result: t/b, t/n"),
    },
    Case {
        name: "what a split index tracks is tracked",
        repo: "echo ig > .gitignore; echo b > b",
        agent: "echo i > ig; git add -f ig; git rm -q --cached a.txt; git commit -qm k; \
                git update-index --split-index; git update-index --skip-worktree b; rm b; \
                echo a > a.txt; echo a.txt >> .gitignore",
        changes: &["M .gitignore", "D a.txt", "A ig"],
        warning: Some("name and is not tracked, which is not part of the result: a.txt"),
    },
    Case {
        name: "a name of a secret is told",
        repo: "true",
        agent: "echo K=1 > .env; echo k > deploy.pem; echo e > .env.example",
        changes: &["A .env", "A .env.example", "A deploy.pem"],
        warning: Some("files in the result whose names are those of secrets: .env, deploy.pem"),
    },
    Case {
        name: "an attribute that git checks is no fault of the task",
        repo: "printf '*.x %s\\n' \"$(seq -f a%g -s ' ' 700)\" > .gitattributes",
        agent: "echo '*.y text' >> .gitattributes",
        changes: &["M .gitattributes"],
        warning: None,
    },
];

fn shell(dir: &std::path::Path, words: &str) {
    let mut command = Command::new("sh");
    let ran = output(command.args(["-ec", words]).current_dir(dir));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{words}: {said}");
}

fn changes(record: &Value) -> Vec<String> {
    let files = record["files"].as_array().expect("files");
    let text = |file: &Value, name: &str| file[name].as_str().expect(name).to_owned();
    let told = files
        .iter()
        .map(|file| format!("{} {}", text(file, "status"), text(file, "path")));
    told.collect()
}

/// The result was neither what the agent did nor what the user's git would take, and said nothing.
#[test]
fn a_result_is_what_the_users_git_would_take_of_what_was_touched() {
    let bench = Bench::new("taken");
    let mut executor = bench.child(&[]);
    let mut wrong = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        if number % CASES_AT_ONCE == 0 {
            executor.close();
            executor = bench.child(&[]);
        }
        let repo = bench.add_repo(&format!("case-{number}"));
        shell(&repo, case.repo);
        git(&repo, &["add", "."]);
        shell(&repo, "git diff --cached --quiet || git commit -qm more");
        let record = executor.done(task(&new_id(), &repo, &goal(case.agent)));
        let told = record["warnings"].as_array().expect("warnings").iter();
        let mut told = told.filter_map(Value::as_str);
        let is_told = match case.warning {
            Some(part) => told.any(|warning| warning.contains(part)),
            None => told.all(|warning| warning.contains("without a sandbox")),
        };
        let warnings = record["warnings"].to_string();
        // What lies in the directory of a submodule is not what an ignore file names.
        let is_untrue = warnings.contains("submodules") && warnings.contains("ignore files");
        if changes(&record) != case.changes || !is_told || is_untrue {
            wrong.push(format!("{}: {record}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What an agent does, on one line of its script.
fn goal(words: &str) -> String {
    format!("sh {words}")
}

/// A file with CR was converted when it was only moved.
#[test]
fn what_the_agent_has_staged_decides_how_a_file_is_converted() {
    let bench = Bench::new("staged");
    let words = "printf 'a\\r\\n' > t; printf 'b\\r\\n' > v; git add .; git commit -qm crlf; \
                 git config core.autocrlf input";
    shell(&bench.repo, words);
    let mut executor = bench.child(&[]);
    let words = "git mv t u; git mv v w; printf 'b\\r\\n' >> w; printf 'n\\r\\n' > n; \
                 git -c core.autocrlf=false add n; git commit -qm n; printf 'm\\r\\n' > m; \
                 printf 'x\\r\\n' > 'a \"b'; git -c core.autocrlf=false add .";
    let id = new_id();
    let record = executor.done(task(&id, &bench.repo, &goal(words)));
    let size = |path: &str| {
        let blob = format!("refs/rocco/{id}:{path}");
        git(&bench.repo, &["cat-file", "-s", &blob])
    };
    let sizes = ["u", "w", "n", "m", "a \"b"].map(size);
    assert_eq!(sizes, ["3", "6", "3", "3", "3"], "{record}");
}

/// Behind bubblewrap each file of root's was changed for git, since it had another owner.
#[test]
fn a_checkout_that_nobody_touched_is_clean_within_every_wall() {
    let bench = Bench::new("clean");
    for walls in ["auto", "landlock", "off"] {
        let mut executor = bench.child(&["--sandbox", walls]);
        let words = "git diff-index --quiet HEAD && git diff-files --quiet && echo x > n";
        let members = json!({"acceptance": ["gate:clean"]});
        let record = executor.done(task_with(&bench.repo, &goal(words), members));
        assert_eq!(record["outcome"], "succeeded", "{walls}: {record}");
        executor.close();
    }
}

/// The user's own configuration says what no repository takes, and how lines end.
#[test]
fn what_the_user_excludes_and_converts_everywhere_holds_for_a_task() {
    let bench = Bench::new("user");
    let home = bench.path("home");
    fs::create_dir_all(home.join(".config/git")).unwrap();
    fs::write(home.join(".config/git/attributes"), "*.dat filter=vault\n").unwrap();
    fs::write(home.join("everywhere"), "*.swp\n").unwrap();
    let config = "[core]\n\texcludesFile = ~/everywhere\n[include]\n\tpath = more\n";
    fs::write(home.join(".gitconfig"), config).unwrap();
    let more = "[core]\n\tautocrlf\n\tfsmonitor = touch ran\n[alias]\n\tst = status\n";
    fs::write(home.join("more"), more).unwrap();
    let mut command = bench.command(&[]);
    command.env("HOME", &home).env_remove("XDG_CONFIG_HOME");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut executor = bench.started(&mut command);
    let words = "printf 'a\\r\\nb\\r\\n' > crlf.txt; touch a.swp; echo d > v.dat";
    let id = new_id();
    let record = executor.done(task(&id, &bench.repo, &goal(words)));
    assert_eq!(changes(&record), ["A crlf.txt", "A v.dat"], "{record}");
    let size = format!("refs/rocco/{id}:crlf.txt");
    assert_eq!(git(&bench.repo, &["cat-file", "-s", &size]), "4");
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("a.swp"), "{record}");
    assert!(warnings.contains("v.dat (vault)"), "{record}");
}

/// Clones had neither branches nor tags: `git describe` failed in a gate.
#[test]
fn agents_and_gates_see_the_branches_and_tags_of_the_user() {
    let bench = Bench::new("refs");
    git(&bench.repo, &["tag", "v1"]);
    git(&bench.repo, &["branch", "topic"]);
    git(
        &bench.repo,
        &["update-ref", "refs/remotes/origin/main", "HEAD"],
    );
    git(&bench.repo, &["pack-refs", "--all"]);
    git(&bench.repo, &["tag", "-a", "-m", "loose", "v2"]);
    let mut executor = bench.child(&[]);
    let words = "git describe --tags > d; git log --oneline main...HEAD; \
                 git rev-parse topic origin/main v1^{commit} > r; git tag -d v1";
    let members = json!({"acceptance": ["gate:describes"]});
    let submitted = task_with(&bench.repo, &goal(words), members);
    let id = submitted["task_id"].as_str().unwrap().to_owned();
    let record = executor.done(submitted);
    assert_eq!(record["verification"], "passed", "{record}");
    let tail = record["gates"][0]["tail"].as_str().unwrap();
    assert!(tail.starts_with("v2-1-g"), "{record}");
    let show = |path: &str| git(&bench.repo, &["show", &format!("refs/rocco/{id}:{path}")]);
    assert_eq!(show("d"), "v2");
    let head = git(&bench.repo, &["rev-parse", "main"]);
    assert_eq!(show("r"), [head.as_str(); 3].join("\n"));
    // They are the clone's own, and those of the user stay as they were.
    assert_eq!(git(&bench.repo, &["tag"]), "v1\nv2");
}

/// Git worked for minutes on what was refused in the end.
#[test]
fn a_result_that_is_too_much_is_refused_before_git_reads_it() {
    let bench = Bench::new("too-much");
    let mut executor = bench.child(&["--result-files", "40", "--result-size", "1"]);
    for (words, said) in [
        (
            "truncate -s 3G big",
            "hold 3221225472 bytes, and may hold 1048576 (--result-size)",
        ),
        (
            "for i in $(seq 41); do touch $i; done",
            "41 files, and may do so with 40 (--result-files)",
        ),
        (
            "for i in $(seq 50); do mkdir $i; echo > $i/.gitignore; done",
            "(--result-files)",
        ),
    ] {
        let record = executor.done(task(&new_id(), &bench.repo, &goal(words)));
        assert_eq!(record["error"]["code"], "result_exceeded", "{record}");
        let message = record["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
        assert!(
            record["warnings"].to_string().contains("has left is in"),
            "{record}"
        );
    }
    let goal = goal("for i in $(seq 40); do touch $i; done");
    let record = executor.done(task(&new_id(), &bench.repo, &goal));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    assert_eq!(record["files"].as_array().map(Vec::len), Some(40));
}

/// Sixty thousand long names were `git diff-tree failed: ` and no more.
#[test]
fn a_result_of_many_long_names_is_listed_as_far_as_there_is_room() {
    let bench = Bench::new("many");
    let mut executor = bench.child(&[]);
    let words = "mkdir p; cd p; seq -f %0190.0f 20000 | xargs touch";
    let record = executor.done(task(&new_id(), &bench.repo, &goal(words)));
    assert_eq!(record["outcome"], "succeeded", "{record}");
    let files = record["files"].as_array().unwrap().len();
    let more = format!("{} more files were changed", 20_000 - files);
    assert!(record["warnings"].to_string().contains(&more), "{more}");
}

/// A store that the repository borrows from through a link was there, and git within the walls did
/// not find it by its name.
#[test]
fn objects_that_are_borrowed_through_a_link_are_there_for_the_agent() {
    let bench = Bench::new("borrowed");
    let folder = bench.path("");
    std::os::unix::fs::symlink("real", folder.join("link")).expect("a link");
    let words = format!(
        "mkdir real; git clone -q --bare {} real/o; git clone -q --shared link/o lent; \
         echo $PWD/link/o/objects > lent/.git/objects/info/alternates",
        bench.repo.display()
    );
    shell(&folder, &words);
    let repo = folder.join("lent");
    for walls in ["auto", "landlock"] {
        let mut executor = bench.child(&["--sandbox", walls]);
        let words = "git log --oneline 2> said && test ! -s said && echo l > log; rm said";
        let record = executor.done(task(&new_id(), &repo, &goal(words)));
        assert_eq!(changes(&record), ["A log"], "{walls}: {record}");
        executor.close();
    }
}
