//! What the user's own configuration says of which files count, and of what they mean: read once,
//! as data, when the executor starts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::executor::run::git::Git;
use crate::executor::run::repo_settings::conversion;
use crate::executor::run::result::terminated;
use crate::executor::store::plain_file::read_plain;
use crate::limits::REPO_FILE_BYTES_MAX;

/// What holds in every repository of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserSettings {
    /// Which files no repository takes, in the syntax of `.gitignore`.
    excludes: Option<PathBuf>,
    /// What attributes files have, in the syntax of `.gitattributes`.
    attributes: Option<PathBuf>,
    /// What files mean, each as a name and a value.
    pub conversions: Vec<String>,
}

impl UserSettings {
    /// What a configuration says, as `git config --list --show-scope -z` prints it, with what git
    /// has in the place of what it does not say.
    fn from_list(listed: &[u8], home: Option<&Path>, config: Option<&Path>) -> Self {
        let usual = |name: &str| config.map(|config| config.join("git").join(name));
        let mut settings = Self {
            excludes: usual("ignore"),
            attributes: usual("attributes"),
            conversions: Vec::new(),
        };
        let texts: Vec<&[u8]> = terminated(listed).collect();
        for scoped in texts.chunks_exact(2) {
            let (scope, entry) = (scoped[0], scoped[1]);
            if scope == b"command" {
                continue;
            }
            let (name, value) = match memchr::memchr(b'\n', entry) {
                Some(at) => (&entry[..at], &entry[at + 1..]),
                // So git has it.
                None => (entry, &b"true"[..]),
            };
            match name {
                b"core.excludesfile" => settings.excludes = file_named(value, home),
                b"core.attributesfile" => settings.attributes = file_named(value, home),
                _ => settings.conversions.extend(
                    str::from_utf8(name)
                        .ok()
                        .zip(str::from_utf8(value).ok())
                        .and_then(|(name, value)| conversion(name, value)),
                ),
            }
        }
        settings
    }

    /// What the user's file of excludes holds now. A file that cannot be read excludes nothing, as
    /// with git.
    pub fn excludes(&self) -> Vec<u8> {
        contents(self.excludes.as_deref())
    }

    /// What the user's file of attributes holds now.
    pub fn attributes(&self) -> Vec<u8> {
        contents(self.attributes.as_deref())
    }
}

/// The file that a setting names. One that is named by where git runs is none.
fn file_named(value: &[u8], home: Option<&Path>) -> Option<PathBuf> {
    let path = match value.strip_prefix(b"~/") {
        Some(rest) => home?.join(OsStr::from_bytes(rest)),
        None => PathBuf::from(OsStr::from_bytes(value)),
    };
    path.is_absolute().then_some(path)
}

fn contents(path: Option<&Path>) -> Vec<u8> {
    let read = path.and_then(|path| read_plain(path, REPO_FILE_BYTES_MAX).ok()?);
    read.unwrap_or_default()
}

impl Git<'_> {
    /// Reads the settings of the user who runs this. Listing a configuration runs nothing of it.
    ///
    /// # Errors
    ///
    /// Git does not understand the configuration.
    pub fn user_settings(&self) -> Result<UserSettings, String> {
        let mut command = self.command(Path::new("/dev/null"), Path::new("/"));
        for name in ["GLOBAL", "SYSTEM", "NOSYSTEM"] {
            command.env_remove(format!("GIT_CONFIG_{name}"));
        }
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home: Option<OsString> = variable("HOME");
        let config = variable("XDG_CONFIG_HOME");
        command.env_remove("HOME");
        command.envs(home.as_ref().map(|home| ("HOME", home)));
        command.envs(config.as_ref().map(|config| ("XDG_CONFIG_HOME", config)));
        command.args(["config", "--list", "--includes", "--show-scope", "-z"]);
        let listed = self.run(command)?;
        let home = home.as_deref().map(Path::new);
        let config = config.map(PathBuf::from);
        let config = config.or_else(|| Some(home?.join(".config")));
        Ok(UserSettings::from_list(&listed, home, config.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_says_what_is_left_out_and_how_lines_end() {
        let home = Path::new("/home/u");
        let read = |listed: &[u8]| UserSettings::from_list(listed, Some(home), Some(home));
        let usual = read(b"global\0user.name\nu\0global\0core.pager\0command\0core.eol\nlf\0");
        assert_eq!(usual.excludes, Some("/home/u/git/ignore".into()));
        assert_eq!(usual.attributes, Some("/home/u/git/attributes".into()));
        let said = read(
            b"system\0core.excludesfile\n/x\0global\0core.excludesfile\n~/i\0\
              global\0core.attributesfile\na\0global\0core.autocrlf\ninput\0\
              global\0core.eol\ncrlf\n[alias]\0global\0core.fsmonitor\n/bin/x\0",
        );
        assert_eq!(said.excludes, Some("/home/u/i".into()));
        assert_eq!(said.attributes, None);
        assert_eq!(said.conversions, ["core.autocrlf=input"]);
    }
}
