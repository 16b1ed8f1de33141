//! Tests of the module above.

use super::Bucket;

#[test]
fn a_burst_is_let_through_and_the_rest_waits() {
    let mut bucket = Bucket::new(10, 3, 0);
    assert_eq!([bucket.take(0), bucket.take(0), bucket.take(0)], [Ok(()); 3]);
    assert_eq!(bucket.take(0), Err(100));
    assert_eq!(bucket.take(40), Err(60));
    assert_eq!(bucket.take(100), Ok(()));
    assert_eq!(bucket.take(100), Err(100));
}

#[test]
fn a_pause_fills_the_bucket_and_no_more() {
    let mut bucket = Bucket::new(1_000, 2, 0);
    for _ in 0..2 {
        assert_eq!(bucket.take(0), Ok(()));
    }
    let after_an_age = i64::MAX;
    assert_eq!([bucket.take(after_an_age), bucket.take(after_an_age)], [Ok(()); 2]);
    assert_eq!(bucket.take(after_an_age), Err(1));
}

#[test]
fn a_clock_that_is_set_back_neither_gives_nor_takes() {
    let mut bucket = Bucket::new(10, 1, 10_000);
    assert_eq!(bucket.take(10_000), Ok(()));
    assert_eq!(bucket.take(5_000), Err(100));
    assert_eq!(bucket.take(5_100), Ok(()));
}
