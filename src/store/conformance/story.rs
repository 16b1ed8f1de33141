//! A store with content that somebody would ask about, and what the questions in `examples/sql` must find in it. Asks
//! nothing itself: how a statement is sent is a driver's.

use super::scene::{Failure, Scene};
use crate::model::decide::{Command, Outcome};
use crate::model::event::{ExpiryCause, Order};
use crate::model::tally::{MINUTE_MS, Tally};
use crate::store::series::{Counted, PutSeries, SeriesRow};

/// A file, how many rows it must find, and what must be among them.
pub(crate) const EXPECTED: [(&str, usize, &[&str]); 12] = [
    ("did-it-happen", 1, &["it happened", "ann", "echo"]),
    ("who-ran-it", 1, &["w1", "completed"]),
    ("what-was-lost", 1, &["process_died", "3", "1"]),
    ("recovered", 2, &["result", "resolve"]),
    ("unknown-open", 1, &["process_died", "bob"]),
    ("decided-by-people", 1, &["op", "completed", "the ledger has the line"]),
    ("conflicts", 1, &["order-17", "ann"]),
    ("duplicates", 1, &["ann", "7"]),
    ("stale-writes", 1, &["stale_token"]),
    ("by-principal", 2, &["ann", "bob"]),
    ("by-day", 1, &["2027-01-15", "files"]),
    ("log-is-whole", 0, &[]),
];

/// Plays it: a call that completes and whose key is used again for another; one that is lost, run again, and answered late
/// by the first worker; one that is lost and decided by a person; and one that still is unknown.
pub(crate) async fn play(scene: &mut Scene) -> Result<(), Failure> {
    let lost = || Command::Expire { fencing_token: 1, cause: ExpiryCause::ProcessDied };
    let submit = scene.keyed("order-17", r#"{"amount":1}"#);
    scene.completed(submit, "1").await?;
    scene.now_ms += 10;
    let other = scene.keyed("order-17", r#"{"amount":2}"#);
    scene.store.submit(other).await?;

    let submit = scene.repeatable("{}");
    let recovered = scene.new_execution(submit).await?.id();
    scene.lease(recovered).await?;
    scene.now_ms += 20;
    scene.now_ms = scene.run(recovered, lost()).await?.head.run_at_ms;
    scene.lease(recovered).await?;
    scene.complete(recovered, 1, "late").await?;
    scene.complete(recovered, 2, "2").await?;

    let submit = scene.call("3");
    let decided = scene.new_execution(submit).await?.id();
    scene.lease(decided).await?;
    scene.run(decided, lost()).await?;
    scene.now_ms += 30;
    let by = Order { principal: "op".into(), reason: "the ledger has the line".into() };
    let result = crate::model::event::Digest::of("3");
    let outcome = Outcome::Completed { result, is_error: false };
    let mut resolve = scene.apply(decided, Command::Resolve { by, outcome });
    resolve.payload = Some((crate::store::PayloadKind::Result, "3".into()));
    scene.run_apply(resolve).await?;

    let mut submit = scene.call("4");
    submit.submission.ident.principal = "bob".into();
    let open = scene.new_execution(submit).await?.id();
    scene.lease(open).await?;
    scene.run(open, lost()).await?;

    let repeats = SeriesRow {
        minute_ms: scene.now_ms / MINUTE_MS * MINUTE_MS,
        namespace: scene.namespace.clone(),
        principal: "ann".into(),
        counted: Counted::Process(scene.process),
        tally: Tally { repeats: 7, ..Tally::default() },
    };
    scene.store.put_series(PutSeries { rows: vec![repeats], ..PutSeries::default() }).await?;
    Ok(())
}

/// Holds the rows of a question, each as texts, against what is expected.
#[track_caller]
pub(crate) fn check(name: &str, rows: &[Vec<String>]) {
    let (_, count, among) = EXPECTED.into_iter().find(|(file, ..)| *file == name).expect(name);
    assert_eq!(rows.len(), count, "{name}: {rows:?}");
    for text in among {
        assert!(rows.iter().flatten().any(|cell| cell == text), "{name} has no {text}: {rows:?}");
    }
}

/// The questions of a dialect, by name.
pub(crate) fn questions(dialect: &str) -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sql").join(dialect);
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    let mut names: Vec<&str> = EXPECTED.iter().map(|(name, ..)| *name).collect();
    names.sort_unstable();
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names, "{dialect}");
    found
}
