//! Stores on their way: from a file into a database and back, row for row; and what is refused leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster::Cluster;
use super::{Isolation, Schema};
use crate::store::conformance::{Ground, Scene};
use crate::store::postgres::{Throwaway, load, look, rows_of, status};
use crate::store::transfer::tests::{Filled, sum, sums_of};
use crate::store::transfer::{
    Cell, NOT_CARRIED, NOT_CARRIED_COLUMNS, Page, Part, Source, TABLES, into_archive, into_postgres, into_sqlite,
    table, verify, way,
};
use crate::store::{Error, PostgresSettings};

const NOW_MS: i64 = 1_800_000_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_goes_from_a_file_into_a_database_and_back() {
    let Some(cluster) = Cluster::start().await else { return };
    let filled = Filled::new().await;
    let (archive, back, scratch) = (filled.at("a.archive"), filled.at("back.db"), filled.at("scratch.db"));
    let of_file = sums_of(&filled.store()).await;
    into_archive(&Source::Sqlite(filled.store()), &archive, false, true).await.unwrap();
    // Out of the archive, and out of the file itself.
    for source in [Source::Archive(archive), Source::Sqlite(filled.store())] {
        let schema = Schema::new(&cluster, Isolation::Serializable).await;
        let to = (schema.url.as_str(), &schema.settings);
        let carried = into_postgres(&source, to, &scratch).await.unwrap();
        assert_eq!(carried.sums, of_file);
        assert!(!scratch.exists() && carried.verified.unwrap().findings == 0);
        for table in TABLES {
            assert!(carried.sums.rows(table.name) > 0, "{} has no row to carry", table.name);
        }
        assert_eq!(sum(rows_of(&schema.url, &schema.settings)).await, of_file);
        let database = Source::Postgres(schema.url.clone(), Box::new(schema.settings.clone()));
        let (again, returned) = (filled.at("again.archive"), filled.at("returned.db"));
        assert_eq!(into_archive(&database, &again, true, true).await.unwrap().sums, of_file);
        into_sqlite(&Source::Archive(again), &returned, true, NOW_MS).await.unwrap();
        assert_eq!(sums_of(&returned).await, of_file);
        let (_, carried) = into_sqlite(&database, &back, true, NOW_MS).await.unwrap();
        assert_eq!(carried.sums, of_file);
        assert_eq!(sums_of(&back).await, of_file);

        // It is a store that works: what ran is there to be settled, and what is asked for is found.
        let found = status(&schema.url, &schema.settings, NOW_MS).await.unwrap();
        assert_eq!(found.states.values().sum::<u64>(), of_file.rows("executions"));
        assert!(found.bytes > found.payload_bytes && found.payload_bytes > Some(0));
        let mut scene = Scene::open(&schema, "restored").await.unwrap();
        let call = scene.call("{}");
        scene.completed(call, "1").await.unwrap();
        let in_use = into_postgres(&source, to, &scratch).await.unwrap_err();
        assert!(in_use.to_string().contains("is in use"), "{in_use}");
        scene.store.close().await;
        let full = into_postgres(&source, to, &scratch).await.unwrap_err();
        assert!(full.to_string().contains("holds executions"), "{full}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_off_or_does_not_fit_leaves_the_database_empty() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let row = |text: &str| vec![Cell::Text("p".into()), Cell::Text(text.into())];
    let policies = |rows| Part::Page(Page { table: table("policies").unwrap(), rows });
    let broken: [(Vec<Result<Part, Error>>, &str); 4] = [
        (vec![Ok(policies(vec![row("{}")]))], "stopped coming"),
        (vec![Ok(policies(vec![row("{}")])), Err(Error::Damaged("the archive was cut".into()))], "was cut"),
        (vec![Ok(policies(vec![row("a\0b")])), Ok(Part::End)], "U+0000"),
        (vec![Ok(policies(vec![row("{}"), row("{}")])), Ok(Part::End)], "not one that a store has"),
    ];
    for (parts, told) in broken {
        let (giving, mut coming) = way();
        for part in parts {
            giving.send(part).await.unwrap();
        }
        drop(giving);
        let refused = load(&schema.url, &schema.settings, &mut coming).await.unwrap_err();
        assert!(refused.to_string().contains(told), "{refused}");
        assert_eq!(sum(rows_of(&schema.url, &schema.settings)).await, Default::default());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_verified_by_the_rules_of_every_store() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    let mut scene = Scene::open(&schema, "verified").await.unwrap();
    let call = scene.call("{}");
    let id = scene.completed(call, "1").await.unwrap().id();
    let folder = tempfile::tempdir().unwrap();
    let database = Source::Postgres(schema.url.clone(), Box::new(schema.settings.clone()));
    let check = async || {
        let (found, finding) = std::sync::mpsc::channel();
        let scratch = folder.path().join("scratch.db");
        let verified = verify(&database, &scratch, move |told| {
            if let crate::store::sqlite::Told::Found(told) = told {
                found.send(told).unwrap();
            }
            std::ops::ControlFlow::Continue(())
        });
        (verified.await.unwrap(), finding.try_iter().collect::<Vec<_>>())
    };
    let (verified, none) = check().await;
    assert_eq!((verified.executions, verified.findings), (1, 0), "{none:?}");
    schema
        .client(&cluster)
        .await
        .batch_execute("UPDATE executions SET error_code = 'x', error_message = 'y'")
        .await
        .unwrap();
    let (verified, findings) = check().await;
    assert_eq!(verified.findings, 1);
    assert_eq!(findings[0].execution.as_deref(), Some(id.to_string().as_str()));
    assert_eq!(findings[0].rule.as_str(), "fold");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing is left of the scratch file");
    scene.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_and_column_of_the_database_travels_or_is_named_as_staying() {
    let Some(cluster) = Cluster::start().await else { return };
    let schema = Schema::new(&cluster, Isolation::Serializable).await;
    schema.open().await.unwrap().close().await;
    let rows = schema
        .client(&cluster)
        .await
        .query_typed(
            "SELECT table_name::TEXT, column_name::TEXT, data_type::TEXT, is_nullable::TEXT \
             FROM information_schema.columns WHERE table_schema = current_schema()",
            &[],
        )
        .await
        .unwrap();
    let mut there: BTreeMap<String, BTreeMap<String, (String, bool)>> = BTreeMap::new();
    for row in &rows {
        let column = (row.get(2), row.get::<_, &str>(3) == "YES");
        there.entry(row.get(0)).or_default().insert(row.get(1), column);
    }
    let stay = NOT_CARRIED.iter().copied().filter(|name| *name != "refinery_schema_history");
    let known: BTreeSet<&str> = TABLES.iter().map(|table| table.name).chain(stay).collect();
    assert_eq!(there.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for table in TABLES {
        let shard = |name: &str| name == "shard" || name == "execution_shard";
        let stays = |name: &str| shard(name) || NOT_CARRIED_COLUMNS.contains(&(table.name, name));
        let columns: BTreeSet<&str> =
            there[table.name].keys().map(String::as_str).filter(|name| !stays(name)).collect();
        assert_eq!(table.columns.iter().map(|column| column.name).collect::<BTreeSet<_>>(), columns, "{}", table.name);
        for column in table.columns {
            let wanted = match column.kind {
                crate::store::transfer::Kind::Number => "bigint",
                crate::store::transfer::Kind::Flag => "boolean",
                crate::store::transfer::Kind::Id | crate::store::transfer::Kind::Operation => "uuid",
                crate::store::transfer::Kind::Text => "text",
            };
            let expected = (wanted.to_owned(), column.optional);
            assert_eq!(there[table.name][column.name], expected, "{}.{}", table.name, column.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throwaway_schema_is_used_by_a_case_and_gone_after_it() {
    let Some(cluster) = Cluster::start().await else { return };
    let settings = PostgresSettings::for_tests();
    let ground = Throwaway::create(&cluster.url(), &settings).await.unwrap();
    let before = ground.look().await.unwrap();
    assert_eq!((before.schema.as_deref(), before.schema_version), (Some(ground.name()), None));
    assert_eq!((before.isolation.as_str(), before.encryption.as_deref()), ("serializable", Some("")));
    assert!(before.version.starts_with("PostgreSQL 1"), "{}", before.version);
    let scene = Scene::open(&ground, "throwaway").await.unwrap();
    let after = ground.look().await.unwrap();
    assert_eq!(after.schema_version, Some(after.schema_known));
    assert!(after.changes_events && !after.read_only && after.schema_fault.is_none());
    scene.store.close().await;
    ground.drop_schema().await.unwrap();
    assert_eq!(ground.look().await.unwrap().schema, None);
    let elsewhere = PostgresSettings { schema: Some("nowhere".into()), ..settings };
    let empty = look(&cluster.url(), &elsewhere).await.unwrap();
    assert_eq!((empty.schema, empty.schema_version), (None, None));
    assert!(matches!(status(&cluster.url(), &elsewhere, NOW_MS).await, Err(Error::TooOld { found: 0, .. })));
}
