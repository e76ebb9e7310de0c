//! The command line of a server and no more: all that a build without the feature `cli` reads, and
//! the quick way of every other build, since it builds no tree of commands.

use std::ffi::{OsStr, OsString};

use super::serve::ServeOptions;

/// What a refusal of a build without the feature `cli` ends with.
#[cfg(not(feature = "cli"))]
pub(super) const HINT: &str = "This build takes: rocco mcp [--busy-poll US] [--executor CMD] \
[--executor-socket PATH], and rocco --version; build it with the feature cli for all commands";

/// What a server can be told to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BareCommand {
    Serve(ServeOptions),
    Version,
}

/// Reads the arguments behind the program's name.
///
/// # Errors
///
/// What is wrong with them here. A build with the feature `cli` may understand them all the same.
pub(super) fn parse(arguments: &[OsString]) -> Result<BareCommand, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err("a command is missing".into());
    };
    match command.to_str() {
        Some("mcp") => options(rest).map(BareCommand::Serve),
        Some("--version" | "-V") if rest.is_empty() => Ok(BareCommand::Version),
        _ => Err(format!("unknown command {command:?}")),
    }
}

fn options(arguments: &[OsString]) -> Result<ServeOptions, String> {
    let mut options = ServeOptions::default();
    for pair in arguments.chunks(2) {
        let flag = &pair[0];
        // What looks like an option is one that was meant, and the value was forgotten.
        let value = pair
            .get(1)
            .filter(|value| !value.as_encoded_bytes().starts_with(b"-"));
        let value = value.map_or(OsStr::new(""), OsString::as_os_str);
        match flag.to_str() {
            Some("--busy-poll") => options.set_busy_poll(value)?,
            Some("--executor") => options.set_executor_program(value)?,
            Some("--executor-socket") => options.set_executor_socket(value)?,
            _ => return Err(format!("unknown option {flag:?}")),
        }
    }
    Ok(options)
}
