//! Every route of the OpenAPI document × no credential, a missing scope, a foreign principal, a foreign namespace (G21). What
//! opens a route is a table here: a route that is not in it fails, and so does a line without a route.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response, open_session_of};
use crate::support::raw_worker::{RawWorker, fresh_id, tool};
use crate::support::{DEADLINE, eventually_async};

/// What opens a route.
enum Opens {
    /// It needs no credential.
    Anybody,
    /// Any credential.
    Known,
    /// Each of these scopes alone; `admin` opens everything.
    One(&'static [&'static str]),
}

use Opens::{Anybody, Known, One};

const READ: Opens = One(&["read"]);
const OPERATE: Opens = One(&["operate"]);
/// One's own; `operate` everybody's.
const CANCEL: Opens = One(&["cancel", "operate"]);
const WORK: Opens = One(&["work"]);

const SCOPES: [&str; 6] = ["call", "read", "cancel", "work", "operate", "admin"];

/// The table.
const ROUTES: [(&str, &str, Opens); 35] = [
    ("get", "/api/v1/executions", READ),
    ("get", "/api/v1/executions/{id}", READ),
    ("get", "/api/v1/executions/{id}/events", READ),
    ("get", "/api/v1/executions/{id}/result", READ),
    ("get", "/api/v1/executions/{id}/payloads/{kind}", READ),
    ("get", "/api/v1/executions/{id}/why", READ),
    ("get", "/api/v1/executions/{id}/wait", READ),
    ("get", "/api/v1/executions/export", READ),
    ("post", "/api/v1/executions/{id}/cancel", CANCEL),
    ("post", "/api/v1/executions/{id}/retry", OPERATE),
    ("post", "/api/v1/executions/{id}/resolve", OPERATE),
    ("post", "/api/v1/executions/actions", CANCEL),
    ("get", "/api/v1/events", READ),
    ("get", "/api/v1/tools", READ),
    ("get", "/api/v1/tools/{name}", READ),
    ("get", "/api/v1/workers", READ),
    ("post", "/api/v1/workers/{id}/drain", OPERATE),
    ("get", "/api/v1/sessions", READ),
    ("post", "/api/v1/sessions/{id}/close", OPERATE),
    ("get", "/api/v1/totals", READ),
    ("get", "/api/v1/series", READ),
    ("get", "/api/v1/caller", Known),
    ("get", "/api/v1/openapi.json", Known),
    ("get", "/metrics", READ),
    ("get", "/healthz", Anybody),
    ("get", "/readyz", Anybody),
    ("post", "/worker/v1/register", WORK),
    ("post", "/worker/v1/deregister", WORK),
    ("get", "/worker/v1/stats", WORK),
    ("post", "/worker/v1/claim", WORK),
    ("post", "/worker/v1/heartbeat", WORK),
    ("post", "/worker/v1/complete", WORK),
    ("post", "/worker/v1/fail", WORK),
    ("post", "/worker/v1/release", WORK),
    ("post", "/worker/v1/step", WORK),
];

/// What belongs to somebody.
struct Things {
    execution: String,
    worker: String,
    session: String,
    lease: String,
    tool: &'static str,
}

impl Things {
    /// Such things, of nobody.
    fn missing() -> Things {
        let execution = "01990000-0000-7000-8000-000000000000".to_owned();
        Things { execution, worker: fresh_id(), session: "0".repeat(64), lease: "x.1.y".into(), tool: "charge" }
    }

    /// A request that is right in form, about these things.
    fn request(&self, program: &Program, method: &str, path: &str) -> (Request, String) {
        let id = match path {
            path if path.starts_with("/api/v1/workers") => &self.worker,
            path if path.starts_with("/api/v1/sessions") => &self.session,
            _ => &self.execution,
        };
        let mut address = path.replace("{id}", id).replace("{name}", self.tool).replace("{kind}", "arguments");
        match path {
            "/api/v1/executions" | "/api/v1/executions/export" => address += &format!("?id_prefix={id}"),
            "/api/v1/executions/{id}/wait" => address += "?wait_ms=0",
            "/api/v1/events" => address += "?from=2020-01-01T00:00:00Z&limit=500",
            "/worker/v1/stats" => address += &format!("?worker_id={}", self.worker),
            _ => {}
        }
        let url = program.at(&address);
        let request = match (method, self.body(path)) {
            ("post", Some(body)) => Request::post(&url, body.to_string()),
            ("post", None) => Request::post(&url, ""),
            _ => Request::new("GET", &url),
        };
        (request, url)
    }

    fn body(&self, path: &str) -> Option<Value> {
        let lease = json!({"worker_id": self.worker, "lease_token": self.lease});
        let with = |more: Value| {
            let mut body = lease.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let result = json!({"content": [{"type": "text", "text": "forged"}]});
        Some(match path {
            "/api/v1/executions/{id}/cancel" | "/api/v1/executions/{id}/retry" => json!({"reason": "test"}),
            "/api/v1/executions/{id}/resolve" => json!({"outcome": "failed", "reason": "test"}),
            "/api/v1/executions/actions" => {
                json!({"action": "cancel", "filter": {"id_prefix": self.execution}, "preview": true})
            }
            "/worker/v1/register" => {
                json!({"worker_id": self.worker, "name": "forged", "slots": 1, "tools": [tool("charge", "at_least_once")]})
            }
            "/worker/v1/deregister" => json!({"worker_id": self.worker}),
            "/worker/v1/claim" => json!({"worker_id": self.worker, "max": 1, "wait_ms": 0}),
            "/worker/v1/heartbeat" => json!({"worker_id": self.worker, "leases": [{"lease_token": self.lease}]}),
            "/worker/v1/complete" => with(json!({"result": result})),
            "/worker/v1/fail" => with(json!({"error": {"code": "x", "message": "x"}, "retryable": false})),
            "/worker/v1/release" => lease,
            "/worker/v1/step" => with(json!({"name": "s", "result": 1})),
            _ => return None,
        })
    }
}

/// A server whose credentials are tokens.
struct Stage {
    program: Program,
    tokens: BTreeMap<String, String>,
}

impl Stage {
    async fn set() -> Stage {
        let config = "[auth]\nmode = \"token\"\n[namespaces.blue]\n[lease]\nttl = \"120s\"\n";
        let program = Setup::new(config).serve().await;
        Stage { program, tokens: BTreeMap::new() }
    }

    /// A token of this principal, namespace and scopes; the same one each time.
    async fn token(&mut self, principal: &str, namespace: &str, scopes: &[&str]) -> String {
        let name = format!("{principal} {namespace} {scopes:?}");
        if let Some(token) = self.tokens.get(&name) {
            return token.clone();
        }
        let scopes = scopes.join(",");
        let arguments =
            ["token", "create", "--principal", principal, "--namespace", namespace, "--scope", scopes.as_str()];
        let ran = self.program.setup.cli(&arguments).await;
        assert!(ran.status.success(), "{}", ran.stderr);
        self.tokens.entry(name).or_insert(ran.stdout.trim().to_owned()).clone()
    }

    async fn ask(&self, (method, path): (&str, &str), things: &Things, bearer: Option<&str>) -> Response {
        let (request, url) = things.request(&self.program, method, path);
        let request = match bearer {
            Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
            None => request,
        };
        request.exchange(&url).await
    }

    async fn document(&mut self) -> Value {
        let token = self.token("ann", "default", &["read"]).await;
        self.ask(("get", "/api/v1/openapi.json"), &Things::missing(), Some(&token)).await.answer()
    }
}

fn code(response: &Response) -> String {
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    answer["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_document_is_opened_by_its_scopes_and_by_nothing_else() {
    let mut stage = Stage::set().await;
    let document = stage.document().await;
    let paths = document["paths"].as_object().unwrap();
    let described: BTreeSet<(&str, &str)> = paths
        .iter()
        .flat_map(|(path, item)| item.as_object().unwrap().keys().map(move |method| (method.as_str(), path.as_str())))
        .collect();
    let known: BTreeSet<(&str, &str)> = ROUTES.iter().map(|(method, path, _)| (*method, *path)).collect();
    assert_eq!(described, known, "say in ROUTES what opens a route");
    let nobody = Things::missing();
    for (method, path, opens) in &ROUTES {
        let route = (*method, *path);
        let without = stage.ask(route, &nobody, None).await;
        let wrong = stage.ask(route, &nobody, Some("dmcp_000000000000_0")).await;
        if matches!(opens, Anybody) {
            assert_eq!((without.status, wrong.status), (200, 200), "{route:?}");
            continue;
        }
        assert_eq!((without.status, wrong.status), (401, 401), "{route:?} without a credential");
        let opening: &[&str] = if let One(scopes) = opens { scopes } else { &SCOPES };
        for scope in SCOPES {
            let token = stage.token("eve", "default", &[scope]).await;
            let answer = stage.ask(route, &nobody, Some(&token)).await;
            if scope == "admin" || opening.contains(&scope) {
                let refused = [401, 500].contains(&answer.status) || code(&answer) == "insufficient_scope";
                assert!(!refused, "{route:?} with {scope}: {}", answer.text());
                assert_ne!(code(&answer), "invalid_body", "{route:?}: the request of this test is wrong: {answer:?}");
            } else {
                assert_eq!(
                    (answer.status, code(&answer).as_str()),
                    (403, "insufficient_scope"),
                    "{route:?} with {scope}"
                );
            }
        }
        if let One(scopes) = opens {
            let others: Vec<&str> =
                SCOPES.into_iter().filter(|scope| *scope != "admin" && !scopes.contains(scope)).collect();
            let token = stage.token("eve", "default", &others).await;
            let answer = stage.ask(route, &nobody, Some(&token)).await;
            assert_eq!(code(&answer), "insufficient_scope", "{route:?} with everything but {scopes:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_a_foreign_principal_as_if_nothing_were_there() {
    let mut stage = Stage::set().await;
    let ann = stage.token("ann", "default", &["call", "read", "cancel"]).await;
    let worker_token = stage.token("wes", "default", &["work"]).await;
    let worker = RawWorker::with(&stage.program, &worker_token);
    worker.register(json!([tool("charge", "at_least_once")])).await;
    let url = stage.program.url().to_owned();
    let authorization = ("Authorization".to_owned(), format!("Bearer {ann}"));
    let params = json!({"name": "charge", "arguments": {"secret": "canary"}, "_meta": {"durable-mcp/wait": 0}});
    let request = Request::modern(&url, json!(1), "tools/call", params).header("Authorization", &authorization.1);
    let answer = request.exchange(&url).await.answer();
    let execution = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str().unwrap().to_owned();
    let job = worker.job().await;
    assert_eq!(job["execution_id"], execution.as_str());
    open_session_of(&url, "2025-06-18", &json!({}), &[authorization]).await.unwrap();
    let owner = stage.token("op", "default", &["read", "operate"]).await;
    let listed = stage.ask(("get", "/api/v1/sessions"), &Things::missing(), Some(&owner)).await.answer();
    let session = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
    let lease = job["lease_token"].as_str().unwrap().to_owned();
    let things = Things { execution, worker: worker.id.clone(), session, lease, tool: "charge" };
    // Who owns them sees them: else nothing below would prove anything.
    let sees = |answer: &Response| {
        let text = answer.text();
        [&things.execution, &things.worker, &things.session].into_iter().any(|id| text.contains(id.as_str()))
    };
    let own = stage.ask(("get", "/api/v1/executions/{id}"), &things, Some(&ann)).await;
    assert!(own.status == 200 && sees(&own), "{own:?}");
    // An event is shown a moment after it happened.
    eventually_async("the events are shown", DEADLINE, async || {
        sees(&stage.ask(("get", "/api/v1/events"), &things, Some(&owner)).await)
    })
    .await;
    for path in ["/api/v1/executions", "/api/v1/workers", "/api/v1/sessions", "/api/v1/tools"] {
        let answer = stage.ask(("get", path), &things, Some(&owner)).await;
        assert!(sees(&answer) || answer.text().contains("charge"), "{path}: {answer:?}");
    }

    let everything: Vec<&str> = SCOPES.into_iter().filter(|scope| *scope != "admin").collect();
    let own: Vec<&str> = everything.iter().copied().filter(|scope| *scope != "operate").collect();
    // Another principal of the same namespace; and everybody, operators and administrators too, of another one.
    let foreign = [("bob", "default", own), ("bob", "blue", everything), ("ann", "blue", vec!["admin"])];
    let nobody = Things::missing();
    for (principal, namespace, scopes) in &foreign {
        let token = stage.token(principal, namespace, scopes).await;
        for (method, path, opens) in &ROUTES {
            if matches!(opens, Anybody | Known) {
                continue;
            }
            let route = (*method, *path);
            let who = format!("{route:?} as {principal} of {namespace} with {scopes:?}");
            let answer = stage.ask(route, &things, Some(&token)).await;
            let of_nobody = stage.ask(route, &nobody, Some(&token)).await;
            let shared = *namespace == "default"
                && matches!(*path, "/api/v1/workers" | "/api/v1/tools/{name}" | "/api/v1/tools");
            let text = answer.text();
            assert!(!text.contains("canary"), "{who}: {text}");
            if !shared {
                let told = text.replace(&things.execution, "").replace(&things.worker, "").replace(&things.session, "");
                assert!(answer.status != 200 || told == text || path.starts_with("/worker/v1"), "{who}: {text}");
            }
            if path.contains("{id}") {
                assert!([403, 404].contains(&answer.status), "{who}: {text}");
                assert_eq!((answer.status, &text), (of_nobody.status, &of_nobody.text()), "{who}");
            }
            if path.starts_with("/worker/v1") {
                assert!((400..500).contains(&answer.status), "{who}: {text}");
            }
            if *path == "/api/v1/executions/actions" {
                assert_eq!(answer.answer()["matching"], 0, "{who}");
            }
            if *path == "/api/v1/totals" {
                assert_eq!(answer.answer()["executions"]["all"], 0, "{who}");
            }
            if *path == "/api/v1/series" {
                assert_eq!(answer.answer()["sum"]["submitted"], 0, "{who}");
            }
        }
    }
    // Nothing of all that changed anything.
    let head = stage.ask(("get", "/api/v1/executions/{id}"), &things, Some(&ann)).await.answer();
    assert_eq!((&head["state"], &head["attempt"]), (&json!("leased"), &json!(1)), "{head}");
    assert_eq!(worker.complete(&job, "done").await.answer(), json!({"status": "accepted"}));
    let log = stage.ask(("get", "/api/v1/executions/{id}/events"), &things, Some(&ann)).await.answer();
    let kinds: Vec<&str> =
        log["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(kinds.iter().all(|kind| ["submitted", "leased", "completed"].contains(kind)), "{kinds:?}");
    let totals = stage.ask(("get", "/api/v1/totals"), &things, Some(&ann)).await.answer();
    assert_eq!((&totals["executions"]["all"], &totals["executions"]["completed"]), (&json!(1), &json!(1)), "{totals}");
}
