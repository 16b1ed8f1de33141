//! What can not be planted into a machine is judged from figures here; what can is in `tests/it/doctor.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::check::{Check, Status};
use super::command::{Obstacle, find};
use super::{clock, disk};

const NOW_MS: i64 = 1_800_000_000_000;

#[test]
fn a_clock_is_judged_by_the_calendar_the_store_and_the_file_system() {
    for (now_ms, newest_ms, ahead_ms, status, says) in [
        (NOW_MS, None, None, Status::Ok, "2027"),
        (NOW_MS, Some(NOW_MS - 86_400_000), Some(900), Status::Ok, "2027"),
        (0, None, None, Status::Fail, "1970"),
        (7_000_000_000_000, None, None, Status::Fail, "2191"),
        (NOW_MS, Some(NOW_MS + 3_600_000), None, Status::Warn, "3600 s later"),
        (NOW_MS, None, Some(60_000), Status::Warn, "60 s ahead of"),
        (NOW_MS, None, Some(-60_000), Status::Warn, "60 s behind"),
    ] {
        let check = clock::judge(now_ms, newest_ms, ahead_ms);
        assert_eq!(check.status, status, "{check:?}");
        assert!(check.message.contains(says), "{check:?}");
    }
}

#[test]
fn a_disk_is_judged_by_its_room_and_its_kind() {
    for (free, status) in [(1 << 20, Status::Fail), (100 << 20, Status::Warn), (10 << 30, Status::Ok)] {
        assert_eq!(disk::room("/data", free).status, status);
    }
    assert_eq!(disk::network_name(0x6969), Some("NFS"));
    assert_eq!(disk::network_name(0xEF53), None, "ext4");
}

#[test]
fn a_program_is_looked_for_as_the_system_would() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    write("good", "#!/bin/sh\n", 0o755);
    write("plain", "#!/bin/sh\n", 0o644);
    write("dos", "#!/bin/sh\r\n", 0o755);
    write("lost", "#! /nowhere/node --flag\n", 0o755);
    fs::create_dir(at("folder")).unwrap();
    let path = format!("/nowhere:{}", folder.path().display());
    let look = |name: &str| find(Path::new(name), &path);
    assert_eq!(look("good"), Ok(at("good")));
    assert_eq!(look(at("good").to_str().unwrap()), Ok(at("good")));
    assert_eq!(look("absent"), Err(Obstacle::NotInPath));
    assert_eq!(look("folder"), Err(Obstacle::NotInPath));
    assert_eq!(look("plain"), Err(Obstacle::NotExecutable(at("plain"))));
    let none = |name: &str, interpreter: &str| {
        Err(Obstacle::NoInterpreter { script: at(name), interpreter: interpreter.to_owned() })
    };
    assert_eq!(look("dos"), none("dos", "/bin/sh\\r"));
    assert_eq!(look("lost"), none("lost", "/nowhere/node"));
    assert_eq!(look(at("absent").to_str().unwrap()), Err(Obstacle::Missing(at("absent"))));
    for obstacle in [look("absent"), look("plain"), look("dos")] {
        let (what, next) = obstacle.unwrap_err().told("absent");
        assert!(!what.is_empty() && !next.is_empty());
    }
}

#[test]
fn a_check_is_one_line() {
    let check = Check::of("command", Some("files")).fail("no\u{1b}[31m such\nfile", "install it");
    assert_eq!(check.line(), "FAIL  command files: no\u{fffd}[31m such\u{fffd}file; install it");
    assert_eq!(Check::ok("port", None, "free").line(), "ok    port: free");
}
