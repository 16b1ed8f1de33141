//! Cases about sessions and their streams: what comes back, what is once and for all, what goes.

use super::Ground;
use super::scene::{Scene, Verdict, form, holds, same};
use crate::model::revision::Revision;
use crate::store::{
    SessionCap, SessionChange, SessionChanged, SessionKey, SessionQuery, SessionRetention, SessionRow, StreamMessage,
    StreamRow, StreamSeen,
};

const MANY: SessionCap = SessionCap { max: 100, seen_since_ms: 0 };

fn session(scene: &mut Scene) -> SessionRow {
    let mut key = [0; 32];
    for piece in key.chunks_exact_mut(8) {
        piece.copy_from_slice(&scene.random().next().to_be_bytes());
    }
    SessionRow {
        key: SessionKey(key),
        namespace: scene.namespace.clone(),
        namespace_name: "Acme".into(),
        principal: "ann".into(),
        revision: Revision::V2025_11_25,
        client_name: Some("editor".into()),
        client_info: Some(r#"{"name":"editor","version":"1.0", "x":1e2}"#.into()),
        capabilities: Some(r#"{"elicitation":{} }"#.into()),
        log_level: None,
        subscriptions: Vec::new(),
        created_at_ms: scene.now_ms,
        last_seen_at_ms: scene.now_ms,
        closed_at_ms: None,
    }
}

pub(super) async fn a_session_comes_back_whole_in_another_process(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "session").await?;
    let mut row = session(&mut scene);
    same!(scene.store.session(row.key).await?, None);
    holds!(scene.store.open_session(row.clone(), MANY).await?);
    // Asked for again after a commit whose answer was lost.
    holds!(scene.store.open_session(row.clone(), MANY).await?);
    for uri in ["file:///b", "file:///a", "file:///b"] {
        let change = SessionChange::Subscribe { uri: uri.into(), max: 2 };
        same!(scene.store.change_session(row.key, change, scene.now_ms).await?, SessionChanged::Done);
    }
    let third = SessionChange::Subscribe { uri: "file:///c".into(), max: 2 };
    same!(scene.store.change_session(row.key, third, scene.now_ms).await?, SessionChanged::Full);
    let level = SessionChange::LogLevel("warning".into());
    same!(scene.store.change_session(row.key, level, scene.now_ms).await?, SessionChanged::Done);
    let not_any_more = SessionChange::Unsubscribe("file:///b".into());
    same!(scene.store.change_session(row.key, not_any_more, scene.now_ms).await?, SessionChanged::Done);
    scene.store.touch_sessions(vec![(row.key, scene.now_ms + 30), (row.key, scene.now_ms + 10)]).await?;
    row.log_level = Some("warning".into());
    row.subscriptions = vec!["file:///a".into()];
    row.last_seen_at_ms = scene.now_ms + 30;
    let other = scene.another(ground).await?;
    same!(other.store.session(row.key).await?, Some(row));
    Ok(())
}

pub(super) async fn a_closed_session_is_closed_for_everybody_and_changes_no_more(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "closed session").await?;
    let row = session(&mut scene);
    holds!(scene.store.open_session(row.clone(), MANY).await?);
    let other = scene.another(ground).await?;
    let (key, now_ms) = (row.key, scene.now_ms);
    same!(other.store.change_session(key, SessionChange::Close, now_ms + 1).await?, SessionChanged::Done);
    let closed = SessionRow { closed_at_ms: Some(now_ms + 1), ..row };
    same!(scene.store.session(key).await?, Some(closed.clone()));
    holds!(scene.store.closed_sessions(now_ms).await?.contains(&key));
    holds!(!scene.store.closed_sessions(now_ms + 1).await?.contains(&key));
    for change in [
        SessionChange::Close,
        SessionChange::LogLevel("debug".into()),
        SessionChange::Subscribe { uri: "file:///a".into(), max: 9 },
        SessionChange::Unsubscribe("file:///a".into()),
    ] {
        same!(scene.store.change_session(key, change, now_ms + 2).await?, SessionChanged::Missing);
    }
    scene.store.touch_sessions(vec![(key, now_ms + 3)]).await?;
    same!(scene.store.session(key).await?, Some(closed));
    Ok(())
}

pub(super) async fn a_principal_has_at_most_so_many_sessions(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "session cap").await?;
    let cap = SessionCap { max: 2, seen_since_ms: scene.now_ms - 1_000 };
    let (first, second, third) = (session(&mut scene), session(&mut scene), session(&mut scene));
    // Nobody used this one for long.
    let old = SessionRow { last_seen_at_ms: scene.now_ms - 1_000, ..session(&mut scene) };
    for row in [&old, &first, &second] {
        holds!(scene.store.open_session(row.clone(), cap).await?);
    }
    holds!(!scene.store.open_session(third.clone(), cap).await?);
    same!(scene.store.session(third.key).await?, None);
    let bobs = SessionRow { principal: "bob".into(), ..session(&mut scene) };
    holds!(scene.store.open_session(bobs, cap).await?);
    scene.store.change_session(first.key, SessionChange::Close, scene.now_ms).await?;
    holds!(scene.store.open_session(third, cap).await?);
    Ok(())
}

pub(super) async fn sessions_are_listed_by_owner_and_page(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "session list").await?;
    let mut rows = Vec::new();
    for number in 0..5 {
        let principal = if number == 4 { "bob" } else { "ann" };
        let row = SessionRow { principal: principal.into(), ..session(&mut scene) };
        holds!(scene.store.open_session(row.clone(), MANY).await?);
        rows.push(row);
    }
    scene.store.change_session(rows[0].key, SessionChange::Close, scene.now_ms + 1).await?;
    let query = SessionQuery { namespace: Some(scene.namespace.clone()), limit: 2, ..SessionQuery::default() };
    let anns = SessionQuery { principal: Some("ann".into()), ..query.clone() };
    let first = scene.store.sessions(anns.clone()).await?;
    let after = form!(first.last(), Some(row) => row.key);
    let second = scene.store.sessions(SessionQuery { after: Some(after), ..anns.clone() }).await?;
    let mut found: Vec<SessionKey> = first.iter().chain(&second).map(|row| row.key).collect();
    let mut anns_open: Vec<SessionKey> = rows[1..4].iter().map(|row| row.key).collect();
    anns_open.sort();
    same!(found, anns_open);
    found.dedup();
    same!((found.len(), first.len()), (3, 2));
    let all = scene.store.sessions(SessionQuery { closed: true, limit: 9, ..query.clone() }).await?;
    same!(all.len(), 5);
    let start = rows[2].key.to_string()[..24].to_owned();
    let one = scene.store.sessions(SessionQuery { key_prefix: Some(start), limit: 9, ..query.clone() }).await?;
    same!(one, [rows[2].clone()]);
    let used = SessionQuery { seen_since_ms: Some(scene.now_ms), limit: 9, ..query };
    same!(scene.store.sessions(used).await?, []);
    Ok(())
}

fn message(row: &SessionRow, stream: &str, name: &str) -> StreamMessage {
    StreamMessage {
        session: row.key,
        stream: stream.into(),
        name: name.into(),
        body: format!(r#"{{"jsonrpc":"2.0","id":"{name}", "method":"ping"}}"#).into(),
        seq_min: 1,
        at_ms: row.created_at_ms,
    }
}

pub(super) async fn a_stream_keeps_its_request_and_numbers_its_messages(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "stream").await?;
    let row = session(&mut scene);
    holds!(scene.store.open_session(row.clone(), MANY).await?);
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let opening = StreamRow {
        session: row.key,
        stream: "s1".into(),
        request_id: "\"a\\u00e9\"".into(),
        execution: id,
        context: r#"{"token":7}"#.into(),
        at_ms: scene.now_ms,
    };
    holds!(!scene.store.session_is_busy(row.key).await?);
    scene.store.open_stream(opening.clone()).await?;
    scene.store.open_stream(opening.clone()).await?;
    holds!(scene.store.session_is_busy(row.key).await?);
    let other = scene.another(ground).await?;
    same!(scene.store.push_message(message(&row, "s1", "e.1")).await?, 1);
    same!(other.store.push_message(message(&row, "s1", "e.2")).await?, 2);
    // The same message again, wherever it comes from, is the same message.
    same!(other.store.push_message(message(&row, "s1", "e.1")).await?, 1);
    let late = StreamMessage { seq_min: 1_000, ..message(&row, "get", "n.1") };
    same!(scene.store.push_message(late).await?, 1_000);
    same!(scene.store.push_message(message(&row, "get", "n.2")).await?, 1_001);
    let seen = other.store.stream(row.key, "s1", 1, 10).await?;
    same!(seen, StreamSeen { opening: Some(opening), messages: vec![(2, message(&row, "s1", "e.2").body)] });
    same!(other.store.stream(row.key, "s1", 0, 1).await?.messages.len(), 1);
    same!(other.store.stream(row.key, "get", 1_000, 10).await?.messages.len(), 1);
    // Another session has no such stream.
    let foreign = session(&mut scene);
    same!(scene.store.stream(foreign.key, "s1", 0, 10).await?, StreamSeen::default());
    scene.lease(id).await?;
    scene.complete(id, 1, "1").await?;
    holds!(!scene.store.session_is_busy(row.key).await?);
    Ok(())
}

pub(super) async fn expired_sessions_go_unless_a_call_of_theirs_runs(ground: &dyn Ground) -> Verdict {
    let mut scene = Scene::open(ground, "session end").await?;
    // Long before every other case, so that theirs stay.
    scene.now_ms = 1_000_000;
    let (idle, busy, used, closed) =
        (session(&mut scene), session(&mut scene), session(&mut scene), session(&mut scene));
    for row in [&idle, &busy, &used, &closed] {
        holds!(scene.store.open_session(row.clone(), MANY).await?);
    }
    let submit = scene.call("{}");
    let id = scene.new_execution(submit).await?.id();
    let opening = |session: SessionKey, stream: &str| StreamRow {
        session,
        stream: stream.into(),
        request_id: "1".into(),
        execution: id,
        context: "{}".into(),
        at_ms: 1_000_100,
    };
    scene.store.open_stream(opening(busy.key, "s1")).await?;
    scene.store.touch_sessions(vec![(used.key, 1_000_500), (closed.key, 1_000_500)]).await?;
    scene.store.push_message(message(&idle, "get", "n")).await?;
    scene.store.change_session(idle.key, SessionChange::Subscribe { uri: "file:///a".into(), max: 1 }, 0).await?;
    scene.store.change_session(closed.key, SessionChange::Close, 1_000_010).await?;
    let retention =
        SessionRetention { seen_until_ms: 1_000_000, closed_until_ms: 1_000_009, messages_until_ms: 0, batch: 100 };
    same!(scene.store.prune_sessions(retention).await?, 1);
    same!(scene.store.session(idle.key).await?, None);
    same!(scene.store.stream(idle.key, "get", 0, 10).await?, StreamSeen::default());
    holds!(scene.store.session(busy.key).await?.is_some());
    same!(scene.store.prune_sessions(SessionRetention { closed_until_ms: 1_000_010, ..retention }).await?, 1);
    same!(scene.store.session(closed.key).await?, None);
    scene.lease(id).await?;
    scene.complete(id, 1, "1").await?;
    same!(scene.store.prune_sessions(retention).await?, 1);
    same!(scene.store.session(busy.key).await?, None);
    holds!(scene.store.session(used.key).await?.is_some());
    scene.store.open_stream(opening(used.key, "s2")).await?;
    same!(scene.store.prune_sessions(SessionRetention { messages_until_ms: 1_000_100, ..retention }).await?, 1);
    same!(scene.store.stream(used.key, "s2", 0, 10).await?, StreamSeen::default());
    Ok(())
}
