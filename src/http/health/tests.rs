//! Ready and not ready, with the reasons.

use axum::body::Body;
use axum::extract::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower_service::Service;

use super::*;
use crate::store::StoreSettings;

async fn ask(router: &Router, path: &str) -> (u16, Value) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().call(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_process_is_ready_when_its_store_works_and_every_upstream_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let store = crate::store::open(&url, &StoreSettings::for_tests()).await.unwrap();
    let readiness = Readiness::new(&["crm".into(), "github".into()]);
    let router = routes(readiness.clone(), store.clone());
    assert_eq!(ask(&router, "/healthz").await, (200, json!({ "status": "alive" })));

    let waiting = |name| json!({ "code": "upstream_starting", "upstream": name });
    let (status, report) = ask(&router, "/readyz").await;
    assert_eq!((status, &report["ready"]), (503, &json!(false)));
    assert_eq!(report["reasons"], json!([waiting("crm"), waiting("github")]));

    readiness.set("crm", Startup::Failed);
    readiness.set("github", Startup::Up);
    let settled = json!({ "crm": "failed", "github": "up" });
    let ready = json!({ "ready": true, "reasons": [], "upstreams": settled });
    assert_eq!(ask(&router, "/readyz").await, (200, ready));

    readiness.drain();
    let (status, report) = ask(&router, "/readyz").await;
    assert_eq!((status, &report["reasons"]), (503, &json!([{ "code": "draining" }])));
}

#[tokio::test]
async fn a_process_without_its_store_is_alive_and_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let store = crate::store::open(&url, &StoreSettings::for_tests()).await.unwrap();
    store.close().await;
    let router = routes(Readiness::new(&[]), store);
    assert_eq!(ask(&router, "/healthz").await.0, 200);
    let (status, report) = ask(&router, "/readyz").await;
    let code = report["reasons"][0]["code"].as_str().unwrap();
    assert_eq!((status, &report["ready"]), (503, &json!(false)));
    assert!(code.starts_with("store_"), "{report}");
}
