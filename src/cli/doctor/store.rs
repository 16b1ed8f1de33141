//! A store's file: whether it can be read and written, is whole, of a schema that is known, and private. Brings nothing up
//! to date and changes no row.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::check::Check;
use crate::store::sqlite;
use crate::store::{Error, SqliteSettings};

/// Checks the file at `path`; also gives the time of the newest event in it, in milliseconds since the epoch.
pub fn check(name: &str, path: &Path, now_ms: i64) -> (Vec<Check>, Option<i64>) {
    let check = Check::of("store", Some(name));
    if !path.exists() {
        return (vec![absent(check, path)], None);
    }
    let status = match sqlite::status(path, now_ms) {
        Ok(status) => status,
        Err(error) => return (vec![refused(check, &error)], None),
    };
    let bytes_max = SqliteSettings::default().check_bytes_max;
    let checked =
        match sqlite::quick_check(path, bytes_max).and_then(|checked| sqlite::writable(path).map(|()| checked)) {
            Ok(checked) => checked,
            Err(error) => return (vec![refused(check, &error)], None),
        };
    let whole = if checked { "" } else { "; too large to look at every page here: `durable-mcp db verify` does" };
    let schema = match status.schema_version < status.schema_known {
        true => format!("schema {}, which the next start brings to {}", status.schema_version, status.schema_known),
        false => format!("schema {}", status.schema_version),
    };
    let count: u64 = status.states.values().sum();
    let message = format!("{}: {count} executions, {schema}{whole}", path.display());
    (vec![Check { message, ..check }, modes(name, path)], status.newest_event_at_ms)
}

fn absent(check: Check, path: &Path) -> Check {
    let place = path.ancestors().skip(1).find(|place| place.exists()).unwrap_or(Path::new("."));
    let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
    if !place.is_dir() {
        return check.fail(format!("{} is in the way of {}", place.display(), path.display()), "move it away");
    }
    match rustix::fs::access(place, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) => Check { message: format!("the first start makes {}", path.display()), ..check },
        Err(_) => check.fail(
            format!("{} can not be made: this user may not write to {}", path.display(), place.display()),
            "change its owner or mode, or name another place with store.url or store.data_dir",
        ),
    }
}

fn refused(check: Check, error: &Error) -> Check {
    let next = match error {
        Error::Damaged(_) => "`durable-mcp db verify` says more; `durable-mcp db restore` brings a backup back",
        Error::TooNew { .. } => "install the newer durable-mcp again; an older one can not read this store",
        Error::CannotWrite(_) => "make room, or change the owner or mode of the file and its folder",
        _ => "see whether another program holds it for long",
    };
    check.fail(error.to_string(), next)
}

/// Executions hold what tools were told and what they answered.
fn modes(name: &str, path: &Path) -> Check {
    let check = Check::of("files", Some(name));
    let with = |suffix: &str| {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        PathBuf::from(file)
    };
    let open: Vec<String> = ["", "-wal", "-shm"]
        .iter()
        .map(|suffix| with(suffix))
        .filter(|file| mode(file).is_some_and(|mode| mode & 0o077 != 0))
        .map(|file| file.display().to_string())
        .collect();
    if !open.is_empty() {
        return check.warn(
            format!("others of this machine may read or write {}", open.join(", ")),
            format!("chmod 600 {}", open.join(" ")),
        );
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match mode(folder) {
        // Who may write to the folder may put another file in the place of the store.
        Some(mode) if mode & 0o022 != 0 && mode & 0o1000 == 0 => check.warn(
            format!("others of this machine may write to the folder {}", folder.display()),
            format!("chmod go-w {}", folder.display()),
        ),
        _ => Check { message: "private".into(), ..check },
    }
}

fn mode(path: &Path) -> Option<u32> {
    Some(path.metadata().ok()?.permissions().mode())
}
