//! How often something may happen: a bucket of permits that refills with time, empty in a flood. Pure: the time is a
//! parameter. Tells callers apart in no way.

#[cfg(test)]
mod tests;

/// A token bucket.
#[derive(Debug)]
pub struct Bucket {
    per_second: i64,
    /// The most permits that wait, in thousandths.
    burst_milli: i64,
    left_milli: i64,
    filled_at_ms: i64,
}

impl Bucket {
    /// A full bucket of `burst` permits that gains `per_second` permits a second, at least one of each.
    pub fn new(per_second: u32, burst: u32, now_ms: i64) -> Bucket {
        let burst_milli = i64::from(burst.max(1)) * 1_000;
        Bucket { per_second: i64::from(per_second.max(1)), burst_milli, left_milli: burst_milli, filled_at_ms: now_ms }
    }

    /// Takes a permit. Errors: there is none; the next one comes after so many milliseconds.
    pub fn take(&mut self, now_ms: i64) -> Result<(), i64> {
        // A clock that was set back gives nothing and takes nothing.
        let passed_ms = now_ms.saturating_sub(self.filled_at_ms).max(0);
        self.filled_at_ms = now_ms;
        let gained_milli = passed_ms.saturating_mul(self.per_second);
        self.left_milli = self.left_milli.saturating_add(gained_milli).min(self.burst_milli);
        if self.left_milli < 1_000 {
            let missing_milli = 1_000 - self.left_milli;
            return Err((missing_milli + self.per_second - 1) / self.per_second);
        }
        self.left_milli -= 1_000;
        Ok(())
    }
}
