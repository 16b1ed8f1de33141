//! Several processes on one file, each with a writer of its own: nobody starves, every row stays the fold of its events.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::TempFile;
use crate::store::conformance::Ground as _;

/// No writer waits longer for another.
const PROMISED_WAIT: Duration = Duration::from_millis(100);

/// A wait for the lock or a hold of it, as the writer tells of it at its end.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    writer: ThreadId,
    held: bool,
    from: Instant,
    to: Instant,
    /// So long of it the writer was ready to run and had no processor.
    unscheduled: Duration,
}

/// What the writers of this process tell.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Stretch>>>);

#[derive(Default)]
struct Numbers(HashMap<&'static str, u64>);

impl Visit for Numbers {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut numbers = Numbers::default();
        event.record(&mut numbers);
        let (writer, to) = (std::thread::current().id(), Instant::now());
        for (name, held) in [("waited_us", false), ("held_us", true)] {
            if let (Some(length), Some(unscheduled)) = (numbers.0.get(name), numbers.0.get("unscheduled_us")) {
                let (length, unscheduled) = (Duration::from_micros(*length), Duration::from_micros(*unscheduled));
                let from = to.checked_sub(length).unwrap_or(to);
                self.0.lock().unwrap().push(Stretch { writer, held, from, to, unscheduled });
            }
        }
    }
}

impl Stretch {
    fn overlap(&self, other: &Stretch) -> Duration {
        self.to.min(other.to).saturating_duration_since(self.from.max(other.from))
    }
}

/// How long each wait was for others, and how often the one that went first most did so meanwhile. Time in which the
/// writer itself, or who had the lock, was ready and had no processor is nobody's fault here.
fn waits(told: &[Stretch]) -> Vec<(Duration, usize)> {
    let waits = told.iter().filter(|stretch| !stretch.held);
    waits
        .map(|wait| {
            let others = told.iter().filter(|hold| hold.held && hold.writer != wait.writer);
            let mut idle = wait.unscheduled;
            let mut turns: HashMap<ThreadId, usize> = HashMap::new();
            for hold in others.filter(|hold| !hold.overlap(wait).is_zero()) {
                idle += hold.unscheduled.min(hold.overlap(wait));
                *turns.entry(hold.writer).or_default() += usize::from(hold.from >= wait.from);
            }
            ((wait.to - wait.from).saturating_sub(idle), turns.into_values().max().unwrap_or(0))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn four_writers_take_turns() {
    const CALLS: usize = 60;
    let told = Told::default();
    // Where another test of this process has a subscriber already, nothing is told, and only the rows are checked.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(told.clone()));
    let file = TempFile::new();
    let mut first = file.scene().await;
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let mut scene = first.another(&file).await.unwrap();
        tasks.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            for n in 0..CALLS {
                let mut submit = scene.call(&format!("{{\"writer\":{writer},\"n\":{n}}}"));
                submit.submission.lease = Some(scene.lease_request());
                let id = scene.new_execution(submit).await.unwrap().id();
                scene.complete(id, 1, "1").await.unwrap();
                ids.push(id);
            }
            ids
        }));
    }
    for task in tasks {
        for id in task.await.unwrap() {
            first.check_row(id).await.unwrap();
        }
    }
    let waits = waits(&told.0.lock().unwrap());
    let (longest, most) = (waits.iter().map(|wait| wait.0).max(), waits.iter().map(|wait| wait.1).max());
    eprintln!("{} waits for others, the longest {longest:?}; one went first {most:?} times at most", waits.len());
    assert!(longest.is_none_or(|longest| longest <= PROMISED_WAIT), "{longest:?}");
    let store = file.open().await.unwrap();
    assert_eq!(store.totals().await.unwrap()[&crate::model::execution::State::Completed], 4 * CALLS as u64);
}
