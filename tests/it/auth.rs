//! Who may do what over HTTP, in all three modes: what a credential opens, what it does not, how soon its end counts,
//! and that what belongs to somebody else is as if it were missing.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::program::{Program, Setup};
use crate::support::raw_http::{Request, Response};

const NAMESPACES: &str = "[namespaces.blue]\n[namespaces.red]\ntools = [\"demo_sl*\"]\n";

async fn token(setup: &Setup, more: &[&str]) -> String {
    let ran = setup.cli(&[&["token", "create", "--principal"], more].concat()).await;
    assert!(ran.status.success(), "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

fn request(url: &str, bearer: Option<&str>, method: &str, params: Value) -> Request {
    let request = Request::modern(url, json!(1), method, params);
    match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    }
}

async fn echo(url: &str, bearer: Option<&str>) -> Response {
    let params = json!({"name": "demo_echo", "arguments": {"message": "x"}});
    request(url, bearer, "tools/call", params).exchange(url).await
}

async fn get(program: &Program, path: &str, bearer: Option<&str>) -> Response {
    let url = program.at(path);
    let request = Request::new("GET", &url);
    let request = match bearer {
        Some(bearer) => request.header("Authorization", &format!("Bearer {bearer}")),
        None => request,
    };
    request.exchange(&url).await
}

fn execution_of(response: &Response) -> String {
    let answer = response.answer();
    let id = answer["result"]["_meta"]["durable-mcp/execution"]["id"].as_str();
    id.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A refusal: status, its `WWW-Authenticate`, and a body with code, sentence and next step.
fn assert_refused(response: &Response, status: u16, code: &str, challenge: &str) {
    assert_eq!(response.status, status, "{response:?}");
    let answer = response.answer();
    assert_eq!(answer["code"], code, "{answer}");
    assert!(answer["detail"].is_string() && answer["next"].is_string(), "{answer}");
    let given = response.header("www-authenticate").unwrap_or_default();
    assert!(given.contains(challenge), "{given} has no {challenge}");
    assert_eq!(response.header("cache-control"), Some("no-store"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_opens_what_its_scopes_say_until_it_ends() {
    let setup = Setup::new(&format!("[auth]\nmode = \"token\"\n{NAMESPACES}")).flag("--demo");
    let program = setup.serve_on(0).await;
    let url = program.url();
    let caller = token(&setup, &["ci", "--scope", "call,read"]).await;
    let reader = token(&setup, &["eye", "--scope", "read"]).await;
    let brief = token(&setup, &["guest", "--scope", "call", "--expires-in", "1500ms"]).await;

    // Nothing, nonsense, a stranger's, a changed one, and one that stands where it must not.
    let without = echo(url, None).await;
    assert_refused(&without, 401, "unauthorized", "Bearer realm=");
    assert!(!without.header("www-authenticate").unwrap().contains("error="), "RFC 6750: no error without a credential");
    let stranger = format!("dmcp_{}_{}", "0".repeat(12), "0".repeat(64));
    let changed = format!("{}{}", &caller[..caller.len() - 1], if caller.ends_with('0') { "1" } else { "0" });
    for wrong in ["nonsense", &stranger, &changed, &caller.to_uppercase(), &format!("{caller}x"), &caller[..20]] {
        assert_refused(&echo(url, Some(wrong)).await, 401, "unauthorized", "error=\"invalid_token\"");
    }
    let twice = request(url, Some(&caller), "tools/list", json!({})).header("Authorization", "Bearer other");
    assert_refused(&twice.exchange(url).await, 401, "unauthorized", "error=\"invalid_token\"");
    let basic = request(url, None, "tools/list", json!({})).header("Authorization", &format!("Basic {caller}"));
    assert_refused(&basic.exchange(url).await, 401, "unauthorized", "error=\"invalid_token\"");
    let in_query = format!("{url}?token={caller}");
    assert_eq!(request(&in_query, None, "tools/list", json!({})).exchange(&in_query).await.status, 401);

    assert_eq!(echo(url, Some(&caller)).await.status, 200);
    assert_refused(&echo(url, Some(&reader)).await, 403, "insufficient_scope", "scope=\"call\"");
    assert_eq!(get(&program, "/api/v1/executions", Some(&reader)).await.status, 200);
    assert_refused(&get(&program, "/api/v1/executions", None).await, 401, "unauthorized", "Bearer realm=");
    for open in ["/healthz", "/readyz"] {
        assert_eq!(get(&program, open, None).await.status, 200, "{open} asks for nothing");
    }
    let fresh = token(&setup, &["late", "--scope", "call"]).await;
    assert_eq!(echo(url, Some(&fresh)).await.status, 200, "a token made while the server runs works at once");

    let listed = setup.cli(&["token", "list", "--json"]).await.stdout;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    for secret in [&caller, &reader, &brief, &fresh] {
        assert!(!listed.contains(secret.rsplit('_').next().unwrap()), "a list shows no secret");
    }
    let prefix = caller.split('_').nth(1).unwrap();
    let revoked = setup.cli(&["token", "revoke", prefix]).await;
    assert!(revoked.status.success(), "{}", revoked.stderr);
    let since = Instant::now();
    loop {
        let response = echo(url, Some(&caller)).await;
        if response.status != 200 {
            assert_refused(&response, 401, "unauthorized", "error=\"invalid_token\"");
            assert!(response.text().contains("revoked"), "{response:?}");
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(1), "a revoked token works for more than a second");
    }
    assert_eq!(setup.cli(&["token", "revoke", "000000000000"]).await.status.code(), Some(3));
    let end = Instant::now() + Duration::from_secs(10);
    while echo(url, Some(&brief)).await.status == 200 {
        assert!(Instant::now() < end, "an expired token works");
    }
    let expired = echo(url, Some(&brief)).await;
    assert_refused(&expired, 401, "unauthorized", "error=\"invalid_token\"");
    assert!(expired.text().contains("expired"), "{expired:?}");
    let states = setup.cli(&["token", "list"]).await.stdout;
    for state in ["revoked", "expired", "valid"] {
        assert!(states.contains(state), "{states}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_bounds_tools_keys_paths_and_executions() {
    let setup = Setup::new(&format!("[auth]\nmode = \"token\"\n{NAMESPACES}")).flag("--demo");
    let program = setup.serve_on(0).await;
    let home = token(&setup, &["ann", "--scope", "call,read"]).await;
    let blue = token(&setup, &["ann", "--namespace", "blue", "--scope", "call,read"]).await;
    let other = token(&setup, &["bob", "--namespace", "blue", "--scope", "call,read"]).await;
    let chief = token(&setup, &["eve", "--namespace", "blue", "--scope", "call,read,operate"]).await;
    let red = token(&setup, &["ann", "--namespace", "red", "--scope", "call,read"]).await;

    let undeclared = setup.cli(&["token", "create", "--principal", "ann", "--namespace", "green"]).await;
    assert_eq!(undeclared.status.code(), Some(2));
    assert!(undeclared.stderr.contains("green") && undeclared.stderr.contains("[namespaces."), "{}", undeclared.stderr);

    // The path may name the credential's namespace, and no other.
    let at = |namespace: &str| program.at(&format!("/mcp/{namespace}"));
    assert_eq!(echo(&at("blue"), Some(&blue)).await.status, 200);
    assert_eq!(echo(&at("default"), Some(&home)).await.status, 200);
    for (namespace, bearer) in [("default", &blue), ("red", &blue), ("nobody", &blue), ("blue", &home)] {
        assert_eq!(echo(&at(namespace), Some(bearer)).await.status, 404, "{namespace}");
    }

    // A tenant sees its tools only, and calls no other.
    let list = request(program.url(), Some(&red), "tools/list", json!({})).exchange(program.url()).await.answer();
    let names: Vec<&str> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["demo_sleep", "durable_result"]);
    let hidden = echo(program.url(), Some(&red)).await.answer();
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");

    // One key in two namespaces is two keys; one of another principal is a conflict without an id.
    let keyed = |bearer: &str| {
        let params = json!({"name": "demo_echo", "arguments": {"message": "k"},
            "_meta": {"durable-mcp/idempotencyKey": "one"}});
        request(program.url(), Some(bearer), "tools/call", params)
    };
    let mine = execution_of(&keyed(&blue).exchange(program.url()).await);
    assert_ne!(execution_of(&keyed(&home).exchange(program.url()).await), mine);
    let conflict = keyed(&other).exchange(program.url()).await;
    assert_eq!(conflict.answer()["error"]["code"], -31409, "{conflict:?}");
    assert!(!conflict.text().contains(&mine), "a conflict with somebody else names no id: {conflict:?}");

    // Foreign executions are as if they were missing, by API and by tool; an operator of the namespace sees them.
    let missing = "0198c3f2-0000-7000-8000-000000000000";
    for path in ["", "/events", "/result"] {
        let seen = |id: &str| format!("/api/v1/executions/{id}{path}");
        assert_eq!(get(&program, &seen(&mine), Some(&blue)).await.status, 200, "{path}");
        assert_eq!(get(&program, &seen(&mine), Some(&chief)).await.status, 200, "{path}");
        let nothing = get(&program, &seen(missing), Some(&other)).await;
        for foreign in [&other, &home, &red] {
            let response = get(&program, &seen(&mine), Some(foreign)).await;
            assert_eq!((response.status, &response.body), (404, &nothing.body), "{path}: foreign is like missing");
        }
    }
    let ids = |response: Response| {
        let rows = response.answer()["executions"].as_array().unwrap().clone();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(ids(get(&program, "/api/v1/executions", Some(&blue)).await).contains(&mine));
    assert_eq!(ids(get(&program, "/api/v1/executions", Some(&other)).await), Vec::<String>::new());
    assert!(ids(get(&program, "/api/v1/executions", Some(&chief)).await).contains(&mine));
    assert_eq!(ids(get(&program, "/api/v1/executions?namespace=blue", Some(&home)).await), Vec::<String>::new());
    let result = |bearer: &str, id: &str| {
        let params = json!({"name": "durable_result", "arguments": {"execution_id": id}});
        request(program.url(), Some(bearer), "tools/call", params)
    };
    let told = result(&blue, &mine).exchange(program.url()).await.answer();
    assert_eq!(told["result"]["content"][0]["text"], "k", "{told}");
    let unknown = result(&other, missing).exchange(program.url()).await.text().replace(missing, "");
    for foreign in [&other, &home] {
        let told = result(foreign, &mine).exchange(program.url()).await.text().replace(&mine, "");
        assert_eq!(told, unknown, "foreign is like missing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_answers_nobody_but_its_owner() {
    let setup = Setup::new("[auth]\nmode = \"token\"\n").flag("--demo");
    let program = setup.serve_on(0).await;
    let (url, ann, bob) = (program.url(), token(&setup, &["ann"]).await, token(&setup, &["bob"]).await);
    let send = |bearer: &str, request: Request| request.header("Authorization", &format!("Bearer {bearer}"));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let opened = send(&ann, Request::legacy(url, None, &hello.to_string())).exchange(url).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let legacy = || Request::legacy(url, Some(&session), ping);
    assert_eq!(send(&ann, legacy()).exchange(url).await.status, 200);
    let stream = || Request::new("GET", url).header("Accept", "text/event-stream").header("Mcp-Session-Id", &session);
    let delete = || Request::new("DELETE", url).header("Mcp-Session-Id", &session);
    for foreign in [legacy(), stream(), delete()] {
        let refused = send(&bob, foreign).exchange(url).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert_eq!(refused.answer()["error"]["code"], -32003, "{refused:?}");
    }
    assert_eq!(legacy().exchange(url).await.status, 401, "a session id is no credential");
    assert_eq!(send(&ann, legacy()).exchange(url).await.status, 200, "a stranger's DELETE ended nothing");
    assert_eq!(send(&ann, delete()).exchange(url).await.status, 204);
    assert_eq!(send(&ann, delete()).exchange(url).await.status, 204, "a stale DELETE is none to complain about");
    let gone = send(&ann, legacy()).exchange(url).await;
    assert_eq!((gone.status, gone.answer()["error"]["code"].as_i64()), (404, Some(-32001)), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn identity_headers_count_from_listed_proxies_only() {
    let config = |peer: &str| format!("[auth]\nmode = \"proxy\"\nproxy = {{ peers = [\"{peer}\"] }}\n{NAMESPACES}");
    let trusted = Setup::new(&config("127.0.0.0/8")).flag("--demo").serve_on(0).await;
    let strict = Setup::new(&config("10.9.8.7")).flag("--demo").serve_on(0).await;
    let ask = |program: &Program, headers: &[(&str, &str)]| {
        let params = json!({"name": "demo_echo", "arguments": {"message": "x"}});
        let mut request = Request::modern(program.url(), json!(1), "tools/call", params);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let url = program.url().to_owned();
        async move { request.exchange(&url).await }
    };
    let (user, space, scopes) = ("X-Forwarded-User", "X-Durable-MCP-Namespace", "X-Durable-MCP-Scopes");
    let called = ask(&trusted, &[(user, "ann"), (space, "blue")]).await;
    assert_eq!(called.status, 200, "{called:?}");
    let id = execution_of(&called);
    let url = trusted.at(&format!("/api/v1/executions/{id}"));
    let read = |name: &str| Request::new("GET", &url).header(user, name).header(space, "blue");
    let row = read("ann").exchange(&url).await.answer();
    assert_eq!((&row["principal"], &row["namespace"]), (&json!("ann"), &json!("blue")));
    assert_eq!(read("bob").exchange(&url).await.status, 404);

    assert_refused(&ask(&strict, &[(user, "ann")]).await, 401, "unauthorized", "Bearer");
    for nobody in [vec![], vec![(user, "")], vec![(user, "anonymous")], vec![(user, "ann"), (user, "eve")]] {
        assert_refused(&ask(&trusted, &nobody).await, 401, "unauthorized", "Bearer");
    }
    assert_refused(&ask(&trusted, &[(user, "ann"), (space, "a b")]).await, 401, "unauthorized", "Bearer");
    let undeclared = ask(&trusted, &[(user, "ann"), (space, "green")]).await;
    assert_refused(&undeclared, 403, "namespace_unknown", "");
    assert!(undeclared.text().contains("[namespaces."), "{undeclared:?}");
    let reader = ask(&trusted, &[(user, "ann"), (scopes, "read")]).await;
    assert_refused(&reader, 403, "insufficient_scope", "scope=\"call\"");
    assert_refused(&ask(&trusted, &[(user, "ann"), (scopes, "everything")]).await, 403, "insufficient_scope", "call");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_authentication_payloads_need_the_local_token() {
    let mut program = Setup::new("").flag("--demo").serve().await;
    let folder = program.setup.data_dir().join("servers");
    let file = folder.join(format!("127.0.0.1_{}.token", program.port()));
    let local = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let id = execution_of(&echo(program.url(), None).await);
    let path = |end: &str| format!("/api/v1/executions/{id}{end}");
    for end in ["", "/events"] {
        assert_eq!(get(&program, &path(end), None).await.status, 200, "{end} has no payload");
    }
    assert_refused(&get(&program, &path("/result"), None).await, 401, "local_token_needed", "Bearer");
    let wrong = format!("dmcp_local_{}", "0".repeat(64));
    assert_refused(&get(&program, &path("/result"), Some(&wrong)).await, 401, "local_token_needed", "Bearer");
    let result = get(&program, &path("/result"), Some(&local)).await;
    assert_eq!(result.answer()["result"]["content"][0]["text"], "x", "{result:?}");
    // A caller's keys must not depend on whether a token was at hand.
    let row = get(&program, &path(""), Some(&local)).await.answer();
    let again = execution_of(&echo(program.url(), Some(&local)).await);
    let other = get(&program, &format!("/api/v1/executions/{again}"), Some(&local)).await.answer();
    assert_eq!(row["principal"], other["principal"]);
    let found = program.setup.cli(&["executions", "result", &id, "--url", program.url()]).await;
    assert!(found.status.success() && found.stdout.contains("\"x\""), "the CLI finds the token: {}", found.stderr);
    assert!(program.sigterm().await.success());
    assert!(!file.exists(), "a graceful end takes the token away");
}
