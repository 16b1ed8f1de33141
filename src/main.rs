//! The program. Everything is in the library; see `lib.rs`.

// Built without transparent huge pages (`no_thp`): an idle server held 20 MB in them that it had no use for.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // The guard of a child must be alone in its process: no runtime, no thread before it.
    let argv: Vec<_> = std::env::args_os().skip(1).collect();
    if argv.first().is_some_and(|first| first == durable_mcp::worker::upstream::guard::SUBCOMMAND) {
        let code = durable_mcp::worker::upstream::guard::guard_main(argv[1..].to_vec());
        return std::process::ExitCode::from(code.clamp(0, 255) as u8);
    }
    durable_mcp::cli::main()
}
