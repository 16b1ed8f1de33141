//! Who may use a session, how many there are, and when they go.

use super::{CloseRefused, FoundSession, NewSession, Settings, close};
use crate::engine;
use crate::engine::tests::rig::Rig;
use crate::model::principal::Principal;
use crate::model::revision::Revision;

fn new() -> NewSession {
    NewSession { revision: Revision::V2025_06_18, client_name: None, client_info: None, capabilities: None }
}

#[test]
fn a_short_idle_time_is_written_down_often_enough() {
    assert_eq!(Settings::default().beat_ms(), 30_000);
    assert_eq!(Settings { idle_ms: 2_000, ..Settings::default() }.beat_ms(), 500);
    assert_eq!(Settings { idle_ms: 1, ..Settings::default() }.beat_ms(), 1);
}

#[tokio::test]
async fn a_principal_with_too_many_sessions_opens_no_more_until_one_ends_or_expires() {
    let rig = Rig::new();
    let sessions = Settings { principal_max: 3, idle_ms: 1_000, ..Settings::default() };
    let engine = rig.engine_with(engine::Settings { sessions, ..Default::default() }, None).await.0;
    let ann = Principal::anonymous();
    let bob = Principal { subject: "bob".into(), ..ann.clone() };
    let mut rows = Vec::new();
    for _ in 0..3 {
        rows.push(engine.open_session(new(), &ann).await.unwrap().unwrap().1);
    }
    assert!(engine.open_session(new(), &ann).await.unwrap().is_none());
    assert!(engine.open_session(new(), &bob).await.unwrap().is_some());
    let start = rows[0].key.to_string();
    let closed = close(&**engine.store(), &start[..12], (Some("default"), None), 5).await.unwrap();
    assert_eq!((closed.id, closed.state), (start, "closed"));
    assert!(engine.open_session(new(), &ann).await.unwrap().is_some());
    assert!(engine.open_session(new(), &ann).await.unwrap().is_none());
    rig.time.advance(1_250);
    assert!(engine.open_session(new(), &ann).await.unwrap().is_some());
    assert_eq!(engine.find_session(rows[1].key, &ann).await.unwrap(), FoundSession::Ended);
}

#[tokio::test]
async fn many_expired_sessions_are_deleted_in_batches() {
    let rig = Rig::new();
    let engine = rig.engine_with(engine::Settings::default(), None).await.0;
    let ann = Principal::anonymous();
    for _ in 0..450 {
        engine.open_session(new(), &ann).await.unwrap().unwrap();
    }
    assert_eq!(engine.expire_sessions().await.unwrap(), 0);
    rig.time.advance(86_400_000 + 30_000);
    assert_eq!(engine.expire_sessions().await.unwrap(), 450);
}

#[tokio::test]
async fn a_session_is_closed_by_a_start_of_its_id_that_no_other_has() {
    let rig = Rig::new();
    let engine = rig.engine_with(engine::Settings::default(), None).await.0;
    let ann = Principal::anonymous();
    let row = engine.open_session(new(), &ann).await.unwrap().unwrap().1;
    engine.open_session(new(), &ann).await.unwrap().unwrap();
    let store = &**engine.store();
    let key = row.key.to_string();
    assert!(matches!(close(store, "", (None, None), 5).await, Err(CloseRefused::Ambiguous)));
    for owner in [(Some("elsewhere"), None), (None, Some("bob"))] {
        assert!(matches!(close(store, &key, owner, 5).await, Err(CloseRefused::Missing)));
    }
    let closed = close(store, &key.to_uppercase(), (None, Some("anonymous")), 5).await.unwrap();
    let again = close(store, &key, (None, None), 9).await.unwrap();
    assert_eq!((closed.closed_at.map(|at| at.0), again.closed_at.map(|at| at.0)), (Some(5), Some(5)));
}
