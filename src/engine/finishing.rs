//! A future that is finished even when whoever polls it leaves: a caller that disconnects in the middle of a write must
//! not leave a lease behind that nobody works on, or a row that changed and nobody who was told. Does not make a future
//! run by itself while it is polled: a call that is not interrupted pays no hop to another task.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::task::TaskTracker;

#[cfg(test)]
mod tests;

/// See the module.
pub struct Finishing<T: Send + 'static> {
    rest: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    tasks: TaskTracker,
}

impl<T: Send + 'static> Finishing<T> {
    /// Finishes `future` on a task of `tasks` when it is dropped before its end.
    pub fn new(future: impl Future<Output = T> + Send + 'static, tasks: &TaskTracker) -> Finishing<T> {
        Finishing { rest: Some(Box::pin(future)), tasks: tasks.clone() }
    }
}

impl<T: Send + 'static> Future for Finishing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Polled after its end: pending, as a fused future.
        let Some(rest) = &mut self.rest else { return Poll::Pending };
        let polled = rest.as_mut().poll(context);
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Finishing<T> {
    fn drop(&mut self) {
        // Without a runtime the process is ending, and its next start settles what is left.
        if let (Some(rest), Ok(runtime)) = (self.rest.take(), tokio::runtime::Handle::try_current()) {
            self.tasks.spawn_on(rest, &runtime);
        }
    }
}
