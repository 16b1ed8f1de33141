//! Offers as a server comes, changes and goes; the picture that outlives it.

use serde_json::json;

use super::*;
use crate::engine::clock::Clock;
use crate::model::policy::Delivery;
use crate::store::sqlite::SqliteStore;
use crate::store::{SqliteSettings, Store};
use crate::worker::upstream::tests::unguarded;

const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","v":1.0},"instructions":"be kind"}}' ;;
    *'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"w","inputSchema":{"type":"object"},"x":1.0},{"name":"r","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"off","inputSchema":{"type":"object"}}]}}' ;;
  esac
done
"#;

async fn engine(folder: &tempfile::TempDir) -> Arc<Engine> {
    let store = SqliteStore::open(&folder.path().join("t.db"), &SqliteSettings::for_tests()).await.unwrap();
    let (clock, _) = Clock::manual(5);
    let names = ["a".to_owned(), "b".to_owned()];
    Engine::open(Arc::new(store) as Arc<dyn Store>, clock, Default::default(), &names).await.unwrap()
}

fn publisher(engine: &Arc<Engine>) -> Arc<Publisher> {
    let rules: RulesOf = Arc::new(|_, tool| Rules { enabled: tool != "off", ..Rules::default() });
    let exposed: ExposedName = Arc::new(|upstream, tool| match tool {
        "same" => "same".into(),
        tool => format!("{upstream}__{tool}"),
    });
    Publisher::new(engine.clone(), rules, exposed)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.into()).unwrap()
}

async fn changed(engine: &Engine, done: impl Fn(&Offer) -> bool) -> Offer {
    let mut changes = engine.catalog().changes();
    loop {
        let listing = engine.catalog().listing();
        let offer = listing.upstreams.iter().find(|(name, _)| name == "a").map(|(_, offer)| offer.clone());
        if let Some(offer) = offer.filter(&done) {
            return offer;
        }
        changes.changed().await.unwrap();
    }
}

fn exposed(engine: &Engine) -> Vec<String> {
    engine.catalog().listing().tools.iter().map(|tool| tool.exposed.clone()).collect()
}

#[tokio::test]
async fn a_server_is_offered_when_it_is_up_and_its_picture_outlives_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder).await;
    let upstream = Upstream::start(unguarded("a", "sh", &["-c", SERVER]));
    publisher(&engine).follow(upstream.clone());
    // Nothing was heard of it yet, so that whoever asks may wait.
    assert_eq!(engine.catalog().listing().version, 0);
    let offer = changed(&engine, |offer| !offer.tools.is_empty()).await;
    let delivery: Vec<_> = offer.tools.iter().map(|tool| (tool.exposed.as_str(), tool.policy.delivery)).collect();
    assert_eq!(delivery, [("a__w", Delivery::AtMostOnce), ("a__r", Delivery::AtLeastOnce)]);
    assert_eq!(offer.tools[0].definition.get(), r#"{"name":"w","inputSchema":{"type":"object"},"x":1.0}"#);
    assert_eq!(offer.instructions.as_deref(), Some("be kind"));
    assert_eq!(offer.server_info.unwrap().get(), r#"{"name":"s","v":1.0}"#);

    upstream.shutdown().await;
    let offer = changed(&engine, |offer| offer.problem.is_some()).await;
    assert_eq!(offer.tools.len(), 2);
    let row = loop {
        if let Some(row) = engine.store().upstreams().await.unwrap().pop() {
            break row;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((row.name.as_str(), row.updated_at_ms), ("a", 5));
    let snapshot = last_known(&row.snapshot).unwrap();
    assert_eq!(snapshot.generation, 0);
    assert_eq!(snapshot.tools.len(), 3);
    assert_eq!(snapshot.tools[0].raw.get(), r#"{"name":"w","inputSchema":{"type":"object"},"x":1.0}"#);
    assert_eq!(snapshot.facts.unwrap().revision, Revision::V2025_11_25);
}

#[tokio::test]
async fn the_last_known_picture_is_offered_before_the_server_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder).await;
    let picture = json!({ "tools": [{ "name": "old" }, { "nameless": true }] }).to_string();
    let mut settings = unguarded("a", "sleep", &["600"]);
    settings.last_known = last_known(&picture);
    let upstream = Upstream::start(settings);
    publisher(&engine).follow(upstream.clone());
    assert_eq!(exposed(&engine), ["a__old"]);
    assert!(engine.store().upstreams().await.unwrap().is_empty());
    upstream.shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder).await;
    let upstream = Upstream::start(unguarded("a", "/no/such/server", &[]));
    publisher(&engine).follow(upstream.clone());
    let offer = changed(&engine, |offer| offer.problem.is_some()).await;
    assert!(offer.problem.unwrap().contains("not found"));
}

#[tokio::test]
async fn the_first_configured_one_keeps_a_name_that_two_want() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(&folder).await;
    let publisher = publisher(&engine);
    publisher.offer_own("b", &[raw(r#"{"name":"same"}"#), raw(r#"{"name":"x"}"#)]);
    assert_eq!(exposed(&engine), ["same", "b__x"]);
    publisher.offer_own("a", &[raw(r#"{"name":"same"}"#), raw(r#"{"noname":1}"#)]);
    assert_eq!(exposed(&engine), ["same", "b__x"]);
    assert_eq!(engine.catalog().listing().find("same", "default").unwrap().upstream, "a");
}

#[test]
fn an_unreadable_picture_is_none() {
    for text in ["", "[]", "{}", r#"{"tools":1}"#] {
        assert!(last_known(text).is_none(), "{text}");
    }
}
