//! What the operator allows and defines, read once at the start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::executor::named_places::{self, NamedPath};
use crate::executor::run::disk::DiskBounds;
use crate::executor::run::gates::{self, Gate};
use crate::executor::run::repo::AllowedPlaces;
use crate::executor::schedule::queue::QueueBounds;
use crate::executor::store::journal::Durability;
use crate::executor::store::plain_file::read_plain;
use crate::executor::walls::bounds::{Bounds, Reach};
use crate::executor::walls::cgroup::Cgroups;
use crate::executor::walls::standing::{self, Walls, WallsWanted};
use crate::executor::walls::view;
use crate::limits::GATES_FILE_BYTES_MAX;

/// What the command line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorConfig {
    /// The state directory.
    pub state: PathBuf,
    /// The socket; none for stdin and stdout.
    pub socket: Option<PathBuf>,
    /// Where repositories may lie; empty for the one that the executor is started in.
    pub allow: Vec<PathBuf>,
    /// The file that defines the gates.
    pub gates: Option<PathBuf>,
    /// What agents are given of the environment.
    pub pass_env: Vec<String>,
    /// What agents may read beside what a task needs, within the walls.
    pub readable: Vec<PathBuf>,
    /// What agents may write beside their own, within the walls.
    pub writable: Vec<PathBuf>,
    /// Files of the user's home that agents find at the same place in theirs.
    pub credentials: Vec<PathBuf>,
    /// Which walls stand around what runs for a task.
    pub walls: WallsWanted,
    /// Whether what runs for a task may have Unix sockets.
    pub unix_sockets: bool,
    /// What each program of a task may use up.
    pub program_bounds: Bounds,
    /// What a task may take of the disk, and what it has to leave.
    pub disk_bounds: DiskBounds,
    /// What the files that a task adds or changes may hold together.
    pub result_bytes_max: u64,
    /// How many files a task may add, change or remove.
    pub result_files_max: usize,
    /// Whether a change outside of the declared scope is a failure.
    pub strict_scope: bool,
    /// Whether a change of what is run by somebody who only opens it is a failure.
    pub refuse_surprises: bool,
    /// Whether a change of what decides a gate is a failure.
    pub strict_gates: bool,
    /// What an accepted task survives.
    pub durable: Durability,
    /// Tasks that run at once.
    pub running_max: usize,
    /// Tasks that wait.
    pub queued_max: usize,
    /// How long a task may run.
    pub deadline_s: u64,
    /// How long an agent may be silent.
    pub silence_s: u64,
    /// The agent and its arguments.
    pub agent: Vec<OsString>,
}

/// What follows from it.
#[derive(Debug)]
pub struct Policy {
    /// The command line.
    pub config: ExecutorConfig,
    /// Where repositories may lie, with symbolic links resolved.
    pub allow: Vec<PathBuf>,
    /// The gates.
    pub gates: Vec<Gate>,
    /// The agent and its arguments, found from everywhere.
    pub agent: Vec<OsString>,
    /// Files that agents find in their home: where, and which file it is.
    pub credentials: Vec<(PathBuf, PathBuf)>,
    /// The walls around what runs for a task.
    pub walls: Walls,
    /// Where control groups are made for programs, if they can be.
    pub cgroups: Option<Cgroups>,
    /// Over what the bounds on a program are counted.
    pub reach: Reach,
    /// The executor's own program, which puts them up.
    pub program: PathBuf,
    /// How many tasks the executor itself is inside of.
    pub depth: u64,
}

impl Policy {
    /// Reads and resolves all that the command line names, for an executor that may make these
    /// control groups.
    ///
    /// # Errors
    ///
    /// What cannot be had, in a sentence.
    pub fn new(config: ExecutorConfig, cgroups: Option<Cgroups>) -> Result<Self, String> {
        let allow = allowed(&config.allow)?;
        let mut config = config;
        for (option, paths) in [
            ("--readable", &mut config.readable),
            ("--writable", &mut config.writable),
        ] {
            opened(option, paths)?;
        }
        if let Some(name) = config
            .pass_env
            .iter()
            .find(|name| !gates::is_variable(name))
        {
            return Err(format!("--pass-env {name:?} is not the name of a variable"));
        }
        let gates = match &config.gates {
            None => Vec::new(),
            Some(path) => {
                let file = path.display();
                let real = path
                    .canonicalize()
                    .map_err(|error| format!("{file}: {error}"))?;
                // Whoever may edit a repository would decide what passes.
                if allow.iter().any(|root| is_in_work_tree(&real, root)) {
                    return Err(format!("{file} lies in a repository that tasks may change"));
                }
                let text = read_plain(&real, GATES_FILE_BYTES_MAX);
                let text = text.map_err(|error| format!("{file}: {error}"))?;
                let text = text.ok_or_else(|| format!("{file} is not there any more"))?;
                gates::read(&text).map_err(|what| format!("{file}: {what}"))?
            }
        };
        let home = env::var_os("HOME").map(PathBuf::from);
        let credentials = config.credentials.iter();
        let credentials = credentials.map(|path| lent(path, home.as_deref()));
        let credentials = credentials.collect::<Result<_, _>>()?;
        let agent = found(&config.agent)?;
        let program = env::current_exe();
        let program = program.map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut named = named(&config, &agent, &gates);
        named.extend(allow.iter().map(|path| NamedPath {
            by: "the repository",
            path: path.clone(),
            may_be_writable: true,
        }));
        named.push(NamedPath {
            by: "this program",
            path: program.clone(),
            may_be_writable: false,
        });
        named_places::outside_of_writable(&named, &config.writable)?;
        named_places::own_programs_outside_of_writable(&safe_path(), &config.writable)?;
        let walls = standing::find(config.walls, &program)?;
        let limits = Reach::of_limits(walls, rustix::process::geteuid().is_root());
        let controllers = cgroups.as_ref().map(Cgroups::controllers);
        Ok(Self {
            agent,
            depth: depth(),
            config,
            allow,
            gates,
            credentials,
            walls,
            reach: limits.in_cgroup(controllers.unwrap_or_default()),
            cgroups,
            program,
        })
    }

    /// How much is taken.
    pub fn bounds(&self) -> QueueBounds {
        QueueBounds {
            running_max: self.config.running_max,
            queued_max: self.config.queued_max,
        }
    }

    /// Where repositories, and what they borrow, may lie.
    pub fn allowed(&self) -> AllowedPlaces<'_> {
        AllowedPlaces {
            repositories: &self.allow,
            readable: &self.config.readable,
        }
    }

    /// A gate that is defined.
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.gates.iter().find(|gate| gate.name == name)
    }

    /// Why a gate cannot be started as the system stands. A program that lies in the checkout, or
    /// on a search path that the operator has passed, is not known before.
    pub fn missing_of(&self, gate: &Gate) -> Option<String> {
        let program = &gate.argv[0];
        let in_checkout = program.contains('/') && !program.starts_with('/');
        if in_checkout || gate.pass_env.iter().any(|name| name == "PATH") {
            return None;
        }
        place_of(program.as_ref()).err()
    }

    /// The environment of what runs for a task: nothing of the executor's but what is named.
    pub fn environment(
        &self,
        home: &Path,
        tmp: &Path,
        pass: &[String],
    ) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), safe_path()),
            (
                "LANG".into(),
                env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into()),
            ),
            ("HOME".into(), home.into()),
            ("TMPDIR".into(), tmp.into()),
            ("ROCCO_DEPTH".into(), (self.depth + 1).to_string().into()),
        ];
        for name in pass {
            if let Some(value) = env::var_os(name) {
                env.retain(|(known, _)| known != name.as_str());
                env.push((name.into(), value));
            }
        }
        env
    }
}

/// Whether a file lies in a directory, but in no `.git` of it.
fn is_in_work_tree(file: &Path, root: &Path) -> bool {
    let inner = file.strip_prefix(root);
    let in_git = |inner: &Path| inner.components().any(|part| part.as_os_str() == ".git");
    let in_repository = || {
        file.ancestors()
            .skip(1)
            .any(|dir| dir.join(".git").exists())
    };
    inner.is_ok_and(|inner| !in_git(inner)) && in_repository()
}

/// Where repositories may lie. Without a word of the operator's it is the repository that the
/// executor was started in, and neither everything nor a home directory.
fn allowed(named: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    if !named.is_empty() {
        let real = |path: &PathBuf| {
            let said = |error| format!("--allow-repo {}: {error}", path.display());
            let real = path.canonicalize().map_err(said)?;
            match real.is_dir() {
                true => Ok(real),
                false => Err(said(ErrorKind::NotADirectory.into())),
            }
        };
        return named.iter().map(real).collect();
    }
    let here = env::current_dir().and_then(|here| here.canonicalize());
    let here = here.map_err(|error| format!("the current directory: {error}"))?;
    let top = here.ancestors().find(|dir| dir.join(".git").exists());
    let home = env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    match top {
        Some(top) if Some(top) != home.as_deref() => Ok(vec![top.to_owned()]),
        Some(_) => Err("the home directory is a git repository: to allow it, name it with --allow-repo".into()),
        None => Err("the current directory is not in a git repository: name the repositories that are allowed with --allow-repo".into()),
    }
}

/// Looks up what an option opens to programs: each path, and where it leads if it is a link.
fn opened(option: &str, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    for index in 0..paths.len() {
        let path = &paths[index];
        let real = path.canonicalize();
        let real = real.map_err(|error| format!("{option} {}: {error}", path.display()))?;
        let named = std::path::absolute(path).unwrap_or_else(|_| real.clone());
        if named != real {
            paths.push(real);
        }
        paths[index] = named;
    }
    Ok(())
}

/// Every path that the command line names or stands for, so that none lies where tasks may write.
fn named(config: &ExecutorConfig, agent: &[OsString], gates: &[Gate]) -> Vec<NamedPath> {
    let commands = gates
        .iter()
        .map(|gate| gate.argv.iter().map(OsString::from).collect());
    let commands = commands.chain([agent.to_vec()]);
    let run = commands.flat_map(|argv: Vec<OsString>| view::of_the_command(&argv));
    let run = run.collect::<Vec<_>>();
    let state = std::slice::from_ref(&config.state);
    let options = [
        ("the command", &run[..], true),
        ("--readable", &config.readable, true),
        ("--writable", &config.writable, true),
        ("--credentials", &config.credentials, true),
        ("--allow-repo", &config.allow, true),
        ("--gates", config.gates.as_slice(), false),
        ("--socket", config.socket.as_slice(), false),
        ("--state", state, false),
    ];
    let named = options
        .into_iter()
        .flat_map(|(by, paths, may_be_writable)| {
            paths.iter().map(move |path| NamedPath {
                by,
                path: path.clone(),
                may_be_writable,
            })
        });
    named.collect()
}

/// A file of the user's home: its place in a home, and the file itself.
fn lent(path: &Path, home: Option<&Path>) -> Result<(PathBuf, PathBuf), String> {
    let named = |what: &str| format!("--credentials {}: {what}", path.display());
    let real = path.canonicalize();
    let real = real.map_err(|error| named(&error.to_string()))?;
    if !real.is_file() {
        return Err(named(
            "it is not a file; --readable and --writable open directories",
        ));
    }
    let place = std::path::absolute(path).map_err(|error| named(&error.to_string()))?;
    let place = home.and_then(|home| place.strip_prefix(home).ok());
    let place = place.ok_or_else(|| named("it does not lie in the home directory"))?;
    Ok((place.to_owned(), real))
}

/// A command whose program is found wherever it is started from.
fn found(argv: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut argv = argv.to_vec();
    let program = argv.first_mut().filter(|program| !program.is_empty());
    let program = program.ok_or("no agent is named behind --")?;
    let place = place_of(program);
    *program = place.map_err(|what| format!("the agent {what}"))?.into();
    Ok(argv)
}

/// Where a program lies: as it is named, or on the search path.
fn place_of(program: &OsStr) -> Result<PathBuf, String> {
    let path = Path::new(program);
    let places: Vec<PathBuf> = if path.components().count() > 1 {
        // A link is kept: some programs look at the name by which they are called.
        std::path::absolute(path).into_iter().collect()
    } else {
        let dirs = safe_path();
        env::split_paths(&dirs).map(|dir| dir.join(path)).collect()
    };
    let is_executable = |place: &&PathBuf| access(*place, Access::EXEC_OK).is_ok();
    let files = || places.iter().filter(|place| place.is_file());
    match (files().find(is_executable), files().next()) {
        (Some(place), _) => Ok(place.clone()),
        (None, Some(_)) => Err(format!("{} is not executable", path.display())),
        (None, None) if path.components().count() > 1 => {
            Err(format!("{} is not there", path.display()))
        }
        (None, None) => Err(format!(
            "{} cannot be found in the directories of PATH, and may be named by its path",
            path.display()
        )),
    }
}

/// The search path, without what depends on the current directory.
pub fn safe_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let absolute = env::split_paths(&path).filter(|dir| dir.is_absolute());
    env::join_paths(absolute).unwrap_or_else(|_| OsStr::new("/usr/bin:/bin").to_owned())
}

fn depth() -> u64 {
    env::var_os("ROCCO_DEPTH").map_or(0, |depth| {
        let depth = depth.to_str().and_then(|depth| depth.parse().ok());
        depth.unwrap_or(1)
    })
}
