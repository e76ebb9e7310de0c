//! The attacks, by what they are after.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixListener;

use rocco::internals::executor::walls::standing::Walls;

use crate::cell::each;

const ALL: [Walls; 3] = [Walls::Both, Walls::Bubblewrap, Walls::Landlock];
/// Those in which a program has a file system and processes of its own.
const OUTER: [Walls; 2] = [Walls::Both, Walls::Bubblewrap];

/// What an ordinary shell script does.
const WORK: &str = "\
set -e
echo done > result
mkdir -p a/b
mv a/b $HOME/b
ln -s result link
temporary=$(mktemp)
echo x > $temporary
rm $temporary
git init -q r
cd r
git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
git log --oneline | wc -l
(echo a; echo b) | grep -c .
bash -c 'cat <(echo sub)'
nproc > /dev/null
tty || true
";

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// A wall that nothing gets through is no use if nothing works behind it.
#[test]
fn ordinary_work_is_done() {
    for cell in each(&ALL) {
        cell.sh(WORK).is("1\n2\nsub\nnot a tty");
        assert_eq!(cell.seen("task/work/result").as_deref(), Some("done\n"));
        cell.script("work.py", &[]).is("well");
    }
    for cell in each(&OUTER) {
        cell.run(&[
            "python3",
            "-c",
            "import os; print(os.ttyname(os.openpty()[1]))",
        ])
        .is("/dev/pts/0");
    }
}

#[test]
fn secrets_of_the_user_are_not_read() {
    for cell in each(&ALL) {
        for path in ["home/key", "other/work/a"] {
            let said = cell.sh(&format!("cat $ROOT/{path}; ls -la $ROOT $ROOT/home; true"));
            said.lacks("secret");
            said.lacks("of another task");
        }
        let said =
            cell.sh("cat /etc/shadow /etc/ssh/*key /root/.bashrc /var/log/*; ls /home; true");
        said.lacks("root:");
        said.lacks("alias");
    }
}

/// A link, a rename and a hard link lead no further than their name does.
#[test]
fn no_detour_leads_to_a_secret() {
    for cell in each(&ALL) {
        let said = cell.sh(
            "ln -s $ROOT/home/key l; cat l; ln $ROOT/home/key h; cat h; mv $ROOT/home/key m; cat m; \
             cat /proc/self/root$ROOT/home/key; cat /proc/1/root$ROOT/home/key; \
             cat /proc/self/cwd/../../home/key; (cd $ROOT/home && cat key); \
             cp -rl $ROOT/home c; cat c/key; tar -C $ROOT -cf - home; \
             cat /proc/*/root$ROOT/home/key; \
             git clone file://$ROOT/other/work g; find $ROOT -name key -exec cat {} +; \
             exec 9<$ROOT/home; true",
        );
        said.lacks("secret");
        assert_eq!(cell.seen("home/key").as_deref(), Some("secret\n"));
    }
}

#[test]
fn nothing_outside_of_the_task_is_written() {
    for cell in each(&ALL) {
        // What is written below /tmp may be in a /tmp of the program's own, and is looked for
        // there.
        cell.sh("for place in /usr/x /etc/x /x /sys/x /proc/x /dev/x; do \
             echo y 2>/dev/null >$place && echo wrote $place; done; \
             echo y >$ROOT/home/x; echo y >$ROOT/x; echo y >$ROOT/other/work/x; \
             mv $HOME/n $ROOT/home/key; ln -sf x $ROOT/home/key; mkfifo $ROOT/home/x; \
             truncate -s 0 $ROOT/home/key; mkdir $ROOT/home/x; cp -r . $ROOT/home/x; \
             rm -rf $ROOT/home $ROOT/other; true")
            .lacks("wrote");
        assert_eq!(cell.seen("home/key").as_deref(), Some("secret\n"));
        assert_eq!(
            cell.seen("other/work/a").as_deref(),
            Some("of another task\n")
        );
        assert_eq!(cell.seen("home/x"), None);
        assert_eq!(cell.seen("other/work/x"), None);
    }
}

/// Landlock has no rule for modes, owners and attributes: other users were let in, and files ran as
/// their owner for others.
#[test]
fn no_other_user_is_let_in() {
    for cell in each(&ALL) {
        cell.script("let_in.py", &[cell.path("home/key").to_str().unwrap()])
            .is("tried");
        let mode = std::fs::metadata(cell.path("home/key")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o644, "{}", cell.walls);
    }
}

/// A program of the user's that runs as the user for everybody stayed in a clone that was kept, and
/// in a directory that a task may write.
#[test]
fn no_file_runs_as_its_owner() {
    for cell in each(&ALL) {
        cell.script("run_as_owner.py", &[]).is("tried");
        let entries = std::fs::read_dir(cell.path("task/work")).unwrap();
        for entry in entries {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().mode();
            assert_eq!(mode & 0o6000, 0, "{entry:?}, {}", cell.walls);
        }
    }
}

/// Attack 1: services of the user answered on their Unix sockets, by path and by abstract name.
#[test]
fn no_unix_socket_of_anybody_is_reached() {
    use std::os::linux::net::SocketAddrExt as _;
    for cell in each(&ALL) {
        let path = cell.path("home/service");
        let service = UnixListener::bind(&path).unwrap();
        let name = format!("rocco-test-{}-{}", std::process::id(), cell.walls);
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let hidden = UnixListener::bind_addr(&address).unwrap();
        for listener in [&service, &hidden] {
            listener.set_nonblocking(true).unwrap();
        }
        let path = path.to_str().unwrap();
        let said = cell.script("unix_sockets.py", &[path, &name]);
        said.is("tried");
        assert!(service.accept().is_err() && hidden.accept().is_err());
    }
}

/// What the starter of an executor has open (a key, a directory, a log, a socket) was open in every
/// program of a task.
#[test]
fn nothing_that_was_left_open_is_handed_on() {
    for mut cell in each(&ALL) {
        cell.opened = "exec 5<$ROOT/home 7<$ROOT/home/key 8>>$ROOT/home/added;";
        let said = cell.sh("cat <&7; ls -l /proc/self/fd/5/; (echo x >&8); true");
        said.lacks("secret");
        said.lacks("key");
        assert_eq!(cell.seen("home/added").as_deref(), Some(""), "{said:?}");
        cell.script("descriptors.py", &[]).is("0 1 2");
    }
}

/// Attack 1 for gates: the loopback of the machine is not theirs.
#[test]
fn a_gate_reaches_no_service_of_the_machine() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for mut cell in each(&ALL) {
        cell.network = false;
        cell.script("loopback.py", &[&port.to_string()]).is("tried");
        assert!(listener.accept().is_err());
    }
}

/// Attack 2: where root ran the executor, an agent kept every capability.
#[test]
fn no_capability_is_left_and_none_comes_back() {
    for cell in each(&ALL) {
        let said =
            cell.sh("grep -E 'Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs|Seccomp:' /proc/self/status");
        for line in said.text.lines() {
            let (name, value) = line.split_once(':').unwrap();
            let wanted = match name {
                "NoNewPrivs" => "1",
                "Seccomp" => "2",
                // Who is not root cannot empty the set, and gains nothing by it.
                "CapBnd" if cell.walls == Walls::Landlock && !is_root() => continue,
                _ => "0000000000000000",
            };
            assert_eq!(value.trim(), wanted, "{said:?}");
        }
        assert_eq!(said.text.lines().count(), 7, "{said:?}");
        cell.sh(
            "mount -t tmpfs x /tmp 2>&1; umount -l / 2>&1; chroot / true 2>&1; \
                 unshare -U true 2>&1; unshare -m true 2>&1; mknod d b 8 0 2>&1; \
                 nsenter -t 1 -a true 2>&1; true",
        )
        .lacks("ok");
        assert!(!cell.path("task/work/d").exists());
        cell.script("privileges.py", &[]).is("tried");
    }
}

/// Attack 5: a program took a descriptor of bubblewrap's and wrote its own exit status.
#[test]
fn no_process_of_the_walls_is_looked_into() {
    for cell in each(&ALL) {
        cell.script("look_into.py", &[]).is("took 0");
    }
}

/// An exit status is the program's own, and nothing that it starts or signals changes it.
#[test]
fn an_exit_status_is_told_as_it_was() {
    for cell in each(&ALL) {
        for (script, code) in [
            ("exit 0", Some(0)),
            ("exit 1", Some(1)),
            ("(sleep 0.2; exit 0) & exit 3", Some(3)),
            ("setsid sh -c 'sleep 0.1; exit 0' & exit 5", Some(5)),
            ("printf '\\000\\011'; printf '\\011' >&2; exit 6", Some(6)),
            (
                "for end in /proc/1/fd/* /proc/$PPID/fd/*; do printf '\\011' >$end; done \
                 2>/dev/null; exit 7",
                Some(7),
            ),
            (
                "kill -9 1 2>/dev/null; kill -15 1 2>/dev/null; kill -9 $PPID 2>/dev/null; exit 4",
                Some(4),
            ),
        ] {
            assert_eq!(cell.sh(script).code, code, "{script}, {}", cell.walls);
        }
        let killed = cell.sh("kill -9 $$");
        let outer = cell.walls.has_bubblewrap();
        assert_eq!(killed.code, outer.then_some(128 + 9), "{killed:?}");
        assert_eq!(killed.report, [9][..usize::from(outer)], "{killed:?}");
        let absent = cell.run(&["/no/such/program"]);
        absent.has("/no/such/program cannot be started");
        assert_eq!(absent.code, Some(127));
    }
}

#[test]
fn no_process_outside_is_seen_or_signalled() {
    for cell in each(&ALL) {
        let mut victim = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = victim.id();
        let said = cell.sh(&format!(
            "kill -9 {pid} 2>/dev/null; cat /proc/{pid}/environ; true"
        ));
        assert!(victim.try_wait().unwrap().is_none(), "{said:?}");
        victim.kill().unwrap();
        victim.wait().unwrap();
        said.lacks("PATH=");
    }
    for cell in each(&OUTER) {
        cell.sh("ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 8)}'")
            .is("1");
    }
}

/// With the inner wall alone a program lowered the limits of its executor, which ended it, and read
/// the memory that a process of the user shared.
#[test]
fn no_process_outside_is_reached_by_its_number_or_by_shared_memory() {
    use std::io::{BufRead as _, BufReader};
    let script = include_str!("scripts/victim.py");
    let mut victim = std::process::Command::new("/usr/bin/python3")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut segment = String::new();
    let mut said = BufReader::new(victim.stdout.take().unwrap());
    said.read_line(&mut segment).unwrap();
    for cell in each(&ALL) {
        let arguments = [&victim.id().to_string(), segment.trim()];
        let said = cell.script("outside.py", &arguments);
        // Within the outer wall a queue is the program's own.
        said.is(match cell.walls.has_bubblewrap() {
            true => "a queue\n0 0",
            false => "0 0",
        });
        assert!(victim.try_wait().unwrap().is_none(), "{said:?}");
    }
    drop(victim.stdin.take());
    victim.wait().unwrap();
}

/// Calls by which sandboxes were left before.
#[test]
fn dangerous_calls_are_refused() {
    for cell in each(&ALL) {
        cell.script("calls.py", &[]).is("tried 1");
    }
}

/// Attack 8 and 16: what a program uses up is bounded.
#[test]
fn what_a_program_uses_up_is_bounded() {
    for mut cell in each(&ALL) {
        // Root by number is not counted.
        let counted = !is_root();
        cell.bounds.processes = counted.then_some(40);
        cell.bounds.memory_bytes = Some(256 << 20);
        cell.bounds.file_bytes = Some(1 << 20);
        cell.bounds.open_files = Some(64);
        let said = cell.script("use_up.py", &[]);
        let lines: Vec<&str> = said.text.lines().collect();
        assert_eq!(lines[2..], ["bounded"; 9], "{said:?}");
        // Without a namespace other processes of the user end meanwhile, and make room.
        let most = if cell.walls.has_bubblewrap() { 40 } else { 100 };
        for started in &lines[..2] {
            let started: u32 = started.parse().unwrap();
            assert!(!counted || started < most, "{said:?}");
        }
    }
}

/// Signals that the executor was started without come to a program as usual (F1).
#[test]
fn a_program_starts_with_every_signal_let_through() {
    for cell in each(&ALL) {
        cell.script("signals.py", &[]).is("0\n0");
    }
}
