//! The order of the checks, and what a router gets to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Extension;
use axum::routing::{get, post};
use http_body_util::BodyExt;

use super::*;
use crate::http::guard::GuardSettings;
use crate::http::local_token::{self, LocalToken};

fn front(auth: Auth, router: Router) -> Front {
    let listen = "127.0.0.1:7400".parse().unwrap();
    let guard = Guard::new(&GuardSettings { listen, hosts: vec![], origins: vec![] }).unwrap();
    Front {
        guard,
        auth,
        router,
        mcp_paths: vec!["/mcp".into()],
        namespaces: ["acme".to_owned()].into(),
        body_bytes_max: 8,
    }
}

fn connection() -> Connection {
    Connection { peer: "127.0.0.1:5".parse().unwrap(), local: "127.0.0.1:7400".parse().unwrap() }
}

async fn ask(front: &Front, request: Request) -> (u16, String) {
    let response = front.handle(request, connection()).await;
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

fn request(path: &str, pairs: &[(&str, &str)]) -> Request {
    let mut request = axum::http::Request::post(path).header("host", "localhost:7400");
    for (name, value) in pairs {
        request = request.header(*name, *value);
    }
    request.body(Body::from("12345678")).unwrap()
}

async fn who(Extension(principal): Extension<Principal>, Extension(access): Extension<Access>) -> String {
    format!("{} as {}", access.principal.subject, principal.subject)
}

#[tokio::test]
async fn a_foreign_host_or_origin_reaches_no_router() {
    let reached = Arc::new(AtomicUsize::new(0));
    let counted = reached.clone();
    let handler = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        "here"
    };
    let front =
        front(Auth::none(None), Router::new().route("/healthz", post(handler.clone())).route("/mcp", post(handler)));
    for path in ["/mcp", "/healthz"] {
        assert_eq!(ask(&front, request(path, &[("origin", "https://evil.example")])).await.0, 403);
        let mut foreign = request(path, &[]);
        foreign.headers_mut().insert("host", "evil.example".parse().unwrap());
        assert_eq!(ask(&front, foreign).await.0, 421);
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0);
    assert_eq!(ask(&front, request("/mcp", &[("origin", "http://localhost:5173")])).await, (200, "here".into()));
}

#[tokio::test]
async fn without_authentication_the_local_token_changes_nothing_for_mcp() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalToken::write(folder.path(), "127.0.0.1:7400".parse().unwrap()).unwrap();
    let bearer = format!("Bearer {}", local_token::find(folder.path(), "127.0.0.1", 7400).unwrap());
    let front = front(Auth::none(Some(local)), Router::new().route("/mcp", post(who)).route("/api", post(who)));
    for (path, pairs, expect) in [
        ("/mcp", vec![], "anonymous as anonymous"),
        ("/api", vec![], "anonymous as anonymous"),
        ("/mcp", vec![("authorization", bearer.as_str())], "operator as anonymous"),
        ("/api", vec![("authorization", bearer.as_str())], "operator as operator"),
    ] {
        assert_eq!(ask(&front, request(path, &pairs)).await, (200, expect.into()), "{path}");
    }
}

#[tokio::test]
async fn health_is_open_and_everything_else_needs_a_credential() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let store = crate::store::open(&url, &crate::store::StoreSettings::for_tests()).await.unwrap();
    let tokens = crate::http::token::Tokens::new(store, crate::engine::clock::Clock::System);
    let router = Router::new().route("/healthz", get(async || "alive")).route("/mcp", post(who));
    let front = front(Auth::token(tokens), router);
    for path in ["/mcp", "/mcp/acme", "/api/v1/executions", "/dashboard", "/healthz/x", "/nothing"] {
        let response = front.handle(request(path, &[]), connection()).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"durable-mcp\"");
    }
    let probe = axum::http::Request::get("/healthz").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(ask(&front, probe).await.0, 200);
    // The page is loaded before it can have a credential; this router has none.
    let page = axum::http::Request::get("/").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(ask(&front, page).await.0, 404);
}

#[tokio::test]
async fn mcp_needs_the_scope_call() {
    let settings = crate::http::proxy::ProxySettings {
        principal_header: "user".into(),
        namespace_header: "namespace".into(),
        scopes_header: "scopes".into(),
        peers: vec!["127.0.0.1".into()],
    };
    let proxy = crate::http::proxy::Proxy::new(&settings).unwrap();
    let router = Router::new().route("/mcp", post(who)).route("/mcp/{namespace}", post(who)).route("/mcpx", post(who));
    let front = front(Auth::proxy(proxy), router);
    for (path, scopes, expect) in [
        ("/mcp", "call", 200),
        ("/mcp", "read", 403),
        ("/mcp/acme", "read", 403),
        ("/mcpx", "read", 200),
        ("/mcp", "admin", 200),
    ] {
        let asked = request(path, &[("user", "ann"), ("scopes", scopes)]);
        assert_eq!(ask(&front, asked).await.0, expect, "{path} {scopes}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_or_while_it_is_read() {
    let echo = async |body: String| body;
    let router = Router::new().route("/api", post(echo)).layer(axum::extract::DefaultBodyLimit::disable());
    let front = front(Auth::none(None), router);
    assert_eq!(ask(&front, request("/api", &[])).await, (200, "12345678".into()));
    let of = |body: Body| axum::http::Request::post("/api").header("host", "localhost").body(body).unwrap();
    let (status, text) = ask(&front, of(Body::from("123456789"))).await;
    assert_eq!(status, 413);
    assert!(text.contains("body_too_large"), "{text}");
    // Its length is not known before it is read.
    let pieces = ["12345", "6789"].map(Ok::<_, std::io::Error>);
    let streamed = Body::from_stream(futures_util::stream::iter(pieces));
    assert_eq!(ask(&front, of(streamed)).await.0, 413);
}

#[tokio::test]
async fn a_panic_is_an_internal_fault_without_its_text() {
    async fn broken() -> &'static str {
        panic!("the secret of the house")
    }
    let front = front(Auth::none(None), Router::new().route("/mcp", post(broken)));
    let (status, text) = ask(&front, request("/mcp", &[])).await;
    assert_eq!(status, 500);
    assert!(text.contains("internal fault") && !text.contains("secret"), "{text}");
}
