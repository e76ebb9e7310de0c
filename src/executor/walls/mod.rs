//! The walls around a program of a task.
//!
//! Two walls stand one in the other. The outer one is bubblewrap: namespaces of the program's own,
//! in which only what its [`view`] names exists. The inner one is Landlock, which allows the same
//! view by rules of the kernel, and which also stands where no namespaces can be had. With either
//! comes a filter of system calls ([`seccomp`]), the loss of all privileges, and [`bounds`], which
//! hold for all processes of a program together where there is a [`cgroup`], for which the executor
//! asks for a [`user_scope`].
//!
//! [`standing`] finds out which walls stand on this machine, [`bubblewrap`] composes the command of
//! the outer wall, and [`entry`] is the process that puts the inner wall around itself and then
//! starts the program. The program is never asked to help: it cannot see, trace or signal what
//! watches it.

pub mod bounds;
pub mod bubblewrap;
pub mod cgroup;
pub mod entry;
pub mod landlock;
pub mod seccomp;
pub mod standing;
pub mod user_scope;
pub mod view;
