//! Where stores lie: room on the disk, and whether it is one that SQLite's log can live on. Writes nothing.

use std::path::{Path, PathBuf};

use super::check::Check;
use crate::cli::db::{disk_free, size};

/// Below it a busy day may fill the disk.
const FREE_BYTES_LOW: u64 = 512 << 20;
/// Below it the next calls may be refused.
const FREE_BYTES_LEAST: u64 = 32 << 20;

/// The nearest folder of `path` that is there.
pub fn place_of(path: &Path) -> PathBuf {
    let place = path.ancestors().find(|place| place.is_dir()).unwrap_or(Path::new("."));
    if place.as_os_str().is_empty() { PathBuf::from(".") } else { place.to_owned() }
}

/// Checks the disk that `folder` is on.
pub fn check(folder: &Path) -> Vec<Check> {
    let shown = folder.display().to_string();
    let room = disk_free(folder).map(|bytes| room(&shown, bytes));
    let network = file_system(folder).and_then(network_name).map(|name| network(&shown, name));
    room.into_iter().chain(network).collect()
}

/// Judges the room that is left.
pub fn room(folder: &str, free_bytes: u64) -> Check {
    let check = Check::of("disk", Some(folder));
    let message = format!("{} free", size(free_bytes));
    let next = "make room; `durable-mcp db prune` deletes what retention no longer keeps";
    match free_bytes {
        0..FREE_BYTES_LEAST => check.fail(format!("only {message}: calls are refused when it is full"), next),
        FREE_BYTES_LEAST..FREE_BYTES_LOW => check.warn(format!("only {message}"), next),
        _ => Check { message, ..check },
    }
}

fn network(folder: &str, name: &str) -> Check {
    Check::of("disk", Some(folder)).warn(
        format!("it is on {name}, a file system of the network: SQLite's log and locks are not safe there"),
        "put the store on a local disk with store.url or store.data_dir",
    )
}

#[cfg(target_os = "linux")]
fn file_system(folder: &Path) -> Option<u64> {
    // The width of the field differs between machines; the numbers have 32 bits.
    Some(rustix::fs::statfs(folder).ok()?.f_type as u64 & 0xFFFF_FFFF)
}

#[cfg(not(target_os = "linux"))]
fn file_system(_folder: &Path) -> Option<u64> {
    None
}

/// The file systems of the network, by Linux's numbers. FUSE is not among them: most of what it serves is local.
pub fn network_name(number: u64) -> Option<&'static str> {
    let names = [
        (0x6969, "NFS"),
        (0xFF53_4D42, "CIFS"),
        (0xFE53_4D42, "SMB"),
        (0x517B, "SMB"),
        (0x0102_1997, "9P"),
        (0x00C3_6400, "Ceph"),
        (0x5346_414F, "AFS"),
        (0x6B41_4653, "AFS"),
        (0x0BD0_0BD0, "Lustre"),
        (0x4750_4653, "GPFS"),
    ];
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
