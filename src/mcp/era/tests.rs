//! The decision about eras, as a table.

use super::*;

const MODERN: &str = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#;
const PLAIN: &str = r#"{"name":"t"}"#;

struct Sent<'a> {
    kind: Kind,
    method: &'a str,
    params: &'a str,
    version: Field<'a>,
    names_session: bool,
}

const CALL: Sent<'static> = Sent {
    kind: Kind::Request,
    method: "tools/call",
    params: MODERN,
    version: Field::Value("2026-07-28"),
    names_session: false,
};

fn http(sent: &Sent<'_>) -> Result<Ruling, (u16, i64)> {
    let params = Params::split(Some(serde_json::from_str(sent.params).unwrap()));
    let meta = Meta::of(&params).unwrap();
    let face = Face { kind: sent.kind, method: sent.method, params: &params, meta: &meta };
    let mirror = Mirror { version: sent.version, method: Field::Value(sent.method), name: Field::Value("t") };
    decide_http(&face, &HttpHead { mirror, names_session: sent.names_session })
        .map_err(|rejection| (rejection.status, rejection.error.code))
}

fn stdio(method: &str, params: &str, session: Option<Revision>) -> Result<Ruling, i64> {
    let params = Params::split(Some(serde_json::from_str(params).unwrap()));
    let meta = Meta::of(&params).unwrap();
    let face = Face { kind: Kind::Request, method, params: &params, meta: &meta };
    decide_stdio(&face, session).map_err(|rejection| rejection.error.code)
}

const IS_MODERN: Result<Ruling, (u16, i64)> = Ok(Ruling::Modern { revision: Revision::V2026_07_28 });

fn legacy(revision: Option<Revision>) -> Result<Ruling, (u16, i64)> {
    Ok(Ruling::Legacy { revision, opens: false })
}

#[test]
fn a_modern_envelope_wins_over_a_session_and_over_the_name_initialize() {
    assert_eq!(http(&CALL), IS_MODERN);
    assert_eq!(http(&Sent { names_session: true, ..CALL }), IS_MODERN);
    assert_eq!(http(&Sent { method: "initialize", ..CALL }), IS_MODERN);
}

#[test]
fn without_an_envelope_the_session_decides() {
    let plain = Sent { params: PLAIN, version: Field::Absent, names_session: true, ..CALL };
    assert_eq!(http(&plain), legacy(None));
    let version = Field::Value("2025-06-18");
    assert_eq!(
        http(&Sent { version, params: PLAIN, names_session: true, ..CALL }),
        legacy(Some(Revision::V2025_06_18))
    );
    assert_eq!(http(&Sent { names_session: false, ..plain }), Err((400, code::INVALID_REQUEST)));
}

#[test]
fn initialize_without_an_envelope_opens_a_legacy_session_whatever_the_header_says() {
    for version in [Field::Absent, Field::Value("2026-07-28"), Field::Value("1900-01-01"), Field::Invalid] {
        let ruling = http(&Sent { method: "initialize", params: PLAIN, version, ..CALL });
        assert_eq!(ruling, Ok(Ruling::Legacy { revision: None, opens: true }));
    }
}

#[test]
fn a_modern_header_without_an_envelope_is_answered_as_modern() {
    for names_session in [false, true] {
        let sent = Sent { params: PLAIN, names_session, ..CALL };
        assert_eq!(http(&sent), Err((400, code::INVALID_PARAMS)));
    }
    let notification = Sent { kind: Kind::Notification, method: "notifications/x", params: PLAIN, ..CALL };
    assert_eq!(http(&notification), IS_MODERN);
    let response = Sent { kind: Kind::Response, method: "", params: PLAIN, ..CALL };
    assert_eq!(http(&response), Err((400, code::INVALID_REQUEST)));
}

#[test]
fn a_discovery_never_gets_an_answer_that_looks_legacy() {
    let sent = Sent { method: "server/discover", params: PLAIN, version: Field::Absent, ..CALL };
    assert_eq!(http(&sent), Err((400, code::INVALID_PARAMS)));
    assert_eq!(stdio("server/discover", PLAIN, None), Err(code::INVALID_PARAMS));
}

#[test]
fn a_client_that_contradicts_itself_is_told_so_before_its_version_is_judged() {
    let unknown = MODERN.replace("2026-07-28", "1900-01-01");
    let differs = Sent { params: &unknown, ..CALL };
    assert_eq!(http(&differs), Err((400, code::HEADER_MISMATCH)));
    let agrees = Sent { version: Field::Value("1900-01-01"), ..differs };
    assert_eq!(http(&agrees), Err((400, code::UNSUPPORTED_PROTOCOL_VERSION)));
    assert_eq!(http(&Sent { version: Field::Absent, ..CALL }), Err((400, code::HEADER_MISMATCH)));
    assert_eq!(http(&Sent { version: Field::Invalid, ..CALL }), Err((400, code::HEADER_MISMATCH)));
}

#[test]
fn an_unsupported_version_is_answered_with_what_is_supported() {
    let text = MODERN.replace("2026-07-28", "2025-11-25");
    let params = Params::split(Some(serde_json::from_str(&text).unwrap()));
    let meta = Meta::of(&params).unwrap();
    let face = Face { kind: Kind::Request, method: "tools/list", params: &params, meta: &meta };
    let rejection = decide_stdio(&face, None).unwrap_err();
    let data: serde_json::Value = serde_json::from_str(rejection.error.data.unwrap().get()).unwrap();
    assert_eq!(data, serde_json::json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}));
}

#[test]
fn over_stdio_initialize_is_always_legacy_and_eras_mix() {
    assert_eq!(stdio("initialize", MODERN, None), Ok(Ruling::Legacy { revision: None, opens: true }));
    let session = Some(Revision::V2025_11_25);
    assert_eq!(stdio("tools/call", MODERN, session), Ok(Ruling::Modern { revision: Revision::V2026_07_28 }));
    assert_eq!(stdio("tools/call", PLAIN, session), Ok(Ruling::Legacy { revision: session, opens: false }));
    let assumed = Some(Revision::V2025_03_26);
    assert_eq!(stdio("tools/list", PLAIN, None), Ok(Ruling::Legacy { revision: assumed, opens: false }));
}

#[test]
fn streams_belong_to_legacy_sessions() {
    let status = |version, names_session| decide_stream(version, names_session).map_err(|rejection| rejection.status);
    assert_eq!(status(Field::Value("2026-07-28"), true), Err(405));
    assert_eq!(status(Field::Value("1900-01-01"), true), Err(400));
    assert_eq!(status(Field::Invalid, true), Err(400));
    assert_eq!(status(Field::Absent, false), Err(400));
    assert_eq!(status(Field::Absent, true), Ok(None));
    assert_eq!(status(Field::Value("2025-11-25"), true), Ok(Some(Revision::V2025_11_25)));
}

#[test]
fn batches_belong_to_old_sessions() {
    for (revision, accepted) in [
        (Some(Revision::V2024_11_05), true),
        (Some(Revision::V2025_03_26), true),
        (Some(Revision::V2025_06_18), false),
        (Some(Revision::V2026_07_28), false),
        (None, false),
    ] {
        assert_eq!(decide_batch(revision).is_ok(), accepted, "{revision:?}");
    }
}
