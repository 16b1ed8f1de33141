//! The clock: against that of the file system, against what is stored, and against the years in which this program can
//! run. Clocks decide only when something happens; a wrong one delays retries or hurries them.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::check::Check;
use crate::engine::clock::Clock;
use crate::engine::view::Time;

/// Before this program was written: 2026-01-01.
const EARLIEST_MS: i64 = 1_767_225_600_000;
/// Certainly wrong: 2100-01-01.
const LATEST_MS: i64 = 4_102_444_800_000;
/// The file system may tell time in whole seconds, and a busy machine may be slow.
const DRIFT_MS: i64 = 3_000;
/// Stored times this far ahead are no rounding.
const AHEAD_MS: i64 = 5_000;

/// Checks the clock; `folder` is where stores lie, `times` are now and that of the newest stored event, in milliseconds
/// since the epoch.
pub fn check(folder: Option<&Path>, (now_ms, newest_ms): (i64, Option<i64>)) -> Check {
    let file_system_ahead_ms = folder.and_then(|folder| {
        let before_ms = Clock::System.now_ms();
        let told_ms = told_by(folder)?;
        let after_ms = Clock::System.now_ms();
        Some(if told_ms < before_ms { told_ms - before_ms } else { (told_ms - after_ms).max(0) })
    });
    judge(now_ms, newest_ms, file_system_ahead_ms)
}

/// Judges what was measured.
pub fn judge(now_ms: i64, newest_ms: Option<i64>, file_system_ahead_ms: Option<i64>) -> Check {
    let check = Check::of("clock", None);
    let next = "set the clock: `timedatectl` shows whether it is synchronised";
    let now = Time(now_ms);
    if !(EARLIEST_MS..LATEST_MS).contains(&now_ms) {
        return check.fail(format!("it shows {now}, which can not be"), next);
    }
    if let Some(newest_ms) = newest_ms.filter(|newest_ms| newest_ms - now_ms > AHEAD_MS) {
        let ahead = (newest_ms - now_ms) / 1_000;
        return check.warn(
            format!(
                "it shows {now}, and the newest stored event is {ahead} s later: it was set back, or was ahead before"
            ),
            format!("{next}; until it has caught up, retries and time-outs come later"),
        );
    }
    match file_system_ahead_ms {
        Some(ahead_ms) if ahead_ms.abs() > DRIFT_MS => {
            let way = if ahead_ms > 0 { "ahead of" } else { "behind" };
            check.warn(format!("the file system's clock is {} s {way} the system's", ahead_ms.abs() / 1_000), next)
        }
        _ => Check { message: now.to_string(), ..check },
    }
}

/// What time the file system gives a fresh file, in milliseconds since the epoch. The file has no name for longer than that.
fn told_by(folder: &Path) -> Option<i64> {
    let path = folder.join(format!(".durable-mcp-clock-{}", std::process::id()));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).and_then(|file| file.metadata());
    // A folder that can not be written is told by the check of the store.
    let _ = std::fs::remove_file(&path);
    let metadata = made.ok()?;
    Some(metadata.mtime() * 1_000 + metadata.mtime_nsec() / 1_000_000)
}
