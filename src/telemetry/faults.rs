//! Faults of ours, each under an opaque id: the log has it in full, the client is told the id, and whoever follows faults
//! gets ids and places in our code. A line of the log with a field `fault` is such a fault. A panic's message may hold
//! anything, so it goes to the log of this machine and nowhere else.

use std::cell::RefCell;
use std::sync::Once;

use crate::model::id::ExecutionId;

tokio::task_local! {
    static EXECUTION: ExecutionId;
}

thread_local! {
    /// The id of the panic that is being caught on this thread.
    static PANICKED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The hex digits of an id.
const ID_BYTES: usize = 6;

/// A new opaque id.
pub fn new_id() -> String {
    let mut bytes = [0; ID_BYTES];
    // Without a generator nothing here would be safe; no kernel we run on lacks one.
    getrandom::fill(&mut bytes).expect("the system's random generator works");
    hex::encode(bytes)
}

/// Runs `future` as work for an execution: a panic in it is told with its id.
pub async fn of_execution<F: Future>(id: ExecutionId, future: F) -> F::Output {
    EXECUTION.scope(id, future).await
}

/// The id under which the panic that was just caught on this thread was told.
pub fn caught() -> String {
    PANICKED.with_borrow_mut(Option::take).unwrap_or_else(new_id)
}

/// From now on each panic of the process is told as a fault, once, whoever catches it. What is said of panics besides goes
/// on as before.
pub fn watch_panics() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            let (fault, at) = (new_id(), panic.location().map(|at| format!("{}:{}", at.file(), at.line())));
            let execution = EXECUTION.try_with(ExecutionId::to_string).ok();
            tracing::error!(fault, execution, at, "a panic");
            PANICKED.set(Some(fault));
        }));
    });
}
