//! What a session asked to hear once reaches its server again after a restart, and from another process: its client sends
//! nothing for that, no `initialize`, no `logging/setLevel`, no `resources/subscribe`.

use serde_json::{Value, json};

use crate::skip_loudly;
use crate::support::client::{Client, Kind, Target};
use crate::support::clients_are_set_up;
use crate::support::cut_proxy::CutProxy;
use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::kit_stdio;

const URI: &str = "corpus://numbers";

/// A server for each session, which logs the level it was told, and tells of a resource, as soon as that is subscribed to.
/// A client that was cut comes back after a pause in which a process is started again.
async fn serve() -> Program {
    let kit = server_table("kit", &kit_stdio(&["--offers"]), "isolation = \"session\"");
    Setup::new(&format!("[server]\nretry = \"3s\"\n{kit}")).serve().await
}

/// Both notifications, for the `number`th time.
async fn hears(client: &Client, number: usize) {
    let updated = client.numbered_notification("notifications/resources/updated", number).await;
    assert_eq!(updated["params"], json!({"uri": URI}));
    let logged = client.numbered_notification("notifications/message", number).await;
    assert_eq!(logged["params"]["data"], json!({"level": "info"}), "the server knows the level: {logged}");
}

async fn asks_once(target: &Target) -> Client {
    let client = Client::connect(Kind::Sdk1, target).await;
    client.request("logging/setLevel", json!({"level": "info"})).await.unwrap();
    client.request("resources/subscribe", json!({"uri": URI})).await.unwrap();
    hears(&client, 1).await;
    client
}

async fn sessions(program: &Program) -> Vec<Value> {
    let ran = program.setup.cli(&["sessions", "list", "--json"]).await;
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn level_and_subscriptions_of_a_real_client_reach_the_server_again_after_a_kill() {
    skip_loudly!(clients_are_set_up());
    let mut program = serve().await;
    let client = asks_once(&program.target()).await;
    for number in 2..4 {
        program = program.restart().await;
        hears(&client, number).await;
    }
    assert_eq!(sessions(&program).await.len(), 1, "no second initialize");
    let said = client.call("echo", json!({"text": "still there"})).await.unwrap();
    assert!(said["content"][0]["text"].as_str().unwrap().contains("still there"), "{said}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn level_and_subscriptions_of_a_real_client_reach_the_server_of_a_second_process() {
    skip_loudly!(clients_are_set_up());
    let program = serve().await;
    let proxy = CutProxy::start(program.port()).await;
    let target = Target::url(format!("http://127.0.0.1:{}/mcp", proxy.port));
    let client = asks_once(&target).await;
    let other = program.setup.serve().await;
    proxy.switch_to(other.port());
    hears(&client, 2).await;
    // And back, to the process that had it first.
    proxy.switch_to(program.port());
    assert_eq!(
        client.call("echo", json!({"text": "back"})).await.unwrap()["content"][0]["text"],
        json!("{\"text\":\"back\"}")
    );
    assert_eq!(sessions(&program).await.len(), 1, "no second initialize");
    client.close().await;
}
