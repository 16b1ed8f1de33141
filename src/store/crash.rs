//! Named places at which a test lets the process die as `kill -9` would. Compiled in with debug assertions only. Decides
//! nothing: the tests walk the list, so that no place goes unvisited.

/// Every place, in the order in which a call comes by.
pub const POINTS: [&str; 18] = [
    "before_submit",
    "before_commit",
    "after_commit",
    "submitted",
    "before_claim",
    "leased",
    "before_call",
    "before_heartbeat",
    "heartbeat_written",
    "after_call",
    "before_complete",
    "completed",
    "before_fail",
    "fail_recorded",
    "answer_handed_over",
    "before_settle",
    "settled",
    "buried",
];

/// Ends this process at once when `DURABLE_MCP_CRASH_AT` names this point (`name` or `name:n` for its n-th passing).
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    debug_assert!(POINTS.contains(&name), "crash point {name} is not in the list");
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("DURABLE_MCP_CRASH_AT").ok()?;
        Some(match text.split_once(':') {
            Some((name, count)) => (name.to_owned(), count.parse().unwrap_or(1)),
            None => (text, 1),
        })
    });
    let Some((wanted, count)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
        // Not to be caught, like a power cut seen from the process.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_name: &str) {}
