//! Every state of an execution in both variants, as tables.

use serde_json::{Value, json};

use super::*;
use crate::mcp::answer::{self, Audience};
use crate::mcp::face::Builtins;
use crate::mcp::reject::{RpcError, code};
use crate::model::execution::{ErrorInfo, Identification};
use crate::model::id::ExecutionId;
use crate::model::policy::OnTaskExpiry;
use crate::model::revision::Era;

const CREATED_MS: i64 = 1_800_000_000_000;

fn head(state: State) -> Head {
    let id = ExecutionId::new(CREATED_MS, &[7; 10]);
    let ident = Identification {
        upstream: "crm".into(),
        tool: "add_note".into(),
        principal: "ann".into(),
        ..Identification::sample(id)
    };
    Head { state, updated_at_ms: CREATED_MS + 2_000, ..Head::new(ident, CREATED_MS) }
}

fn row(head: &Head) -> TaskRow {
    TaskRow {
        id: head.id(),
        namespace: "default".into(),
        principal: "ann".into(),
        variant: TaskVariant::Extension,
        ttl_ms: 60_000,
        created_at_ms: CREATED_MS + 1_000,
        on_expiry: OnTaskExpiry::Cancel,
        shown_seq: None,
        progress_token: None,
    }
}

fn failed_with(code: &str, message: &str) -> Head {
    Head { error: Some(ErrorInfo { code: code.into(), message: message.into() }), ..head(State::Failed) }
}

fn question(key: &str) -> OpenQuestion {
    OpenQuestion {
        number: 1,
        round: 1,
        key: key.into(),
        method: "elicitation/create".into(),
        params: r#"{"message": "?","n":1.0}"#.into(),
        asked_at_ms: CREATED_MS,
    }
}

struct Case {
    head: Head,
    questions: Vec<OpenQuestion>,
    reply: Option<Reply>,
}

impl Case {
    fn of(head: Head) -> Case {
        Case { head, questions: Vec::new(), reply: None }
    }

    /// A settled one, with the reply its caller gets.
    fn settled(head: Head, payload: Option<&str>) -> Case {
        let audience = Audience { era: Era::Modern, builtins: Builtins::default() };
        let settled = crate::engine::waiters::Settled {
            head: std::sync::Arc::new(head.clone()),
            payload: payload.map(Into::into),
        };
        Case { reply: Some(answer::settled(&settled, false, audience)), ..Case::of(head) }
    }

    fn with<T>(&self, read: impl FnOnce(Seen<'_>) -> T) -> T {
        let row = row(&self.head);
        let reply = self.reply.as_ref();
        read(Seen { row: &row, head: &self.head, questions: &self.questions, reply, poll_ms: 500 })
    }

    fn extension(&self, form: Form) -> Value {
        serde_json::from_str(&self.with(|seen| seen.extension(form))).unwrap()
    }

    fn experimental(&self) -> Value {
        serde_json::from_str(&self.with(|seen| seen.experimental())).unwrap()
    }
}

fn cases() -> Vec<(&'static str, Case, Status, Status)> {
    use Status::{Cancelled, Completed, Failed, InputRequired, Working};
    let mut asking = Case::of(head(State::Waiting));
    asking.questions.push(question("k1"));
    let said_error = Head { is_error: true, ..head(State::Completed) };
    let rpc_error = Some(r#"{"code":-32000,"message":"no"}"#);
    vec![
        ("scheduled", Case::of(head(State::Scheduled)), Working, Working),
        ("ready", Case::of(head(State::Ready)), Working, Working),
        ("leased", Case::of(head(State::Leased)), Working, Working),
        ("waits for an approval", Case::of(head(State::Waiting)), Working, Working),
        ("waits for the client", asking, InputRequired, InputRequired),
        ("a result", Case::settled(head(State::Completed), Some("{\"content\":[]}")), Completed, Completed),
        ("isError", Case::settled(said_error, Some("{\"content\":[],\"isError\":true}")), Completed, Failed),
        ("a result no longer kept", Case::settled(head(State::Completed), None), Completed, Completed),
        (
            "a JSON-RPC error",
            Case::settled(failed_with("rpc_error", "the upstream said no"), rpc_error),
            Failed,
            Failed,
        ),
        ("never started", Case::settled(failed_with("queue_timeout", "it waited too long"), None), Failed, Failed),
        ("no attempt left", Case::settled(failed_with("child_died", "the child died"), None), Completed, Failed),
        ("cancelled", Case::settled(head(State::Cancelled), None), Cancelled, Cancelled),
        ("unknown", Case::settled(head(State::Unknown), None), Completed, Failed),
    ]
}

#[test]
fn every_state_has_its_status_in_both_variants() {
    for (name, case, extension, experimental) in cases() {
        let shown = case.with(|seen| (seen.status(TaskVariant::Extension), seen.status(TaskVariant::Experimental)));
        assert_eq!(shown, (extension, experimental), "{name}");
        assert_eq!(case.extension(Form::Whole)["status"], extension.as_str(), "{name}");
        assert_eq!(case.experimental()["status"], experimental.as_str(), "{name}");
    }
}

#[test]
fn the_members_fit_the_status_and_the_variant() {
    for (name, case, status, experimental) in cases() {
        let task = case.extension(Form::Whole);
        let has = |member: &str| task.get(member).is_some();
        assert_eq!(task["resultType"], "complete", "{name}");
        assert_eq!(has("result"), status == Status::Completed, "{name}: {task}");
        assert_eq!(has("error"), status == Status::Failed, "{name}: {task}");
        assert_eq!(has("inputRequests"), status == Status::InputRequired, "{name}: {task}");
        assert_eq!(has("pollIntervalMs"), !status.is_final(), "{name}: {task}");
        assert!(status != Status::Failed || has("statusMessage"), "{name}: {task}");
        for renamed in ["ttl", "pollInterval", "task", "requestState"] {
            assert!(!has(renamed), "{name}: {renamed}");
        }
        let task = case.experimental();
        let has = |member: &str| task.get(member).is_some();
        assert_eq!(has("pollInterval"), !experimental.is_final(), "{name}: {task}");
        for other in ["resultType", "ttlMs", "pollIntervalMs", "result", "error", "inputRequests", "_meta"] {
            assert!(!has(other), "{name}: {other}");
        }
    }
}

#[test]
fn a_new_task_carries_its_times_and_no_end() {
    let case = Case::settled(head(State::Completed), Some("{\"content\":[]}"));
    let id = case.head.id().to_string();
    let created = case.extension(Form::Created);
    assert_eq!(created["resultType"], "task");
    assert_eq!(created.get("result"), None);
    assert_eq!(created["_meta"][EXECUTION_MEMBER]["id"], json!(id));
    assert_eq!(
        case.experimental(),
        json!({
            "taskId": id, "status": "completed", "createdAt": "2027-01-15T08:00:01.000Z",
            "lastUpdatedAt": "2027-01-15T08:00:02.000Z", "ttl": 60_000,
        })
    );
    let nested: Value = serde_json::from_str(&case.with(|seen| seen.created())).unwrap();
    assert_eq!((&nested["task"]["status"], &nested["task"]["pollInterval"]), (&json!("working"), &json!(500)));
    assert_eq!(nested["_meta"][EXECUTION_MEMBER]["state"], "completed");
}

#[test]
fn a_notification_carries_the_whole_task_and_no_result_type() {
    let case = Case::settled(head(State::Completed), Some("{\"content\":[]}"));
    let params = case.extension(Form::Notified);
    assert_eq!((params.get("resultType"), params.get("_meta")), (None, None));
    assert_eq!(params["result"]["resultType"], "complete");
}

#[test]
fn results_errors_and_questions_keep_every_byte() {
    let text = r#"{"content":[],"n":1.0,"big":9007199254740993,"a":null}"#;
    let shown = Case::settled(head(State::Completed), Some(text)).with(|seen| seen.extension(Form::Whole));
    assert!(shown.contains(r#""content":[],"n":1.0,"big":9007199254740993,"a":null"#), "{shown}");
    let text = r#"{"code": -32000,"message":"no","data":{"n":1.0}}"#;
    let shown = Case::settled(failed_with("rpc_error", "no"), Some(text)).with(|seen| seen.extension(Form::Whole));
    assert!(shown.contains(&format!("\"error\":{text}")), "{shown}");
    let mut asking = Case::of(head(State::Waiting));
    asking.questions = vec![question("k1"), question("k \"2\"")];
    let shown = asking.with(|seen| seen.extension(Form::Whole));
    let requests =
        r#""inputRequests":{"k1":{"method":"elicitation/create","params":{"message": "?","n":1.0}},"k \"2\":"#;
    assert!(shown.contains(requests.trim_end_matches(':')), "{shown}");
}

#[test]
fn an_error_of_ours_is_an_error_of_the_task() {
    let mut case = Case::of(failed_with("queue_timeout", "it waited too long"));
    case.reply = Some(Reply::Error(RpcError::new(code::OVERLOAD, "too long in the queue")));
    let task = case.extension(Form::Whole);
    assert_eq!(task["error"], json!({"code": code::OVERLOAD, "message": "too long in the queue"}));
    assert_eq!(task["statusMessage"], "it waited too long");
}

#[test]
fn a_young_task_is_looked_at_soon_and_an_old_one_now_and_then() {
    let table = [(0, 500), (4_999, 500), (20_000, 2_000), (60_000, 5_000), (3_600_000, 5_000), (-5, 500)];
    for (age_ms, wanted) in table {
        assert_eq!(poll_ms(age_ms, 500, 5_000), wanted, "{age_ms}");
    }
    assert_eq!(poll_ms(0, 2_000, 1_000), 2_000, "bounds that cross");
}
