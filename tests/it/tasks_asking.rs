//! Tasks that ask their client: questions of the server's own tasks and of tools that know none, answered through the
//! task, in parts, again, and at another process, which has a child of its own or none.

use serde_json::{Value, json};

use crate::on_every_store;
use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::{fixture_http, fixture_stdio};
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};
use crate::tasks_scene::{Modern, task_id};

on_every_store! {
    each_task_of_a_child_ends_well_wherever_its_answer_is_given;
    what_a_dead_process_asked_is_asked_again_or_its_outcome_is_unknown;
}

/// Tasks that ask at once, over two processes.
const ASKED: usize = 20;

async fn before_the_fixture(head: &str) -> Program {
    Setup::new(&format!("{head}\n{}", server_table("fixture", &fixture_stdio(), ""))).serve().await
}

fn keys(task: &Value) -> Vec<String> {
    task["inputRequests"].as_object().map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
}

/// The task once all of a tool's questions are open: it asks them one after the other.
async fn until_asked<const N: usize>(client: &Modern, id: &str) -> [String; N] {
    let mut open = Vec::new();
    eventually_async(&format!("task {id} asks {N} questions"), DEADLINE, async || {
        open = keys(&client.get(id).await["result"]);
        open.len() == N
    })
    .await;
    open.try_into().unwrap()
}

async fn answer(client: &Modern, id: &str, key: &str, content: Value) {
    let responses = json!({"taskId": id, "inputResponses": {key: {"action": "accept", "content": content}}});
    let ack = client.ask("tasks/update", responses).await;
    assert_eq!((&ack["result"]["resultType"], ack["result"].get("taskId")), (&json!("complete"), None), "{ack}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_makes_a_task_makes_one_for_its_client_and_its_question_is_asked_there() {
    let program = before_the_fixture("").await;
    let client = Modern::new(program.url());
    let id = task_id(&client.task("confirm_delete", json!({"filename": "a.txt"})).await);
    let asking = client.until(&id, "input_required").await;
    let [key] = &keys(&asking)[..] else { panic!("{asking}") };
    assert_eq!(asking["inputRequests"][key]["method"], "elicitation/create", "{asking}");
    assert!(asking.get("requestState").is_none());
    // What does not fit is no answer.
    let wrong = json!({"taskId": id, "inputResponses": {key: {"content": {}}}});
    client.ask("tasks/update", wrong).await;
    assert_eq!(keys(&client.get(&id).await["result"]), keys(&asking));
    answer(&client, &id, key, json!({"confirm": true})).await;
    let done = client.until(&id, "completed").await;
    assert!(done["result"]["content"][0]["text"].is_string(), "{done}");
    // The same once more changes nothing.
    answer(&client, &id, key, json!({"confirm": false})).await;
    assert_eq!(client.get(&id).await["result"]["result"]["content"], done["result"]["content"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_come_in_parts_and_at_any_process() {
    // One server that both processes reach: what a child of one of them made, no other can go on with.
    let fixture = fixture_http().await;
    let program = Setup::new(&server_table("fixture", &fixture.target, "")).serve().await;
    let other = program.setup.serve().await;
    let (client, there) = (Modern::new(program.url()), Modern::new(other.url()));
    let id = task_id(&client.task("multi_input", json!({})).await);
    let [first, second] = &until_asked(&client, &id).await;
    answer(&there, &id, first, json!({"value": "one", "name": "one"})).await;
    let partly = client.get(&id).await["result"].clone();
    assert_eq!((&partly["status"], keys(&partly)), (&json!("input_required"), vec![second.clone()]), "{partly}");
    answer(&client, &id, second, json!({"value": "two", "name": "two"})).await;
    client.until(&id, "completed").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_knows_no_tasks_asks_through_one() {
    let program = before_the_fixture("[defaults]\ntasks = \"always\"").await;
    let client = Modern::new(program.url());
    let id = task_id(&client.task("test_input_required_result_elicitation", json!({})).await);
    let asking = client.until(&id, "input_required").await;
    let [key] = &keys(&asking)[..] else { panic!("{asking}") };
    answer(&client, &id, key, json!({"name": "Ann"})).await;
    let done = client.until(&id, "completed").await;
    assert!(done["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("Ann")), "{done}");
}

/// Two processes on one store, each with a child of its own.
async fn two_with_children(on: On) -> (Program, Program) {
    let more = format!("concurrency = {ASKED}\n[servers.fixture.tools.multi_input]\ndelivery = \"at_least_once\"");
    let head = "[defaults]\nretry = { initial_interval = \"50ms\" }\n[scheduler]\ninterval = \"100ms\"";
    let setup = Setup::new(&format!("{head}\n{}", server_table("fixture", &fixture_stdio(), &more))).on(on).await;
    let first = setup.serve().await;
    let second = first.setup.serve().await;
    (first, second)
}

async fn each_task_of_a_child_ends_well_wherever_its_answer_is_given(on: On) {
    let (first, second) = two_with_children(on).await;
    let clients = [Modern::new(first.url()), Modern::new(second.url())];
    let mut asked = Vec::new();
    for n in 0..ASKED {
        let task = clients[n % 2].task("confirm_delete", json!({"filename": format!("f{n}")})).await;
        asked.push(task_id(&task));
    }
    let mut questions = Vec::new();
    for (n, id) in asked.iter().enumerate() {
        // Each pair of processes that may have the task and take its answer.
        let there = &clients[n / 2 % 2];
        let asking = there.until(id, "input_required").await;
        questions.push((there, id, keys(&asking).pop().unwrap()));
    }
    for (there, id, key) in &questions {
        answer(there, id, key, json!({"confirm": true})).await;
    }
    for (n, id) in asked.iter().enumerate() {
        let done = clients[n % 2].until(id, "completed").await;
        assert_eq!(done["result"]["content"][0]["text"], format!("Delete f{n}: true"), "{done}");
    }
    first.check_store().await;
}

async fn what_a_dead_process_asked_is_asked_again_or_its_outcome_is_unknown(on: On) {
    let (mut first, second) = two_with_children(on).await;
    let (client, there) = (Modern::new(first.url()), Modern::new(second.url()));
    let once = task_id(&client.task("confirm_delete", json!({"filename": "once"})).await);
    let more = task_id(&client.task("multi_input", json!({})).await);
    client.until(&once, "input_required").await;
    let asked: [String; 2] = until_asked(&client, &more).await;
    first.kill_9().await;
    let unknown = there.until(&once, "completed").await;
    assert_eq!((&unknown["result"]["isError"], keys(&unknown).len()), (&json!(true), 0), "{unknown}");
    for key in asked {
        there.until(&more, "input_required").await;
        answer(&there, &more, &key, json!({"value": key, "name": key})).await;
    }
    let done = there.until(&more, "completed").await;
    assert!(done["result"]["content"][0]["text"].as_str().is_some_and(|text| text.starts_with("Given: ")), "{done}");
    let states: Vec<_> = second.executions().await.into_iter().map(|row| row["state"].clone()).collect();
    assert!(states.contains(&json!("unknown")) && states.contains(&json!("completed")), "{states:?}");
    second.check_store().await;
}
