fn main() -> std::process::ExitCode {
    rocco::Server::new(rocco::Info::new("rocco", "0.1.0"))
        .tool(rocco::task::submit::SubmitTask)
        .run_stdio()
}
