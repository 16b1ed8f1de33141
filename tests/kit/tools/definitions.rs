//! The tool definitions as the exact JSON of `tools/list`, foreign members included. One line each: stdio frames by lines.

use super::contents;
use crate::Era;
use crate::protocol::MODERN;
use crate::server::Server;

const TEXT: &str = r#""inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const CRASH: &str = r#""inputSchema":{"type":"object","properties":{"text":{"type":"string"},"once":{"type":"boolean"}},"required":["text"]}"#;
const SLOW: &str = r#""inputSchema":{"type":"object","properties":{"seconds":{"type":"number"},"text":{"type":"string"},"gate":{"type":"string"}},"required":["seconds"]}"#;
const FLAKY: &str = r#""inputSchema":{"type":"object","properties":{"name":{"type":"string"},"failures":{"type":"integer"}},"required":["name","failures"]}"#;
const SIZE: &str = r#""inputSchema":{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}"#;
const CASE: &str = r#""inputSchema":{"type":"object","properties":{"case":{"type":"string"}},"required":["case"]}"#;
const N: &str = r#""inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}"#;
const ERROR: &str = r#""inputSchema":{"type":"object","properties":{"code":{"type":"integer"},"message":{"type":"string"},"data":{}},"required":["code","message"]}"#;
const ORPHAN: &str = r#""inputSchema":{"type":"object","properties":{"orphan":{"type":"boolean"}}}"#;
const SLOW_N: &str = r#""inputSchema":{"type":"object","properties":{"seconds":{"type":"number"},"n":{"type":"number"},"text":{"type":"string"}},"required":["seconds","n"]}"#;
const MESSAGE: &str =
    r#""inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}"#;
const ANYTHING: &str = r#""inputSchema":{"type":"object"}"#;

const READ_ONLY: &str = r#""annotations":{"readOnlyHint":true}"#;
const IDEMPOTENT: &str = r#""annotations":{"idempotentHint":true,"destructiveHint":false}"#;

const FOUND: &str = r#""outputSchema":{"type":"object","properties":{"found":{"type":"boolean"},"count":{"type":"integer"},"done":{"type":"integer"}},"required":["found","count"]}"#;
const GIVEN: &str = r#""outputSchema":{"type":"object","properties":{"n":{"type":"number"},"label":{"type":"string"}},"required":["n","label"]}"#;

const ROWS: &str = r#""outputSchema":{"type":"array","items":{"type":"integer"}}"#;

/// Members that no revision knows: whoever passes a list on has to keep them.
const FOREIGN: &str = r#""_meta":{"kit.example/score":1.0},"x-kit":{"list":[null,1e2,{"deep":"\u00e9"}]}"#;

/// Name, description, and the further members.
const TOOLS: [(&str, &str, &[&str]); 20] = [
    ("append", "Writes one ledger line", &[TEXT]),
    ("append_idempotent", "Writes one ledger line; repeating it does no harm", &[TEXT, IDEMPOTENT]),
    ("slow", "Takes its time and waits for a file, tells progress, can be cancelled", &[SLOW]),
    ("slow_idempotent", "Like slow; repeating it does no harm", &[SLOW, IDEMPOTENT]),
    ("flaky", "Is a tool error for the first runs of a name", &[FLAKY]),
    ("flaky_idempotent", "Like flaky; repeating it does no harm", &[FLAKY, IDEMPOTENT]),
    ("crash_after_write", "Writes one ledger line and kills its own process", &[CRASH]),
    ("crash_idempotent", "Like crash_after_write; repeating it does no harm", &[CRASH, IDEMPOTENT]),
    ("lookup", "Counts the ledger lines of a text", &[TEXT, READ_ONLY, FOUND]),
    ("echo", "Answers the exact JSON of its arguments", &[ANYTHING, READ_ONLY, FOREIGN]),
    ("received", "Answers the exact params and the HTTP headers", &[ANYTHING, READ_ONLY]),
    ("big", "Answers a text of so many bytes", &[SIZE, READ_ONLY]),
    ("structured", "Answers n as structured content", &[N, READ_ONLY, GIVEN]),
    ("slow_structured", "Answers n as structured content after its time", &[SLOW_N, GIVEN]),
    ("corpus", "Answers one fixed result byte for byte", &[CASE, READ_ONLY]),
    ("rpc_error", "Answers a JSON-RPC error", &[ERROR, READ_ONLY]),
    ("grandchild", "Starts processes that outlive a careless owner", &[ORPHAN]),
    ("media", "Answers an image, a sound and a resource, as far as the revision has them", &[ANYTHING, READ_ONLY]),
    ("ask", "Asks the client for a form, whether it can be asked or not", &[MESSAGE]),
    ("late", "Is there once the tools have changed", &[ANYTHING, READ_ONLY]),
];

/// Beside what is offered besides tools.
const FLOOD: (&str, &str, &[&str]) = ("flood", "Tells so often that a resource has changed", &[ANYTHING, READ_ONLY]);

/// All tools in their fixed order, each as one JSON object.
pub fn definitions(server: &Server) -> Vec<String> {
    let listed = if server.tools_have_changed() { TOOLS.len() } else { TOOLS.len() - 1 };
    let is_modern_only = server.options.era == Era::Modern;
    // One list for both eras of a server that speaks both, which both can read.
    let newest = if is_modern_only { MODERN } else { server.options.revision.as_str() };
    let known = |member: &&&str| {
        !(member.starts_with(r#""outputSchema"#) && newest < contents::STRUCTURED
            || member.starts_with(r#""annotations"#) && newest < "2025-03-26")
    };
    let render = |(name, description, members): &(&str, &str, &[&str])| {
        let members: Vec<&str> = members.iter().filter(known).copied().collect();
        format!(r#"{{"name":"{name}","description":"{description}",{}}}"#, members.join(","))
    };
    let rows = is_modern_only.then(|| render(&("rows", "Answers an array", &[ANYTHING, READ_ONLY, ROWS])));
    let extra =
        |number| format!(r#"{{"name":"extra_{number:04}","description":"One of many",{ANYTHING},{READ_ONLY}}}"#);
    let flood = server.options.offers.then_some(&FLOOD);
    let listed = TOOLS[..listed].iter().chain(flood).map(render).chain(rows);
    listed.chain((1..=server.options.extra_tools).map(extra)).collect()
}
