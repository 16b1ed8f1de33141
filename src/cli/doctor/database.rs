//! A store in a database: whether it can be reached, what it is, its schema and its clock, and whether the connection is
//! what it should be. Changes nothing there.

use super::check::Check;
use crate::config::mask_url;
use crate::engine::clock::Clock;
use crate::store::postgres::{self, DatabaseLook, Vendor};
use crate::store::{Error, PostgresSettings};

/// Clocks that differ by more than this are worth a word: nothing expires earlier than half a second too soon.
const DRIFT_MS: i64 = 500;

/// Checks the database at `url`.
pub async fn check(name: &str, url: &str, settings: &PostgresSettings) -> Vec<Check> {
    let before_ms = Clock::System.now_ms();
    let look = match postgres::look(url, settings).await {
        Ok(look) => look,
        Err(error) => return vec![refused(Check::of("store", Some(name)), url, &error)],
    };
    let after_ms = Clock::System.now_ms();
    judge(name, &look, (before_ms, after_ms), is_local(url))
}

/// Judges what was found; the clock was asked between the two times.
pub fn judge(name: &str, look: &DatabaseLook, (before_ms, after_ms): (i64, i64), local: bool) -> Vec<Check> {
    vec![
        store(name, look),
        isolation(name, look),
        encryption(name, look, local),
        log(name, look),
        clock(name, look.clock_ms, (before_ms, after_ms)),
    ]
}

fn refused(check: Check, url: &str, error: &Error) -> Check {
    // The sentence names the place, and its own next step behind a semicolon.
    let told = error.to_string();
    let (what, next) =
        told.split_once("; ").map_or((told.as_str(), "see whether it lives"), |(what, next)| (what, next));
    check.fail(format!("{}: {what}", mask_url(url)), next.to_owned())
}

fn store(name: &str, look: &DatabaseLook) -> Check {
    let check = Check::of("store", Some(name));
    let (place, version) = (&look.place, &look.version);
    let Some(schema) = &look.schema else {
        return check.fail(
            format!("{place}: {version}, where the user's search_path names no schema that is there"),
            "create the schema that store.schema names, or leave it out",
        );
    };
    if let Some(fault) = &look.schema_fault {
        let next = "run the release of durable-mcp that made it, or name another schema with store.schema";
        return check.fail(format!("{place}: {fault}"), next);
    }
    if look.read_only {
        return check.fail(
            format!("{place}: {version} takes no writes; it is a standby, or was switched to read-only"),
            "lead store.url to the primary, for example with target_session_attrs=read-write",
        );
    }
    let known = look.schema_known;
    match look.schema_version {
        Some(found) if found >= known => {
            Check { message: format!("{place}: {version}, schema {schema} at version {found}"), ..check }
        }
        found => check.warn(
            format!("{place}: {version}, schema {schema} at version {} of {known}", found.unwrap_or(0)),
            "`durable-mcp db migrate` brings it up; a start does where store.migrate is auto",
        ),
    }
}

fn isolation(name: &str, look: &DatabaseLook) -> Check {
    let check = Check::of("isolation", Some(name));
    let (found, wanted) = (&look.isolation, look.isolation_wanted);
    match found == wanted {
        true => Check { message: found.clone(), ..check },
        // Right with both: row versions and unique keys decide.
        false => check.warn(
            format!("transactions get {found}, where {wanted} was asked for; what is written is right with both"),
            "set store.isolation to what the database gives, or see why it does not (on CockroachDB: \
             sql.txn.read_committed_isolation.enabled)",
        ),
    }
}

fn encryption(name: &str, look: &DatabaseLook, local: bool) -> Check {
    let check = Check::of("tls", Some(name));
    match look.encryption.as_deref() {
        Some("") if local => Check { message: "not encrypted, on this machine".into(), ..check },
        Some("") => check.warn(
            "the connection is not encrypted: passwords and payloads cross the network in the clear",
            "add sslmode=verify-full to store.url, and store.root_certificates where its certificate is your own",
        ),
        Some(protocol) => Check { message: protocol.to_owned(), ..check },
        None => Check { message: "this database does not tell".into(), ..check },
    }
}

fn log(name: &str, look: &DatabaseLook) -> Check {
    let check = Check::of("log", Some(name));
    match (look.changes_events, look.vendor) {
        (false, _) => Check { message: "this user can only add to the log".into(), ..check },
        (true, Vendor::CockroachDb) => check.warn(
            "this user may change the log, and the database has no triggers that would refuse it",
            "`durable-mcp db migrate --role NAME`, run by the owner of the tables, makes a role that may not",
        ),
        (true, _) => Check { message: "triggers refuse changes of the log; this user owns it".into(), ..check },
    }
}

fn clock(name: &str, clock_ms: i64, (before_ms, after_ms): (i64, i64)) -> Check {
    let check = Check::of("clock", Some(name));
    let apart_ms = (clock_ms - after_ms).max(before_ms - clock_ms).max(0);
    match apart_ms > DRIFT_MS {
        false => Check { message: "agrees with the database's".into(), ..check },
        true => {
            let way = if clock_ms > after_ms { "behind" } else { "ahead of" };
            check.warn(
                format!("this machine's clock is {apart_ms} ms {way} the database's"),
                "synchronise both (NTP): processes follow the database's clock, people read this machine's",
            )
        }
    }
}

/// True when the URL leads to this machine itself.
fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let hosts = rest.split(['/', '?']).next().unwrap_or_default();
    let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
    let local = |host: &str| {
        let name = host.strip_prefix("[::1]").map_or_else(|| host.split(':').next().unwrap_or_default(), |_| "::1");
        matches!(name, "" | "localhost" | "127.0.0.1" | "::1") || name.starts_with("%2F") || name.starts_with("%2f")
    };
    hosts.split(',').all(local)
}

#[cfg(test)]
mod tests {
    use super::{is_local, judge};
    use crate::cli::doctor::Status;
    use crate::store::postgres::{DatabaseLook, Vendor};

    fn healthy() -> DatabaseLook {
        DatabaseLook {
            place: "db:5432/durable".into(),
            vendor: Vendor::PostgreSql,
            version: "PostgreSQL 18.1".into(),
            schema: Some("public".into()),
            schema_version: Some(1),
            schema_known: 1,
            schema_fault: None,
            isolation: "serializable".into(),
            isolation_wanted: "serializable",
            encryption: Some("TLSv1.3".into()),
            read_only: false,
            changes_events: false,
            clock_ms: 1_000,
        }
    }

    #[test]
    fn a_database_is_judged_by_what_it_says() {
        let verdicts = |look: &DatabaseLook, local| -> Vec<(&str, Status)> {
            let checks = judge("default", look, (900, 1_100), local);
            checks.iter().filter(|check| check.status != Status::Ok).map(|check| (check.check, check.status)).collect()
        };
        assert_eq!(verdicts(&healthy(), false), []);
        let changed = |change: fn(&mut DatabaseLook)| {
            let mut look = healthy();
            change(&mut look);
            look
        };
        for (look, expected) in [
            (changed(|look| look.schema = None), ("store", Status::Fail)),
            (changed(|look| look.schema_fault = Some("too new".into())), ("store", Status::Fail)),
            (changed(|look| look.read_only = true), ("store", Status::Fail)),
            (changed(|look| look.schema_version = None), ("store", Status::Warn)),
            (changed(|look| look.isolation = "read committed".into()), ("isolation", Status::Warn)),
            (changed(|look| look.encryption = Some(String::new())), ("tls", Status::Warn)),
            (changed(|look| look.clock_ms = 1_601), ("clock", Status::Warn)),
            (changed(|look| look.clock_ms = 399), ("clock", Status::Warn)),
            (changed(|look| (look.changes_events, look.vendor) = (true, Vendor::CockroachDb)), ("log", Status::Warn)),
        ] {
            assert_eq!(verdicts(&look, false), [expected], "{look:?}");
        }
        let fine = changed(|look| (look.changes_events, look.clock_ms) = (true, 1_600));
        assert_eq!(verdicts(&fine, false), []);
        assert_eq!(verdicts(&changed(|look| look.encryption = Some(String::new())), true), []);
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for url in [
            "postgres://u:p@127.0.0.1:5432/d",
            "postgres://localhost/d",
            "postgres://u@%2Frun%2Fpg/d",
            "postgres://[::1]:5/d",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in ["postgres://u:p@db/d", "postgres://localhost,db/d", "postgres://u:localhost@db.example:1/d?x=y"] {
            assert!(!is_local(url), "{url}");
        }
    }
}
