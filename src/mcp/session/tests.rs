//! Sessions between memory and store, on a clock that stands still.

use std::sync::Arc;

use super::super::face::{Face, Settings};
use super::{Lookup, Session};
use crate::engine;
use crate::engine::sessions::NewSession;
use crate::engine::tests::faulty::Faulty;
use crate::engine::tests::rig::Rig;
use crate::model::principal::Principal;
use crate::model::revision::Revision;
use crate::store::{SessionChanged, SessionStore as _, Store};

const IDLE_MS: i64 = 1_000_000;
const BEAT_MS: i64 = 30_000;

async fn face_on(rig: &Rig, store: Arc<dyn Store>) -> Arc<Face> {
    let sessions = engine::sessions::Settings { idle_ms: IDLE_MS, subscriptions_max: 2, ..Default::default() };
    let engine = rig.engine_on(store, engine::Settings { sessions, ..Default::default() }, None).await.0;
    Face::new(engine, Settings::default())
}

async fn face(rig: &Rig) -> Arc<Face> {
    face_on(rig, rig.store().await).await
}

fn ann() -> Principal {
    Principal { subject: "ann".into(), ..Principal::anonymous() }
}

fn new() -> NewSession {
    NewSession {
        revision: Revision::V2025_11_25,
        client_name: Some("editor".into()),
        client_info: Some(r#"{"name":"editor","version":"1"}"#.into()),
        capabilities: Some(r#"{"roots":{}}"#.into()),
    }
}

async fn open(face: &Face) -> (String, Arc<Session>) {
    face.open_session(new(), &ann()).await.unwrap().unwrap()
}

async fn found(face: &Face, id: &str) -> Option<Arc<Session>> {
    match face.find_session(id, &ann()).await.unwrap() {
        Lookup::Found(session) => Some(session),
        Lookup::Unknown => None,
        Lookup::Foreign => panic!("a session of its own is foreign"),
    }
}

#[tokio::test]
async fn another_process_takes_a_session_up_with_what_its_client_set() {
    let rig = Rig::new();
    let (first, second) = (face(&rig).await, face(&rig).await);
    let (id, session) = open(&first).await;
    assert_eq!(first.set_log_level(&session, "warning").await.unwrap(), SessionChanged::Done);
    first.subscribe(&session, "file:///b").await.unwrap();
    first.subscribe(&session, "file:///a").await.unwrap();
    assert_eq!(first.subscribe(&session, "file:///c").await.unwrap(), SessionChanged::Full);
    first.unsubscribe(&session, "file:///b").await.unwrap();
    assert_eq!(session.context().log_level.as_deref(), Some("warning"));
    let restored = found(&second, &id).await.unwrap();
    assert_eq!(restored.context().log_level.as_deref(), Some("warning"));
    assert_eq!(*restored.subscriptions(), ["file:///a".to_owned()]);
    let row = second.engine.store().session(session.key).await.unwrap().unwrap();
    assert_eq!(row.client_info.as_deref(), Some(r#"{"name":"editor","version":"1"}"#));
    let context = restored.context();
    assert_eq!(context.revision.as_deref(), Some("2025-11-25"));
    assert_eq!(context.capabilities.as_deref().map(|raw| raw.get()), Some(r#"{"roots":{}}"#));
    // The id is a secret: nothing that is stored or passed on holds it.
    assert_ne!(context.session.as_deref(), Some(id.as_str()));
    assert!(second.sessions.named(context.session.as_deref().unwrap()).is_some());
    // A change in one process is seen in the other, a moment later.
    first.set_log_level(&session, "debug").await.unwrap();
    rig.time.advance(250);
    assert_eq!(found(&second, &id).await.unwrap().context().log_level.as_deref(), Some("debug"));
}

#[tokio::test]
async fn a_foreign_session_is_foreign_in_memory_in_the_store_and_after_its_end_and_lives_no_longer_for_it() {
    let rig = Rig::new();
    let (first, second) = (face(&rig).await, face(&rig).await);
    let (id, session) = open(&first).await;
    let bob = Principal { subject: "bob".into(), ..ann() };
    let elsewhere = Principal { namespace: "elsewhere".into(), ..ann() };
    for face in [&first, &second] {
        for stranger in [&bob, &elsewhere] {
            rig.time.advance(10);
            assert!(matches!(face.find_session(&id, stranger).await.unwrap(), Lookup::Foreign));
            assert!(!face.close_session(&id, stranger).await.unwrap());
        }
        face.tend(first.engine.clock().now_ms()).await;
    }
    let row = first.engine.store().session(session.key).await.unwrap().unwrap();
    assert_eq!((row.last_seen_at_ms, row.closed_at_ms), (row.created_at_ms, None));
    assert!(first.close_session(&id, &ann()).await.unwrap());
    assert!(matches!(second.find_session(&id, &bob).await.unwrap(), Lookup::Foreign));
    assert!(matches!(second.find_session("no-such-id", &bob).await.unwrap(), Lookup::Unknown));
}

#[tokio::test]
async fn a_session_ended_by_one_process_is_ended_for_all_and_may_be_ended_again() {
    let rig = Rig::new();
    let (first, second) = (face(&rig).await, face(&rig).await);
    let (id, session) = open(&first).await;
    let there = found(&second, &id).await.unwrap();
    let mut ended = second.engine.ended_sessions();
    assert!(first.close_session(&id, &ann()).await.unwrap());
    assert!(session.closed.is_cancelled());
    assert!(found(&first, &id).await.is_none());
    rig.time.advance(250);
    assert!(found(&second, &id).await.is_none());
    assert!(there.closed.is_cancelled());
    assert_eq!(ended.try_recv().unwrap(), session.key.to_string());
    for face in [&first, &second] {
        assert!(face.close_session(&id, &ann()).await.unwrap());
    }
    assert!(first.close_session("never-opened", &ann()).await.unwrap());
}

#[tokio::test]
async fn a_session_ends_when_nobody_uses_it_but_not_while_a_call_runs() {
    let rig = Rig::new();
    let face = face(&rig).await;
    let ((idle, _), (busy, session)) = (open(&face).await, open(&face).await);
    let place = session.in_flight.enter(&super::super::id::Id::from_number(1), 9).unwrap();
    // Just before its end a session is still there, and lives on from then.
    rig.time.advance(IDLE_MS);
    face.tend(face.engine.clock().now_ms()).await;
    rig.time.advance(BEAT_MS);
    face.tend(face.engine.clock().now_ms()).await;
    assert!(found(&face, &idle).await.is_none());
    assert!(found(&face, &busy).await.is_some());
    session.in_flight.leave(&place);
    drop(session);
    rig.time.advance(IDLE_MS + BEAT_MS);
    assert!(found(&face, &busy).await.is_none());
    assert_eq!(face.engine.expire_sessions().await.unwrap(), 2);
}

#[tokio::test]
async fn requests_write_nothing_and_a_heartbeat_writes_once() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let face = face_on(&rig, store.clone()).await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(open(&face).await.0);
    }
    assert_eq!(store.calls("open_session"), 50);
    rig.time.advance(100);
    for _ in 0..20 {
        for id in &ids {
            assert!(found(&face, id).await.is_some());
        }
    }
    assert_eq!(store.calls("session"), 0);
    face.tend(face.engine.clock().now_ms()).await;
    face.tend(face.engine.clock().now_ms()).await;
    assert_eq!(store.calls("touch_sessions"), 1);
    // What was refused is written the next time.
    rig.time.advance(200);
    assert!(found(&face, &ids[0]).await.is_some());
    store.fail("touch_sessions", 1);
    face.tend(face.engine.clock().now_ms()).await;
    face.tend(face.engine.clock().now_ms()).await;
    let row = store.session(found(&face, &ids[0]).await.unwrap().key).await.unwrap().unwrap();
    assert_eq!(row.last_seen_at_ms, row.created_at_ms + 300);
    // A store that can not be read for a moment ends no session.
    rig.time.advance(300);
    store.fail("session", 1);
    assert!(found(&face, &ids[0]).await.is_some());
}

#[tokio::test]
async fn idle_sessions_cost_no_memory_and_come_back() {
    let rig = Rig::new();
    let face = face(&rig).await;
    let mut ids = Vec::new();
    for _ in 0..1_500 {
        ids.push(open(&face).await.0);
    }
    let listener = found(&face, &ids[7]).await.unwrap().listen();
    // More than are worth keeping go at once.
    face.tend(face.engine.clock().now_ms()).await;
    assert_eq!(face.sessions.len(), face.settings.sessions_cached);
    rig.time.advance(300_000);
    face.tend(face.engine.clock().now_ms()).await;
    assert_eq!(face.sessions.len(), 1);
    drop(listener);
    rig.time.advance(300_000);
    face.tend(face.engine.clock().now_ms()).await;
    assert!(face.sessions.is_empty());
    for id in &ids {
        assert!(found(&face, id).await.is_some());
    }
}

#[tokio::test]
async fn the_newest_open_stream_is_the_one_that_tells() {
    let rig = Rig::new();
    let face = face(&rig).await;
    let (_, session) = open(&face).await;
    let (older, newest) = (session.listen(), session.listen());
    assert!(session.is_newest(&newest) && !session.is_newest(&older));
    drop(newest);
    assert!(session.is_newest(&older));
}

#[tokio::test]
async fn a_stream_that_is_taken_up_again_ends_the_one_before() {
    let rig = Rig::new();
    let face = face(&rig).await;
    let (_, session) = open(&face).await;
    let first = session.take_stream("s");
    assert!(session.is_busy());
    let second = session.take_stream("s");
    assert!(first.is_cancelled() && !second.is_cancelled());
    session.leave_stream("s", &first);
    assert!(session.is_busy());
    session.leave_stream("s", &second);
    assert!(!session.is_busy());
}
