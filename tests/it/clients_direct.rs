//! Real clients directly before real servers, without the program between: each client can do what the other tests ask
//! of it (keys, cancellation, progress, its own deadline). What answers they get is in `through`.

use serde_json::json;

use crate::skip_loudly;
use crate::support::answers::direct_answers;
use crate::support::client::{Call, Client, Kind, Mode};
use crate::support::ledger::Ledger;
use crate::support::servers::{self, Server};
use crate::support::{self, DEADLINE};

macro_rules! each_client {
    ($($name:ident: $kind:expr,)*) => {$(
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sends_keys_tells_progress_and_cancels() {
                if $kind.needs_set_up() {
                    skip_loudly!(support::clients_are_set_up());
                }
                let folder = support::scratch();
                let server = Server::start(servers::Kind::KitHttp, folder.path()).await;
                let target = server.target.clone().header("X-Test", "seen").named("ability");
                let client = Client::connect($kind, &target).await;
                check_abilities(&client, &Ledger::in_folder(folder.path())).await;
                client.close().await;
            }
        }
    )*};
}

each_client! {
    typescript_1: Kind::Sdk1,
    typescript_2_legacy: Kind::Client2(Mode::Legacy),
    typescript_2_auto: Kind::Client2(Mode::Auto),
    typescript_2_pinned: Kind::Client2(Mode::Modern),
    python_legacy: Kind::Python(Mode::Legacy),
    python_auto: Kind::Python(Mode::Auto),
    python_pinned: Kind::Python(Mode::Modern),
    rmcp_initialize: Kind::Rmcp(Mode::Legacy),
    rmcp_auto: Kind::Rmcp(Mode::Auto),
    rmcp_discover: Kind::Rmcp(Mode::Modern),
}

async fn check_abilities(client: &Client, ledger: &Ledger) {
    let expected = if client.kind() == client.kind().for_legacy_server() && !is_auto(client.kind()) {
        "2025-11-25"
    } else {
        "2026-07-28"
    };
    assert_eq!(client.protocol(), expected);

    let keyed = Call::new("append", json!({"text": "keyed"})).key("k-1");
    client.start(keyed).await.answer().await.unwrap();
    assert_eq!(ledger.starts("keyed")[0].key.as_deref(), Some("k-1"));

    let received = client.call("received", json!({})).await.unwrap();
    assert!(received["content"][1]["text"].as_str().unwrap().contains(r#""x-test":"seen""#), "{received}");

    let mut ticking = client.start(Call::new("slow", json!({"seconds": 0.5, "text": "ticking"})).progress()).await;
    let cancelled = client.start(Call::new("slow", json!({"seconds": 60, "text": "cancelled"}))).await;
    let hasty = client.start(Call::new("slow", json!({"seconds": 60, "text": "hasty"})).timeout_ms(400)).await;
    assert_eq!(ticking.next_progress().await["progress"].as_f64(), Some(1.0));
    assert_eq!(ticking.next_progress().await["progress"].as_f64(), Some(2.0));
    ledger.wait_for_start("cancelled", DEADLINE).await;
    client.cancel(&cancelled).await;
    cancelled.answer().await.unwrap_err();
    hasty.answer().await.unwrap_err();
    ticking.answer().await.unwrap();
    support::eventually("both cancellations reach the server", DEADLINE, || {
        ledger.cancels("cancelled") == 1 && ledger.cancels("hasty") == 1
    })
    .await;
}

fn is_auto(kind: Kind) -> bool {
    matches!(kind, Kind::Client2(Mode::Auto) | Kind::Python(Mode::Auto) | Kind::Rmcp(Mode::Auto))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_script_gets_the_same_answers_again() {
    let client = Kind::Rmcp(Mode::Auto);
    for server in [servers::Kind::KitStdio, servers::Kind::KitHttp, servers::Kind::RmcpStdio, servers::Kind::RmcpHttp] {
        assert_eq!(direct_answers(client, server).await, direct_answers(client, server).await, "{server:?}");
    }
}
