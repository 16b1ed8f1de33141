//! A clock that follows the store's, whatever the machine's shows.

use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::ready;

use super::*;

/// A store whose clock shows what `now` says.
fn tells(
    now: impl Fn() -> store::Result<Option<i64>> + Send + Sync,
) -> impl Fn() -> BoxFuture<'static, store::Result<Option<i64>>> + Send + Sync {
    move || ready(now()).boxed()
}

const HOUR_MS: i64 = 3_600_000;

#[tokio::test]
async fn a_store_without_a_clock_leaves_the_machines() {
    let clock = Clock::aligned(&tells(|| Ok(None))).await.unwrap();
    assert!(matches!(clock, Clock::System));
}

#[tokio::test]
async fn a_clock_follows_the_stores_and_says_how_far_the_machines_is_off() {
    for off_ms in [HOUR_MS, -HOUR_MS] {
        let store_ms = move || system_ms() - off_ms;
        let clock = Clock::aligned(&tells(move || Ok(Some(store_ms())))).await.unwrap();
        assert!((clock.now_ms() - store_ms()).abs() <= 500, "{} against {}", clock.now_ms(), store_ms());
        let Clock::Aligned(aligned) = &clock else { panic!("{clock:?}") };
        // It was said at the start, and is not said again until it changes.
        assert_eq!(aligned.compare(system_ms()), None);
        let said = aligned.compare(system_ms() + 10 * off_ms).unwrap();
        let words = if off_ms > 0 { "ahead" } else { "behind" };
        assert!(said.contains(words) && said.contains("ms"), "{said}");
        assert_eq!(aligned.compare(clock.now_ms()), None, "agreement is no warning");
        assert_eq!(aligned.heard().said_ms, 0);
    }
}

#[tokio::test]
async fn the_median_of_what_was_heard_counts_and_one_wrong_node_changes_nothing() {
    let asked = AtomicI64::new(0);
    let ask = tells(|| {
        let wrong = asked.fetch_add(1, Ordering::SeqCst) % 3 == 0;
        Ok(Some(system_ms() + if wrong { HOUR_MS } else { 0 }))
    });
    let clock = Clock::aligned(&ask).await.unwrap();
    for _ in 0..4 {
        clock.align(&ask).await.unwrap();
        assert!((clock.now_ms() - system_ms()).abs() <= 500, "{}", clock.now_ms() - system_ms());
    }
}

#[tokio::test]
async fn small_corrections_never_turn_the_clock_back_and_large_ones_are_made() {
    let ahead_ms = AtomicI64::new(800);
    let ask = tells(|| Ok(Some(system_ms() + ahead_ms.load(Ordering::SeqCst))));
    let clock = Clock::aligned(&ask).await.unwrap();
    let before_ms = clock.now_ms();
    ahead_ms.store(0, Ordering::SeqCst);
    for _ in 0..3 {
        clock.align(&ask).await.unwrap();
    }
    let Clock::Aligned(aligned) = &clock else { panic!("{clock:?}") };
    assert!(aligned.begun_ms.load(Ordering::SeqCst) + aligned.steady_ms() < before_ms + 700, "it was corrected");
    assert!(clock.now_ms() >= before_ms);
    ahead_ms.store(-HOUR_MS, Ordering::SeqCst);
    for _ in 0..3 {
        clock.align(&ask).await.unwrap();
    }
    assert!((clock.now_ms() - (system_ms() - HOUR_MS)).abs() <= 500);
}

#[tokio::test]
async fn an_error_of_the_store_is_passed_on_and_leaves_the_clock_as_it_was() {
    let clock = Clock::aligned(&tells(|| Ok(Some(HOUR_MS)))).await.unwrap();
    let down = tells(|| Err(store::Error::Unavailable("down".into())));
    assert!(clock.align(&down).await.is_err());
    assert!((clock.now_ms() - HOUR_MS).abs() < HOUR_MS / 2);
    assert!(Clock::aligned(&down).await.is_err());
}
