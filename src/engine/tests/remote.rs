//! Remote workers: claims that wait and claims that find, what leaves gives back, leases that are lost, workers that fall
//! silent, and which tools are offered.

use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;

use super::faulty::Faulty;
use super::rig::{Rig, START_MS, at_least_once, call, count, events, head, names, order, result, soon};
use crate::engine::catalog::{Service, Tool};
use crate::engine::parking::Parked;
use crate::engine::remote::{
    Ask, Beat, Handed, LeaseStatus, Refused, Registered, Registration, RemoteTool, RemoteWorker, ToolOffers, lane,
    lease_token,
};
use crate::engine::slots::UpstreamLimits;
use crate::engine::submit::Call;
use crate::engine::ticket::Ticket;
use crate::engine::waiters::Progress;
use crate::engine::{Engine, Error, Settings, entropy};
use crate::model::decide::{Failure, FailureKind};
use crate::model::execution::{ErrorInfo, ResultSource, State};
use crate::model::id::ProcessId;
use crate::model::policy::{Policy, Timeouts};
use crate::model::principal::Principal;
use crate::store::LeaseRef;

const TTL_MS: i64 = 30_000;

async fn engine(rig: &Rig) -> Arc<Engine> {
    engine_with(rig, Settings::default()).await
}

async fn engine_with(rig: &Rig, settings: Settings) -> Arc<Engine> {
    rig.bare_engine(rig.store().await, settings, None).await
}

fn registered(name: &str) -> Registered {
    let definition = format!(r#"{{"name":"{name}","inputSchema":{{}}}}"#);
    let definition = RawValue::from_string(definition).unwrap();
    Registered { name: name.into(), definition, delivery: None, timeout_ms: None, max_attempts: None }
}

fn registration(engine: &Engine, tools: &[&str]) -> Registration {
    Registration {
        id: ProcessId::new(engine.clock().now_ms(), &entropy()),
        name: "by-hand".into(),
        slots: 8,
        sdk: None,
        tools: tools.iter().map(|name| registered(name)).collect(),
    }
}

async fn worker(engine: &Arc<Engine>) -> Arc<RemoteWorker> {
    engine.register_worker(&Principal::anonymous(), registration(engine, &["charge"])).await.unwrap()
}

/// A call of the tool of remote workers.
fn charge(policy: Policy) -> Call {
    let tool = Tool {
        redact: Arc::default(),
        exposed: "charge".into(),
        upstream: lane("default", "charge"),
        name: "charge".into(),
        definition: registered("charge").definition,
        has_output_schema: false,
        wants_client: false,
        policy,
        identity: call(Policy::default()).tool.identity,
        service: Service::default(),
    };
    Call { tool: Arc::new(tool), ..call(Policy::default()) }
}

async fn submit(engine: &Arc<Engine>, policy: Policy) -> Ticket {
    engine.submit(charge(policy)).await.unwrap()
}

fn ask(max: usize) -> Ask {
    Ask { tools: None, max, wait_ms: 20_000 }
}

async fn claim(engine: &Arc<Engine>, worker: &Arc<RemoteWorker>, max: usize) -> Handed {
    soon(engine.claim_remote(worker, ask(max))).await.unwrap()
}

/// A claim that waits for calls already.
async fn parked(engine: &Arc<Engine>, worker: &Arc<RemoteWorker>, max: usize) -> tokio::task::JoinHandle<Handed> {
    let (engine, worker, before) = (engine.clone(), worker.clone(), engine.slots().parked_claims());
    let waits = engine.clone();
    let claim = tokio::spawn(async move { engine.claim_remote(&worker, ask(max)).await.unwrap() });
    soon(async {
        while waits.slots().parked_claims() == before {
            tokio::task::yield_now().await;
        }
    })
    .await;
    claim
}

/// The one job of a claim, counted as sent.
async fn job(engine: &Arc<Engine>, worker: &Arc<RemoteWorker>) -> (LeaseRef, String) {
    let handed = claim(engine, worker, 1).await;
    let lease = handed.jobs()[0].lease();
    handed.sent();
    (lease, lease_token(&worker.row.lease_key, lease))
}

fn beat(token: &str) -> Vec<Beat> {
    vec![Beat { token: token.into(), progress: None, checkpoint: None }]
}

async fn status(engine: &Arc<Engine>, worker: &RemoteWorker, token: &str) -> LeaseStatus {
    engine.beat(worker, beat(token)).await.unwrap()[0]
}

fn failure() -> Failure {
    let error = ErrorInfo { code: "no_luck".into(), message: "no luck".into() };
    Failure { kind: FailureKind::Reported { retryable: true }, error, retry_after_ms: Some(1) }
}

#[tokio::test]
async fn a_claim_that_waits_gets_the_call_in_the_write_that_stores_it() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let claim = parked(&engine, &worker, 2).await;
    let ticket = submit(&engine, Policy::default()).await;
    assert_eq!(ticket.head.state, State::Leased);
    assert_eq!(ticket.head.lease.as_ref().unwrap().process, worker.row.id);
    let handed = soon(claim).await.unwrap();
    assert_eq!(handed.jobs()[0].head.id(), ticket.id());
    handed.sent();
    let events = events(&engine, ticket.id()).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].operation, events[1].operation);
}

#[tokio::test]
async fn what_was_not_sent_whole_is_given_back_uncounted() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let claim = parked(&engine, &worker, 1).await;
    let ticket = submit(&engine, Policy::default()).await;
    drop(soon(claim).await.unwrap());
    // The next claim gets it, with the same attempt under a newer lease.
    let (lease, _) = job(&engine, &worker).await;
    assert_eq!((lease.id, lease.fencing_token), (ticket.id(), 2));
    assert_eq!(head(&engine, lease.id).await.attempt, 1);
    assert_eq!(names(&engine, lease.id).await, ["submitted", "leased", "released", "leased"]);
}

#[tokio::test]
async fn a_claim_that_left_is_given_nothing() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let claim = parked(&engine, &worker, 1).await;
    claim.abort();
    assert!(claim.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(engine.slots().parked_claims(), 0);
    let ticket = submit(&engine, Policy::default()).await;
    assert_eq!(ticket.head.state, State::Ready);
    assert_eq!(job(&engine, &worker).await.0.fencing_token, 1);
}

#[tokio::test]
async fn a_claim_takes_what_waits_up_to_its_room_and_leaves_the_rest() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let mut tickets = Vec::new();
    for _ in 0..5 {
        tickets.push(submit(&engine, Policy::default()).await);
        rig.time.advance(1);
    }
    assert!(tickets.iter().all(|ticket| ticket.head.state == State::Ready));
    let first = claim(&engine, &worker, 3).await;
    let second = claim(&engine, &worker, 64).await;
    let taken: Vec<_> = first.jobs().iter().chain(second.jobs()).map(|job| job.head.id()).collect();
    assert_eq!(taken, tickets.iter().map(Ticket::id).collect::<Vec<_>>(), "oldest first");
    assert_eq!(first.jobs().len(), 3);
    assert_eq!(&*first.jobs()[0].arguments, r#"{"text":"hello"}"#);
    first.sent();
    second.sent();
}

#[tokio::test]
async fn a_claim_that_leaves_while_it_looks_takes_nothing_and_ends() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let ticket = submit(&engine, Policy::default()).await;
    let gone = Parked::new((worker.row.name.clone(), worker.row.id), 8);
    gone.leave();
    soon(engine.pull(&worker.lanes(None), &gone)).await.unwrap();
    assert_eq!(job(&engine, &worker).await.0, LeaseRef { id: ticket.id(), fencing_token: 1 });
}

#[tokio::test]
async fn a_call_that_comes_while_a_claim_takes_what_waits_waits_for_nobody() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let lanes = worker.lanes(None);
    submit(&engine, Policy::default()).await;
    let claim = Parked::new((worker.row.name.clone(), worker.row.id), 2);
    engine.slots().park(&lanes, &claim);
    claim.set_admits(true);
    // One waits, so the next one would too; a claim has set out to take the first, so it does not.
    assert_eq!(engine.slots().wanted(&lanes, 1), (lanes.clone(), 1));
    let ticket = submit(&engine, Policy::default()).await;
    assert_eq!(ticket.head.state, State::Leased);
}

#[tokio::test]
async fn calls_go_to_the_claims_that_wait_in_turn() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let (one, two) = (worker(&engine).await, worker(&engine).await);
    let claims = [parked(&engine, &one, 8).await, parked(&engine, &two, 8).await];
    let tickets = [submit(&engine, Policy::default()).await, submit(&engine, Policy::default()).await];
    let holders: Vec<ProcessId> = tickets.iter().map(|ticket| ticket.head.lease.as_ref().unwrap().process).collect();
    assert_eq!(holders, [one.row.id, two.row.id]);
    for claim in claims {
        let handed = soon(claim).await.unwrap();
        assert_eq!(handed.jobs().len(), 1);
        handed.sent();
    }
}

#[tokio::test]
async fn a_call_that_comes_between_two_claims_of_a_busy_worker_needs_no_queue() {
    let rig = Rig::new();
    let mut settings = Settings::default();
    settings.remote.claim_moment_ms = 20_000;
    let engine = engine_with(&rig, settings).await;
    let worker = worker(&engine).await;
    let first = parked(&engine, &worker, 8).await;
    let _running = submit(&engine, Policy::default()).await;
    soon(first).await.unwrap().sent();
    let second = {
        let engine = engine.clone();
        tokio::spawn(async move { submit(&engine, Policy::default()).await })
    };
    let handed = claim(&engine, &worker, 8).await;
    let ticket = soon(second).await.unwrap();
    assert_eq!(handed.jobs()[0].head.id(), ticket.id());
    assert_eq!(names(&engine, ticket.id()).await, ["submitted", "leased"]);
    assert_eq!(ticket.head.state, State::Leased, "in the write that stored it");
    handed.sent();
}

#[tokio::test]
async fn a_queue_that_nobody_serves_has_its_limits() {
    let rig = Rig::new();
    let mut settings = Settings::default();
    settings.remote.queue = UpstreamLimits { queue: 2, queue_timeout_ms: 5_000, ..UpstreamLimits::default() };
    let engine = engine_with(&rig, settings).await;
    let worker = worker(&engine).await;
    let ticket = submit(&engine, Policy::default()).await;
    submit(&engine, Policy::default()).await;
    let refused = engine.submit(charge(Policy::default())).await.err().unwrap();
    assert!(matches!(refused, Error::Overloaded(_)), "{refused}");
    let (lease, _) = job(&engine, &worker).await;
    assert_eq!(lease.id, ticket.id());
    // There is room again, and the one that waits runs out of its time.
    submit(&engine, Policy::default()).await;
    rig.time.advance(5_000);
    engine.settle_due().await.unwrap();
    assert_eq!(engine.slots().waiting(), 0);
}

#[tokio::test]
async fn a_repeated_report_is_the_same_report() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    submit(&engine, at_least_once()).await;
    let (first, _) = job(&engine, &worker).await;
    for _ in 0..2 {
        assert_eq!(engine.release_remote(first).await.unwrap(), State::Ready);
    }
    let (second, _) = job(&engine, &worker).await;
    for _ in 0..2 {
        assert_eq!(engine.fail_remote(second, failure()).await.unwrap(), State::Scheduled);
    }
    rig.time.advance(1);
    engine.settle_due().await.unwrap();
    let (third, _) = job(&engine, &worker).await;
    assert!(!engine.complete_remote(third, result("done"), false).await.unwrap());
    assert!(engine.complete_remote(third, result("done"), false).await.unwrap());
    let names = names(&engine, first.id).await;
    let expected = ["submitted", "leased", "released", "leased", "retried", "promoted", "leased", "completed"];
    assert_eq!(names, expected);
    assert_eq!(third.fencing_token, 3);
}

#[tokio::test]
async fn the_repeat_of_an_error_that_is_retried_ends_nothing() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let mut policy = at_least_once();
    policy.retry.on.tool_error = true;
    submit(&engine, policy).await;
    let (lease, _) = job(&engine, &worker).await;
    for _ in 0..2 {
        assert!(!engine.complete_remote(lease, result("no"), true).await.unwrap());
    }
    assert_eq!(head(&engine, lease.id).await.state, State::Scheduled);
}

#[tokio::test]
async fn a_token_is_good_for_its_worker_and_its_lease_only() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let (one, two) = (worker(&engine).await, worker(&engine).await);
    submit(&engine, Policy::default()).await;
    let (lease, token) = job(&engine, &one).await;
    assert_eq!(engine.lease_of(&one, &token).unwrap(), lease);
    assert!(matches!(engine.lease_of(&two, &token), Err(Refused::LeaseForeign)));
    let (named, mac) = token.rsplit_once('.').unwrap();
    let newer = format!("{}.2.{mac}", lease.id);
    for forged in ["", ".", "..", named, &format!("{named}."), &newer, &format!("{token}A"), &"x".repeat(1_000)] {
        assert!(matches!(engine.lease_of(&one, forged), Err(Refused::LeaseForeign)), "{forged}");
    }
    // Any process of the store can check it.
    let other = engine_with(&rig, Settings::default()).await;
    other.refresh_workers().await.unwrap();
    let same = other.remote_worker(one.row.id, &Principal::anonymous()).await.unwrap();
    assert_eq!(other.lease_of(&same, &token).unwrap(), lease);
}

#[tokio::test]
async fn a_worker_of_another_principal_or_namespace_is_refused() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let bob = Principal { subject: "bob".into(), ..Principal::anonymous() };
    let blue = Principal { namespace: "blue".into(), ..Principal::anonymous() };
    for other in [bob, blue] {
        let refused = engine.remote_worker(worker.row.id, &other).await.unwrap_err();
        assert!(matches!(refused, Refused::WorkerForeign), "{refused}");
        let again = Registration { id: worker.row.id, ..registration(&engine, &["charge"]) };
        let refused = engine.register_worker(&other, again).await.unwrap_err();
        assert!(matches!(refused, Refused::WorkerForeign), "{refused}");
    }
    let nobody = ProcessId::new(0, &entropy());
    let refused = engine.remote_worker(nobody, &Principal::anonymous()).await.unwrap_err();
    assert!(matches!(refused, Refused::WorkerUnknown), "{refused}");
}

#[tokio::test]
async fn heartbeats_keep_a_lease_and_tell_what_became_of_it() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let mut ticket = submit(&engine, at_least_once()).await;
    let (lease, token) = job(&engine, &worker).await;
    for _ in 0..5 {
        rig.time.advance(TTL_MS - 1);
        engine.note_alive(worker.row.id).await;
        assert_eq!(status(&engine, &worker, &token).await, LeaseStatus::Ok);
        engine.settle_due().await.unwrap();
    }
    let progress = Progress { progress: 3.0, total: Some(10.0), message: None };
    let beats = vec![Beat { token: token.clone(), progress: Some(progress.clone()), checkpoint: Some("7".into()) }];
    engine.beat(&worker, beats).await.unwrap();
    assert!(matches!(soon(ticket.news()).await, crate::engine::ticket::News::Progress(told) if told == progress));
    assert_eq!(engine.store().progressed(lease.id).await.unwrap().checkpoint.as_deref(), Some("7"));
    engine.cancel(lease.id, order()).await.unwrap();
    assert_eq!(status(&engine, &worker, &token).await, LeaseStatus::Cancel);
    let refused = engine.complete_remote(lease, result("late"), false).await.unwrap_err();
    assert!(matches!(refused, Refused::ExecutionEnded(_)), "{refused}");
}

#[tokio::test]
async fn a_lost_lease_permits_nothing_but_evidence() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    submit(&engine, at_least_once()).await;
    let (lease, token) = job(&engine, &worker).await;
    rig.time.advance(TTL_MS);
    engine.note_alive(worker.row.id).await;
    engine.settle_due().await.unwrap();
    assert_eq!(status(&engine, &worker, &token).await, LeaseStatus::Lost);
    let refused = engine.fail_remote(lease, failure()).await.unwrap_err();
    assert!(matches!(refused, Refused::LeaseLost(_)), "{refused}");
    let refused = engine.step(lease, "s".into(), Some("1".into())).await.unwrap_err();
    assert!(matches!(refused, Refused::LeaseLost(_)), "{refused}");
    let refused = engine.step(lease, "s".into(), None).await.unwrap_err();
    assert!(matches!(refused, Refused::LeaseLost(_)), "{refused}");
    assert!(!engine.complete_remote(lease, result("late"), false).await.unwrap());
    assert_eq!(head(&engine, lease.id).await.source, Some(ResultSource::LateResult));
}

#[tokio::test]
async fn a_silent_workers_calls_are_settled_and_a_late_result_is_taken() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let (one, two) = (worker(&engine).await, worker(&engine).await);
    let (again, once) = (submit(&engine, at_least_once()).await, submit(&engine, Policy::default()).await);
    let handed = claim(&engine, &one, 2).await;
    assert_eq!(handed.jobs().len(), 2);
    handed.sent();
    rig.time.advance(TTL_MS);
    engine.note_alive(two.row.id).await;
    rig.time.advance(TTL_MS / 6);
    engine.settle_due().await.unwrap();
    assert_eq!(head(&engine, once.id()).await.state, State::Unknown);
    assert_eq!(head(&engine, again.id()).await.state, State::Scheduled);
    rig.time.advance(10_000);
    let (lease, _) = job(&engine, &two).await;
    assert_eq!((lease.id, lease.fencing_token), (again.id(), 2));
    let anonymous = Principal::anonymous();
    let refused = engine.remote_worker(one.row.id, &anonymous).await.unwrap_err();
    assert!(matches!(refused, Refused::WorkerUnknown), "{refused}");
    let late = engine.remote_worker_or_late(one.row.id, &anonymous).await.unwrap();
    let token = lease_token(&late.row.lease_key, LeaseRef { id: once.id(), fencing_token: 1 });
    let lease = engine.lease_of(&late, &token).unwrap();
    assert!(!engine.complete_remote(lease, result("it did happen"), false).await.unwrap());
    assert_eq!(head(&engine, once.id()).await.state, State::Completed);
    // The other one has a newer lease of this.
    let stale = LeaseRef { id: again.id(), fencing_token: 1 };
    let refused = engine.complete_remote(stale, result("stale"), false).await.unwrap_err();
    assert!(matches!(refused, Refused::LeaseStale(_)), "{refused}");
    assert_eq!(count(&engine, again.id(), "rejected").await, 1);
}

#[tokio::test]
async fn an_attempt_whose_time_is_over_is_lost_although_its_worker_beats() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let worker = worker(&engine).await;
    let timeouts = Timeouts { attempt_ms: 5_000, idle_ms: Some(2_000), ..Timeouts::default() };
    submit(&engine, Policy { timeouts, ..at_least_once() }).await;
    let (lease, token) = job(&engine, &worker).await;
    let progressed = |progress: f64| {
        let progress = Some(Progress { progress, total: None, message: None });
        vec![Beat { token: token.clone(), progress, checkpoint: None }]
    };
    for n in 1..=2 {
        rig.time.advance(1_900);
        assert_eq!(engine.beat(&worker, progressed(n.into())).await.unwrap(), [LeaseStatus::Ok]);
    }
    rig.time.advance(1_200);
    assert_eq!(engine.beat(&worker, progressed(3.0)).await.unwrap(), [LeaseStatus::Lost]);
    assert_eq!(head(&engine, lease.id).await.error.unwrap().code, "attempt_timeout");

    // The next attempt reports nothing, to a process that did not grant its lease.
    rig.time.advance(10_000);
    let (lease, token) = job(&engine, &worker).await;
    let other = engine_with(&rig, Settings::default()).await;
    other.refresh_workers().await.unwrap();
    let same = other.remote_worker(worker.row.id, &Principal::anonymous()).await.unwrap();
    assert_eq!(status(&other, &same, &token).await, LeaseStatus::Ok);
    rig.time.advance(2_000);
    assert_eq!(status(&other, &same, &token).await, LeaseStatus::Lost);
    assert_eq!(head(&engine, lease.id).await.error.unwrap().code, "idle_timeout");
}

#[tokio::test]
async fn a_drain_is_told_to_claims_that_wait() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let (one, two) = (worker(&engine).await, worker(&engine).await);
    let claim = parked(&engine, &one, 1).await;
    crate::engine::remote::drain(&**engine.store(), (one.row.id, None), 1).await.unwrap();
    engine.refresh_workers().await.unwrap();
    let handed = soon(claim).await.unwrap();
    assert!(handed.jobs().is_empty() && handed.draining());
    // One that goes down says so, and takes nothing more.
    let waiting = {
        let (engine, two) = (engine.clone(), two.clone());
        tokio::spawn(async move { engine.claim_remote(&two, ask(1)).await.err() })
    };
    soon(async {
        while engine.slots().parked_claims() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    engine.drain();
    assert!(matches!(soon(waiting).await.unwrap(), Some(Refused::Draining)));
    assert!(matches!(engine.claim_remote(&two, ask(1)).await.err(), Some(Refused::Draining)));
}

/// What is offered, by name.
#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl ToolOffers for Shown {
    fn offer(&self, tools: &[RemoteTool]) {
        *self.0.lock().unwrap() = tools.iter().map(|offer| offer.tool.name.clone()).collect();
    }
}

#[tokio::test]
async fn tools_stay_a_leases_time_after_a_death_and_go_with_the_last_that_leaves() {
    let rig = Rig::new();
    let engine = engine(&rig).await;
    let shown = Arc::new(Shown::default());
    engine.attach_offers(shown.clone());
    let names = || shown.0.lock().unwrap().clone();
    let anonymous = Principal::anonymous();
    let one = engine.register_worker(&anonymous, registration(&engine, &["a", "b"])).await.unwrap();
    let two = engine.register_worker(&anonymous, registration(&engine, &["b", "c"])).await.unwrap();
    assert_eq!(names(), ["a", "b", "c"]);
    engine.deregister_worker(&one).await.unwrap();
    assert_eq!(names(), ["b", "c"]);
    rig.time.advance(TTL_MS + TTL_MS / 6);
    engine.settle_due().await.unwrap();
    assert_eq!(names(), ["b", "c"], "it may come back");
    assert!(engine.remote_worker(two.row.id, &anonymous).await.is_err());
    rig.time.advance(TTL_MS - 1);
    engine.refresh_workers().await.unwrap();
    assert_eq!(names(), ["b", "c"]);
    rig.time.advance(1);
    engine.refresh_workers().await.unwrap();
    assert_eq!(names(), Vec::<String>::new());
}

#[tokio::test]
async fn signs_of_life_are_written_at_most_once_in_a_part_of_the_leases_time() {
    let rig = Rig::new();
    let store = Faulty::around(rig.store().await);
    let engine = rig.bare_engine(store.clone(), Settings::default(), None).await;
    let worker = worker(&engine).await;
    let anonymous = Principal::anonymous();
    for _ in 0..100 {
        engine.remote_worker(worker.row.id, &anonymous).await.unwrap();
    }
    assert_eq!(store.calls("change_workers"), 0);
    rig.time.advance(TTL_MS / 6);
    for _ in 0..100 {
        engine.remote_worker(worker.row.id, &anonymous).await.unwrap();
    }
    soon(async {
        while store.calls("change_workers") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(store.calls("change_workers"), 1);
}

#[tokio::test]
async fn a_claim_ends_before_its_worker_counts_as_dead_and_is_no_sign_of_life_while_it_waits() {
    let rig = Rig::new();
    let engine = engine_with(&rig, Settings { lease_ttl_ms: 300, ..Settings::default() }).await;
    let worker = worker(&engine).await;
    assert_eq!(engine.settings().claim_wait_max_ms(), 200);
    let claim = parked(&engine, &worker, 1).await;
    // Its worker is stopped: the time of its lease passes, and nothing is heard of it but the open claim.
    rig.time.advance(300 + 300 / 6);
    let handed = soon(claim).await.unwrap();
    assert!(handed.jobs().is_empty() && !handed.draining());
    let seen = engine.store().workers(None).await.unwrap().unwrap();
    assert_eq!(seen.rows.iter().find(|row| row.id == worker.row.id).unwrap().last_seen_at_ms, START_MS);
    // What comes now is not for a worker that does not ask.
    assert_eq!(submit(&engine, Policy::default()).await.head.state, State::Ready);
    engine.settle_due().await.unwrap();
    assert!(engine.is_drained(&worker));
}

#[tokio::test]
async fn a_short_wait_of_the_configuration_stays_short() {
    let remote = crate::engine::remote::Settings { claim_wait_max_ms: 5, ..Default::default() };
    let settings = Settings { remote, ..Settings::default() };
    assert_eq!((settings.claim_wait_max_ms(), Settings::default().claim_wait_max_ms()), (5, TTL_MS * 2 / 3));
}
