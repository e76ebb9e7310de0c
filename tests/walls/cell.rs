//! A program within walls, with a world around it that it must not reach.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rocco::internals::executor::walls::bounds::Bounds;
use rocco::internals::executor::walls::entry;
use rocco::internals::executor::walls::standing::{self, Walls, WallsWanted};
use rocco::internals::executor::walls::view::View;
use tempfile::TempDir;

/// The world: a home with a secret beside the directories of a task.
pub(crate) struct Cell {
    pub(crate) walls: Walls,
    root: TempDir,
    pub(crate) bounds: Bounds,
    pub(crate) network: bool,
    /// What a shell opens before it becomes the wall, as whoever starts an executor may.
    pub(crate) opened: &'static str,
}

/// Every set of walls that stands here and is wanted. Both have to stand where the run says so.
pub(crate) fn each(wanted: &[Walls]) -> Vec<Cell> {
    let standing: Vec<Cell> = wanted
        .iter()
        .filter(
            |walls| match standing::find(WallsWanted::Exactly(**walls), &program()) {
                Ok(_) => true,
                Err(why) => {
                    crate::support::skip::leave_out("BWRAP", &format!("{walls}: {why}"));
                    false
                }
            },
        )
        .map(|walls| Cell::new(*walls))
        .collect();
    assert!(!standing.is_empty(), "no wall stands here");
    standing
}

/// The program under test.
pub(crate) fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_rocco").into()
}

impl Cell {
    fn new(walls: Walls) -> Self {
        let root = tempfile::Builder::new()
            .prefix("rocco-walls-")
            .tempdir()
            .unwrap();
        for name in ["home", "task/work", "task/home", "task/tmp", "other/work"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("home/key"), "secret\n").unwrap();
        fs::write(root.path().join("other/work/a"), "of another task\n").unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            walls,
            root,
            bounds: Bounds::default(),
            network: true,
            opened: "",
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn command(&self, argv: &[OsString]) -> Command {
        let places = ["task/work", "task/home", "task/tmp"].map(|name| self.path(name));
        let view = View {
            readable: vec![],
            dir: places[0].clone(),
            tmp: places[2].clone(),
            writable: places.into(),
            network: self.network,
            unix_sockets: false,
        };
        let words = entry::argv(self.walls, &view, self.bounds, &program(), argv);
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(format!("{} exec \"$@\"", self.opened))
            .arg("sh")
            .args(&words)
            .current_dir(&view.dir)
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command
            .env("HOME", self.path("task/home"))
            .env("TMPDIR", self.path("task/tmp"));
        command.env("ROOT", self.root.path()).env("LANG", "C.UTF-8");
        command
    }

    /// Runs a script of the shell within.
    pub(crate) fn sh(&self, script: &str) -> Said {
        self.run(&["/bin/sh", "-c", script])
    }

    /// Runs a script of tests/walls/scripts within.
    pub(crate) fn script(&self, name: &str, arguments: &[&str]) -> Said {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walls/scripts");
        let script = fs::read_to_string(folder.join(name)).unwrap();
        self.run(&[&["/usr/bin/python3", "-c", &script], arguments].concat())
    }

    pub(crate) fn run(&self, argv: &[&str]) -> Said {
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let output = self.command(&argv).output().unwrap();
        Said::new(self.walls, &output)
    }

    /// A file of the world as it is now; none if it is not there.
    pub(crate) fn seen(&self, name: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.path().join(name)).ok()
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Said {
    #[allow(dead_code, reason = "a failure shows it")]
    walls: Walls,
    pub(crate) code: Option<i32>,
    /// What the first process tells of the program's end.
    pub(crate) report: Vec<u8>,
    pub(crate) text: String,
}

impl Said {
    fn new(walls: Walls, output: &Output) -> Self {
        // Behind the outer wall the program has its stderr for both.
        let (report, stdout) = match walls.has_bubblewrap() {
            true => (&output.stdout[..], &[][..]),
            false => (&[][..], &output.stdout[..]),
        };
        let both = [stdout, &output.stderr[..]].concat();
        Self {
            walls,
            code: output.status.code(),
            report: report.to_owned(),
            text: String::from_utf8_lossy(&both).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn is(&self, wanted: &str) {
        assert_eq!(self.text.trim(), wanted, "{self:?}");
    }

    #[track_caller]
    pub(crate) fn lacks(&self, what: &str) {
        assert!(!self.text.contains(what), "{what:?} came out: {self:?}");
    }

    #[track_caller]
    pub(crate) fn has(&self, what: &str) {
        assert!(self.text.contains(what), "{what:?} is missing: {self:?}");
    }
}
