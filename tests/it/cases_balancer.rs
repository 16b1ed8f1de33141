//! A server that keeps its sessions in memory, in two instances behind a balancer that opens a new connection for each
//! request: what one session asks for reaches the instance that has it.

use serde_json::json;

use crate::cases_scene::{Caller, text};
use crate::on_every_store;
use crate::support::balancer::Balancer;
use crate::support::client::Target;
use crate::support::ledger::Ledger;
use crate::support::program::{Setup, server_table};
use crate::support::scratch;
use crate::support::servers::kit_http;
use crate::support::stores::On;

on_every_store! {
    all_calls_of_a_session_reach_the_instance_that_has_it;
}

const CALLS: usize = 20;

// A21: an extra hop opens a new connection for each request, and the instance that it meets does not know the session.
async fn all_calls_of_a_session_reach_the_instance_that_has_it(on: On) {
    let folders = [scratch(), scratch()];
    let ledgers = [0, 1].map(|n| Ledger::in_folder(folders[n].path()));
    let first = kit_http(&["--ledger", ledgers[0].path()]).await;
    let second = kit_http(&["--ledger", ledgers[1].path()]).await;
    let balancer = Balancer::start(vec![first.port(), second.port()]).await;
    let kit = Target::url(balancer.url());
    let program = Setup::new(&server_table("kit", &kit, "isolation = \"session\"")).on(on).await.serve().await;
    let caller = Caller::legacy(program.url()).await;
    for n in 0..CALLS {
        let name = format!("call {n}");
        let answer = caller.call("append", json!({"text": name})).await;
        assert_eq!(text(&answer), format!("appended {name}"), "{answer}");
    }
    let runs = ledgers.map(|ledger| ledger.all_starts().len());
    assert!(runs.contains(&CALLS) && runs.contains(&0), "{runs:?}");
    assert!(balancer.connections() >= CALLS, "each over a connection of its own");
    program.check_store().await;
}
