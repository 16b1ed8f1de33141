//! Who goes on with a server's task, and who leaves it alone: two processes on one store, each with a child of its own whose
//! tasks all have the same id, or both before one server over HTTP.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::engine::asking::{Question, Told};
use crate::engine::inputs::Parked;
use crate::engine::submit::Call as Submission;
use crate::engine::tests::rig::{
    Hands, Rig, UPSTREAM, at_least_once, at_once, call, candidates, events, head, names, result, soon,
};
use crate::engine::ticket::Ticket;
use crate::engine::{Engine, Settings};
use crate::model::event::Event;
use crate::model::execution::State;
use crate::model::policy::{Policy, Timeouts};
use crate::model::principal::Principal;
use crate::store::{Fate, Payload};
use crate::worker::Worker;
use crate::worker::executor::Continuation;
use crate::worker::upstream::tests::http_server::{Server, modern};
use crate::worker::upstream::{HttpSettings, Transport};

/// A server in sh of 2026-07-28. It answers each call with a task that asks one question, notes what it reads in the file
/// `$1`, says who it is with `$2`, and ends at the next look at a task once the file `$3` is there. Its first task does not
/// end where the call says `endless`.
const CHILD: &str = r#"
calls=0 made= answered= endless= stopped=
answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
task() { answer '"result":{"resultType":"'"$1"'","taskId":"t-1","pollIntervalMs":20,"status":'"$2"'}'; }
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$1"
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) answer '"error":{"code":-32601,"message":"?"}' ;;
    *'"method":"server/discover"'*) answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
    *'"method":"tools/list"'*) answer '"result":{"resultType":"complete","tools":[{"name":"add_note","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*)
      made=1 answered= endless= stopped= calls=$((calls + 1))
      case $calls$line in 1*endless*) endless=1 ;; esac
      task task '"working"' ;;
    *'"method":"tasks/cancel"'*) stopped=1; answer '"result":{"resultType":"complete"}' ;;
    *'"method":"tasks/update"'*) answered=1; answer '"result":{"resultType":"complete"}' ;;
    *'"method":"tasks/get"'*)
      if [ -e "$3" ]; then rm "$3"; exit 1; fi
      if [ -z "$made" ]; then answer '"error":{"code":-32602,"message":"no such task"}'
      elif [ -n "$stopped" ]; then task complete '"cancelled"'
      elif [ -n "$endless" ]; then task complete '"working"'
      elif [ -n "$answered" ]; then task complete '"completed","result":{"content":[{"type":"text","text":"'"$2"'"}]}'
      else task complete '"input_required","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Sure?"}}}'
      fi ;;
  esac
done
"#;

const QUESTION: &str = r#"{"message":"Sure?"}"#;
/// A state as releases wrote it that did not say whose child has the task.
const STATE: &str = r#"{"durable-mcp/task":{"id":"t-1","poll_ms":5,"answered":[]}}"#;

/// A process with a child.
struct Process {
    engine: Arc<Engine>,
    executor: Arc<dyn Executor>,
    heard: PathBuf,
    dies: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Process {
    async fn start(rig: &Rig, name: &str) -> Process {
        let folder = tempfile::tempdir().unwrap();
        let (heard, dies) = (folder.path().join("heard"), folder.path().join("dies"));
        let child =
            unguarded(UPSTREAM, "sh", &["-c", CHILD, "sh", heard.to_str().unwrap(), name, dies.to_str().unwrap()]);
        Process { heard, dies, _folder: Some(folder), ..Process::before(rig, child, Reach::Child).await }
    }

    /// A process before this server.
    async fn before(rig: &Rig, server: UpstreamSettings, reach: Reach) -> Process {
        let settings = Settings { worker_poll_ms: 3_600_000, stop_grace_ms: 2_000, ..Settings::default() };
        let engine = rig.bare_engine(rig.store().await, settings, Some(at_once(2))).await;
        let legs = Legs::over(&Weak::new(), Upstream::start(server), LegSettings::default());
        let executor: Arc<dyn Executor> =
            Arc::new(UpstreamExecutor::new(Arc::downgrade(&engine), legs, reach, HashMap::new()));
        Worker::new(engine.clone(), HashMap::from([(UPSTREAM.to_owned(), executor.clone())])).start();
        Process { engine, executor, heard: PathBuf::new(), dies: PathBuf::new(), _folder: None }
    }

    async fn submit(&self, policy: Policy) -> Ticket {
        self.engine.submit(asking(policy)).await.unwrap()
    }

    /// Waits until the question of the execution is open in this attempt.
    async fn asks(&self, id: ExecutionId, attempt: u32) {
        soon(async {
            while head(&self.engine, id).await.attempt != attempt || self.engine.questions(id).await.unwrap().len() != 1
            {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    async fn says_yes(&self, id: ExecutionId) -> Vec<Fate> {
        let answer = vec![("sure".to_owned(), Told::Result(yes()))];
        self.engine.answer(id, answer, &Principal::anonymous()).await.unwrap().fates
    }

    /// How often the child was asked this.
    fn heard(&self, method: &str) -> usize {
        let heard = std::fs::read_to_string(&self.heard).unwrap_or_default();
        heard.lines().filter(|line| line.contains(&format!(r#""method":"{method}""#))).count()
    }

    /// The child is gone at the next look at its task.
    fn kill_child(&self) {
        std::fs::write(&self.dies, "").unwrap();
    }
}

fn asking(policy: Policy) -> Submission {
    let client = r#"{"durable-mcp/client":{"capabilities":{"elicitation":{}}}}"#;
    Submission { meta: Some(client.into()), ..call(policy) }
}

fn yes() -> Payload {
    r#"{"action":"accept"}"#.into()
}

/// Why the newest attempt that was lost was lost.
async fn loss(engine: &Engine, id: ExecutionId) -> String {
    let lost = |event| match event {
        Event::Lost { error, .. } | Event::Retried { error, .. } => Some(error.code),
        _ => None,
    };
    events(engine, id).await.into_iter().rev().find_map(|record| lost(record.event)).expect("an attempt was lost")
}

/// What waits for its time is run by `process`.
async fn run_again(rig: &Rig, process: &Process, id: ExecutionId) {
    soon(async {
        while head(&process.engine, id).await.state != State::Scheduled {
            tokio::task::yield_now().await;
        }
    })
    .await;
    rig.time.advance(5_000);
    process.engine.settle_due().await.unwrap();
}

#[tokio::test]
async fn the_task_of_a_child_is_gone_on_with_in_its_own_process_wherever_the_answer_is_given() {
    let rig = Rig::new();
    let (here, there) = (Process::start(&rig, "here").await, Process::start(&rig, "there").await);
    here.engine.start_loops(false);
    let mut ticket = here.submit(Policy::default()).await;
    let id = ticket.id();
    here.asks(id, 1).await;
    let row = head(&there.engine, id).await;
    assert_eq!((row.state, row.lease.map(|lease| lease.process)), (State::Waiting, Some(here.engine.process())));
    assert_eq!(there.says_yes(id).await, [Fate::Taken]);
    assert!(candidates(&there.engine).await.is_empty(), "nobody else may take it");
    assert_eq!(soon(ticket.end()).await.payload, Some(result("here")));
    assert_eq!(names(&here.engine, id).await, ["submitted", "leased", "held", "resumed", "completed"]);
    assert_eq!((here.heard("tasks/update"), there.heard("tasks/update")), (1, 0));
}

#[tokio::test]
async fn the_question_of_a_dead_process_is_withdrawn_where_the_call_may_not_run_again() {
    let rig = Rig::new();
    let (here, there) = (Process::start(&rig, "here").await, Process::start(&rig, "there").await);
    let id = here.submit(Policy::default()).await.id();
    here.asks(id, 1).await;
    rig.time.advance(31_000);
    there.engine.settle_due().await.unwrap();
    assert_eq!(head(&there.engine, id).await.state, State::Unknown);
    assert!(there.engine.questions(id).await.unwrap().is_empty());
    assert_eq!(there.says_yes(id).await, [Fate::Unknown]);
    assert_eq!(there.heard("tools/call"), 0);
}

#[tokio::test]
async fn the_question_of_a_dead_process_is_asked_again_by_the_next_attempt() {
    let rig = Rig::new();
    let (here, there) = (Process::start(&rig, "here").await, Process::start(&rig, "there").await);
    let id = here.submit(at_least_once()).await.id();
    here.asks(id, 1).await;
    let mut elsewhere = there.engine.attach(id, &Principal::anonymous()).await.unwrap();
    rig.time.advance(31_000);
    there.engine.settle_due().await.unwrap();
    run_again(&rig, &there, id).await;
    there.asks(id, 2).await;
    assert_eq!(there.heard("tools/call"), 1, "another child knows nothing of the first one's task");
    assert_eq!(there.says_yes(id).await, [Fate::Taken]);
    assert_eq!(soon(elsewhere.end()).await.payload, Some(result("there")));
}

#[tokio::test]
async fn a_child_that_dies_while_its_task_asks_loses_the_call_and_no_other_task_gets_the_answer() {
    let rig = Rig::new();
    let here = Process::start(&rig, "here").await;
    let mut lost = here.submit(Policy::default()).await;
    here.asks(lost.id(), 1).await;
    here.kill_child();
    assert_eq!(soon(lost.end()).await.head.state, State::Unknown);
    assert_eq!(loss(&here.engine, lost.id()).await, "child_died");
    assert_eq!(here.says_yes(lost.id()).await, [Fate::Unknown]);

    let mut again = here.submit(at_least_once()).await;
    here.asks(again.id(), 1).await;
    here.kill_child();
    run_again(&rig, &here, again.id()).await;
    assert_eq!(loss(&here.engine, again.id()).await, "child_died");
    here.asks(again.id(), 2).await;
    assert_eq!(here.heard("tasks/update"), 0);
    assert_eq!(here.says_yes(again.id()).await, [Fate::Taken]);
    assert_eq!(soon(again.end()).await.payload, Some(result("here")));
    assert_eq!((here.heard("tools/call"), here.heard("tasks/update")), (3, 1));
}

#[tokio::test]
async fn a_process_that_stops_says_what_became_of_a_task_that_asks() {
    let rig = Rig::new();
    let (here, there) = (Process::start(&rig, "here").await, Process::start(&rig, "there").await);
    let ids = [here.submit(Policy::default()).await.id(), here.submit(at_least_once()).await.id()];
    for id in ids {
        here.asks(id, 1).await;
    }
    here.engine.close(Duration::ZERO).await;
    let after = [head(&there.engine, ids[0]).await.state, head(&there.engine, ids[1]).await.state];
    assert_eq!(after, [State::Unknown, State::Scheduled]);
    for id in ids {
        assert_eq!(loss(&there.engine, id).await, "worker_stopped");
    }
    assert_eq!(there.says_yes(ids[0]).await, [Fate::Unknown]);
    assert_eq!(there.says_yes(ids[1]).await, [Fate::Taken], "the next attempt is answered with it");
}

/// An execution that a release before this one parked, although a child had its task, and that was answered since.
async fn parked_before(rig: &Rig, policy: Policy) -> ExecutionId {
    let (engine, mut hands): (_, Hands) = rig.engine(at_once(1)).await;
    let id = engine.submit(asking(policy)).await.unwrap().id();
    let work = hands.next().await;
    let client = ClientContext::of_meta(work.meta.as_deref());
    let question = Question { key: "sure".into(), method: "elicitation/create".into(), params: QUESTION.into() };
    let parked = engine.park(&work, &client, (&[question], Some(&STATE.into()))).await.unwrap();
    assert_eq!(parked, Parked::Waiting);
    engine.answer(id, vec![("sure".into(), Told::Result(yes()))], &Principal::anonymous()).await.unwrap();
    assert_eq!(head(&engine, id).await.state, State::Ready);
    id
}

#[tokio::test]
async fn what_an_earlier_release_parked_is_lost_with_its_child_and_not_an_error_of_the_tool() {
    let rig = Rig::new();
    let once = parked_before(&rig, Policy::default()).await;
    let more = parked_before(&rig, at_least_once()).await;
    let here = Process::start(&rig, "here").await;
    let principal = Principal::anonymous();
    let mut once = here.engine.attach(once, &principal).await.unwrap();
    let mut more = here.engine.attach(more, &principal).await.unwrap();
    assert_eq!(soon(once.end()).await.head.state, State::Unknown);
    assert_eq!(loss(&here.engine, once.id()).await, "child_died");
    run_again(&rig, &here, more.id()).await;
    // The same question: it has its answer already.
    let end = soon(more.end()).await;
    assert_eq!((end.head.attempt, end.payload), (2, Some(result("here"))));
}

#[tokio::test]
async fn a_left_task_of_another_child_is_asked_for_nowhere() {
    let rig = Rig::new();
    let here = Process::start(&rig, "here").await;
    for state in [STATE, r#"{"durable-mcp/task":{"id":"t-1","poll_ms":5,"answered":[],"child":"00ff"}}"#] {
        let continuation = Some(Continuation { state: Some(state.into()), responses: vec![("sure".into(), yes())] });
        let outcome = soon(here.executor.run(Job { continuation, ..job("add_note", "{}", None) }, &|_| {})).await;
        assert_eq!(failure(outcome), (FailureKind::Lost, "child_died".into()));
    }
    assert_eq!((here.heard("tasks/update"), here.heard("tasks/get"), here.heard("tools/call")), (0, 0, 0));
}

#[tokio::test]
async fn an_attempt_that_took_too_long_cancels_its_task_and_the_next_one_calls_again() {
    let rig = Rig::new();
    let here = Process::start(&rig, "here").await;
    let timeouts = Timeouts { attempt_ms: 500, ..Timeouts::default() };
    let call =
        Submission { arguments: r#"{"text":"endless"}"#.into(), ..asking(Policy { timeouts, ..at_least_once() }) };
    let mut ticket = here.engine.submit(call).await.unwrap();
    run_again(&rig, &here, ticket.id()).await;
    assert_eq!(loss(&here.engine, ticket.id()).await, "attempt_timeout");
    here.asks(ticket.id(), 2).await;
    assert_eq!((here.heard("tasks/cancel"), here.heard("tools/call")), (1, 2));
    here.says_yes(ticket.id()).await;
    assert_eq!(soon(ticket.end()).await.payload, Some(result("here")));
}

#[tokio::test]
async fn who_lost_the_lease_leaves_a_task_alone_that_the_next_holder_goes_on_with() {
    let rig = Rig::new();
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    let server = Server::start(move |seen| {
        modern(seen).unwrap_or_else(|| {
            let mut task =
                json!({"resultType": "complete", "taskId": "t-1", "pollIntervalMs": 20, "status": "working"});
            match seen.method() {
                "tools/call" => task["resultType"] = json!("task"),
                _ if end.load(Ordering::Relaxed) => {
                    task["status"] = json!("completed");
                    task["result"] = json!({"content": []});
                }
                _ => {}
            }
            seen.result(task)
        })
    })
    .await;
    let reached = || UpstreamSettings::new(UPSTREAM, Transport::Http(HttpSettings::new(&server.url)));
    let first = Process::before(&rig, reached(), Reach::Connection).await;
    let second = Process::before(&rig, reached(), Reach::Connection).await;
    let id = first.submit(at_least_once()).await.id();
    let mut ticket = second.engine.attach(id, &Principal::anonymous()).await.unwrap();
    server.wait_for(|seen| seen.method() == "tasks/get").await;
    rig.time.advance(31_000);
    second.engine.settle_due().await.unwrap();
    run_again(&rig, &second, id).await;
    soon(async {
        while head(&second.engine, id).await.attempt != 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    first.engine.heartbeat().await.unwrap();
    soon(async {
        while first.engine.running_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    ended.store(true, Ordering::Relaxed);
    assert_eq!(soon(ticket.end()).await.payload.as_deref(), Some(r#"{"content":[]}"#));
    assert_eq!((server.seen("tools/call").len(), server.seen("tasks/cancel").len()), (1, 0));
}
