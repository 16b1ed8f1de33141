//! The border between what is settled and what may still be written.

use super::*;

#[test]
fn the_oldest_write_on_its_way_is_the_border() {
    let (clock, time) = Clock::manual(1_000);
    let writes = InFlight::default();
    assert_eq!(writes.settled_before(&clock), 1_000);
    let first = writes.begin(&clock);
    let twin = writes.begin(&clock);
    time.advance(5);
    let second = writes.begin(&clock);
    time.advance(5);
    assert_eq!((first.now_ms, second.now_ms), (1_000, 1_005));
    assert_eq!(writes.settled_before(&clock), 1_000);
    drop(first);
    assert_eq!(writes.settled_before(&clock), 1_000, "its twin is still on its way");
    drop(twin);
    assert_eq!(writes.settled_before(&clock), 1_005);
    drop(second);
    assert_eq!(writes.settled_before(&clock), 1_010);
}
