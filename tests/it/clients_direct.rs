//! Real clients directly before real servers, without the program between: what "the same answer" means elsewhere. Each
//! client reaches each server, and the answers are the same each time they are asked for.

use crate::skip_loudly;
use crate::support::client::{Kind, Mode};
use crate::support::servers;
use crate::support::{self, answers};

async fn every_server_answers(client: Kind) {
    for server in servers::Kind::ALL {
        if server.needs_set_up() || client.needs_set_up() {
            skip_loudly!(support::clients_are_set_up());
        }
        let answers = answers::direct_answers(client, server).await;
        let tools = answers["tools"].as_array().unwrap().len();
        assert!(tools >= 4, "{client:?} before {server:?} sees {tools} tools");
        for (label, answer) in answers["calls"].as_object().unwrap() {
            println!("{client:?} {server:?} {label}: {}", answer.to_string().chars().take(160).collect::<String>());
        }
    }
}

macro_rules! each_client {
    ($($name:ident: $kind:expr,)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            every_server_answers($kind).await;
        }
    )*};
}

each_client! {
    typescript_1_reaches_every_server: Kind::Sdk1,
    typescript_2_legacy_reaches_every_server: Kind::Client2(Mode::Legacy),
    typescript_2_auto_reaches_every_server: Kind::Client2(Mode::Auto),
    typescript_2_pinned_reaches_every_server: Kind::Client2(Mode::Modern),
    python_legacy_reaches_every_server: Kind::Python(Mode::Legacy),
    python_auto_reaches_every_server: Kind::Python(Mode::Auto),
    python_pinned_reaches_every_server: Kind::Python(Mode::Modern),
    rmcp_initialize_reaches_every_server: Kind::Rmcp(Mode::Legacy),
    rmcp_auto_reaches_every_server: Kind::Rmcp(Mode::Auto),
    rmcp_discover_reaches_every_server: Kind::Rmcp(Mode::Modern),
}
