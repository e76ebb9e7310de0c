//! The inner wall: rules of the kernel by which this process, and all that it starts, can open
//! nothing but what its view names, and can signal, trace and reach nobody outside of it.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use super::view::DEVICES;

/// The newest rules that this file was written for. What the kernel lacks of them is left out.
const RULES: ABI = ABI::V6;

/// The wall does not stand.
#[derive(Debug)]
pub enum NoWall {
    /// The kernel has no Landlock, or it is switched off.
    Absent,
    /// The kernel refused it.
    Refused(RulesetError),
}

impl std::fmt::Display for NoWall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("the kernel has no Landlock, or it is switched off"),
            Self::Refused(error) => write!(f, "Landlock cannot be used: {error}"),
        }
    }
}

impl From<RulesetError> for NoWall {
    fn from(error: RulesetError) -> Self {
        Self::Refused(error)
    }
}

/// Puts the wall around this process. `with_proc` says that /proc shows the program's own processes
/// alone.
///
/// # Errors
///
/// The wall does not stand.
pub fn restrict(readable: &[PathBuf], writable: &[PathBuf]) -> Result<(), NoWall> {
    let read = AccessFs::from_read(RULES);
    let all = AccessFs::from_all(RULES);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(RULES))?
        .create()?;
    for (paths, access) in [(readable, read), (writable, all)] {
        for path in paths {
            if let Some(rule) = rule(path, access) {
                ruleset = ruleset.add_rule(rule)?;
            }
        }
    }
    for path in DEVICES {
        if let Some(rule) = rule(Path::new(path), device) {
            ruleset = ruleset.add_rule(rule)?;
        }
    }
    match ruleset.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(NoWall::Absent),
        _ => Ok(()),
    }
}

/// The rule for a path. A path that is not there needs none.
fn rule(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<PathFd>> {
    let opened = PathFd::new(path).ok()?;
    let access = match path.is_dir() {
        true => access,
        false => access & (AccessFs::from_file(RULES) | AccessFs::IoctlDev),
    };
    Some(PathBeneath::new(opened, access))
}
