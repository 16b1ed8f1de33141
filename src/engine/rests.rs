//! Rests of work that can wait, such as deleting what is old and counting what is over: each is as long as the share of the
//! time that the work may take asks for. Does no work itself.

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::clock::Clock;
use crate::store::counting::Pace;

/// Rests after each piece of work, by a clock; not at all once `stop` says so.
pub struct Rests<'a> {
    clock: &'a Clock,
    stop: &'a CancellationToken,
    share: i64,
    begun_ms: i64,
}

impl<'a> Rests<'a> {
    /// Begins to work now. `share`: the part of the time that work may take, in percent, 1 to 100.
    pub fn begin(clock: &'a Clock, stop: &'a CancellationToken, share: u32) -> Rests<'a> {
        Rests { clock, stop, share: i64::from(share.clamp(1, 100)), begun_ms: clock.now_ms() }
    }
}

#[async_trait]
impl Pace for Rests<'_> {
    async fn rest(&mut self) {
        let now_ms = self.clock.now_ms();
        let worked_ms = now_ms.saturating_sub(self.begun_ms).max(0);
        let rest_ms = worked_ms.saturating_mul(100 - self.share) / self.share;
        // Stopped or rested: whoever works looks at `stop` itself.
        let rested = self.clock.sleep_until(now_ms.saturating_add(rest_ms));
        let _ = self.stop.run_until_cancelled(rested).await;
        self.begun_ms = self.clock.now_ms();
    }
}
