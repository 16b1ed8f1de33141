//! Who gets a task for what, what lists say of tools, and which capability counts as declared.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::experimental::{capability, listed, related};
use super::offer::{Offer, Support, offer, support};
use super::*;
use crate::engine::catalog::{Service, TaskService, Tool};
use crate::mcp::call_params::CallParams;
use crate::model::policy::{Identity, Policy, Tasks};
use crate::model::revision::Revision;

fn tool(tasks: Tasks, definition: &str) -> Arc<Tool> {
    let task = TaskService { tasks, ..TaskService::default() };
    Arc::new(Tool {
        redact: Arc::default(),
        exposed: "add_note".into(),
        upstream: "crm".into(),
        name: "add_note".into(),
        definition: RawValue::from_string(definition.into()).unwrap(),
        has_output_schema: false,
        wants_client: false,
        policy: Policy::default(),
        identity: Identity::default(),
        service: Service { task, ..Service::default() },
    })
}

const PLAIN: &str = r#"{"name":"add_note"}"#;
const DECLARED: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
const UNDECLARED: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"tasks":{}}}"#;

fn offered(params: &str, revision: Revision, tool: &Tool) -> Result<Option<Offer>, RpcError> {
    let raw: &RawValue = serde_json::from_str(params).unwrap();
    offer(&CallParams::parse(Some(raw)).unwrap(), revision, tool)
}

#[test]
fn the_extension_follows_the_tools_policy_and_what_the_request_declares() {
    const AT_ONCE: Option<Option<i64>> = Some(None);
    let table = [
        (Tasks::Auto, DECLARED, "", Ok(Some(Some(1_000)))),
        (Tasks::Auto, DECLARED, r#","durable-mcp/wait":0"#, Ok(Some(Some(0)))),
        (Tasks::Auto, DECLARED, r#","durable-mcp/wait":200"#, Ok(Some(Some(200)))),
        (Tasks::Auto, DECLARED, r#","durable-mcp/wait":5000"#, Ok(Some(Some(1_000)))),
        (Tasks::Auto, UNDECLARED, "", Ok(None)),
        (Tasks::Always, DECLARED, "", Ok(AT_ONCE)),
        (Tasks::Always, UNDECLARED, "", Ok(None)),
        (Tasks::Never, DECLARED, "", Ok(None)),
        (Tasks::Never, UNDECLARED, "", Ok(None)),
        (Tasks::Required, DECLARED, "", Ok(AT_ONCE)),
        (Tasks::Required, UNDECLARED, "", Err(code::MISSING_CLIENT_CAPABILITY)),
    ];
    for (tasks, meta, more, wanted) in table {
        let meta = format!("{}{more}}}", &meta[..meta.len() - 1]);
        for task in ["", r#","task":{"ttl":5}"#] {
            let params = format!(r#"{{"name":"add_note","_meta":{meta}{task}}}"#);
            let offered = offered(&params, Revision::V2026_07_28, &tool(tasks, PLAIN));
            if let Ok(Some(offer)) = &offered {
                assert_eq!((offer.wish.variant, offer.wish.ttl_ms), (TaskVariant::Extension, 86_400_000));
            }
            let after = offered.map(|offer| offer.map(|offer| offer.after_ms)).map_err(|error| error.code);
            assert_eq!(after, wanted, "{tasks:?} {params}");
        }
    }
}

#[test]
fn a_refusal_names_the_capability() {
    let mut text = String::new();
    not_declared().write(&mut text);
    let error: Value = serde_json::from_str(&text).unwrap();
    let wanted = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    assert_eq!((&error["code"], &error["data"]["requiredCapabilities"]), (&json!(-32021), &wanted));
}

#[test]
fn only_an_object_under_extensions_declares() {
    let table = [
        (r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, true),
        (r#"{"extensions":{"io.modelcontextprotocol/tasks":{"x":1}}}"#, true),
        (r#"{"extensions":{"io.modelcontextprotocol/tasks":null}}"#, false),
        (r#"{"extensions":{"other/tasks":{}}}"#, false),
        (r#"{"extensions":[]}"#, false),
        (r#"{"io.modelcontextprotocol/tasks":{}}"#, false),
        (r#"{"tasks":{}}"#, false),
    ];
    for (text, declared) in table {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        assert_eq!(is_declared(Some(raw)), declared, "{text}");
    }
    assert!(!is_declared(None));
}

#[test]
fn in_2025_11_25_the_request_decides_and_its_time_is_bounded() {
    let asked = |task: &str| format!(r#"{{"name":"add_note","task":{task},"_meta":{{"progressToken":"p"}}}}"#);
    let table = [
        ("{}", Ok(Some(86_400_000))),
        (r#"{"ttl":null}"#, Ok(Some(86_400_000))),
        (r#"{"ttl":60000}"#, Ok(Some(60_000))),
        (r#"{"ttl":60000.0}"#, Ok(Some(60_000))),
        (r#"{"ttl":0}"#, Ok(Some(1))),
        (r#"{"ttl":1e300}"#, Ok(Some(86_400_000))),
        (r#"{"ttl":-1}"#, Err(code::INVALID_PARAMS)),
        (r#"{"ttl":"1h"}"#, Err(code::INVALID_PARAMS)),
    ];
    for (task, wanted) in table {
        for tasks in [Tasks::Auto, Tasks::Always, Tasks::Required] {
            let offered = offered(&asked(task), Revision::V2025_11_25, &tool(tasks, PLAIN));
            if let Ok(Some(offer)) = &offered {
                assert_eq!((offer.wish.variant, offer.after_ms), (TaskVariant::Experimental, None));
                assert_eq!(offer.wish.progress_token.as_deref(), Some("\"p\""));
            }
            let ttl_ms = offered.map(|offer| offer.map(|offer| offer.wish.ttl_ms)).map_err(|error| error.code);
            assert_eq!(ttl_ms, wanted, "{task}");
        }
    }
    let auto = tool(Tasks::Auto, PLAIN);
    assert!(offered(PLAIN, Revision::V2025_11_25, &auto).unwrap().is_none());
    assert!(offered(&asked("{}"), Revision::V2025_06_18, &auto).unwrap().is_none(), "the member is unknown there");
    let never = offered(&asked("{}"), Revision::V2025_11_25, &tool(Tasks::Never, PLAIN));
    assert_eq!(never.unwrap_err().code, code::METHOD_NOT_FOUND);
}

#[test]
fn lists_of_2025_11_25_say_what_may_be_a_task() {
    let says = |support: &str| format!(r#"{{"name":"a","execution":{{"taskSupport":"{support}"}},"x":1.0}}"#);
    let table = [
        (
            Tasks::Auto,
            PLAIN.to_owned(),
            Support::Optional,
            r#"{"name":"add_note","execution":{"taskSupport":"optional"}}"#,
        ),
        (
            Tasks::Required,
            PLAIN.to_owned(),
            Support::Optional,
            r#"{"name":"add_note","execution":{"taskSupport":"optional"}}"#,
        ),
        (Tasks::Never, PLAIN.to_owned(), Support::Forbidden, PLAIN),
        (Tasks::Auto, says("forbidden"), Support::Forbidden, &says("forbidden")),
        (Tasks::Auto, says("required"), Support::Required, &says("required")),
        (Tasks::Auto, says("optional"), Support::Optional, &says("optional")),
        (Tasks::Never, says("required"), Support::Forbidden, &says("forbidden")),
    ];
    for (tasks, definition, wanted, shown) in table {
        let tool = tool(tasks, &definition);
        assert_eq!(support(&tool), wanted, "{definition}");
        assert_eq!(listed(&definition, &tool), shown, "{definition}");
    }
}

#[test]
fn a_list_of_tasks_is_for_those_who_proved_who_they_are() {
    let (alone, named): (Value, Value) =
        (serde_json::from_str(capability(true)).unwrap(), serde_json::from_str(capability(false)).unwrap());
    assert_eq!(alone, json!({"cancel": {}, "requests": {"tools": {"call": {}}}}));
    assert_eq!(named, json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
}

#[test]
fn a_related_message_names_its_task_and_keeps_its_bytes() {
    let id = ExecutionId::new(0, &[1; 10]);
    let text = related(r#"{"content":[],"n":1.0,"_meta":{"a":1.0}}"#, id);
    let wanted = format!(r#"{{"content":[],"n":1.0,"_meta":{{"a":1.0,"{RELATED}":{{"taskId":"{id}"}}}}}}"#);
    assert_eq!(text, wanted);
}
