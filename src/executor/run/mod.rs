//! What happens to one task.
//!
//! [`job`] is the whole, in order, and looks before each step whether the task is to end. The
//! steps:
//!
//! - [`repo`] holds the user's repository open, found as data by [`repo_files`],
//!   [`repo_settings`] and [`object_stores`]. [`git`] sees it by a [`stand_in`], and makes the
//!   clone with an [`own_dir`], by way of [`command`], which ends whatever it runs within a limit.
//! - [`brief`] is what the agent is told, [`claim`] is what it says of its work.
//! - [`supervisor`] starts each program under a [`guard`], a process of its own that lets nothing
//!   live on, with what [`program`] says the program is given. [`disk`] watches what it writes. A
//!   [`watchman`] makes the clone safe to look at where the executor is killed.
//!   [`process`] and [`pipe`] are the system.
//! - [`collection`] makes a [`result`] of what the agent did and delivers it. [`workspace`] lists
//!   the files of the clone, [`intake`] says which of them count, by the [`index_file`] of the
//!   checkout and that of the agent, and [`files_taken`] has git take them, with what is
//!   [`staged`]. [`user_settings`] and
//!   the repository say which files the user's git would not take, and [`agent_refs`] what the
//!   agent has left elsewhere. [`inspection`] finds what should be known of a result before it is
//!   opened, with [`run_when_opened`], [`secret_names`], [`links`] and [`make_targets`].
//! - [`verification`] holds a result to its [`gates`], with [`scope`]. [`gate_output`] counts their
//!   tests, by way of [`counts`] and [`runners`], or from a [`report`], which [`junit`] reads.
//!   [`gate_inputs`] knows what decides a gate, by way of [`path_pattern`] and [`hiding`].
//! - [`verdict`] says what became of the task, and [`record`] writes it down within its bound.
//!
//! Nothing here waits without a limit: not for git, not for a pipe that somebody holds, not for a
//! guard that its program has stopped.

pub mod agent_refs;
pub mod brief;
pub mod claim;
pub mod collection;
pub mod command;
pub mod command_words;
pub mod counts;
pub mod disk;
pub mod files_taken;
pub mod gate_inputs;
pub mod gate_output;
pub mod gates;
pub mod git;
pub mod git_dirs;
pub mod guard;
pub mod hiding;
pub mod index_file;
pub mod inspection;
pub mod intake;
pub mod job;
pub mod junit;
pub mod left_index;
pub mod link_names;
pub mod links;
pub mod listing;
pub mod make_targets;
pub mod object_name;
pub mod object_stores;
pub mod own_dir;
pub mod path_pattern;
pub mod pipe;
pub mod process;
pub mod program;
pub mod record;
pub mod repo;
pub mod repo_files;
pub mod repo_settings;
pub mod report;
pub mod result;
pub mod run_when_opened;
pub mod runners;
pub mod scope;
pub mod secret_names;
pub mod staged;
pub mod stand_in;
pub mod supervisor;
pub mod user_settings;
pub mod verdict;
pub mod verification;
pub mod watchman;
pub mod workspace;
