//! The migrations as data: the embedded files, their parts for each vendor, their checksums, and which history a program
//! can work on. Runs none.

use sha2::{Digest, Sha256};

use super::vendor::Vendor;
use crate::store::{Error, Result};

/// The tables that say which migrations ran.
pub(super) const HISTORY_SQL: &str = include_str!("../../../migrations/postgres/history.sql");

/// Version 1 is the present schema of SQLite, whole; what comes later changes one thing each.
const FILES: &[(i64, &str, &str)] = &[
    (1, "schema", include_str!("../../../migrations/postgres/V1__schema.sql")),
    (2, "failed", include_str!("../../../migrations/postgres/V2__failed.sql")),
    (3, "again", include_str!("../../../migrations/postgres/V3__again.sql")),
];

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Migration {
    pub(super) version: i64,
    pub(super) name: String,
    pub(super) checksum: String,
    /// The newest schema known to the oldest program that works on the database after this.
    pub(super) oldest_program: i64,
    sections: Vec<Section>,
}

/// Statements that are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    /// Whose; empty: everybody's.
    vendors: Vec<String>,
    sql: String,
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    pub(super) version: i64,
    pub(super) name: String,
    pub(super) checksum: String,
    pub(super) oldest_program: i64,
}

/// What a history means for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can work.
    Fits,
    /// Of its migrations those from this index on are missing.
    Behind(usize),
}

impl Migration {
    /// Reads a file. Lines that begin with `--@` direct: `oldest-program N`, `section [VENDOR…]`.
    pub(super) fn parse(version: i64, name: &str, text: &str) -> std::result::Result<Migration, String> {
        let (mut oldest_program, mut sections) = (None, Vec::new());
        for line in text.lines() {
            let Some(order) = line.strip_prefix("--@ ") else {
                match sections.last_mut() {
                    Some(Section { sql, .. }) => sql.push_str(&format!("{line}\n")),
                    None if line.is_empty() || line.starts_with("--") => {}
                    None => return Err(format!("version {version} has a statement before its first section")),
                }
                continue;
            };
            match order.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["oldest-program", number] => oldest_program = number.parse().ok(),
                ["section", vendors @ ..] => {
                    let vendors = vendors.iter().map(|vendor| (*vendor).to_owned()).collect();
                    sections.push(Section { vendors, sql: String::new() });
                }
                _ => return Err(format!("version {version} has the unknown direction {order:?}")),
            }
        }
        let oldest_program = oldest_program.filter(|oldest| (1..=version).contains(oldest));
        Ok(Migration {
            version,
            name: name.to_owned(),
            checksum: hex::encode(Sha256::digest(text.as_bytes())),
            oldest_program: oldest_program.ok_or_else(|| format!("version {version} names no oldest program"))?,
            sections,
        })
    }

    /// What runs on the databases of `vendor`, in order.
    pub(super) fn sections_for(&self, vendor: Vendor) -> impl Iterator<Item = &str> {
        let meant = move |section: &&Section| {
            section.vendors.is_empty() || section.vendors.iter().any(|name| name == vendor.as_str())
        };
        self.sections.iter().filter(meant).map(|section| section.sql.as_str())
    }

    /// The line of the history that it leaves.
    #[cfg(test)]
    pub(super) fn applied(&self) -> Applied {
        Applied {
            version: self.version,
            name: self.name.clone(),
            checksum: self.checksum.clone(),
            oldest_program: self.oldest_program,
        }
    }
}

/// The migrations of this program.
pub(super) fn embedded() -> Vec<Migration> {
    let read = |(version, name, text): &(i64, &str, &str)| {
        Migration::parse(*version, name, text).expect("the embedded files have the form that is asked for")
    };
    FILES.iter().map(read).collect()
}

/// The newest version among them; the schema that a program with these knows.
pub(super) fn newest(known: &[Migration]) -> i64 {
    known.last().map_or(0, |migration| migration.version)
}

/// Whether a program with the migrations `known` can work on a database with this history.
///
/// # Errors
///
/// [`Error::TooNew`] when the newest schema no longer serves this program; [`Error::Damaged`] when the history has gaps,
/// or files other than ours.
pub(super) fn judge(known: &[Migration], applied: &[Applied]) -> Result<Verdict> {
    for (index, line) in applied.iter().enumerate() {
        if line.version != index as i64 + 1 {
            return Err(Error::Damaged(format!("the history of the schema lacks version {}", index + 1)));
        }
        if let Some(migration) = known.get(index)
            && migration.checksum != line.checksum
        {
            return Err(Error::Damaged(format!(
                "version {} of the schema ({}) is not the one this program knows; was it made by another build?",
                line.version, line.name
            )));
        }
    }
    let (found, known_version) = (applied.len(), newest(known));
    if found < known.len() {
        return Ok(Verdict::Behind(found));
    }
    let oldest = applied[known.len()..].iter().map(|line| line.oldest_program).max().unwrap_or(0);
    if oldest > known_version {
        return Err(Error::TooNew { found: found as i64, known: known_version });
    }
    Ok(Verdict::Fits)
}

#[cfg(test)]
mod tests {
    use super::{Applied, Migration, Verdict, embedded, judge};
    use crate::store::Error;
    use crate::store::postgres::vendor::Vendor;

    fn migration(version: i64, oldest: i64) -> Migration {
        let text = format!("--@ oldest-program {oldest}\n--@ section\nSELECT {version};\n");
        Migration::parse(version, "change", &text).unwrap()
    }

    fn lines(migrations: &[Migration]) -> Vec<Applied> {
        migrations.iter().map(Migration::applied).collect()
    }

    #[test]
    fn an_older_program_works_on_an_expanded_schema_until_it_is_contracted() {
        let all = [migration(1, 1), migration(2, 1), migration(3, 2), migration(4, 4)];
        let verdict = |known: usize, applied: usize| judge(&all[..known], &lines(&all[..applied]));
        assert_eq!(verdict(1, 0).unwrap(), Verdict::Behind(0));
        assert_eq!(verdict(3, 1).unwrap(), Verdict::Behind(1));
        assert_eq!(verdict(1, 1).unwrap(), Verdict::Fits);
        // Version 2 adds what the program before does not need.
        assert_eq!(verdict(1, 2).unwrap(), Verdict::Fits);
        // Version 3 takes away what only the first program asked for.
        assert!(matches!(verdict(1, 3), Err(Error::TooNew { found: 3, known: 1 })));
        assert_eq!(verdict(2, 3).unwrap(), Verdict::Fits);
        assert!(matches!(verdict(3, 4), Err(Error::TooNew { found: 4, known: 3 })));
    }

    #[test]
    fn another_file_or_a_gap_in_the_history_is_refused() {
        let all = [migration(1, 1), migration(2, 1)];
        let mut edited = lines(&all);
        edited[1].checksum.insert(0, '0');
        assert!(matches!(judge(&all, &edited), Err(Error::Damaged(text)) if text.contains("version 2")));
        // A program that does not know version 2 can not tell, and need not.
        assert_eq!(judge(&all[..1], &edited).unwrap(), Verdict::Fits);
        assert!(
            matches!(judge(&all, &lines(&all[1..])), Err(Error::Damaged(text)) if text.contains("lacks version 1"))
        );
    }

    #[test]
    fn a_file_without_its_directions_is_refused() {
        for (text, what) in [
            ("--@ section\nSELECT 1;\n", "no oldest program"),
            ("--@ oldest-program 2\n--@ section\nSELECT 1;\n", "no oldest program"),
            ("--@ oldest-program 1\nSELECT 1;\n", "before its first section"),
            ("--@ oldest-program 1\n--@ part\n", "unknown direction"),
        ] {
            assert!(Migration::parse(1, "x", text).is_err_and(|error| error.contains(what)), "{text}");
        }
    }

    #[test]
    fn triggers_and_storage_go_only_where_they_exist() {
        let first = &embedded()[0];
        let whole = |vendor| first.sections_for(vendor).collect::<String>();
        for (vendor, triggers, storage) in
            [(Vendor::PostgreSql, true, true), (Vendor::YugabyteDb, true, false), (Vendor::CockroachDb, false, false)]
        {
            let sql = whole(vendor);
            assert!(sql.contains("CREATE TABLE IF NOT EXISTS executions ("));
            assert_eq!(sql.contains("TRIGGER"), triggers && vendor != Vendor::CockroachDb, "{vendor}");
            assert_eq!(sql.contains("fillfactor"), storage, "{vendor}");
        }
    }
}
