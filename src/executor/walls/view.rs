//! What a program of a task may see of the file system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Programs and libraries of the system. Each may be a symbolic link into another.
const SYSTEM_DIRS: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
];

/// What programs read of the system's configuration. The rest of /etc is not theirs to read, least
/// of all where the executor is root: keys, password hashes, other services' configuration.
const SYSTEM_CONFIGURATION: [&str; 37] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/environment",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// What programs ask of the hardware: how many CPUs there are, and how they lie.
const HARDWARE: [&str; 2] = ["/sys/devices/system/cpu", "/sys/devices/system/node"];

/// Devices that hold nothing of anybody's.
pub const DEVICES: [&str; 6] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// What a program may see. Everything else does not exist for it, or cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What it can read and run.
    pub readable: Vec<PathBuf>,
    /// What it can change.
    pub writable: Vec<PathBuf>,
    /// The directory that stands in the place of /tmp, where there is an outer wall. It is among
    /// what can be changed.
    pub tmp: PathBuf,
    /// Where the program starts.
    pub dir: PathBuf,
    /// Whether it reaches the network.
    pub network: bool,
    /// Whether it may have Unix sockets. By one it could talk to services of the user.
    pub unix_sockets: bool,
}

/// What every program may read: the system's programs and libraries, and of its configuration what
/// programs need. What is not there is left out; where a file is a symbolic link that leads
/// elsewhere, as /etc/resolv.conf often does, its target is named too.
pub fn of_the_system() -> Vec<PathBuf> {
    let named = SYSTEM_DIRS
        .iter()
        .chain(&SYSTEM_CONFIGURATION)
        .chain(&HARDWARE);
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in named.map(Path::new) {
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        paths.push(path.to_owned());
        if !paths.iter().any(|known| real.starts_with(known)) {
            paths.push(real);
        }
    }
    paths
}

/// The files that a command names, so that they can be run and read: its program, and what of its
/// arguments is the absolute path of a file. A link is named with its target.
pub fn of_the_command(argv: &[OsString]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for word in argv {
        let path = Path::new(word);
        if path.is_absolute()
            && path.is_file()
            && let Ok(real) = path.canonicalize()
        {
            paths.push(path.to_owned());
            paths.push(real);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_seen_and_secrets_are_not() {
        let seen = of_the_system();
        assert!(seen.contains(&"/usr".into()), "{seen:?}");
        for secret in [
            "/etc/shadow",
            "/etc/ssl/private/key",
            "/root",
            "/home",
            "/run",
            "/var",
        ] {
            let shown = seen.iter().any(|path| Path::new(secret).starts_with(path));
            assert!(!shown, "{secret}");
        }
        for path in [
            "/etc", "/", "/run", "/tmp", "/home", "/dev", "/proc", "/sys", "/var",
        ] {
            assert!(!seen.contains(&path.into()), "{path}");
        }
    }

    #[test]
    fn the_files_of_a_command_are_seen_with_their_targets() {
        let words = ["/bin/sh", "-c", "/no/such/file", "relative", "/usr"].map(OsString::from);
        let seen = of_the_command(&words);
        let real = Path::new("/bin/sh").canonicalize().expect("a shell");
        assert_eq!(seen, [PathBuf::from("/bin/sh"), real]);
    }
}
