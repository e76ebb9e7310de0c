//! What the operator allows and defines, read once at the start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::executor::run::gates::{self, Gate};
use crate::executor::run::sandbox::{Sandbox, SandboxMode};
use crate::executor::schedule::queue::QueueBounds;
use crate::executor::store::journal::Durability;

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
    /// What agents may write besides, in the sandbox.
    pub writable: Vec<PathBuf>,
    /// Whether to use the sandbox.
    pub sandbox: SandboxMode,
    /// Whether a change outside of the declared scope is a failure.
    pub strict_scope: bool,
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
    /// The sandbox, if it is used.
    pub sandbox: Option<Sandbox>,
    /// Why it is not, if it is not.
    pub no_sandbox: Option<String>,
    /// How many tasks the executor itself is inside of.
    pub depth: u64,
}

impl Policy {
    /// Reads and resolves all that the command line names.
    ///
    /// # Errors
    ///
    /// What cannot be had, in a sentence.
    pub fn new(config: ExecutorConfig) -> Result<Self, String> {
        let allow = allowed(&config.allow)?;
        if let Some(path) = config.writable.iter().find(|path| !path.exists()) {
            return Err(format!(
                "--writable {}: the directory does not exist",
                path.display()
            ));
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
                let text = fs::read(&real).map_err(|error| format!("{file}: {error}"))?;
                gates::read(&text).map_err(|what| format!("{file}: {what}"))?
            }
        };
        let (sandbox, no_sandbox) = match config.sandbox {
            SandboxMode::Off => (None, Some("it was switched off".to_owned())),
            wanted => match Sandbox::probe() {
                Ok(sandbox) => (Some(sandbox), None),
                Err(why) if wanted == SandboxMode::Require => return Err(why),
                Err(why) => (None, Some(why)),
            },
        };
        Ok(Self {
            agent: found(&config.agent)?,
            depth: depth(),
            config,
            allow,
            gates,
            sandbox,
            no_sandbox,
        })
    }

    /// How much is taken.
    pub fn bounds(&self) -> QueueBounds {
        QueueBounds {
            running_max: self.config.running_max,
            queued_max: self.config.queued_max,
        }
    }

    /// A gate that is defined.
    pub fn gate(&self, name: &str) -> Option<&Gate> {
        self.gates.iter().find(|gate| gate.name == name)
    }

    /// The environment of what runs for a task: nothing of the executor's but what is named.
    pub fn environment(&self, home: &Path, pass: &[String]) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), safe_path()),
            (
                "LANG".into(),
                env::var_os("LANG").unwrap_or_else(|| "C.UTF-8".into()),
            ),
            ("HOME".into(), home.into()),
            ("TMPDIR".into(), home.into()),
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
            let real = path.canonicalize();
            real.map_err(|error| format!("--allow-repo {}: {error}", path.display()))
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

/// A command whose program is found wherever it is started from.
fn found(argv: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut argv = argv.to_vec();
    let Some(program) = argv.first_mut() else {
        return Err("no agent is named".into());
    };
    let path = Path::new(&*program);
    let place = if path.components().count() > 1 {
        // A link is kept: some programs look at the name by which they are called.
        std::path::absolute(path).ok().filter(|path| path.is_file())
    } else {
        let path = safe_path();
        let places = env::split_paths(&path).map(|dir| dir.join(&*program));
        places.into_iter().find(|place| place.is_file())
    };
    match place {
        Some(place) => *program = place.into(),
        None => return Err(format!("the agent {} cannot be found", program.display())),
    }
    Ok(argv)
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
