//! The worker loop against a real store: executors that do what a test says, when it says so.

mod asking;
mod neighbours;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::Worker;
use super::executor::{Executor, Job, Outcome, Report};
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::engine::tests::faulty::Faulty;
use crate::engine::tests::rig::{
    Rig, UPSTREAM, at_least_once, at_once, call, count, events, head, names, order, rejected, result, soon,
};
use crate::engine::waiters::Progress;
use crate::engine::{Engine, Error, Settings};
use crate::model::event::Event;
use crate::model::execution::{Effect, State};
use crate::model::policy::{Policy, Timeouts};
use crate::store::Store;

/// What a test makes a running tool do.
enum Act {
    Progress,
    End(Outcome),
    Panic,
}

/// A tool that runs, in the test's hands.
struct Run {
    job: Job,
    act: mpsc::UnboundedSender<Act>,
}

impl Run {
    fn end(&self, text: &str) {
        self.act(Act::End(Outcome::Result(result(text))));
    }

    fn act(&self, act: Act) {
        assert!(self.act.send(act).is_ok(), "the tool runs");
    }
}

/// Runs tools as the test says. One that is stubborn does not hear that it should stop.
struct Stage {
    runs: mpsc::UnboundedSender<Run>,
    stubborn: bool,
}

#[async_trait]
impl Executor for Stage {
    async fn run(&self, job: Job, report: Report<'_>) -> Outcome {
        let (act, mut acts) = mpsc::unbounded_channel();
        let cancel = job.cancel.clone();
        assert!(self.runs.send(Run { job, act }).is_ok(), "the test goes on");
        loop {
            tokio::select! {
                act = acts.recv() => match act {
                    Some(Act::Progress) => report(Progress { progress: 1.0, total: None, message: None }),
                    Some(Act::End(outcome)) => return outcome,
                    Some(Act::Panic) => panic!("a test wants it"),
                    None => std::future::pending().await,
                },
                () = cancel.cancelled(), if !self.stubborn => return Outcome::lost("stopped", "told to stop"),
            }
        }
    }
}

struct Scene {
    rig: Rig,
    engine: Arc<Engine>,
    store: Arc<Faulty>,
    runs: mpsc::UnboundedReceiver<Run>,
}

impl Scene {
    async fn new(limits: UpstreamLimits) -> Scene {
        Scene::with(limits, false).await
    }

    async fn stubborn(limits: UpstreamLimits) -> Scene {
        Scene::with(limits, true).await
    }

    async fn with(limits: UpstreamLimits, stubborn: bool) -> Scene {
        // Nothing is found by polling: what a test waits for has to be announced.
        let settings = Settings { worker_poll_ms: 3_600_000, stop_grace_ms: 50, ..Settings::default() };
        let rig = Rig::new();
        let store = Faulty::around(rig.store().await);
        let engine = rig.bare_engine(store.clone(), settings, Some(limits)).await;
        let (sender, runs) = mpsc::unbounded_channel();
        let executor: Arc<dyn Executor> = Arc::new(Stage { runs: sender, stubborn });
        Worker::new(engine.clone(), HashMap::from([(UPSTREAM.to_owned(), executor)])).start();
        Scene { rig, engine, store, runs }
    }

    async fn submit(&self, call: Call) -> crate::engine::ticket::Ticket {
        self.engine.submit(call).await.unwrap()
    }

    async fn run(&mut self) -> Run {
        soon(self.runs.recv()).await.unwrap()
    }

    /// The one slot is free again when the next call runs.
    async fn works_on(&mut self) {
        let mut ticket = self.submit(call(Policy::default())).await;
        self.run().await.end("next");
        assert_eq!(soon(ticket.end()).await.payload, Some(result("next")));
    }
}

fn timeouts(timeouts: Timeouts) -> Policy {
    Policy { timeouts, ..Policy::default() }
}

#[tokio::test]
async fn whatever_becomes_of_a_call_its_slot_is_free_again() {
    let mut scene = Scene::new(at_once(1)).await;
    let acts = [
        (Act::End(Outcome::Result(result("ok"))), State::Completed),
        (Act::End(Outcome::RpcError(r#"{"code":-32602,"message":"no"}"#.into())), State::Failed),
        (Act::End(Outcome::lost("child_died", "the child died")), State::Unknown),
        (Act::Panic, State::Unknown),
    ];
    for (act, state) in acts {
        let mut ticket = scene.submit(call(Policy::default())).await;
        scene.run().await.act(act);
        assert_eq!(soon(ticket.end()).await.head.state, state);
        scene.works_on().await;
    }
}

#[tokio::test]
async fn an_executor_that_panics_loses_its_call_and_nothing_else() {
    let mut scene = Scene::new(at_once(2)).await;
    let mut healthy = scene.submit(call(Policy::default())).await;
    let running = scene.run().await;
    let mut broken = scene.submit(call(Policy::default())).await;
    scene.run().await.act(Act::Panic);
    let end = soon(broken.end()).await;
    assert_eq!(end.head.error.as_ref().unwrap().code, "executor_panicked");
    running.end("fine");
    assert_eq!(soon(healthy.end()).await.payload, Some(result("fine")));
}

#[tokio::test]
async fn waiting_calls_run_in_their_order_as_slots_become_free() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut tickets = Vec::new();
    for _ in 0..5 {
        tickets.push(scene.submit(call(Policy::default())).await);
        scene.rig.time.advance(1);
    }
    for ticket in &mut tickets {
        let run = scene.run().await;
        assert_eq!(run.job.id, ticket.id());
        run.end("done");
        soon(ticket.end()).await;
    }
}

#[tokio::test]
async fn a_retried_call_runs_when_a_slot_becomes_free_although_nobody_waits_in_the_queue() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut retried = scene.submit(call(at_least_once())).await;
    scene.run().await.act(Act::End(Outcome::lost("child_died", "the child died")));
    soon(async {
        while head(&scene.engine, retried.id()).await.state != State::Scheduled {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut other = scene.submit(call(Policy::default())).await;
    let running = scene.run().await;
    scene.rig.time.advance(5_000);
    scene.engine.settle_due().await.unwrap();
    running.end("other");
    soon(other.end()).await;
    let run = scene.run().await;
    assert_eq!((run.job.id, run.job.attempt, run.job.fencing_token), (retried.id(), 2, 2));
    assert_eq!(run.job.effect_key, retried.id());
    run.end("second");
    assert_eq!(soon(retried.end()).await.payload, Some(result("second")));
}

/// Case A44: limit 2, queue 5, 20 calls at once: 2 at once, 7 served, 13 refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_burst_is_served_as_far_as_slots_and_queue_reach() {
    let limits = UpstreamLimits { concurrency: 2, queue: 5, ..UpstreamLimits::default() };
    let mut scene = Scene::new(limits).await;
    let callers = (0..20).map(|_| {
        let engine = scene.engine.clone();
        tokio::spawn(async move { engine.submit(call(Policy::default())).await })
    });
    let mut served = Vec::new();
    let mut refused = 0;
    for outcome in futures_util::future::join_all(callers).await {
        match outcome.unwrap() {
            Ok(ticket) => served.push(ticket),
            Err(Error::Overloaded(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((served.len(), refused), (7, 13));
    let mut running = vec![scene.run().await, scene.run().await];
    for left in (0..5).rev() {
        assert!(scene.runs.try_recv().is_err(), "two at once, {left} more wait");
        running.pop().unwrap().end("done");
        running.push(scene.run().await);
    }
    running.iter().for_each(|run| run.end("done"));
    for mut ticket in served {
        assert_eq!(soon(ticket.end()).await.head.state, State::Completed);
    }
}

#[tokio::test]
async fn each_time_limit_has_its_code() {
    let mut scene = Scene::new(at_once(1)).await;
    let limits = [
        (Timeouts { attempt_ms: 20, ..Timeouts::default() }, "attempt_timeout"),
        (Timeouts { total_ms: 20, ..Timeouts::default() }, "total_timeout"),
        (Timeouts { idle_ms: Some(20), ..Timeouts::default() }, "idle_timeout"),
    ];
    for (limit, code) in limits {
        let mut ticket = scene.submit(call(timeouts(limit))).await;
        let run = scene.run().await;
        let end = soon(ticket.end()).await;
        assert_eq!((end.head.state, end.head.error.as_ref().unwrap().code.as_str()), (State::Unknown, code));
        assert!(run.job.cancel.is_cancelled(), "the tool is told");
        scene.works_on().await;
    }
}

#[tokio::test]
async fn progress_puts_the_idle_limit_off_but_not_the_attempts() {
    let mut scene = Scene::new(at_once(1)).await;
    let limit = Timeouts { idle_ms: Some(400), attempt_ms: 1_200, ..Timeouts::default() };
    let mut ticket = scene.submit(call(timeouts(limit))).await;
    let run = scene.run().await;
    let mut beat = tokio::time::interval(Duration::from_millis(50));
    let end = loop {
        tokio::select! {
            end = ticket.end() => break end,
            _ = beat.tick() => drop(run.act.send(Act::Progress)),
        }
    };
    assert_eq!(end.head.error.as_ref().unwrap().code, "attempt_timeout");
}

#[tokio::test]
async fn a_lost_attempt_is_run_again_where_that_is_permitted() {
    let mut scene = Scene::new(at_once(1)).await;
    let limit = Timeouts { attempt_ms: 20, ..Timeouts::default() };
    let ticket = scene.submit(call(Policy { timeouts: limit, ..at_least_once() })).await;
    scene.run().await;
    soon(async {
        while head(&scene.engine, ticket.id()).await.state != State::Scheduled {
            tokio::task::yield_now().await;
        }
    })
    .await;
    scene.rig.time.advance(5_000);
    scene.engine.settle_due().await.unwrap();
    assert_eq!(scene.run().await.job.attempt, 2);
}

#[tokio::test]
async fn an_error_in_answer_to_our_own_stop_is_not_the_tools_answer() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let limit = Timeouts { attempt_ms: 20, ..Timeouts::default() };
    let mut ticket = scene.submit(call(timeouts(limit))).await;
    let run = scene.run().await;
    soon(run.job.cancel.cancelled()).await;
    run.act(Act::End(Outcome::RpcError(r#"{"code":0,"message":"Request cancelled"}"#.into())));
    let end = soon(ticket.end()).await;
    let code = end.head.error.as_ref().unwrap().code.as_str();
    assert_eq!((end.head.state, code), (State::Unknown, "attempt_timeout"));
}

#[tokio::test]
async fn a_result_that_comes_while_the_tool_is_told_to_stop_counts_when_time_ran_out() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let limit = Timeouts { attempt_ms: 20, ..Timeouts::default() };
    let mut ticket = scene.submit(call(timeouts(limit))).await;
    let run = scene.run().await;
    soon(run.job.cancel.cancelled()).await;
    run.end("just in time");
    assert_eq!(soon(ticket.end()).await.payload, Some(result("just in time")));
}

#[tokio::test]
async fn a_cancel_reaches_the_tool_and_frees_the_slot() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut ticket = scene.submit(call(Policy::default())).await;
    let run = scene.run().await;
    scene.engine.cancel(ticket.id(), order()).await.unwrap();
    soon(run.job.cancel.cancelled()).await;
    let end = soon(ticket.end()).await;
    assert_eq!((end.head.state, end.head.effect), (State::Cancelled, Some(Effect::Unknown)));
    scene.works_on().await;
    assert_eq!(names(&scene.engine, ticket.id()).await, ["submitted", "leased", "cancelled"]);
}

#[tokio::test]
async fn a_cancelled_tool_that_does_not_hear_it_keeps_its_slot_for_the_grace_only() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let ticket = scene.submit(call(Policy::default())).await;
    let _run = scene.run().await;
    scene.engine.cancel(ticket.id(), order()).await.unwrap();
    scene.works_on().await;
}

#[tokio::test]
async fn a_result_after_the_cancel_is_noted_and_changes_nothing() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let mut ticket = scene.submit(call(Policy::default())).await;
    let run = scene.run().await;
    scene.engine.cancel(ticket.id(), order()).await.unwrap();
    soon(run.job.cancel.cancelled()).await;
    run.end("too late");
    scene.works_on().await;
    assert_eq!(rejected(&scene.engine, ticket.id()).await.as_deref(), Some("ended"));
    let end = soon(ticket.end()).await;
    assert_eq!((end.head.state, end.payload), (State::Cancelled, None));
}

#[tokio::test]
async fn a_result_is_offered_until_the_store_takes_it_and_recorded_once() {
    let mut scene = Scene::new(at_once(1)).await;
    let mut ticket = scene.submit(call(at_least_once())).await;
    let run = scene.run().await;
    scene.store.fail("apply", 2);
    run.end("kept");
    assert_eq!(soon(ticket.end()).await.payload, Some(result("kept")));
    assert_eq!(scene.store.faults_left("apply"), 0);
    assert_eq!(names(&scene.engine, ticket.id()).await, ["submitted", "leased", "completed"]);
    scene.works_on().await;
}

#[tokio::test]
async fn work_is_found_again_after_the_store_failed() {
    let mut scene = Scene::new(at_once(1)).await;
    let _running = scene.submit(call(Policy::default())).await;
    let run = scene.run().await;
    let waiting = scene.submit(call(Policy::default())).await;
    scene.store.fail("candidates", 1);
    scene.store.fail("payload", 1);
    run.end("done");
    let next = scene.run().await;
    assert_eq!(next.job.id, waiting.id());
    assert_eq!(count(&scene.engine, waiting.id(), "leased").await, 1);
}

#[tokio::test]
async fn a_result_larger_than_the_limit_is_replaced_by_a_notice() {
    let rig = Rig::new();
    let store: Arc<dyn Store> = rig.store().await;
    let settings = Settings { result_bytes_max: 100, ..Settings::default() };
    let engine = rig.bare_engine(store, settings, Some(at_once(1))).await;
    let (sender, mut runs) = mpsc::unbounded_channel();
    let executor: Arc<dyn Executor> = Arc::new(Stage { runs: sender, stubborn: false });
    Worker::new(engine.clone(), HashMap::from([(UPSTREAM.to_owned(), executor)])).start();
    let mut ticket = engine.submit(call(Policy::default())).await.unwrap();
    soon(runs.recv()).await.unwrap().end(&"x".repeat(200));
    let end = soon(ticket.end()).await;
    assert!(end.head.is_error);
    assert!(end.payload.unwrap().contains("more than the limit of 100 bytes"));
}

#[tokio::test]
async fn what_this_process_can_not_run_is_given_back_and_not_leased_again() {
    let rig = Rig::new();
    let settings = Settings { worker_poll_ms: 1, ..Settings::default() };
    let engine = rig.bare_engine(rig.store().await, settings, Some(at_once(1))).await;
    Worker::new(engine.clone(), HashMap::new()).start();
    let ticket = engine.submit(call(Policy::default())).await.unwrap();
    soon(async {
        while count(&engine, ticket.id(), "released").await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    engine.heartbeat().await.unwrap();
    assert_eq!(names(&engine, ticket.id()).await, ["submitted", "leased", "released"]);
}

#[tokio::test]
async fn closing_records_what_it_had_to_stop() {
    let mut scene = Scene::new(at_once(3)).await;
    let (other, _) = scene.rig.engine(at_once(1)).await;
    let once = scene.submit(call(Policy::default())).await;
    let _first = scene.run().await;
    let again = scene.submit(call(at_least_once())).await;
    let _second = scene.run().await;
    soon(scene.engine.close(Duration::ZERO)).await;
    for (id, state) in [(once.id(), State::Unknown), (again.id(), State::Scheduled)] {
        let row = head(&other, id).await;
        assert_eq!((row.state, row.error.unwrap().code.as_str()), (state, "worker_stopped"));
    }
}

#[tokio::test]
async fn closing_lets_what_runs_end_within_its_grace() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let (other, _) = scene.rig.engine(at_once(1)).await;
    let ticket = scene.submit(call(Policy::default())).await;
    let run = scene.run().await;
    let engine = scene.engine.clone();
    let closing = tokio::spawn(async move { engine.close(Duration::from_secs(15)).await });
    soon(scene.engine.draining().cancelled()).await;
    assert!(!run.job.cancel.is_cancelled());
    run.end("done");
    soon(closing).await.unwrap();
    assert_eq!(head(&other, ticket.id()).await.state, State::Completed);
}

#[tokio::test]
async fn a_tool_that_answers_not_started_when_told_to_stop_may_run_again() {
    let mut scene = Scene::stubborn(at_once(1)).await;
    let (other, _) = scene.rig.engine(at_once(1)).await;
    let ticket = scene.submit(call(Policy::default())).await;
    let run = scene.run().await;
    let engine = scene.engine.clone();
    let closing = tokio::spawn(async move { engine.close(Duration::ZERO).await });
    soon(run.job.cancel.cancelled()).await;
    run.act(Act::End(Outcome::not_started("handshake", "the handshake was not done")));
    soon(closing).await.unwrap();
    let log = events(&other, ticket.id()).await;
    assert!(matches!(log.last().unwrap().event, Event::Retried { ran: false, .. }));
}
