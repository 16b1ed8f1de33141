//! What is done in a cell of the matrix, and what is observed, in words that do not depend on what was expected. What is
//! expected only decides how long an observation is waited for.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::matrix_client::Client;
use crate::matrix_scene::Seat;
use crate::matrix_table::Cell;
use crate::support::{DEADLINE, eventually_async};

/// A number that no double holds: it shows whether bytes pass as they are.
const EXACT: &str = r#"{"n":9007199254740993,"label":"n is given back as it came"}"#;
const IMAGE: &str = r#"{"type":"image","data":"iVBORw0KGgo\u003d","mimeType":"image/png"}"#;
const SOUND: &str = r#"{"type":"audio","data":"UklGRgAAAABXQVZF","mimeType":"audio/wav"}"#;
const RESOURCE: &str =
    r#"{"type":"resource","resource":{"uri":"kit://blob","mimeType":"application/octet-stream","blob":"AAEC/w=="}}"#;

const STOPS: &str = "no answer; the tool stops";

/// Does what the cell says and answers what came of it.
pub async fn observe(seat: &Seat<'_>, cell: &Cell, expected: &str) -> String {
    let scene = Scene { seat, cell, expected };
    match cell.behaviour {
        "plain" => scene.plain().await,
        "tool-error" => scene.tool_error().await,
        "structured" => scene.structured().await,
        "binary" => scene.binary().await,
        "progress" => scene.progress().await,
        "cancel" => scene.cancel("the user stopped it").await,
        "time-out-cancel" => scene.cancel("McpError: MCP error -32001: Request timed out").await,
        "elicitation" => scene.elicitation().await,
        "disconnect-and-return" => scene.disconnect_and_return().await,
        "handle-and-result" => scene.handle_and_result().await,
        "task-and-result" => scene.task_and_result().await,
        "task-cancel" => scene.task_cancel().await,
        other => panic!("nobody knows how to do {other}"),
    }
}

struct Scene<'s> {
    seat: &'s Seat<'s>,
    cell: &'s Cell,
    expected: &'s str,
}

impl Scene<'_> {
    fn client(&self) -> &Client {
        &self.seat.client
    }

    /// The client when it comes back, perhaps to another server.
    fn returned(&self) -> &Client {
        self.seat.returned()
    }

    /// A text that no other cell uses.
    fn name(&self, what: &str) -> String {
        let Cell { behaviour, client, by, .. } = self.cell;
        format!("{behaviour} {client} {by} {what}").trim_end().to_owned()
    }

    /// Arguments of a run that goes on until its gate is opened.
    fn held(&self, name: &str) -> Value {
        json!({"seconds": 0, "n": 1, "text": name, "gate": self.seat.gate(name)})
    }

    async fn plain(&self) -> String {
        let name = self.name("");
        let answer = self.client().call("append", json!({"text": name})).await.answer_text().await;
        let members = members(&answer);
        assert_eq!(members["content"], content_of(&format!("appended {name}")), "{answer}");
        assert_eq!(self.seat.starts(&name), 1, "one call is one run");
        let read: Value = serde_json::from_str(&answer).unwrap();
        let meta = &read["result"]["_meta"];
        assert_eq!(meta["durable-mcp/execution"]["state"], "completed", "{answer}");
        let is_named = meta.get("io.modelcontextprotocol/serverInfo").is_some();
        match (members.get("resultType").map(String::as_str), is_named) {
            (None, false) => "the result".to_owned(),
            (Some(r#""complete""#), true) => "the result, with resultType and serverInfo".to_owned(),
            (Some(r#""complete""#), false) => "the result; resultType passes as unknown".to_owned(),
            other => panic!("{other:?}: {answer}"),
        }
    }

    async fn tool_error(&self) -> String {
        let name = self.name("");
        let mut sent = self.client().call("flaky", json!({"name": name, "failures": 1})).await;
        let answer = sent.answer().await;
        assert_eq!(text(&answer), format!("{name} failed 1 of 1 times"));
        assert_eq!(execution(&answer)["state"], "completed", "{answer}");
        assert_eq!(self.seat.starts(&name), 1, "an error of the tool is a result, and not tried again");
        match answer["result"]["isError"] == true {
            true => "a result with isError".to_owned(),
            false => format!("{answer}"),
        }
    }

    async fn structured(&self) -> String {
        let listed = self.client().ask("tools/list", json!({})).await;
        let has_schema = |name: &str| {
            let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
            tools.iter().find(|tool| tool["name"] == name).map(|tool| tool.get("outputSchema").is_some())
        };
        let arguments: Value = serde_json::from_str(r#"{"n":9007199254740993}"#).unwrap();
        let object = self.client().call("structured", arguments).await.answer_text().await;
        let object = members(&object).remove("structuredContent");
        assert_eq!(has_schema("structured"), Some(object.is_some()), "schema and content go together: {listed}");
        let Some(object) = object else { return "text only".to_owned() };
        assert_eq!(object, EXACT);
        let Some(array_has_schema) = has_schema("rows") else { return "an object".to_owned() };
        let array = self.client().call("rows", json!({})).await.answer_text().await;
        let mut array = members(&array);
        assert_eq!(array["content"], content_of("[1,2,3]"));
        let array = array.remove("structuredContent");
        assert_eq!(array_has_schema, array.is_some(), "schema and content go together: {listed}");
        match array.as_deref() {
            Some("[1,2,3]") => "an object; an array".to_owned(),
            None => "an object; an array as text only".to_owned(),
            other => format!("an object; {other:?}"),
        }
    }

    async fn binary(&self) -> String {
        let answer = self.client().call("media", json!({})).await.answer_text().await;
        match members(&answer)["content"].as_str() {
            all if all == format!("[{IMAGE},{SOUND},{RESOURCE}]") => "image, sound and resource".to_owned(),
            all if all == format!("[{IMAGE},{RESOURCE}]") => "image and resource".to_owned(),
            other => other.to_owned(),
        }
    }

    async fn progress(&self) -> String {
        let name = self.name("");
        let mut arguments = self.held(&name);
        arguments["seconds"] = json!(0.3);
        let mut sent = self.client().call("slow", arguments).await;
        let (mut last, mut with_message, mut told) = (0.0, false, 0);
        let answer = loop {
            let message = sent.next().await.expect("an answer");
            let params = &message["params"];
            match message["method"].as_str() {
                Some("notifications/progress") => {
                    assert_eq!(params["progressToken"], sent.id.as_str(), "under the client's own token: {message}");
                    let value = params["progress"].as_f64().unwrap_or_else(|| panic!("{message}"));
                    assert!(value > last, "{value} after {last}");
                    (last, told) = (value, told + 1);
                    with_message |= params["message"].as_str().is_some_and(|text| text.starts_with("tick "));
                    // It has been told of some of it: the run may end.
                    self.seat.open_gate(&name);
                }
                Some(_) => {}
                None => break message,
            }
        };
        assert_eq!(text(&answer), format!("slept {name}"));
        match (told, with_message) {
            (0, _) => "nothing is told".to_owned(),
            (_, true) => "progress with a message".to_owned(),
            (_, false) => "progress without a message".to_owned(),
        }
    }

    /// Two calls are taken back: one of a tool with the default `on_disconnect`, one of a tool that is to stop.
    async fn cancel(&self, reason: &str) -> String {
        let (name, bound) = (self.name("free"), self.name("bound"));
        let mut free_call = self.client().call("slow", self.held(&name)).await;
        let mut bound_call = self.client().call("slow_structured", self.held(&bound)).await;
        free_call.begun().await;
        bound_call.begun().await;
        let execution = self.seat.started(&name).await;
        self.seat.started(&bound).await;
        let was_answered = free_call.take_back(reason).await | bound_call.take_back(reason).await;
        self.seat.cancelled(&bound).await;
        if self.expected == STOPS {
            self.seat.cancelled(&name).await;
        }
        // It can end now, unless it was stopped.
        self.seat.open_gate(&name);
        let after = self.returned().result_of(&execution, 20_000).await;
        let answered = if was_answered { "an answer" } else { "no answer" };
        match crate::matrix_cells::execution(&after)["state"].as_str() {
            Some("cancelled") => {
                assert_eq!(self.seat.ends("done", &name), 0);
                format!("{answered}; the tool stops")
            }
            Some("completed") => {
                assert_eq!((text(&after), self.seat.ends("cancelled", &name)), (&*format!("slept {name}"), 0));
                format!("{answered}; the tool goes on, with on_disconnect = \"cancel\" it stops")
            }
            _ => format!("{answered}; {after}"),
        }
    }

    async fn elicitation(&self) -> String {
        let question = self.name("");
        // Only a server that has a client of its own can ask it, before 2026-07-28.
        let tool = if self.cell.by == "wrap" { "ask" } else { "own__ask" };
        let params = json!({"name": tool, "arguments": {"message": question}});
        let mut sent = self.client().send("tools/call", params.clone()).await;
        let given = json!({"action": "accept", "content": {"colour": "blue"}});
        let told = r#"told {"action":"accept","content":{"colour":"blue"}}"#;
        loop {
            let message = sent.next().await.expect("a question or an answer");
            if message["method"] == "elicitation/create" {
                assert_eq!(message["params"]["message"], question.as_str(), "{message}");
                self.returned().respond(&message["id"], given.clone()).await;
                let answer = sent.answer().await;
                assert_eq!(text(&answer), told);
                return "asked by a request, and told".to_owned();
            }
            if message.get("method").is_some() {
                continue;
            }
            let result = &message["result"];
            if result["resultType"] == "input_required" {
                let requests = result["inputRequests"].as_object().unwrap_or_else(|| panic!("{message}"));
                let (key, asked) = requests.iter().next().expect("a question");
                assert_eq!((requests.len(), &asked["params"]["message"]), (1, &json!(question)), "{message}");
                let mut again = params;
                again["requestState"] = result["requestState"].clone();
                again["inputResponses"] = json!({key: given});
                let answer = self.returned().ask("tools/call", again).await;
                assert_eq!(text(&answer), told);
                return "asked by input_required, and told".to_owned();
            }
            if message["error"]["code"] == -32021 {
                let needed = &message["error"]["data"]["requiredCapabilities"];
                assert_eq!(*needed, json!({"elicitation": {"form": {}}}), "{message}");
                return "not asked: the call fails with -32021".to_owned();
            }
            assert_eq!(result["isError"], true, "{message}");
            return match text(&message) {
                refused if refused.starts_with("refused with -32601") => {
                    "not asked: the tool is refused with -32601".to_owned()
                }
                other => other.to_owned(),
            };
        }
    }

    async fn disconnect_and_return(&self) -> String {
        let name = self.name("");
        let call = json!({"name": "slow", "arguments": self.held(&name)});
        let (answer, how) = match self.cell.by {
            "serve" => {
                let mut sent = self.client().send("tools/call", call.clone()).await;
                let first_event = sent.begun().await;
                let execution = self.seat.started(&name).await;
                let id = sent.id.clone();
                sent.cut();
                match first_event {
                    Some(event) => {
                        let mut taken_up = self.returned().resume(id, &event).await;
                        self.seat.open_gate(&name);
                        (taken_up.answer().await, "the stream is taken up again")
                    }
                    None => {
                        self.seat.nobody_waits(&execution).await;
                        (self.calls_again(&name, call).await, "the same call finds it")
                    }
                }
            }
            _ => {
                let first = self.seat.another().await;
                let sent = first.send("tools/call", call.clone()).await;
                let execution = self.seat.started(&name).await;
                drop(sent);
                let dying = first.die();
                let found = match self.cell.by {
                    "wrap" | "sse" => {
                        self.seat.nobody_waits(&execution).await;
                        (self.calls_again(&name, call).await, "the same call finds it")
                    }
                    _ => {
                        let unfinished = self.client().call("durable_result", json!({})).await.answer().await;
                        assert!(text(&unfinished).contains(&execution), "{unfinished}");
                        self.seat.open_gate(&name);
                        (self.client().result_of(&execution, 20_000).await, "durable_result finds it")
                    }
                };
                drop(dying);
                found
            }
        };
        assert_eq!(text(&answer), format!("slept {name}"));
        assert_eq!(self.seat.starts(&name), 1, "it ran once");
        how.to_owned()
    }

    /// The same call, under another id; its run may end once it has been stored that somebody waits again.
    async fn calls_again(&self, name: &str, call: Value) -> Value {
        let mut again = self.returned().send("tools/call", call).await;
        again.begun().await;
        self.seat.open_gate(name);
        let answer = again.answer().await;
        assert_eq!(execution(&answer)["attached"], true, "{answer}");
        answer
    }

    async fn handle_and_result(&self) -> String {
        let name = self.name("");
        let params = json!({"name": "slow", "arguments": self.held(&name), "_meta": {"durable-mcp/wait": 100}});
        let handle = self.client().ask("tools/call", params).await;
        let id = execution(&handle)["id"].as_str().unwrap().to_owned();
        let words = text(&handle);
        assert!(words.contains(&id) && words.contains("durable_result"), "{handle}");
        assert_eq!((&handle["result"]["isError"], handle["result"].get("structuredContent")), (&json!(true), None));
        self.seat.open_gate(&name);
        let result = self.returned().result_of(&id, 20_000).await;
        assert_eq!((text(&result), self.seat.starts(&name)), (&*format!("slept {name}"), 1));
        "a handle with isError, then the result by durable_result".to_owned()
    }

    /// The call as a task, in whichever way the revision asks for one; the task, or the answer where there are no tasks.
    async fn begin_task(&self, name: &str) -> Result<Value, Value> {
        let mut params = json!({"name": "slow", "arguments": self.held(name)});
        match self.client().is_modern() {
            true => params["_meta"]["durable-mcp/wait"] = json!(0),
            false => params["task"] = json!({"ttl": 60_000}),
        }
        let mut sent = self.client().send_able("tools/call", params, true).await;
        if self.client().revision < "2025-11-25" {
            self.seat.started(name).await;
            self.seat.open_gate(name);
            return Err(sent.answer().await);
        }
        let answer = sent.answer().await;
        let task = if self.client().is_modern() { &answer["result"] } else { &answer["result"]["task"] };
        assert_eq!(task["status"], "working", "{answer}");
        Ok(task.clone())
    }

    async fn ask_task(&self, method: &str, task: &Value) -> Value {
        let params = json!({"taskId": task["taskId"]});
        self.returned().send_able(method, params, true).await.answer().await
    }

    async fn task_and_result(&self) -> String {
        let name = self.name("");
        let task = match self.begin_task(&name).await {
            Ok(task) => task,
            Err(answer) => {
                assert_eq!(text(&answer), format!("slept {name}"));
                assert!(answer["result"].get("task").is_none(), "{answer}");
                return "no task: the result itself".to_owned();
            }
        };
        self.seat.started(&name).await;
        assert_eq!(self.ask_task("tasks/get", &task).await["result"]["status"], "working");
        self.seat.open_gate(&name);
        if self.client().is_modern() {
            let mut shown = Value::Null;
            eventually_async("the task has ended", DEADLINE, async || {
                shown = self.ask_task("tasks/get", &task).await;
                shown["result"]["status"] != "working"
            })
            .await;
            let shown = &shown["result"];
            assert_eq!(shown["status"], "completed", "{shown}");
            assert_eq!(shown["result"]["content"][0]["text"], format!("slept {name}"), "{shown}");
            return "a task at once, its result by tasks/get".to_owned();
        }
        let result = self.ask_task("tasks/result", &task).await;
        assert_eq!(text(&result), format!("slept {name}"));
        let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"];
        assert_eq!(*related, task["taskId"], "{result}");
        assert_eq!(self.ask_task("tasks/get", &task).await["result"]["status"], "completed");
        "a task at once, its result by tasks/result".to_owned()
    }

    async fn task_cancel(&self) -> String {
        let name = self.name("");
        if self.client().revision < "2025-11-25" {
            let answer =
                self.ask_task("tasks/cancel", &json!({"taskId": "01938c5e-0000-7000-8000-000000000000"})).await;
            return match answer["error"]["code"].as_i64() {
                Some(-32601) => "no such method: -32601".to_owned(),
                _ => answer.to_string(),
            };
        }
        let task = self.begin_task(&name).await.expect("a task");
        self.seat.started(&name).await;
        let answer = self.ask_task("tasks/cancel", &task).await;
        self.seat.cancelled(&name).await;
        let shown = self.ask_task("tasks/get", &task).await;
        assert_eq!(shown["result"]["status"], "cancelled", "{shown}");
        let again = self.ask_task("tasks/cancel", &task).await;
        if answer["result"]["status"] == "cancelled" && again["error"]["code"] == -32602 {
            return "the cancelled task, again -32602; the tool stops".to_owned();
        }
        let is_ack = |answer: &Value| answer["result"].is_object() && answer["result"].get("status").is_none();
        match is_ack(&answer) && is_ack(&again) {
            true => "acknowledged, again too; the tool stops".to_owned(),
            false => format!("{answer}, {again}"),
        }
    }
}

/// The members of the result, as they stand in the answer.
fn members(answer: &str) -> BTreeMap<String, String> {
    #[derive(serde::Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: BTreeMap<String, &'a RawValue>,
    }
    let answer: Answer<'_> = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    answer.result.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}

/// One text, as the fixture writes it.
fn content_of(text: &str) -> String {
    format!("[{{\"type\":\"text\",\"text\":{}}}]", json!(text))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// What the program says about the execution behind an answer.
fn execution(answer: &Value) -> &Value {
    let execution = &answer["result"]["_meta"]["durable-mcp/execution"];
    assert!(execution.is_object(), "no execution: {answer}");
    execution
}
