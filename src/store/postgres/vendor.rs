//! Which database speaks the protocol, as it says itself, and what follows from that. `server_version` is not asked:
//! CockroachDB names a version of PostgreSQL there.

use std::fmt;

/// A database that speaks the protocol of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// PostgreSQL, and whatever says that it is.
    PostgreSql,
    /// CockroachDB.
    CockroachDb,
    /// YugabyteDB.
    YugabyteDb,
}

impl Vendor {
    /// What [`Vendor::of`] reads.
    pub(super) const QUESTION: &str = "SELECT version()";

    /// From the answer of `version()`.
    pub(super) fn of(version: &str) -> Vendor {
        match version {
            version if version.starts_with("CockroachDB") => Vendor::CockroachDb,
            version if version.contains("-YB-") => Vendor::YugabyteDb,
            _ => Vendor::PostgreSql,
        }
    }

    /// The name in migrations and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Vendor::PostgreSql => "postgresql",
            Vendor::CockroachDb => "cockroachdb",
            Vendor::YugabyteDb => "yugabytedb",
        }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Vendor;

    #[test]
    fn a_database_is_known_by_what_it_says_of_itself() {
        for (version, vendor) in [
            ("PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc", Vendor::PostgreSql),
            ("CockroachDB CCL v25.2.1 (x86_64-pc-linux-gnu, built 2025/06/09, go1.23.7)", Vendor::CockroachDb),
            ("PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang", Vendor::YugabyteDb),
            ("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu", Vendor::YugabyteDb),
        ] {
            assert_eq!(Vendor::of(version), vendor, "{version}");
        }
    }
}
