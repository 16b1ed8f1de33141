//! The stores that a scene is played on: a file, and a database of its own in the cluster that all tests of a run share.
//! Makes databases; what is in them is the program's.

use super::cluster::{Cluster, Version, cluster_is_set_up};

/// On what a scene is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
}

impl On {
    /// Says what is missing before a scene can be played on it.
    pub fn is_set_up(self) -> Result<(), String> {
        match self {
            On::Sqlite => Ok(()),
            On::Postgres => cluster_is_set_up(Version::Debian15),
        }
    }

    /// The URL of a new database; `None` where a setup's own file does.
    pub async fn new_database(self) -> Option<String> {
        match self {
            On::Sqlite => None,
            On::Postgres => Some(Cluster::shared(Version::Debian15).await.database().await),
        }
    }
}

/// How many rows a table of the store at this URL has.
pub async fn count(url: &str, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    if let Some(path) = url.strip_prefix("sqlite:") {
        return rusqlite::Connection::open(path).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap();
    }
    number(url, &sql).await.unwrap()
}

/// The number that a statement answers in the database at this URL; `None`: no row.
pub async fn number(url: &str, sql: &str) -> Option<i64> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_typed(sql, &[]).await.unwrap().first().map(|row| row.get(0))
}

/// Takes the row of an execution away and leaves all that belongs to it, which no program of ours does: whoever comes by
/// its key has met a fault of ours.
pub async fn lose_execution(url: &str, id: &str) {
    let sql = format!("DELETE FROM executions WHERE id = '{id}'");
    if let Some(path) = url.strip_prefix("sqlite:") {
        let database = rusqlite::Connection::open(path).unwrap();
        database.pragma_update(None, "foreign_keys", false).unwrap();
        assert_eq!(database.execute(&sql, []).unwrap(), 1);
        return;
    }
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("SET session_replication_role = replica").await.unwrap();
    assert_eq!(client.execute(&sql, &[]).await.unwrap(), 1);
}

/// Plays each scene, an `async fn(On)` of the module, on every store: as `sqlite::NAME` and `postgres::NAME`.
#[macro_export]
macro_rules! on_every_store {
    ($($name:ident;)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::support::stores::On::Sqlite).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                $crate::skip_loudly!($crate::support::stores::On::Postgres.is_set_up());
                super::$name($crate::support::stores::On::Postgres).await;
            })*
        }
    };
}
