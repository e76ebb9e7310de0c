//! `rocco mcp` as people call it, with everything that it takes.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use super::serve::ServeOptions;
use super::{check, commands, printed, serve};

const ABOUT: &str = "\
rocco mcp serves the Model Context Protocol on stdin and stdout.

Each line is one JSON-RPC message. Replies go to stdout and nothing else does; a word on what went \
wrong goes to stderr. It serves until the input ends.";

const EXIT_CODES: &str = "\
Exit codes:
  0  the input ended, the reader left, or SIGTERM, SIGINT or SIGHUP came
  1  reading or writing failed, or nobody took the last replies; stderr says
     which; with --check: something failed, and the last line says what
  2  the command line is not understood";

pub(super) fn command() -> Command {
    commands::command("mcp", "serve a client on stdin and stdout", ABOUT)
        .after_help(EXIT_CODES)
        .arg(Arg::new("check").long("check").action(ArgAction::SetTrue).help(
            "start a server of its own, do the handshake, list the tools, make one call, and \
             print what a client will see; with an executor, say hello to that as well",
        ))
        .arg(
            commands::option("busy-poll", "US")
                .value_parser(value_parser!(OsString))
                .help(
                    "look for input for so many microseconds before sleeping, 1 to 1000: faster \
                     replies, for a CPU's time while the client talks",
                ),
        )
        .arg(
            commands::option("executor", "CMD")
                .value_parser(value_parser!(OsString))
                .action(ArgAction::Append)
                .value_hint(ValueHint::CommandString)
                .help(
                    "hand tasks to a program that speaks rocco-exec/1 on its stdin and stdout; CMD \
                     is the program with its arguments as one word; it starts with the first call \
                     that needs it and ends with rocco",
                ),
        )
        .arg(
            commands::option("executor-socket", "PATH")
                .value_parser(value_parser!(OsString))
                .action(ArgAction::Append)
                .value_hint(ValueHint::FilePath)
                .help(
                    "hand tasks to a daemon that speaks rocco-exec/1 on a Unix socket, and that \
                     goes on when the client has left",
                ),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    let options = options(matches)?;
    if matches.get_flag("check") {
        return Ok(printed(check::run(&options, &mut io::stdout().lock())));
    }
    Ok(serve::run(options))
}

fn options(matches: &ArgMatches) -> Result<ServeOptions, String> {
    let values = |name| matches.get_many::<OsString>(name).into_iter().flatten();
    let mut options = ServeOptions::default();
    for value in values("busy-poll") {
        options.set_busy_poll(value)?;
    }
    for value in values("executor") {
        options.set_executor_program(value)?;
    }
    for value in values("executor-socket") {
        options.set_executor_socket(value)?;
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::bare::{self, BareCommand};
    use crate::event_loop::sys::executor_channel::ExecutorAddr;

    fn served(line: &[&str]) -> Result<ServeOptions, String> {
        let matches = command().try_get_matches_from([&["mcp"], line].concat());
        options(&matches.map_err(|error| error.to_string())?)
    }

    /// A client's configuration means the same in every build.
    #[test]
    fn a_line_that_every_build_reads_means_the_same_in_each() {
        for line in [
            &[][..],
            &["--busy-poll", "50"],
            &["--executor", "rocco executor -- 'a b'"],
            &["--executor-socket", "/run/x"],
            &["--executor-socket", "/run/x", "--busy-poll", "1000"],
            &["--busy-poll", "0"],
            &["--busy-poll", "1001"],
            &["--busy-poll", "5", "--busy-poll", "6"],
            &["--busy-poll"],
            &["--executor", ""],
            &["--executor", "a 'b"],
            &["--executor-socket", ""],
            &["--executor-socket", "--busy-poll", "5"],
            &["--executor", "a", "--executor-socket", "b"],
            &["--executor", "a", "--executor", "b"],
            &["--chekc"],
            &["x"],
        ] {
            let bare: Vec<OsString> = [&["mcp"], line].concat().iter().map(Into::into).collect();
            let bare = bare::parse(&bare);
            match served(line) {
                Ok(options) => assert_eq!(bare, Ok(BareCommand::Serve(options)), "{line:?}"),
                Err(_) => assert!(bare.is_err(), "{line:?}: {bare:?}"),
            }
        }
    }

    #[test]
    fn an_option_takes_its_value_in_both_forms() {
        let wanted = served(&["--busy-poll", "50", "--executor-socket", "/run/x"]).unwrap();
        assert_eq!(
            served(&["--busy-poll=50", "--executor-socket=/run/x"]),
            Ok(wanted)
        );
        let program = served(&["--executor=-x y"]).unwrap().executor;
        assert_eq!(
            program,
            Some(ExecutorAddr::Child(vec!["-x".into(), "y".into()]))
        );
    }
}
