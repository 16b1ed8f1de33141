//! Tables of Host and Origin.

use axum::http::{HeaderMap, HeaderValue, Uri};

use super::*;

fn guard(listen: &str, hosts: &[&str], origins: &[&str]) -> Guard {
    let own = |list: &[&str]| list.iter().map(|entry| entry.to_string()).collect();
    Guard::new(&GuardSettings { listen: listen.parse().unwrap(), hosts: own(hosts), origins: own(origins) }).unwrap()
}

fn head(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs =
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    let mut headers = HeaderMap::new();
    pairs.for_each(|(name, value)| {
        headers.append(name, value);
    });
    headers
}

#[track_caller]
fn answers(guard: &Guard, pairs: &[(&'static str, &str)], expect: u16) {
    let local = Some("10.1.2.3".parse().unwrap());
    let status =
        guard.check(&Uri::from_static("/mcp"), &head(pairs), local).map_or_else(|r| r.status.as_u16(), |()| 200);
    assert_eq!(status, expect, "{pairs:?}");
}

#[test]
fn a_host_is_served_when_it_is_a_loopback_name_the_listener_or_configured() {
    let guard = guard("127.0.0.1:7400", &["Gate.example", "ported.example:8443", "2001:db8::5"], &[]);
    for (host, expect) in [
        ("localhost", 200),
        ("LOCALHOST:7400", 200),
        ("localhost:1", 200),
        ("127.0.0.1:7400", 200),
        ("127.8.9.10", 200),
        ("[::1]", 200),
        ("[::1]:7400", 200),
        ("[::ffff:127.0.0.1]:7400", 200),
        ("gate.example", 200),
        ("GATE.example:9", 200),
        ("ported.example:8443", 200),
        ("ported.example", 421),
        ("ported.example:80", 421),
        ("[2001:db8::5]:7400", 200),
        // The connection came in at this address.
        ("10.1.2.3:7400", 200),
        ("10.1.2.4:7400", 421),
        ("evil.example", 421),
        ("evil.example:7400", 421),
        ("localhost.evil.example", 421),
        ("evil.localhost", 421),
        ("localhost.", 421),
        ("127.0.0.1.evil.example", 421),
        ("0.0.0.0:7400", 421),
        ("[::]:7400", 421),
        ("2130706433", 421),
        ("::1", 421),
        ("[::1", 421),
        ("[::1]7400", 421),
        ("[::1%25lo]", 421),
        ("localhost:", 421),
        ("localhost:+80", 421),
        ("localhost:99999", 421),
        ("localhost:7400:7400", 421),
        ("user@localhost", 421),
        ("localhost/x", 421),
        ("local host", 421),
        ("", 421),
        (":7400", 421),
    ] {
        answers(&guard, &[("host", host)], expect);
    }
}

#[test]
fn a_missing_or_doubled_host_is_misdirected() {
    let guard = guard("127.0.0.1:7400", &[], &[]);
    answers(&guard, &[], 421);
    answers(&guard, &[("host", "localhost"), ("host", "localhost")], 421);
}

#[test]
fn a_request_for_an_absolute_url_names_the_same_host_as_its_header() {
    let guard = guard("127.0.0.1:7400", &[], &[]);
    let headers = head(&[("host", "localhost:7400")]);
    assert!(guard.check(&Uri::from_static("http://localhost:7400/mcp"), &headers, None).is_ok());
    assert!(guard.check(&Uri::from_static("http://evil.example/mcp"), &headers, None).is_err());
}

#[test]
fn a_wildcard_listener_is_reached_under_the_address_of_the_connection_only() {
    let guard = guard("0.0.0.0:7400", &[], &[]);
    answers(&guard, &[("host", "10.1.2.3:7400")], 200);
    answers(&guard, &[("host", "0.0.0.0:7400")], 421);
    answers(&guard, &[("host", "10.9.9.9:7400")], 421);
}

#[test]
fn an_origin_is_served_when_it_is_absent_loopback_our_own_or_configured() {
    let origins = ["https://App.example", "vscode-webview://panel", "https://plain.example:443"];
    let guard = guard("127.0.0.1:7400", &["gate.example"], &origins);
    for (host, origin, expect) in [
        ("localhost", "http://localhost:5173", 200),
        ("localhost", "https://127.0.0.1", 200),
        ("localhost", "http://[::1]:6274", 200),
        ("localhost", "https://app.example", 200),
        ("localhost", "HTTPS://APP.EXAMPLE:443", 200),
        ("localhost", "https://plain.example", 200),
        ("localhost", "vscode-webview://panel", 200),
        ("localhost", "http://app.example", 403),
        ("localhost", "https://app.example:8443", 403),
        ("localhost", "https://app.example.evil.example", 403),
        ("localhost", "https://evil.example", 403),
        ("localhost", "http://localhost.evil.example", 403),
        ("localhost", "file://localhost", 403),
        ("localhost", "null", 403),
        ("localhost", "", 403),
        ("localhost", "https://app.example/", 403),
        ("localhost", "https://app.example, https://evil.example", 403),
        ("gate.example:7400", "http://gate.example:7400", 200),
        ("gate.example:7400", "http://gate.example", 403),
        ("10.1.2.3:7400", "http://10.1.2.3:7400", 200),
    ] {
        answers(&guard, &[("host", host), ("origin", origin)], expect);
    }
    answers(&guard, &[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")], 403);
}

#[test]
fn accepting_every_host_does_not_accept_the_page_of_a_rebound_name() {
    let guard = guard("127.0.0.1:7400", &["*"], &[]);
    answers(&guard, &[("host", "evil.example")], 200);
    answers(&guard, &[("host", "evil.example"), ("origin", "http://evil.example")], 403);
}

#[test]
fn accepting_every_origin_is_the_operators_word() {
    let guard = guard("127.0.0.1:7400", &[], &["*"]);
    answers(&guard, &[("host", "localhost"), ("origin", "null")], 200);
    answers(&guard, &[("host", "evil.example"), ("origin", "null")], 421);
}

#[test]
fn the_host_is_judged_before_the_origin() {
    let guard = guard("127.0.0.1:7400", &[], &[]);
    answers(&guard, &[("host", "evil.example"), ("origin", "https://evil.example")], 421);
}

#[test]
fn a_list_with_nonsense_is_refused() {
    let settings = |hosts: &str, origins: &str| GuardSettings {
        listen: "127.0.0.1:1".parse().unwrap(),
        hosts: vec![hosts.into()],
        origins: vec![origins.into()],
    };
    assert_eq!(Guard::new(&settings("http://a", "*")).unwrap_err(), "`http://a` is no host name");
    assert_eq!(Guard::new(&settings("a", "a.example")).unwrap_err(), "`a.example` is no origin");
}
