//! What integration tests use to start servers, drive real clients, send hand-made HTTP and look at processes and the
//! ledger. Panics on anything unexpected: a test that cannot set up its scene has failed. Asserts nothing about the
//! program itself.

// Each theme uses some of these; a helper without a user today is part of the set.
#![allow(dead_code)]

pub mod answers;
pub mod balancer;
pub mod bytes;
pub mod client;
pub mod cluster;
pub mod cut_proxy;
mod driver;
pub mod ledger;
pub mod many;
pub mod pg_proxy;
pub mod pgbouncer;
pub mod process;
pub mod process_tree;
pub mod program;
pub mod raw_http;
pub mod raw_stdio;
pub mod raw_worker;
pub mod repository;
mod rmcp_client;
pub mod servers;
pub mod store_check;
pub mod store_count;
pub mod stores;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long anything may take before a test calls it hung.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// What the variable of this name asks for, where the long form of a test is wanted: CONTRIBUTING.md lists them.
pub fn asked_for(variable: &str) -> Option<u64> {
    let asked = std::env::var(variable).ok()?;
    Some(asked.parse().unwrap_or_else(|_| panic!("{variable} is a whole number, not {asked:?}")))
}

/// Leaves the test with a loud line when its set-up is absent; in CI (`CI` is set) absence is a failure.
///
/// `skip_loudly!(support::clients_are_set_up())`
#[macro_export]
macro_rules! skip_loudly {
    ($set_up:expr) => {
        if let Err(reason) = $set_up {
            let ci = std::env::var_os("CI").is_some_and(|ci| ci != "" && ci != "false");
            assert!(!ci, "{}:{}: {reason}", file!(), line!());
            eprintln!("\n=== SKIPPED {}:{}: {reason} ===\n", file!(), line!());
            return;
        }
    };
}

/// Says what is missing if `tests/setup.sh` has not installed the TypeScript and Python clients.
pub fn clients_are_set_up() -> Result<(), String> {
    for installed in ["node_modules/.installed", ".venv/.installed"] {
        if !clients_folder().join(installed).exists() {
            return Err("the TypeScript and Python clients are not installed: run tests/setup.sh".to_owned());
        }
    }
    Ok(())
}

/// Says what is missing if `tests/setup.sh` has not installed the conformance suite.
pub fn suite_is_set_up() -> Result<(), String> {
    packages_are_set_up("the conformance suite", &["conformance"])
}

/// Says what is missing if `tests/setup.sh` has not installed the two inspectors.
pub fn inspectors_are_set_up() -> Result<(), String> {
    packages_are_set_up("MCP Inspector 2 or 0.15", &["inspector", "inspector-cli"])
}

fn packages_are_set_up(what: &str, packages: &[&str]) -> Result<(), String> {
    let modules = clients_folder().join("node_modules/@modelcontextprotocol");
    let all = packages.iter().all(|package| modules.join(package).join("package.json").exists());
    all.then_some(()).ok_or_else(|| format!("{what} is not installed: run tests/setup.sh"))
}

/// Says what is missing if `tests/setup.sh` has not packed and installed the SDKs.
pub fn sdks_are_set_up() -> Result<(), String> {
    for installed in ["python/.venv/.installed", "typescript/conformance/dist/.installed"] {
        if !sdk_folder().join(installed).exists() {
            return Err("the SDKs are not packed and installed: run tests/setup.sh".to_owned());
        }
    }
    Ok(())
}

pub fn sdk_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}

pub fn clients_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// The fixture server, built with the tests as the example `kit`.
pub fn kit_binary() -> PathBuf {
    example_binary("kit")
}

/// An example of this workspace.
pub fn example_binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(example.exists(), "{} is missing: cargo build --example {name}", example.display());
    example
}

/// The program under test.
pub fn program_binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_durable-mcp"))
}

/// A folder that is removed when dropped.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("durable-mcp-test-").tempdir().unwrap()
}

/// Polls until the condition holds; panics with `what` after the deadline.
pub async fn eventually(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + deadline;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// As `eventually`, for a condition that has to be asked for.
pub async fn eventually_async(what: &str, deadline: Duration, mut holds: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + deadline;
    while !holds().await {
        assert!(tokio::time::Instant::now() < end, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
