//! Tasks that ask their client: questions of the server's own tasks and of tools that know none, answered through the
//! task, in parts, again, and at another process.

use serde_json::{Value, json};

use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::{fixture_http, fixture_stdio};
use crate::tasks_scene::{Modern, task_id};

async fn before_the_fixture(head: &str) -> Program {
    Setup::new(&format!("{head}\n{}", server_table("fixture", &fixture_stdio(), ""))).serve().await
}

fn keys(task: &Value) -> Vec<String> {
    task["inputRequests"].as_object().map(|requests| requests.keys().cloned().collect()).unwrap_or_default()
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
    let asking = client.until(&id, "input_required").await;
    let [first, second] = &keys(&asking)[..] else { panic!("{asking}") };
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
