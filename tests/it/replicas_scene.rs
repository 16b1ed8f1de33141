//! What the tests of several processes on one store share: the fixture behind processes with roles of their own, on a store
//! of each kind there is. Asserts nothing by itself.

use serde_json::{Value, json};

use crate::crash_scene::kit_setup;
use crate::support::ledger::Ledger;
use crate::support::program::{Program, Setup};
use crate::support::raw_http::Request;
use crate::support::stores::On;
use crate::support::{DEADLINE, eventually_async};

/// Processes that share a store, a configuration and a ledger.
pub struct Fleet {
    pub setup: Setup,
    pub ledger: Ledger,
}

impl Fleet {
    /// With `head` before the fixture's table, and `tail` as further lines of it.
    pub async fn new(on: On, head: &str, tail: &str) -> Fleet {
        let (setup, ledger) = kit_setup(head, tail);
        Fleet { setup: setup.on(on).await, ledger }
    }

    /// The same with the store at this URL.
    pub fn stored_at(url: &str, head: &str, tail: &str) -> Fleet {
        let (setup, ledger) = kit_setup(head, tail);
        Fleet { setup: setup.stored_at(url), ledger }
    }

    /// How a process with these roles is started.
    pub fn as_roles(&self, roles: &str) -> Setup {
        self.setup.clone().flag("--roles").flag(roles)
    }

    /// A process with these roles, ready.
    pub async fn start(&self, roles: &str) -> Program {
        self.as_roles(roles).serve().await
    }
}

/// The names that a process lists as tools.
pub async fn tools(program: &Program) -> Vec<String> {
    let request = Request::modern(program.url(), json!(1), "tools/list", json!({}));
    let listed = request.exchange(program.url()).await.answer();
    let names = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed}")).iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until a process lists a tool.
pub async fn offers(program: &Program, tool: &str) {
    let listed = async || tools(program).await.iter().any(|name| name == tool);
    eventually_async(&format!("{tool} is listed"), DEADLINE, listed).await;
}

/// `workers list --json`, asked of a process.
pub async fn workers(program: &Program) -> Vec<Value> {
    let ran = program.setup.cli(&["workers", "list", "--json", "--url", &program.at("")]).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The row of a process, by its operating system's number.
pub async fn worker_of(asked: &Program, program: &Program) -> Value {
    let end = format!(".{}", program.process.pid());
    let all = workers(asked).await;
    let row = all.iter().find(|row| row["name"].as_str().is_some_and(|name| name.ends_with(&end)));
    row.unwrap_or_else(|| panic!("no worker {end}: {all:?}")).clone()
}
