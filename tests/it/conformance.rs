//! The official conformance suite against our fixture server: directly, which proves the fixture, and through `serve` with
//! the fixture as its upstream over stdio and over HTTP. The suite drives and judges; here every scenario has to be there
//! and every check of it a success, warnings included. Nothing is expected to fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use crate::skip_loudly;
use crate::support::client::Target;
use crate::support::program::{Program, Setup, server_table};
use crate::support::servers::{fixture_http, fixture_stdio};
use crate::support::{clients_folder, scratch, suite_is_set_up};

/// How long a scenario may take before the suite gives it up.
const SCENARIO_TIMEOUT_MS: &str = "15000";
/// The directory of a scenario's results ends with the time.
const TIME_LENGTH: usize = "-2026-07-28T00-00-00-000Z".len();

/// What the suite requires of a revision and what it runs besides without scoring it: both have to pass.
struct Revision {
    name: &'static str,
    scenarios: &'static [&'static str],
}

const LEGACY: Revision = Revision {
    name: "2025-11-25",
    scenarios: &[
        "completion-complete",
        "dns-rebinding-protection",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "json-schema-2020-12",
        "logging-set-level",
        "ping",
        "prompts-get-embedded-resource",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-with-image",
        "prompts-list",
        "resources-list",
        "resources-read-binary",
        "resources-read-text",
        "resources-subscribe",
        "resources-templates-read",
        "resources-unsubscribe",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-sse-polling",
        "tools-call-audio",
        "tools-call-elicitation",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-sampling",
        "tools-call-simple-text",
        "tools-call-with-logging",
        "tools-call-with-progress",
        "tools-list",
    ],
};

const MODERN: Revision = Revision {
    name: "2026-07-28",
    scenarios: &[
        "caching",
        "completion-complete",
        "dns-rebinding-protection",
        "http-custom-header-server-validation",
        "http-header-validation",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-list-roots",
        "input-required-result-basic-sampling",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-multiple-input-requests",
        "input-required-result-non-tool-request",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "json-schema-2020-12",
        "prompts-get-embedded-resource",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-with-image",
        "prompts-list",
        "resources-list",
        "resources-read-binary",
        "resources-read-text",
        "resources-templates-read",
        "sep-2164-resource-not-found",
        "server-sse-multiple-streams",
        "server-stateless",
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-status-notifications",
        "tasks-wire-fields",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-simple-text",
        "tools-call-with-progress",
        "tools-list",
    ],
};

/// Legacy servers that ask back have to know whom they ask, so sessions have legs of their own; requests of 2026-07-28
/// say all that themselves. One tool takes longer than a stream may be open, and is answered on a stream.
const LEGACY_SETTINGS: &str = "isolation = \"session\"\ntools.test_reconnection.response = \"sse\"";

macro_rules! passes {
    ($($name:ident: $revision:expr, $place:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            skip_loudly!(suite_is_set_up());
            $place(&$revision).await;
        }
    )*};
}

passes! {
    the_fixture_passes_2025_11_25_directly: LEGACY, directly;
    the_fixture_passes_2026_07_28_directly: MODERN, directly;
    revision_2025_11_25_passes_through_serve_before_a_stdio_server: LEGACY, before_stdio;
    revision_2026_07_28_passes_through_serve_before_a_stdio_server: MODERN, before_stdio;
    revision_2025_11_25_passes_through_serve_before_an_http_server: LEGACY, before_http;
    revision_2026_07_28_passes_through_serve_before_an_http_server: MODERN, before_http;
}

async fn directly(revision: &Revision) {
    let fixture = fixture_http().await;
    Results::of(revision, fixture.url()).await.check(revision.scenarios);
}

async fn before_stdio(revision: &Revision) {
    let program = before(&fixture_stdio(), revision).await;
    Results::of(revision, program.url()).await.check(revision.scenarios);
}

async fn before_http(revision: &Revision) {
    let fixture = fixture_http().await;
    let program = before(&fixture.target, revision).await;
    Results::of(revision, program.url()).await.check(revision.scenarios);
}

async fn before(fixture: &Target, revision: &Revision) -> Program {
    let settings = if revision.name == LEGACY.name { LEGACY_SETTINGS } else { "" };
    let config = format!("[server]\npoll_after = \"600ms\"\n{}", server_table("fixture", fixture, settings));
    Setup::new(&config).serve().await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    id: String,
    status: String,
    error_message: Option<String>,
}

/// The checks of each scenario that was run.
struct Results(BTreeMap<String, Vec<Check>>);

impl Results {
    /// Runs everything that the suite has for a revision.
    async fn of(revision: &Revision, url: &str) -> Results {
        let folder = scratch();
        let modules = clients_folder().join("node_modules");
        let mut suite = Command::new(modules.join(".bin/node"));
        suite.arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"));
        suite.args(["server", "--url", url, "--requirements", revision.name, "--timeout", SCENARIO_TIMEOUT_MS]);
        suite.arg("--output-dir").arg(folder.path()).kill_on_drop(true);
        let whole = Duration::from_secs(240);
        let output = tokio::time::timeout(whole, suite.output()).await.expect("the suite is done").unwrap();
        let results = Results::read(folder.path());
        assert!(!results.0.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        results
    }

    fn read(folder: &Path) -> Results {
        let scenarios = std::fs::read_dir(folder).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = name.strip_prefix("server-").unwrap_or(name);
            let checks = std::fs::read_to_string(path.join("checks.json")).unwrap();
            (name[..name.len() - TIME_LENGTH].to_owned(), serde_json::from_str(&checks).unwrap())
        });
        Results(scenarios.collect())
    }

    /// These scenarios have passed; the message says of each other one which checks have failed, and why.
    fn check(&self, scenarios: &[&str]) {
        let failures: Vec<String> = scenarios.iter().filter_map(|name| self.failure(name)).collect();
        assert!(failures.is_empty(), "{} of {} scenarios:\n{}", failures.len(), scenarios.len(), failures.join("\n"));
    }

    fn failure(&self, scenario: &str) -> Option<String> {
        let Some(checks) = self.0.get(scenario) else {
            return Some(format!("- {scenario}: has no results"));
        };
        let succeeded = |id: &str| checks.iter().any(|check| check.id == id && check.status == "SUCCESS");
        let mut problems: Vec<String> = checks.iter().filter_map(|check| check.problem()).collect();
        // One scenario only says that it has not been written yet.
        if scenario != "tasks-status-notifications" && !checks.iter().any(|check| check.status == "SUCCESS") {
            problems.push("no check has succeeded".to_owned());
        }
        // Whoever answers before the stream is closed passes without having shown anything.
        if scenario == "server-sse-polling" && !succeeded("server-sse-disconnect-resume") {
            problems.push("server-sse-disconnect-resume has not succeeded".to_owned());
        }
        (!problems.is_empty()).then(|| format!("- {scenario}:\n    {}", problems.join("\n    ")))
    }
}

impl Check {
    fn problem(&self) -> Option<String> {
        let reason = self.error_message.as_deref().unwrap_or("no reason given");
        matches!(self.status.as_str(), "FAILURE" | "WARNING").then(|| format!("{} {}: {reason}", self.status, self.id))
    }
}
