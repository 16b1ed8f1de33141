//! Who is who, by mode.

use axum::http::HeaderValue;

use super::*;
use crate::http::proxy::ProxySettings;
use crate::model::principal::DEFAULT_NAMESPACE;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn only_loopback_may_be_bound_without_authentication() {
    for (listen, mode, permitted) in [
        ("127.0.0.1:7400", Mode::None, true),
        ("127.9.9.9:1", Mode::None, true),
        ("[::1]:7400", Mode::None, true),
        ("[::ffff:127.0.0.1]:7400", Mode::None, true),
        ("0.0.0.0:7400", Mode::None, false),
        ("[::]:7400", Mode::None, false),
        ("192.168.1.4:7400", Mode::None, false),
        ("0.0.0.0:7400", Mode::Token, true),
        ("0.0.0.0:7400", Mode::Proxy, true),
    ] {
        let checked = check_bind(listen.parse().unwrap(), mode);
        assert_eq!(checked.is_ok(), permitted, "{listen} {mode:?}");
        if let Err(line) = checked {
            assert!(line.contains(listen) && line.contains("auth.mode") && !line.contains('\n'), "{line}");
        }
    }
}

#[tokio::test]
async fn without_authentication_everybody_is_anonymous_and_the_local_token_makes_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalToken::write(folder.path(), "127.0.0.1:7400".parse().unwrap()).unwrap();
    let token = crate::http::local_token::find(folder.path(), "127.0.0.1", 7400).unwrap();
    let auth = Auth::none(Some(local));
    let bearer = format!("bearer  {token}");
    for (pairs, proof) in [
        (vec![], Proof::None),
        (vec![("authorization", "Bearer of-somebody-else")], Proof::None),
        (vec![("authorization", token.as_str())], Proof::None),
        (vec![("authorization", bearer.as_str()), ("authorization", bearer.as_str())], Proof::None),
        (vec![("authorization", bearer.as_str())], Proof::LocalToken),
    ] {
        assert_eq!(auth.identify(&headers(&pairs), None).await.unwrap().proof, proof, "{pairs:?}");
    }
    let operator = auth.identify(&headers(&[("authorization", &bearer)]), None).await.unwrap();
    assert!(operator.require(Scope::Operate).is_ok() && operator.require_payloads().is_ok());
    assert_eq!((operator.namespace(), operator.owner()), (None, None));

    let anybody = Access::anonymous();
    assert!(anybody.require(Scope::Call).is_ok() && anybody.require(Scope::Read).is_ok());
    assert_eq!(anybody.require(Scope::Operate).unwrap_err().status, StatusCode::UNAUTHORIZED);
    assert_eq!(anybody.require_payloads().unwrap_err().code, "local_token_needed");
    assert_eq!((anybody.namespace(), anybody.owner()), (Some(DEFAULT_NAMESPACE), Some("anonymous")));
    auth.close();
    assert_eq!(crate::http::local_token::find(folder.path(), "127.0.0.1", 7400), None);
}

#[test]
fn a_principal_sees_its_own_and_an_operator_the_namespace() {
    let access = |scopes: &[Scope]| Access {
        principal: Principal { subject: "ci".into(), namespace: "acme".into(), scopes: Scopes::of(scopes) },
        proof: Proof::Credential,
    };
    assert_eq!((access(&[Scope::Read]).namespace(), access(&[Scope::Read]).owner()), (Some("acme"), Some("ci")));
    assert_eq!((access(&[Scope::Admin]).namespace(), access(&[Scope::Operate]).owner()), (Some("acme"), None));
    let refused = access(&[Scope::Call]).require(Scope::Read).unwrap_err();
    assert_eq!((refused.status, refused.code), (StatusCode::FORBIDDEN, "insufficient_scope"));
    assert!(refused.challenge.unwrap().contains("error=\"insufficient_scope\", scope=\"read\""));
}

fn proxy(peers: &[&str]) -> Auth {
    let settings = ProxySettings {
        principal_header: "X-Forwarded-User".into(),
        namespace_header: "x-durable-mcp-namespace".into(),
        scopes_header: "x-durable-mcp-scopes".into(),
        peers: peers.iter().map(|peer| peer.to_string()).collect(),
    };
    Auth::proxy(Proxy::new(&settings).unwrap())
}

#[tokio::test]
async fn identity_headers_count_from_listed_peers_only() {
    let auth = proxy(&["10.0.0.0/8", "fd00::/16", "192.168.7.7"]);
    let user = headers(&[("x-forwarded-user", "ann")]);
    for (peer, known) in [
        ("10.255.0.1", true),
        ("::ffff:10.0.0.1", true),
        ("fd00::9", true),
        ("192.168.7.7", true),
        ("192.168.7.8", false),
        ("11.0.0.1", false),
        ("127.0.0.1", false),
        ("fe80::1", false),
    ] {
        let peer = peer.parse().unwrap();
        assert_eq!(auth.identify(&user, Some(peer)).await.is_ok(), known, "{peer}");
    }
    assert_eq!(auth.identify(&user, None).await.unwrap_err().status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn identity_headers_are_read_strictly() {
    let auth = proxy(&["10.0.0.1"]);
    let usual = Scopes::of(&[Scope::Call, Scope::Read, Scope::Cancel]);
    for (pairs, expect) in [
        (vec![("x-forwarded-user", "ann")], Some(("ann", "default", usual))),
        (
            vec![
                ("x-forwarded-user", "ann"),
                ("x-durable-mcp-namespace", "acme"),
                ("x-durable-mcp-scopes", "read,call"),
            ],
            Some(("ann", "acme", Scopes::of(&[Scope::Call, Scope::Read]))),
        ),
        (vec![("x-forwarded-user", "ann"), ("x-durable-mcp-scopes", "")], Some(("ann", "default", Scopes::default()))),
        (vec![], None),
        (vec![("x-forwarded-user", "")], None),
        (vec![("x-forwarded-user", "anonymous")], None),
        (vec![("x-forwarded-user", "ann"), ("x-forwarded-user", "bob")], None),
        (vec![("x-forwarded-user", "ann"), ("x-durable-mcp-namespace", "a/b")], None),
        (vec![("x-forwarded-user", "ann"), ("x-durable-mcp-scopes", "a"), ("x-durable-mcp-scopes", "admin")], None),
    ] {
        let found = auth.identify(&headers(&pairs), Some("10.0.0.1".parse().unwrap())).await.ok();
        let found = found.map(|access| access.principal);
        let expect = expect.map(|(subject, namespace, scopes): (&str, &str, Scopes)| Principal {
            subject: subject.into(),
            namespace: namespace.into(),
            scopes,
        });
        assert_eq!(found, expect, "{pairs:?}");
    }
}

#[test]
fn a_proxy_without_peers_or_with_nonsense_is_refused() {
    let settings = |header: &str, peers: &[&str]| ProxySettings {
        principal_header: header.into(),
        namespace_header: "n".into(),
        scopes_header: "s".into(),
        peers: peers.iter().map(|peer| peer.to_string()).collect(),
    };
    assert!(Proxy::new(&settings("user", &[])).is_err());
    assert!(Proxy::new(&settings("us er", &["10.0.0.1"])).is_err());
    for peer in ["10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "proxy.example", ""] {
        assert!(Proxy::new(&settings("user", &[peer])).is_err(), "{peer}");
    }
}
