//! Who goes first among the writers of several processes, with the time as a parameter.

use std::time::{Duration, Instant};

use crate::store::sqlite::turns::Turns;

const LONG: Duration = Duration::from_millis(20);

struct Queue {
    _folder: tempfile::TempDir,
    writers: Vec<Turns>,
}

fn queue(writers: usize) -> Queue {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    Queue { writers: (0..writers).map(|_| Turns::beside(&path).unwrap()).collect(), _folder: folder }
}

#[test]
fn who_waits_longer_goes_first_and_who_comes_anew_waits_for_all() {
    let Queue { writers, _folder } = &mut queue(4);
    let now = Instant::now();
    assert!(!writers[3].is_preceded(now), "nobody waits");
    for at in [2, 0, 1] {
        writers[at].arrive();
        // A second time is no second number.
        writers[at].arrive();
    }
    let preceded =
        |writers: &mut Vec<Turns>| writers.iter_mut().map(|writer| writer.is_preceded(now)).collect::<Vec<_>>();
    assert_eq!(preceded(writers), [true, true, false, true]);
    writers[2].leave();
    assert_eq!(preceded(writers), [false, true, true, true]);
    // The one that had its turn comes after those that waited.
    writers[2].arrive();
    writers[0].leave();
    assert_eq!(preceded(writers), [true, false, true, true]);
    drop(writers.remove(1));
    assert_eq!(preceded(writers), [true, false, true]);
}

#[test]
fn who_is_not_heard_of_is_passed_over_until_it_is_back() {
    let Queue { writers, _folder } = &mut queue(2);
    let mut now = Instant::now();
    writers[0].arrive();
    writers[1].arrive();
    assert!(writers[1].is_preceded(now));
    now += LONG;
    assert!(!writers[1].is_preceded(now), "stopped, or not run");
    assert!(!writers[0].is_preceded(now), "its own place is still the first");
    assert!(writers[1].is_preceded(now), "it is back");
    for _ in 0..10 {
        now += LONG / 20;
        assert!(!writers[0].is_preceded(now));
        assert!(writers[1].is_preceded(now), "as long as it gives signs of life");
    }
}

#[test]
fn more_writers_than_places_and_a_file_that_is_gone_cost_fairness_only() {
    let Queue { writers, _folder } = &mut queue(100);
    writers.iter_mut().for_each(Turns::arrive);
    let now = Instant::now();
    let first = writers.iter_mut().filter_map(|writer| (!writer.is_preceded(now)).then_some(())).count();
    assert!(first >= 1, "somebody may always go");
    writers.iter_mut().for_each(Turns::leave);
    assert!(writers.iter_mut().all(|writer| !writer.is_preceded(now + LONG)));
    assert!(Turns::beside(std::path::Path::new("/no/such/folder/store.db")).is_none());
}

#[test]
fn a_file_with_nonsense_in_it_costs_fairness_only() {
    let Queue { writers, _folder: folder } = &mut queue(2);
    std::fs::write(folder.path().join("store.db.turns"), [0xff; 64 * 24]).unwrap();
    let now = Instant::now();
    writers.iter_mut().for_each(Turns::arrive);
    assert!(writers.iter_mut().any(|writer| !writer.is_preceded(now)), "somebody may always go");
    writers.iter_mut().for_each(Turns::leave);
    assert!(!writers.iter_mut().any(|writer| writer.is_preceded(now) && writer.is_preceded(now + LONG)));
}
