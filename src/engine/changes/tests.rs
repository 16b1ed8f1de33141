//! A reader that leaves and returns gets every event once: in pages of any size, over ties in time, over more executions
//! than are looked at at once, and for what comes long after an end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::engine::Engine;
use crate::engine::tests::rig::{Hands, Rig, START_MS, at_once, call, keyed, lost, order, result};
use crate::model::policy::Policy;

/// What was delivered: how often each event.
#[derive(Default)]
struct Seen(BTreeMap<Place, usize>);

impl Seen {
    fn take(&mut self, changes: &Changes) {
        for change in &changes.changes {
            *self.0.entry((change.head.id(), change.record.seq)).or_default() += 1;
        }
    }

    /// Every event of these executions was delivered, once, and no other.
    async fn assert_whole(&self, engine: &Engine, ids: &[ExecutionId]) {
        let mut all = BTreeMap::new();
        for id in ids {
            for record in events(&**engine.store(), *id, 0).await.unwrap() {
                all.insert((*id, record.seq), 1);
            }
        }
        assert_eq!(self.0, all);
    }
}

async fn read_on(engine: &Engine, cursor: Cursor, limit: usize) -> Changes {
    let until_ms = engine.clock().now_ms();
    let wanted = Wanted { filter: ListQuery::default(), cursor, until_ms, limit };
    let changes = read(&**engine.store(), &wanted).await.unwrap();
    assert!(changes.changes.len() <= limit);
    // The cursor is text between two visits.
    assert_eq!(changes.next.to_string().parse(), Ok(changes.next));
    changes
}

/// A small generator with a seed: the same run every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

async fn step(dice: &mut Dice, engine: &Arc<Engine>, hands: &mut Hands, ids: &mut Vec<ExecutionId>) {
    match dice.roll(6) {
        0 | 1 => ids.push(engine.submit(call(Policy::default())).await.unwrap().id()),
        2 => {
            if let Some(work) = hands.ready() {
                engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
            }
        }
        3 => {
            if let Some(work) = hands.ready() {
                engine.fail(work.lease(), work.operation, lost(), None).await.unwrap();
            }
        }
        4 => {
            if let Some(id) = ids.get(dice.roll(ids.len().max(1) as u64) as usize) {
                // Whatever state it is in: what is refused leaves no event.
                let _ = engine.cancel(*id, order()).await;
            }
        }
        _ => {
            if let Some(id) = ids.get(dice.roll(ids.len().max(1) as u64) as usize) {
                let _ = engine.retry_unknown(*id, order()).await;
            }
        }
    }
}

#[tokio::test]
async fn whoever_leaves_and_returns_at_any_place_gets_every_event_once() {
    for seed in 1..=6 {
        let rig = Rig::new();
        let (engine, mut hands) = rig.engine(at_once(1_000)).await;
        let (mut dice, mut ids, mut seen) = (Dice(seed), Vec::new(), Seen::default());
        let mut cursor = Cursor::at(START_MS);
        for _ in 0..120 {
            step(&mut dice, &engine, &mut hands, &mut ids).await;
            if dice.roll(3) == 0 {
                // Often nothing moves: many events share a millisecond.
                rig.time.advance(dice.roll(3) as i64);
            }
            if dice.roll(4) == 0 {
                let changes = read_on(&engine, cursor, 1 + dice.roll(4) as usize).await;
                seen.take(&changes);
                // Sometimes it leaves in the middle of a page, with the cursor of the last event it took.
                cursor = changes.next;
            }
        }
        rig.time.advance(1);
        loop {
            let changes = read_on(&engine, cursor, 3).await;
            seen.take(&changes);
            cursor = changes.next;
            if !changes.more {
                break;
            }
        }
        seen.assert_whole(&engine, &ids).await;
    }
}

#[tokio::test]
async fn each_event_carries_the_place_to_go_on_from() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(10)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(engine.submit(call(Policy::default())).await.unwrap().id());
        let work = hands.next().await;
        engine.complete(work.lease(), work.operation, result("x"), false).await.unwrap();
    }
    rig.time.advance(1);
    let all = read_on(&engine, Cursor::at(START_MS), 100).await;
    assert_eq!(all.changes.len(), 9);
    for (index, change) in all.changes.iter().enumerate() {
        let rest = read_on(&engine, change.cursor, 100).await;
        let left: Vec<Place> = rest.changes.iter().map(|change| (change.head.id(), change.record.seq)).collect();
        let expect: Vec<Place> =
            all.changes[index + 1..].iter().map(|change| (change.head.id(), change.record.seq)).collect();
        assert_eq!(left, expect);
    }
}

#[tokio::test]
async fn more_executions_than_are_looked_at_at_once_are_delivered_execution_by_execution() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(5_000)).await;
    let (mut ids, mut seen) = (Vec::new(), Seen::default());
    // Some began before the reader's place and end after it.
    let mut older = Vec::new();
    for _ in 0..30 {
        ids.push(engine.submit(call(Policy::default())).await.unwrap().id());
        older.push(hands.next().await);
    }
    rig.time.advance(10);
    let begin = Cursor::at(START_MS + 5);
    for n in 0..(HEADS + 120) {
        ids.push(engine.submit(call(Policy::default())).await.unwrap().id());
        if n % 50 == 0 {
            rig.time.advance(1);
        }
    }
    for work in &older {
        engine.complete(work.lease(), work.operation, result("late"), false).await.unwrap();
    }
    rig.time.advance(1);
    let mut cursor = begin;
    let mut limit = 1;
    loop {
        let changes = read_on(&engine, cursor, limit).await;
        seen.take(&changes);
        // Every third time it leaves in the middle of a page.
        cursor = changes.next;
        limit = limit % 97 + 13;
        if !changes.more {
            break;
        }
    }
    // What happened before its place is not its business.
    for id in &ids[..30] {
        seen.0.insert((*id, 1), 1);
        seen.0.insert((*id, 2), 1);
    }
    seen.assert_whole(&engine, &ids).await;
}

#[tokio::test]
async fn what_comes_long_after_an_end_is_found() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(10)).await;
    engine.submit(keyed("order-17")).await.unwrap();
    let work = hands.next().await;
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    rig.time.advance(60_000);
    let cursor = read_on(&engine, Cursor::at(START_MS), 100).await.next;
    let other = crate::engine::submit::Call { arguments: r#"{"text":"other"}"#.into(), ..keyed("order-17") };
    assert!(engine.submit(other).await.is_err());
    rig.time.advance(1);
    let changes = read_on(&engine, cursor, 100).await;
    let names: Vec<&str> = changes.changes.iter().map(|change| change.record.event.name()).collect();
    assert_eq!(names, ["conflicted"]);
}

#[tokio::test]
async fn filters_hold_for_the_execution_as_it_stands() {
    let rig = Rig::new();
    let (engine, mut hands) = rig.engine(at_once(10)).await;
    engine.submit(call(Policy::default())).await.unwrap();
    let work = hands.next().await;
    rig.time.advance(1);
    let filtered = async |state| {
        let filter = ListQuery { states: vec![state], ..ListQuery::default() };
        let until_ms = engine.clock().now_ms();
        let wanted = Wanted { filter, cursor: Cursor::at(START_MS), until_ms, limit: 10 };
        read(&**engine.store(), &wanted).await.unwrap().changes.len()
    };
    use crate::model::execution::State;
    assert_eq!((filtered(State::Leased).await, filtered(State::Completed).await), (2, 0));
    engine.complete(work.lease(), work.operation, result("done"), false).await.unwrap();
    rig.time.advance(1);
    assert_eq!((filtered(State::Leased).await, filtered(State::Completed).await), (0, 3));
}

#[tokio::test]
async fn what_is_on_its_way_into_the_store_is_waited_for() {
    let rig = Rig::new();
    let (engine, _hands) = rig.engine(at_once(10)).await;
    rig.time.advance(10_000);
    assert_eq!(engine.events_settled_before(), START_MS + 10_000 - SETTLE_MS);
    let flight = engine.in_flight.begin(engine.clock());
    rig.time.advance(10_000);
    assert_eq!(engine.events_settled_before(), START_MS + 10_000);
    drop(flight);
    assert_eq!(engine.events_settled_before(), START_MS + 20_000 - SETTLE_MS);
}

#[test]
fn a_cursor_is_text_that_is_read_strictly() {
    let id = ExecutionId::new(START_MS, &[1; 10]);
    let span = Span { until_ms: 9, after: None };
    for cursor in [
        Cursor::at(5),
        Cursor { done: Some((id, 3)), ..Cursor::at(5) },
        Cursor { span: Some(span), ..Cursor::at(5) },
        Cursor { done: Some((id, 3)), span: Some(Span { after: Some((id, 7)), ..span }), ..Cursor::at(5) },
    ] {
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
    }
    for text in
        ["", "x", "-5", "5.", "5.x.1", &format!("5.{id}"), &format!("5.{id}.x"), "5~", "5~6~7", "9999999999999999"]
    {
        assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
    }
}
