//! Who sees which tool, and what is told of it.

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower_service::Service as _;

use super::*;
use crate::engine::catalog::Service;
use crate::engine::clock::Clock;
use crate::engine::view::SettingSource;
use crate::http::auth::Proof;
use crate::model::policy::Policy;
use crate::model::principal::{Principal, Scopes};
use crate::store::StoreSettings;

const DEFINITION: &str = r#"{"name":"add_note", "title":"Add","description":"adds a note","inputSchema":{"x": 1.0}}"#;

fn tool(exposed: &str, upstream: &str, namespaces: Option<&[&str]>) -> Arc<Tool> {
    let namespaces = namespaces.map(|names| names.iter().map(|name| name.to_string()).collect());
    Arc::new(Tool {
        redact: Arc::default(),
        exposed: exposed.into(),
        upstream: upstream.into(),
        name: "add_note".into(),
        definition: RawValue::from_string(DEFINITION.into()).unwrap(),
        has_output_schema: false,
        wants_client: false,
        policy: Policy::default(),
        identity: Default::default(),
        service: Service { namespaces, ..Service::default() },
    })
}

async fn scene() -> (TempDir, Router) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let store = crate::store::open(&url, &StoreSettings::for_tests()).await.unwrap();
    let names = ["crm".to_owned(), "mail".to_owned(), "slow".to_owned()];
    let engine = Engine::open(store, Clock::System, Default::default(), &names).await.unwrap();
    let offer = |tools: Vec<Arc<Tool>>| Offer { known: true, tools, ..Offer::default() };
    engine.catalog().publish("crm", offer(vec![tool("crm__add_note", "crm", None)]));
    let down = Offer { problem: Some("spawn /secret/path failed".into()), ..offer(vec![]) };
    engine.catalog().publish("mail", Offer { tools: vec![tool("mail__add_note", "mail", Some(&["acme"]))], ..down });
    let readiness = Readiness::new(&["slow".to_owned()]);
    let sources: SourceOf = Arc::new(|_, setting| match setting {
        "wait" => SettingSource::Server,
        _ => SettingSource::BuiltIn,
    });
    (folder, routes(Tools { engine, readiness, sources }))
}

fn access(namespace: &str, scopes: &[Scope]) -> Access {
    let principal = Principal { subject: "ann".into(), namespace: namespace.into(), scopes: Scopes::of(scopes) };
    Access { principal, proof: Proof::Credential }
}

async fn ask(router: &Router, access: &Access, path: &str) -> (u16, String) {
    let mut request = Request::get(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(access.clone());
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn a_tool_is_told_with_its_policy_and_who_said_so() {
    let (_folder, router) = scene().await;
    let reader = access("default", &[Scope::Read]);
    let (status, body) = ask(&router, &reader, "/api/v1/tools/crm__add_note").await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(&format!("\"definition\":{DEFINITION}")), "byte for byte: {body}");
    let view: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(view["policy"]["delivery"], json!({"value": "at_most_once", "source": "built_in"}));
    assert_eq!(view["policy"]["wait"], json!({"value_ms": 50_000, "source": "server"}));
    assert_eq!(view["policy"]["timeout.idle"], json!({"value": null, "source": "built_in"}));
    assert_eq!((&view["title"], &view["upstream_state"]), (&json!("Add"), &json!("up")));
    assert_eq!(ask(&router, &reader, "/api/v1/tools/add_note").await.0, 404);
    assert_eq!(ask(&router, &access("default", &[Scope::Call]), "/api/v1/tools").await.0, 403);
}

#[tokio::test]
async fn tools_of_other_tenants_and_reasons_of_faults_are_not_everybodys() {
    let (_folder, router) = scene().await;
    for (access, tools, upstreams, problem) in [
        (access("default", &[Scope::Read]), 1, 1, false),
        (access("acme", &[Scope::Read]), 2, 2, false),
        (access("acme", &[Scope::Read, Scope::Operate]), 2, 3, true),
    ] {
        let (_, body) = ask(&router, &access, "/api/v1/tools").await;
        let list: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(list["tools"].as_array().unwrap().len(), tools, "{body}");
        assert_eq!(list["upstreams"].as_array().unwrap().len(), upstreams, "{body}");
        assert_eq!(body.contains("/secret/path"), problem, "{body}");
        assert!(!body.contains("inputSchema"), "a list has no definitions: {body}");
        let states: Vec<&Value> = list["upstreams"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
        assert_eq!(states, [json!("up"), json!("down"), json!("starting")][..upstreams].iter().collect::<Vec<_>>());
        let foreign = ask(&router, &access, "/api/v1/tools/mail__add_note").await.0;
        assert_eq!(foreign, if tools == 2 { 200 } else { 404 });
    }
}
