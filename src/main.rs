//! The program `rocco`: the library's command line, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    rocco::internals::cli::main()
}
