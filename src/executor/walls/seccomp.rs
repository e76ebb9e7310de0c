//! Which system calls a program of a task may not make.
//!
//! A list of what is refused, and not of what is allowed: agents bring runtimes of every kind. What
//! stands on it reaches other processes (ptrace and its relatives), services of the user (Unix
//! sockets, keyrings), parts of the kernel that no development tool needs (bpf, perf, modules), or
//! would take down or hide the walls (mounts, namespaces). A call that programs fall back from is
//! answered as if the kernel did not have it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever their arguments are, with EPERM.
const REFUSED: [i64; 47] = [
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // Keys of the user's session.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // The kernel and the machine.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
];

/// Answered with ENOSYS, so that programs take the older way. By io_uring and clone3 a program
/// could do what the filter refuses, since a filter does not see their arguments. By openat2 it
/// could make a file that runs as its owner.
const ABSENT: [i64; 5] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_clone3,
    libc::SYS_openat2,
];

/// Answered with ENOSYS where only the inner wall stands: what processes have together beside
/// files, in a namespace that is the machine's own there, and for which Landlock has no rule.
const SHARED: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Refused where only the inner wall stands, unless the process that is named is the caller (0):
/// how others are scheduled, and where their memory lies. Landlock has no rule for that either.
const OF_A_PROCESS: [i64; 6] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Answered with EOPNOTSUPP where only the inner wall stands, as by a file system without
/// attributes: they let other users in, and Landlock has no rule for them.
const ATTRIBUTES: [i64; 8] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // setxattrat(2) and removexattrat(2) have the same numbers everywhere.
    463,
    466,
];

/// Bits of a mode that are refused: to run as the owner, or as the group. A clone that is kept, and
/// a directory that a task may write, are the user's own outside of the walls.
const RUN_AS_OWNER: [u64; 2] = [0o4000, 0o2000];

/// A bit that is refused as well where only the inner wall stands: to be written by everybody.
const WRITTEN_BY_ALL: u64 = 0o0002;

/// Flags of open(2) by which it makes a file, and so obeys a mode.
const MAKES_A_FILE: [u64; 2] = [0o100, 0o20_000_000];

/// Namespaces that clone(2) makes.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// The time namespace, which only unshare(2) makes: for clone(2) the bit is part of a signal.
const NEW_TIME_NAMESPACE: i32 = 0x80;

/// Controls of a terminal by which a program types for its user.
const TYPING: [u64; 3] = [0x5412, 0x541C, 0x5423];

/// What a filter lets through beside what it always does.
#[derive(Debug, Clone, Copy)]
pub struct Allowed {
    /// Sockets of the internet.
    pub internet: bool,
    /// Unix sockets.
    pub unix_sockets: bool,
    /// What reaches other processes of the user by a number: the outer wall has numbers of its own.
    pub own_numbers: bool,
}

/// Filters the system calls of this process and of all that it starts.
///
/// # Errors
///
/// What the kernel says, in words.
pub fn restrict(allowed: Allowed) -> Result<(), String> {
    for (errno, rules) in [
        (libc::EPERM, refused(allowed)),
        (libc::ENOSYS, absent(allowed)),
        (libc::EAFNOSUPPORT, sockets(allowed)),
        (libc::EOPNOTSUPP, attributes(allowed)),
    ] {
        if rules.is_empty() {
            continue;
        }
        let program = program(rules, errno)?;
        seccompiler::apply_filter(&program).map_err(|error| format!("seccomp: {error}"))?;
    }
    Ok(())
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch);
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(|error| error.to_string())?;
    let mut whole = without_x32();
    whole.extend(program);
    Ok(whole)
}

/// Instructions that refuse the calls of the x32 kind, whose numbers the rules do not know
/// (seccomp(2), Caveats). They share the architecture of 64 bits.
fn without_x32() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    const ERRNO: u32 = 0x0005_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    match cfg!(target_arch = "x86_64") {
        true => vec![
            step(LOAD_WORD, 0, 0, 0),
            step(JUMP_IF_AT_LEAST, 0, 1, X32),
            step(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        ],
        false => Vec::new(),
    }
}

fn refused(allowed: Allowed) -> Rules {
    let mut rules: Rules = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let has = |flag: i32| {
        let flag = u64::from(flag.unsigned_abs());
        condition(0, SeccompCmpOp::MaskedEq(flag), flag)
    };
    let makes = |flags: &[i32]| flags.iter().map(|flag| rule(vec![has(*flag)])).collect();
    rules.insert(libc::SYS_clone, makes(&NEW_NAMESPACES));
    let mut unshared: Vec<SeccompRule> = makes(&NEW_NAMESPACES);
    unshared.extend(makes(&[NEW_TIME_NAMESPACE]) as Vec<SeccompRule>);
    rules.insert(libc::SYS_unshare, unshared);
    let types = TYPING.map(|control| rule(vec![condition(1, SeccompCmpOp::Eq, control)]));
    rules.insert(libc::SYS_ioctl, types.into());
    #[cfg(target_arch = "x86_64")]
    for call in [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt] {
        rules.insert(call, Vec::new());
    }
    // Whoever lowers a limit of another process ends it, the first process of the wall included.
    let names_another = condition(0, SeccompCmpOp::Ne, 0);
    let sets_a_limit = pointer(2, SeccompCmpOp::Ne, 0);
    rules.insert(
        libc::SYS_prlimit64,
        vec![rule(vec![names_another, sets_a_limit])],
    );
    if !allowed.own_numbers {
        rules.extend(of_other_processes());
    }
    rules.extend(of_modes(allowed));
    rules.extend(of_new_files());
    rules
}

/// What makes a file that runs as its owner.
fn of_new_files() -> Rules {
    let has = |argument, bit| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
    let makes = |mode| RUN_AS_OWNER.map(|bit| rule(vec![has(mode, bit)])).into();
    let opens = |flags, mode| {
        let pairs = MAKES_A_FILE
            .iter()
            .flat_map(|flag| RUN_AS_OWNER.map(|bit| rule(vec![has(flags, *flag), has(mode, bit)])));
        pairs.collect()
    };
    let mut rules: Rules = [
        (libc::SYS_openat, opens(2, 3)),
        (libc::SYS_mknodat, makes(2)),
    ]
    .into();
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_open, opens(1, 2)),
        (libc::SYS_creat, makes(1)),
        (libc::SYS_mknod, makes(1)),
    ]);
    rules
}

/// What lets other users into a file, whose ever it is.
fn of_modes(allowed: Allowed) -> Rules {
    const SYS_FCHMODAT2: i64 = 452;
    let lets_in = |argument| {
        let has = |bit: u64| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
        let by_all = (!allowed.own_numbers).then_some(WRITTEN_BY_ALL);
        let bits = RUN_AS_OWNER.into_iter().chain(by_all);
        bits.map(|bit| rule(vec![has(bit)])).collect()
    };
    let mut rules: Rules = [
        (libc::SYS_fchmod, lets_in(1)),
        (libc::SYS_fchmodat, lets_in(2)),
        (SYS_FCHMODAT2, lets_in(2)),
    ]
    .into();
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_chmod, lets_in(1));
    rules
}

fn attributes(allowed: Allowed) -> Rules {
    let calls = ATTRIBUTES.iter().filter(|_| !allowed.own_numbers);
    calls.map(|call| (*call, Vec::new())).collect()
}

/// What changes how other processes run, by their numbers.
fn of_other_processes() -> Rules {
    const IOPRIO_WHO_USER: u64 = 3;
    let names_another = |argument| rule(vec![condition(argument, SeccompCmpOp::Ne, 0)]);
    let of_the_user = |kind| rule(vec![condition(0, SeccompCmpOp::Eq, kind)]);
    let user = u64::from(libc::PRIO_USER);
    let mut rules: Rules = OF_A_PROCESS
        .into_iter()
        .map(|call| (call, vec![names_another(0)]))
        .collect();
    for (call, user) in [
        (libc::SYS_setpriority, user),
        (libc::SYS_ioprio_set, IOPRIO_WHO_USER),
    ] {
        rules.insert(call, vec![names_another(1), of_the_user(user)]);
    }
    rules
}

fn absent(allowed: Allowed) -> Rules {
    let shared = SHARED.iter().filter(|_| !allowed.own_numbers);
    let calls = ABSENT.iter().chain(shared);
    calls.map(|call| (*call, Vec::new())).collect()
}

/// Sockets of other families than the allowed ones, and pairs by which a program could send to any
/// Unix socket after all: those of datagrams, which can be connected anew.
fn sockets(allowed: Allowed) -> Rules {
    let family = |family: i32| u64::from(family.unsigned_abs());
    let mut allowed_families = vec![family(libc::AF_NETLINK)];
    if allowed.internet {
        allowed_families.extend([family(libc::AF_INET), family(libc::AF_INET6)]);
    }
    if allowed.unix_sockets {
        allowed_families.push(family(libc::AF_UNIX));
    }
    let is_none_of = allowed_families
        .iter()
        .map(|it| condition(0, SeccompCmpOp::Ne, *it));
    let of_routes = family(libc::NETLINK_ROUTE);
    let other_netlink = rule(vec![
        condition(0, SeccompCmpOp::Eq, family(libc::AF_NETLINK)),
        condition(2, SeccompCmpOp::Ne, of_routes),
    ]);
    let mut rules = Rules::new();
    rules.insert(
        libc::SYS_socket,
        vec![rule(is_none_of.collect()), other_netlink],
    );
    if !allowed.unix_sockets {
        const TYPE_MASK: u64 = 0xF;
        let of_datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| {
            let kind = u64::from(kind.unsigned_abs());
            rule(vec![condition(1, SeccompCmpOp::MaskedEq(TYPE_MASK), kind)])
        });
        rules.insert(libc::SYS_socketpair, of_datagrams.into());
    }
    rules
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompCondition {
    // The kernel looks at the lower half of all of these arguments.
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        .expect("a condition of an argument from 0 to 5 is valid")
}

fn pointer(argument: u8, operator: SeccompCmpOp, value: u64) -> SeccompCondition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value)
        .expect("a condition of an argument from 0 to 5 is valid")
}

fn rule(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("a rule with a condition is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_compiles() {
        for bits in 0..8 {
            let allowed = Allowed {
                internet: bits & 1 != 0,
                unix_sockets: bits & 2 != 0,
                own_numbers: bits & 4 != 0,
            };
            for rules in [refused(allowed), absent(allowed), sockets(allowed)] {
                assert!(program(rules, libc::EPERM).is_ok());
            }
        }
    }
}
