//! Who may see which execution, route by route, and what parameters mean.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt;
use serde_json::Value;
use tempfile::TempDir;
use tower_service::Service;

use super::*;
use crate::http::auth::Proof;
use crate::model::decide::{Command, LeaseRequest};
use crate::model::event::Digest;
use crate::model::execution::Identification;
use crate::model::id::{ExecutionId, OperationId, ProcessId};
use crate::model::policy::Identity;
use crate::model::principal::{Principal, Scopes};
use crate::model::submit::{IfWaited, Submission};
use crate::store::{Apply, PayloadKind, StoreSettings, Submit};

const RESULT: &str = r#"{"content":[], "n": 1.0}"#;

struct Scene {
    _folder: TempDir,
    store: Arc<dyn Store>,
    router: Router,
    made: u8,
}

fn id(n: u8) -> ExecutionId {
    ExecutionId::new(1_000 + i64::from(n), &[n; 10])
}

fn access(subject: &str, namespace: &str, scopes: &[Scope]) -> Access {
    let principal = Principal { subject: subject.into(), namespace: namespace.into(), scopes: Scopes::of(scopes) };
    Access { principal, proof: Proof::Credential }
}

fn local() -> Access {
    Access { proof: Proof::LocalToken, ..access("operator", "default", &[Scope::Admin]) }
}

impl Scene {
    async fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("a.db").display());
        let store = crate::store::open(&url, &StoreSettings::for_tests()).await.unwrap();
        let engine =
            Engine::open(store.clone(), crate::engine::clock::Clock::System, Default::default(), &[]).await.unwrap();
        Scene { _folder: folder, router: routes(engine), store, made: 0 }
    }

    fn operation(&mut self) -> OperationId {
        self.made += 1;
        OperationId::new(0, &[self.made; 10])
    }

    async fn submit(&mut self, n: u8, principal: &str, namespace: &str) {
        let process = ProcessId::new(0, &[9; 10]);
        let ident = Identification {
            namespace: namespace.into(),
            upstream: "demo".into(),
            tool: format!("tool_{n}"),
            key: Some(format!("key-{n}")),
            principal: principal.into(),
            arguments_hash: "aa".into(),
            ..Identification::sample(id(n))
        };
        let submission = Submission {
            ident,
            identity: Identity::default(),
            run_at_ms: None,
            by: None,
            lease: Some(LeaseRequest { worker: "w".into(), process, ttl_ms: 1_000, takes_over: None }),
            waiter: None,
            if_waited: IfWaited::New,
        };
        let operation = self.operation();
        let submit = Submit { submission, arguments: "{}".into(), meta: None, operation, now_ms: 1_000 };
        self.store.submit(submit).await.unwrap();
    }

    async fn complete(&mut self, n: u8) {
        let command = Command::Complete { fencing_token: 1, result: Digest::of(RESULT), is_error: false };
        let operation = self.operation();
        let payload = Some((PayloadKind::Result, RESULT.into()));
        let apply = Apply { id: id(n), command, payload, operation, now_ms: 1_001, seen: None };
        self.store.apply(apply).await.unwrap();
    }

    async fn ask(&self, access: &Access, path: &str) -> (u16, String) {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(access.clone());
        let response = self.router.clone().call(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn tools(&self, access: &Access, query: &str) -> Vec<String> {
        let (status, body) = self.ask(access, &format!("/api/v1/executions{query}")).await;
        assert_eq!(status, 200, "{query}: {body}");
        let page: Value = serde_json::from_str(&body).unwrap();
        let rows = page["executions"].as_array().unwrap();
        rows.iter().map(|row| row["tool"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_foreign_execution_is_as_if_it_were_missing_on_every_route() {
    let mut scene = Scene::new().await;
    scene.submit(1, "ann", "acme").await;
    scene.complete(1).await;
    let missing = scene.ask(&local(), &format!("/api/v1/executions/{}", id(99))).await;
    assert_eq!(missing.0, 404);
    let foreign = [
        access("bob", "acme", &[Scope::Read, Scope::Call]),
        access("ann", "default", &[Scope::Read, Scope::Call]),
        access("root", "default", &[Scope::Admin]),
    ];
    for route in ["", "/events", "/result"] {
        let path = format!("/api/v1/executions/{}{route}", id(1));
        for access in &foreign {
            assert_eq!(scene.ask(access, &path).await, missing, "{route} as {access:?}");
        }
        for access in [access("ann", "acme", &[Scope::Read]), access("boss", "acme", &[Scope::Admin]), local()] {
            assert_eq!(scene.ask(&access, &path).await.0, 200, "{route} as {access:?}");
        }
        let anybody = scene.ask(&Access::anonymous(), &path).await;
        assert_eq!(anybody.0, if route == "/result" { 401 } else { 404 });
        let no_scope = scene.ask(&access("ann", "acme", &[Scope::Call]), &path).await;
        assert_eq!(no_scope.0, 403, "{route}");
    }
}

#[tokio::test]
async fn a_list_shows_what_the_caller_may_see_and_no_more() {
    let mut scene = Scene::new().await;
    for (n, principal, namespace) in [(1, "anonymous", "default"), (2, "ann", "acme"), (3, "bob", "acme")] {
        scene.submit(n, principal, namespace).await;
    }
    for (access, query, expect) in [
        (Access::anonymous(), "", vec!["tool_1"]),
        (access("ann", "acme", &[Scope::Read]), "", vec!["tool_2"]),
        (access("ann", "acme", &[Scope::Read]), "?principal=bob", vec![]),
        (access("ann", "acme", &[Scope::Read]), "?namespace=default", vec![]),
        (access("boss", "acme", &[Scope::Admin]), "", vec!["tool_3", "tool_2"]),
        (access("boss", "acme", &[Scope::Admin]), "?principal=bob", vec!["tool_3"]),
        (access("boss", "acme", &[Scope::Admin]), "?namespace=default", vec![]),
        (local(), "", vec!["tool_3", "tool_2", "tool_1"]),
        (local(), "?namespace=acme&principal=ann", vec!["tool_2"]),
        (local(), "?state=leased&tool=tool_3&upstream=demo", vec!["tool_3"]),
        (local(), "?state=ready,failed&state=unknown", vec![]),
        (local(), "?limit=1", vec!["tool_3"]),
        (local(), &format!("?before={}", id(3)), vec!["tool_2", "tool_1"]),
        (local(), &format!("?id_prefix={}", &id(2).to_string()[..20]), vec!["tool_2"]),
    ] {
        assert_eq!(scene.tools(&access, query).await, expect, "{query} as {access:?}");
    }
    let (_, page) = scene.ask(&local(), "/api/v1/executions?limit=2").await;
    assert!(page.ends_with(&format!(r#""next_before":"{}"}}"#, id(2))), "{page}");
}

#[tokio::test]
async fn a_parameter_that_can_not_be_used_is_a_bad_request() {
    let scene = Scene::new().await;
    let one = format!("/{}", id(1));
    for (path, query) in [
        ("", "?nonsense=1"),
        ("", "?state=running"),
        ("", "?state="),
        ("", "?limit=0"),
        ("", "?limit=1001"),
        ("", "?limit=-1"),
        ("", "?limit=+1"),
        ("", "?before=7"),
        ("", "?tool=a&tool=b"),
        (&one, "?x=1"),
        (&format!("{one}/events"), "?after=-1"),
        (&format!("{one}/events"), "?after=99999999999999999999"),
        (&format!("{one}/events"), "?before=1"),
        (&format!("{one}/result"), "?x"),
    ] {
        let (status, body) = scene.ask(&local(), &format!("/api/v1/executions{path}{query}")).await;
        assert_eq!(status, 400, "{path}{query}: {body}");
        assert!(body.contains("\"next\":"), "{body}");
    }
    for name in ["7", "nonsense", &id(1).as_uuid().simple().to_string()] {
        assert_eq!(scene.ask(&local(), &format!("/api/v1/executions/{name}")).await.0, 404, "{name}");
    }
}

#[tokio::test]
async fn a_result_is_told_byte_for_byte_and_events_come_in_pages() {
    let mut scene = Scene::new().await;
    scene.submit(1, "ann", "acme").await;
    let path = format!("/api/v1/executions/{}", id(1));
    let (_, running) = scene.ask(&local(), &format!("{path}/result")).await;
    assert!(running.contains(r#""state":"leased","is_error":null,"result":null"#), "{running}");
    scene.complete(1).await;
    let (_, ended) = scene.ask(&local(), &format!("{path}/result")).await;
    assert!(ended.contains(&format!(r#""is_error":false,"result":{RESULT},"#)), "{ended}");

    let (_, all) = scene.ask(&local(), &format!("{path}/events")).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    let types: Vec<&str> = all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["submitted", "leased", "completed"]);
    assert_eq!(all["next_after"], Value::Null);
    let (_, page) = scene.ask(&local(), &format!("{path}/events?after=1&limit=1")).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((&page["events"][0]["seq"], &page["next_after"]), (&Value::from(2), &Value::from(2)));
}
