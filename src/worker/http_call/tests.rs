//! What is pure of an HTTP tool, as tables: who may be reached, what is sent, what answers mean. Real connections are in
//! `tests/it/http_tools.rs`.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::address::is_public;
use super::*;
use crate::model::decide::FailureKind;
use crate::model::id::ExecutionId;
use crate::worker::upstream::Secret;

fn private() -> Reach {
    Reach { allow_private: true, private_hosts: Vec::new() }
}

#[test]
fn only_addresses_of_the_open_internet_are_public() {
    for address in ["1.1.1.1", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_host_of_this_network_is_reached_only_by_permission() {
    let listed = Reach { allow_private: false, private_hosts: vec!["Intranet.example".into(), "::1".into()] };
    for (url, without, with_list) in [
        ("https://api.example/", true, true),
        ("http://localhost/", false, false),
        ("http://a.localhost./", false, false),
        ("http://127.0.0.1:80/", false, false),
        ("http://2130706433/", false, false),
        ("http://0x7f.1/", false, false),
        ("http://017700000001/", false, false),
        ("http://[::1]:8080/", false, true),
        ("http://[::ffff:10.0.0.1]/", false, false),
        ("http://169.254.169.254/latest/meta-data", false, false),
        ("http://intranet.example/", true, true),
    ] {
        assert_eq!(check_url(url, &Reach::default()).is_ok(), without, "{url}");
        assert_eq!(check_url(url, &listed).is_ok(), with_list, "{url} listed");
        assert!(check_url(url, &private()).is_ok(), "{url} allowed");
    }
    // A name is judged by what it resolves to, each time.
    let found = || vec!["10.0.0.1:0".parse().unwrap(), "93.184.215.14:0".parse().unwrap()];
    assert_eq!(Reach::default().admit("api.example", found()).unwrap(), ["93.184.215.14:0".parse().unwrap()]);
    assert_eq!(listed.admit("INTRANET.example.", found()).unwrap().len(), 2);
    let rebound = Reach::default().admit("api.example", vec!["127.0.0.1:0".parse().unwrap()]);
    assert_eq!(rebound, Err(Unreachable::Private("api.example".into())));
    assert_eq!(private().admit("nowhere", Vec::new()), Err(Unreachable::Unknown("nowhere".into())));
}

#[test]
fn an_argument_never_chooses_the_host() {
    let message = |url| check_url(url, &Reach::default()).unwrap_err().to_string();
    for url in ["ftp://a.example/", "/relative", "https://", "mailto:a@b.example", "a.example/x"] {
        assert_eq!(message(url), "it is no http or https address", "{url}");
    }
    for url in [
        "https://{{arguments.host}}/",
        "https://a.{{arguments.host}}/x",
        "{{arguments.all}}",
        "https://a.example:{{arguments.port}}/",
        "https://{{arguments.user}}@a.example/",
    ] {
        assert_eq!(message(url), "it has a placeholder before its path", "{url}");
    }
    assert_eq!(message("https://a.example/x#y"), "it has a fragment");
    for url in ["https://a.example/{{argument.x}}", "https://a.example/{{arguments.a/b}}", "https://a.example/{{}}"] {
        assert!(message(url).contains("is unknown"), "{url}");
    }
}

const ARGUMENTS: &str = r#"{"id":"a b/../c","n":9007199254740993,"tags":["x","y&z"],"none":null,"dots":"..","empty":"","line":"a\r\nX: y","title":"T\"é"}"#;

fn template(method: Method, url: &str) -> Template {
    Template { method, url: url.into(), headers: Vec::new(), query: None, body: None }
}

fn fill(template: &Template) -> Result<Outgoing, request::Unsendable> {
    template.fill(Attempt {
        arguments: ARGUMENTS,
        effect_key: ExecutionId::new(1, &[2; 10]),
        execution: ExecutionId::new(1, &[1; 10]),
        fencing_token: 7,
    })
}

fn url(method: Method, url: &str) -> Result<String, String> {
    let template = Template { query: Some(Vec::new()), ..template(method, url) };
    fill(&template).map(|outgoing| outgoing.url.to_string()).map_err(|error| error.to_string())
}

#[test]
fn values_stay_in_the_part_of_the_address_they_were_given() {
    let path = "a value for the address is empty, `.` or `..`, which would make it another address";
    for (template, filled) in [
        ("https://a.example/x/{{arguments.id}}", Ok("https://a.example/x/a%20b%2F..%2Fc")),
        ("https://a.example/x/{{arguments.n}}.json?q={{arguments.title}}&z=1", {
            Ok("https://a.example/x/9007199254740993.json?q=T%22%C3%A9&z=1")
        }),
        ("https://a.example/x/{{arguments.dots}}", Err(path)),
        ("https://a.example/x/{{arguments.dots}}/y", Err(path)),
        ("https://a.example/x/%2E{{arguments.empty}}", Err(path)),
        ("https://a.example/x/{{arguments.empty}}", Err(path)),
        ("https://a.example/x/v{{arguments.empty}}", Ok("https://a.example/x/v")),
        ("https://a.example/x/{{arguments.absent}}", Err("the call has no argument absent")),
        ("https://a.example?k={{effect_key}}", Ok("https://a.example/?k=00000000-0001-7202-8202-020202020202")),
    ] {
        assert_eq!(url(Method::POST, template), filled.map(str::to_owned).map_err(str::to_owned), "{template}");
    }
}

#[test]
fn parameters_come_from_templates_or_from_the_arguments_that_nothing_else_takes() {
    let secret = |pairs: &[(&str, &str)]| {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect::<Vec<_>>())
    };
    let with = |query| Template { query, ..template(Method::GET, "https://a.example/{{arguments.n}}?v=1") };
    let query = |template: &Template| fill(template).unwrap().url.query().unwrap_or_default().to_owned();
    assert_eq!(
        query(&with(secret(&[
            ("t", "{{arguments.tags}}"),
            ("q", "title:{{arguments.title}}"),
            ("none", "{{arguments.none}}"),
            ("absent", "{{arguments.absent}}"),
            ("key", "s3cret"),
        ]))),
        "v=1&t=x&t=y%26z&q=title%3AT%22%C3%A9&key=s3cret"
    );
    assert_eq!(
        query(&with(None)),
        "v=1&id=a+b%2F..%2Fc&tags=x&tags=y%26z&dots=..&empty=&line=a%0D%0AX%3A+y&title=T%22%C3%A9"
    );
    assert_eq!(query(&with(secret(&[]))), "v=1");
}

#[test]
fn the_body_is_the_arguments_or_the_template() {
    let outgoing = fill(&template(Method::POST, "https://a.example/")).unwrap();
    assert_eq!(outgoing.body.as_deref(), Some(ARGUMENTS));
    assert_eq!(outgoing.headers["content-type"], "application/json");
    assert_eq!(outgoing.headers["idempotency-key"], "00000000-0001-7202-8202-020202020202");
    assert_eq!(outgoing.headers["x-durable-mcp-fencing-token"], "7");
    assert_eq!(outgoing.headers["x-durable-mcp-execution-id"], "00000000-0001-7101-8101-010101010101");
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        let outgoing = fill(&template(method, "https://a.example/")).unwrap();
        assert_eq!(outgoing.body, None);
        assert!(!outgoing.headers.contains_key("content-type"));
    }
    let body =
        r#"{"n":"{{arguments.n}}","t":"{{arguments.title}}!","none":"{{arguments.none}}","x":"{{arguments.x}}"}"#;
    let with_body = Template { body: Some(body.into()), ..template(Method::PUT, "https://a.example/") };
    assert_eq!(fill(&with_body).unwrap().body.unwrap(), r#"{"n":9007199254740993,"t":"T\"é!","none":null}"#);
}

#[test]
fn the_operators_headers_win_and_no_argument_adds_a_line() {
    let with = |name: &str, value: &str| Template {
        headers: vec![(name.to_owned(), Secret::new(value))],
        ..template(Method::POST, "https://a.example/")
    };
    let outgoing = fill(&with("Idempotency-Key", "mine-{{effect_key}}")).unwrap();
    assert_eq!(outgoing.headers["idempotency-key"], "mine-00000000-0001-7202-8202-020202020202");
    assert_eq!(fill(&with("Content-Type", "application/vnd.api+json")).unwrap().headers["content-type"], {
        "application/vnd.api+json"
    });
    assert!(!fill(&with("X-None", "{{arguments.none}}")).unwrap().headers.contains_key("x-none"));
    let outgoing = fill(&with("Authorization", "Bearer s3cret")).unwrap();
    assert!(outgoing.headers["authorization"].is_sensitive());
    let error = fill(&with("X-Line", "{{arguments.line}}")).unwrap_err();
    assert_eq!(error.to_string(), "a value for the header X-Line has characters that no header can carry");
}

fn reading() -> Reading {
    Reading {
        has_output_schema: false,
        retry_on_status: RETRY_ON_STATUS.to_vec(),
        retry_after_max: Duration::from_secs(60),
        body_bytes_max: 100,
    }
}

fn answer(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Answer {
    let headers: HeaderMap =
        headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect();
    Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Body::Whole(body.to_vec()) }
}

fn result(reading: &Reading, answer: &Answer) -> String {
    match reading.outcome(answer, false) {
        Outcome::Result(result) => result.to_string(),
        other => panic!("no result: {other:?}"),
    }
}

#[test]
fn an_object_is_structured_and_everything_else_is_text() {
    let json = "{ \"n\": 1.0,\r\n\"big\":123456789012345678901234567890 }";
    assert_eq!(
        result(&reading(), &answer(200, &[("content-type", "application/json")], json.as_bytes())),
        "{\"content\":[{\"type\":\"text\",\"text\":\"{ \\\"n\\\": 1.0,\\r\\n\\\"big\\\":123456789012345678901234567890 }\"}],\
         \"structuredContent\":{ \"n\": 1.0,  \"big\":123456789012345678901234567890 }}"
    );
    for (body, text) in
        [("[1]", "[1]"), ("plain\n", "plain\n"), ("{half", "{half"), ("", "The server answered 200 OK.")]
    {
        let result: Value = serde_json::from_str(&result(&reading(), &answer(200, &[], body.as_bytes()))).unwrap();
        assert_eq!(result, serde_json::json!({ "content": [{ "type": "text", "text": text }] }), "{body}");
    }
    let image = answer(200, &[("content-type", "image/png; x=y")], &[1, 2, 255]);
    assert_eq!(result(&reading(), &image), r#"{"content":[{"type":"image","data":"AQL/","mimeType":"image/png"}]}"#);
}

#[test]
fn with_an_output_schema_only_an_object_is_a_success() {
    let strict = Reading { has_output_schema: true, ..reading() };
    assert!(!result(&strict, &answer(200, &[], b"{}")).contains("isError"));
    for body in ["[1]", "text", ""] {
        let result = result(&strict, &answer(200, &[], body.as_bytes()));
        assert!(result.contains(r#""isError":true"#) && result.contains("had its effect"), "{result}");
    }
}

#[test]
fn a_refusal_is_an_answer_with_the_beginning_of_its_body() {
    let result = result(&reading(), &answer(404, &[], &[b'x'; 10_000]));
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("The server answered 404 Not Found. It said:\nxxx") && text.ends_with("x…"), "{text}");
    assert!(text.len() < 8_300, "{}", text.len());
    let moved = super::tests::result(&reading(), &answer(302, &[("location", "http://elsewhere.example/")], b""));
    assert!(moved.contains("points to another address") && !moved.contains("elsewhere"), "{moved}");
    let huge = Answer { body: Body::Beginning(vec![b'x'; 100]), ..answer(200, &[], b"") };
    let huge = super::tests::result(&reading(), &huge);
    assert!(huge.contains("more than 100 bytes") && huge.contains(r#""isError":true"#), "{huge}");
}

#[test]
fn a_status_is_retried_only_where_another_run_is_permitted() {
    for (status, permitted, retried) in
        [(503, true, true), (503, false, false), (429, true, true), (404, true, false), (200, true, false)]
    {
        match reading().outcome(&answer(status, &[], b"secret"), permitted) {
            Outcome::Failed(failure) => {
                assert!(retried, "{status}");
                assert_eq!(failure.kind, FailureKind::Reported { retryable: true });
                assert!(!failure.error.message.contains("secret"), "a payload in an event");
            }
            _ => assert!(!retried, "{status} {permitted}"),
        }
    }
}

#[test]
fn retry_after_is_honoured_and_capped() {
    let wait = |headers: &[(&'static str, &str)]| match reading().outcome(&answer(503, headers, b""), true) {
        Outcome::Failed(failure) => failure.retry_after_ms,
        other => panic!("{other:?}"),
    };
    let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    for (headers, waited) in [
        (vec![], None),
        (vec![("retry-after", "0")], Some(0)),
        (vec![("retry-after", " 7 ")], Some(7_000)),
        (vec![("retry-after", "99999999999999999999")], Some(60_000)),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "soon")], None),
        (vec![("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), date], Some(10_000)),
        (vec![("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), date], Some(0)),
        (vec![("retry-after", "Mon, 07 Nov 1994 08:00:00 GMT"), date], Some(60_000)),
        (vec![("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], None),
    ] {
        assert_eq!(wait(&headers), waited, "{headers:?}");
    }
}

#[test]
fn a_redirect_stays_on_its_host_and_never_leaves_tls() {
    for (from, to, same) in [
        ("https://a.example/x", "https://a.example/y", true),
        ("https://a.example/", "https://a.example:443/", true),
        ("http://a.example/", "https://a.example/", true),
        ("https://a.example/", "http://a.example/", false),
        ("https://a.example/", "https://b.example/", false),
        ("https://a.example/", "https://a.example:8443/", false),
        ("http://a.example:8080/", "https://a.example/", false),
    ] {
        assert_eq!(is_same_host(&from.parse().unwrap(), &to.parse().unwrap()), same, "{from} {to}");
    }
}
