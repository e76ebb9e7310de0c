//! The report that a gate writes of its tests: nothing of the result is in its place before the
//! gate runs, and what is there afterwards is read to a bound. No link is followed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::executor::run::counts::TestCount;
use crate::executor::run::junit::{self, JunitFault};
use crate::executor::store::removal::{open_dir, remove_tree_at};
use crate::limits::GATE_REPORT_BYTES_MAX;

/// Where a gate writes its report, from its checkout on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPath {
    folders: Vec<String>,
    name: String,
}

/// Why a report does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportFault {
    /// The gate has not written one.
    Absent,
    /// Something else is in its place, or in that of a directory on the way.
    NotAFile,
    /// It is larger than what is read of a report.
    TooLong,
    /// The system does not let it be read.
    Unreadable(String),
    /// It is not what JUnit writes.
    NotJunit(JunitFault),
}

impl fmt::Display for ReportPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.folders
            .iter()
            .try_for_each(|folder| write!(f, "{folder}/"))?;
        f.write_str(&self.name)
    }
}

impl ReportFault {
    /// What the gate did, behind its name.
    pub fn told(&self, path: &ReportPath) -> String {
        match self {
            Self::Absent => format!("has written no report to {path}"),
            Self::NotAFile => {
                format!("has left something else than a plain file, or a link, at {path}")
            }
            Self::TooLong => {
                format!("has written a report of more than {GATE_REPORT_BYTES_MAX} bytes to {path}")
            }
            Self::Unreadable(error) => format!("has left {path}, which cannot be read: {error}"),
            Self::NotJunit(fault) => {
                format!("has written a report to {path} that is not JUnit XML: {fault}")
            }
        }
    }
}

impl ReportPath {
    /// Reads what a gates file says. None unless it is a path below the checkout and not one of
    /// git's.
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for component in Path::new(text).components() {
            match component {
                Component::CurDir => {}
                Component::Normal(part) => parts.push(part.to_str()?.to_owned()),
                _ => return None,
            }
        }
        let is_of_git = |part: &String| part.eq_ignore_ascii_case(".git");
        if text.ends_with('/') || text.contains(char::is_control) || parts.iter().any(is_of_git) {
            return None;
        }
        let name = parts.pop()?;
        Some(Self {
            folders: parts,
            name,
        })
    }

    /// Removes what is in the place of the report, and says whether something was. Nothing is
    /// where a link or a file is on the way: then the report is not read either.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn clear(&self, checkout: &Path) -> io::Result<bool> {
        let dir = match self.folder(checkout) {
            Err(error) if is_no_folder(&error) => return Ok(false),
            dir => dir?,
        };
        match rustix::fs::statat(&dir, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(false),
            found => found?,
        };
        remove_tree_at(&dir, self.name.as_str())?;
        Ok(true)
    }

    /// Counts the tests in the report that a gate has written.
    ///
    /// # Errors
    ///
    /// There is none that counts.
    pub fn count(&self, checkout: &Path) -> Result<TestCount, ReportFault> {
        let file = self.open(checkout)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(ReportFault::NotAFile);
        }
        if metadata.len() > GATE_REPORT_BYTES_MAX {
            return Err(ReportFault::TooLong);
        }
        let text = BufReader::new(file.take(GATE_REPORT_BYTES_MAX));
        junit::count(text).map_err(ReportFault::NotJunit)
    }

    /// Opens what is in the place of the report, without waiting for a FIFO.
    fn open(&self, checkout: &Path) -> Result<File, ReportFault> {
        let dir = match self.folder(checkout) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReportFault::Absent);
            }
            Err(error) if is_no_folder(&error) => return Err(ReportFault::NotAFile),
            dir => dir.map_err(unreadable)?,
        };
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = self.name.as_str();
        match rustix::fs::openat(&dir, name, flags | OFlags::RDONLY, Mode::empty()) {
            Err(Errno::NOENT) => Err(ReportFault::Absent),
            // A link, and a socket.
            Err(Errno::LOOP | Errno::NXIO) => Err(ReportFault::NotAFile),
            file => Ok(file.map_err(|error| unreadable(error.into()))?.into()),
        }
    }

    /// The directory that the report is in, found step by step.
    fn folder(&self, checkout: &Path) -> io::Result<OwnedFd> {
        let mut dir = open_dir(CWD, checkout)?;
        for folder in &self.folders {
            dir = open_dir(&dir, folder.as_str())?;
        }
        Ok(dir)
    }
}

fn is_no_folder(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn unreadable(error: io::Error) -> ReportFault {
    ReportFault::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::executor::run::gates;

    const GOOD: &str = "<testsuite><testcase/></testsuite>";

    fn path() -> ReportPath {
        ReportPath::read("./out/report.xml").expect("a path")
    }

    /// A checkout with the directory of the report, and a report that lies outside of it.
    fn checkout() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let checkout = folder.path().join("check");
        fs::create_dir_all(checkout.join("out")).expect("a directory");
        fs::create_dir(folder.path().join("other")).expect("a directory");
        fs::write(folder.path().join("other/report.xml"), GOOD).expect("a file");
        (folder, checkout)
    }

    fn fault(leave: impl FnOnce(&Path)) -> ReportFault {
        let (folder, checkout) = checkout();
        leave(&checkout);
        let outside = folder.path().join("other/report.xml");
        let fault = path().count(&checkout).expect_err("no report");
        path().clear(&checkout).expect("it can be removed");
        assert!(outside.exists(), "{fault:?}");
        fault
    }

    #[test]
    fn only_a_plain_file_below_the_checkout_is_a_report() {
        let (_folder, good) = checkout();
        fs::write(good.join("out/report.xml"), GOOD).expect("a file");
        let tests = path().count(&good).expect("a report");
        assert_eq!((tests.passed, tests.failed, tests.skipped), (1, 0, 0));
        assert_eq!(fault(|_| ()), ReportFault::Absent);
        let gone = |dir: &Path| fs::remove_dir(dir.join("out")).expect("a removal");
        assert_eq!(fault(gone), ReportFault::Absent);
        let report = |dir: &Path| dir.join("out/report.xml");
        let others: [&dyn Fn(&Path); 7] = [
            &|dir| symlink("../../other/report.xml", report(dir)).expect("a link"),
            &|dir| symlink("nowhere", report(dir)).expect("a link"),
            &|dir| {
                fs::remove_dir(dir.join("out")).expect("a removal");
                symlink("../other", dir.join("out")).expect("a link");
            },
            &|dir| {
                fs::remove_dir(dir.join("out")).expect("a removal");
                fs::write(dir.join("out"), GOOD).expect("a file");
            },
            &|dir| fs::create_dir_all(report(dir).join("inner")).expect("a directory"),
            &|dir| {
                let fifo = rustix::fs::Mode::from_raw_mode(0o600);
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(CWD, report(dir), kind, fifo, 0).expect("a FIFO");
            },
            &|dir| drop(UnixListener::bind(report(dir)).expect("a socket")),
        ];
        for (at, leave) in others.iter().enumerate() {
            assert_eq!(fault(leave), ReportFault::NotAFile, "{at}");
        }
    }

    #[test]
    fn a_report_is_read_to_its_bound() {
        let of_bytes = |bytes| {
            move |dir: &Path| {
                let file = File::create(dir.join("out/report.xml")).expect("a file");
                file.set_len(bytes).expect("a length");
            }
        };
        let huge = fault(of_bytes(1 << 40));
        assert_eq!(huge, ReportFault::TooLong);
        assert_eq!(
            fault(of_bytes(GATE_REPORT_BYTES_MAX + 1)),
            ReportFault::TooLong
        );
        let most = fault(of_bytes(GATE_REPORT_BYTES_MAX));
        assert!(matches!(most, ReportFault::NotJunit(_)), "{most:?}");
    }

    /// What a result has in the place of the report was taken for the report.
    #[test]
    fn what_was_there_before_is_removed() {
        let (folder, checkout) = checkout();
        let report = checkout.join("out/report.xml");
        assert!(!path().clear(&checkout).expect("nothing to remove"));
        fs::write(&report, GOOD).expect("a file");
        assert!(path().clear(&checkout).expect("a removal"));
        fs::create_dir_all(report.join("a/b")).expect("a directory");
        fs::set_permissions(&report, fs::Permissions::from_mode(0o000)).expect("a mode");
        assert!(path().clear(&checkout).expect("a removal"));
        symlink(folder.path().join("other/report.xml"), &report).expect("a link");
        assert!(path().clear(&checkout).expect("a removal"));
        assert_eq!(path().count(&checkout), Err(ReportFault::Absent));
        assert!(folder.path().join("other/report.xml").exists());
    }

    #[test]
    fn a_path_that_leads_out_of_the_checkout_is_refused_at_the_start() {
        for path in [
            "",
            ".",
            "/",
            "/tmp/report.xml",
            "..",
            "../report.xml",
            "out/../../x",
            "out/",
            "a\\nb",
            "a\\u0000",
            ".git/report.xml",
            "sub/.GIT/x",
        ] {
            let counts = format!(r#"{{"junit":"{path}"}}"#);
            let text = format!(r#"{{"slow":{{"argv":["x"],"counts":{counts}}}}}"#);
            let said = gates::read(text.as_bytes()).expect_err(path);
            assert!(said.starts_with("the gate \"slow\" "), "{said}");
            assert!(said.contains("not a file below its checkout"), "{said}");
        }
        assert_eq!(path().to_string(), "out/report.xml");
    }
}
