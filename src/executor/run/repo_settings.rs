//! What the configuration of a repository says of what its files mean. Every other setting is for
//! its user's git, and is neither obeyed nor passed on.

/// Settings that change what git sees in a working tree, and make git run nothing.
const MEANINGS: [&str; 9] = [
    "core.autocrlf",
    "core.checkstat",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.sharedrepository",
    "core.symlinks",
    "core.trustctime",
];

/// Extensions of the format that change nothing for whoever reads and adds objects and refs.
const HARMLESS: [&str; 6] = [
    "noop",
    "noop-v1",
    "partialclone",
    "preciousobjects",
    "relativeworktrees",
    "worktreeconfig",
];

/// What a repository is, and what its files mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// By which function objects are named.
    pub object_format: String,
    /// How refs are kept.
    pub ref_format: String,
    /// Whether there is no working tree.
    pub is_bare: bool,
    /// Where the working tree is, if the configuration says so.
    pub worktree: Option<String>,
    /// Whether the working tree has a configuration of its own.
    pub has_worktree_config: bool,
    /// What is passed on, each as a name and a value.
    pub meanings: Vec<String>,
    /// Names of settings that say which files count, or what they mean, by the name of another
    /// file. Such a file may be any of the user's, and is not read.
    pub unread: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            object_format: "sha1".into(),
            ref_format: "files".into(),
            is_bare: false,
            worktree: None,
            has_worktree_config: false,
            meanings: Vec::new(),
            unread: Vec::new(),
        }
    }
}

impl Settings {
    /// Takes in what `git config --list -z` prints of a configuration.
    ///
    /// # Errors
    ///
    /// The repository has a form that is not known here.
    pub fn take_in(&mut self, listed: &[u8]) -> Result<(), String> {
        let listed = String::from_utf8_lossy(listed);
        for entry in listed.split_terminator('\0') {
            let (name, value) = match entry.split_once('\n') {
                Some((name, value)) => (name, value),
                None => (entry, "true"),
            };
            self.take_setting(name, value)?;
        }
        Ok(())
    }

    /// The settings of these by which git makes another thing of a file.
    pub fn conversions(&self) -> impl Iterator<Item = String> {
        let settings = self.meanings.iter();
        settings.filter_map(|setting| {
            let (name, value) = setting.split_once('=')?;
            conversion(name, value)
        })
    }

    /// The configuration of a git directory of the executor's own with objects and refs like these.
    pub fn own_config(&self, is_bare: bool) -> String {
        let mut extensions = String::new();
        if self.object_format != "sha1" {
            extensions += &format!("\tobjectFormat = {}\n", self.object_format);
        }
        if self.ref_format != "files" {
            extensions += &format!("\trefStorage = {}\n", self.ref_format);
        }
        let version = u8::from(!extensions.is_empty());
        format!(
            "[core]\n\trepositoryFormatVersion = {version}\n\tbare = {is_bare}\n\
             [extensions]\n{extensions}"
        )
    }

    fn take_setting(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "core.bare" => self.is_bare = is_true(value),
            "core.worktree" => self.worktree = Some(value.to_owned()),
            "core.repositoryformatversion" if !["0", "1"].contains(&value) => {
                return Err(format!(
                    "has a format of version {value}, which is not known"
                ));
            }
            "extensions.worktreeconfig" => self.has_worktree_config = is_true(value),
            "extensions.objectformat" if ["sha1", "sha256"].contains(&value) => {
                value.clone_into(&mut self.object_format);
            }
            "extensions.refstorage" if ["files", "reftable"].contains(&value) => {
                value.clone_into(&mut self.ref_format);
            }
            _ => match name.strip_prefix("extensions.") {
                Some(extension) if !HARMLESS.contains(&extension) => {
                    return Err(format!("uses {name} = {value}, which is not known"));
                }
                _ if MEANINGS.contains(&name) => self.meanings.push(format!("{name}={value}")),
                _ if names_a_file(name) => self.unread.push(name.to_owned()),
                _ => {}
            },
        }
        Ok(())
    }
}

fn names_a_file(name: &str) -> bool {
    let includes = name == "include.path" || name.starts_with("includeif.");
    includes || ["core.attributesfile", "core.excludesfile"].contains(&name)
}

/// A setting by which git makes another thing of a file, as a name and a value. None for every
/// other setting, and for a value that git does not know.
pub fn conversion(name: &str, value: &str) -> Option<String> {
    let value = value.to_ascii_lowercase();
    match name {
        "core.autocrlf" if value == "input" => {}
        "core.autocrlf" | "core.filemode" | "core.ignorecase" | "core.symlinks" => {
            return Some(format!("{name}={}", is_true(&value)));
        }
        "core.eol" if ["lf", "crlf", "native"].contains(&value.as_str()) => {}
        _ => return None,
    }
    Some(format!("{name}={value}"))
}

/// Whether git takes a value for true.
fn is_true(value: &str) -> bool {
    ["true", "yes", "on"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
        || value.parse().is_ok_and(|number: i64| number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_meaning_of_files_is_taken_and_nothing_else() {
        let mut settings = Settings::default();
        let listed = b"core.bare\nfalse\0core.autocrlf\ninput\0core.fsmonitor\n/bin/x\0\
                       filter.x.clean\ny\0core.filemode\0core.worktree\n../a\0include.path\n/x\0\
                       extensions.objectformat\nsha256\0extensions.worktreeconfig\n1\0\
                       extensions.partialclone\norigin\0core.sshcommand\nz\0";
        settings.take_in(listed).expect("settings");
        let wanted = Settings {
            object_format: "sha256".into(),
            worktree: Some("../a".into()),
            has_worktree_config: true,
            meanings: vec!["core.autocrlf=input".into(), "core.filemode=true".into()],
            unread: vec!["include.path".into()],
            ..Settings::default()
        };
        assert_eq!(settings, wanted);
    }

    #[test]
    fn a_conversion_has_every_value_that_git_takes() {
        for (name, value, taken) in [
            ("core.autocrlf", "INPUT", Some("core.autocrlf=input")),
            ("core.autocrlf", "yes", Some("core.autocrlf=true")),
            ("core.filemode", "off", Some("core.filemode=false")),
            ("core.eol", "CRLF", Some("core.eol=crlf")),
            ("core.eol", "both", None),
            ("core.pager", "less", None),
        ] {
            assert_eq!(conversion(name, value).as_deref(), taken, "{name} {value}");
        }
    }

    #[test]
    fn a_form_that_is_not_known_is_refused() {
        for listed in [
            "extensions.refstorage\nlater\0",
            "extensions.objectformat\nmd5\0",
            "extensions.compatobjectformat\nsha1\0",
            "core.repositoryformatversion\n2\0",
        ] {
            let taken = Settings::default().take_in(listed.as_bytes());
            assert!(taken.unwrap_err().contains("not known"), "{listed}");
        }
    }
}
