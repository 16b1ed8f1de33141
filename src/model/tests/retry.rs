//! The back-off, and which delivery a tool gets.

use proptest::prelude::*;

use super::*;
use crate::model::policy::{DeliverySource, Hints, effective_delivery};
use crate::model::retry::RetryPolicy;

#[test]
fn without_jitter_the_wait_doubles_up_to_the_cap() {
    let policy = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
    let waits_ms: Vec<i64> = (1..=9).map(|attempt| policy.delay_ms(execution_id(1), attempt)).collect();
    assert_eq!(waits_ms, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
}

#[test]
fn the_jitter_depends_on_id_and_attempt_only() {
    let policy = RetryPolicy::default();
    let waits_ms = |number| (1..=5).map(|attempt| policy.delay_ms(execution_id(number), attempt)).collect::<Vec<_>>();
    assert_eq!(waits_ms(1), waits_ms(1));
    assert_ne!(waits_ms(1), waits_ms(2));
    let distinct: std::collections::BTreeSet<i64> = (0..100).map(|n| policy.delay_ms(execution_id(n), 1)).collect();
    assert!(distinct.len() > 50, "the waits of many executions are spread: {}", distinct.len());
}

#[test]
fn a_wait_is_within_its_bounds() {
    let policies = (0i64..100_000, 1.0f64..10.0, 0i64..1_000_000, 0.0f64..=1.0);
    holds(2_000, (policies, any::<[u8; 10]>(), 1u32..40), |((initial, coefficient, max, jitter), entropy, attempt)| {
        let policy = RetryPolicy {
            initial_interval_ms: initial,
            backoff_coefficient: coefficient,
            max_interval_ms: max,
            jitter,
            ..RetryPolicy::default()
        };
        let wait_ms = policy.delay_ms(ExecutionId::new(START_MS, &entropy), attempt);
        let plain = (initial as f64 * coefficient.powi(attempt as i32 - 1)).min(max as f64);
        let least_ms = (plain * (1.0 - jitter)).floor() as i64;
        let most_ms = (plain * (1.0 + jitter)).ceil().min(max as f64) as i64;
        assert!((least_ms..=most_ms).contains(&wait_ms), "{wait_ms} not in {least_ms}..={most_ms}");
    });
}

#[test]
fn no_policy_makes_a_wait_negative_or_panics() {
    let policies = (any::<i64>(), any::<f64>(), any::<i64>(), any::<f64>());
    holds(2_000, (policies, any::<u32>()), |((initial, coefficient, max, jitter), attempt)| {
        let policy = RetryPolicy {
            initial_interval_ms: initial,
            backoff_coefficient: coefficient,
            max_interval_ms: max,
            jitter,
            ..RetryPolicy::default()
        };
        let wait_ms = policy.delay_ms(execution_id(1), attempt);
        assert!(wait_ms >= 0 && wait_ms <= max.max(0), "{wait_ms}");
    });
    let extreme = RetryPolicy { initial_interval_ms: 0, backoff_coefficient: f64::MAX, ..RetryPolicy::default() };
    assert_eq!(extreme.delay_ms(execution_id(1), u32::MAX), 0, "no wait stays no wait");
}

#[test]
fn the_operators_word_on_delivery_comes_before_the_tools() {
    use Delivery::{AtLeastOnce, AtMostOnce};
    let hints = |read_only, idempotent| Hints { read_only, idempotent };
    for (configured, hints, expect) in [
        (None, hints(false, false), (AtMostOnce, DeliverySource::Default)),
        (None, hints(false, true), (AtLeastOnce, DeliverySource::IdempotentHint)),
        (None, hints(true, false), (AtLeastOnce, DeliverySource::ReadOnlyHint)),
        (None, hints(true, true), (AtLeastOnce, DeliverySource::ReadOnlyHint)),
        (Some(AtMostOnce), hints(true, true), (AtMostOnce, DeliverySource::Config)),
        (Some(AtLeastOnce), hints(false, false), (AtLeastOnce, DeliverySource::Config)),
    ] {
        assert_eq!(effective_delivery(configured, None, hints), expect);
    }
}
