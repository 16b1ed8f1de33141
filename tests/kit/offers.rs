//! What the kit offers beside tools, on request: resources, templates, prompts and completion, each result and each entry
//! of a list with the exact text of one case of the corpus in it. Answers an error as the request spells it.

use serde_json::json;
use serde_json::value::RawValue;

use crate::corpus;
use crate::protocol::Params;

/// Whether it answers this method.
pub fn is_offered(method: &str) -> bool {
    METHODS.contains(&method)
}

const METHODS: [&str; 6] = [
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
];

/// The answer to one of its methods: the whole `result`, for a list without its last brace, or the whole `error` object.
pub fn answer(method: &str, params: &Params<'_>, raw: &str) -> Result<String, String> {
    let asked =
        |name: &str| (name.split("://").next().unwrap_or_default() == "error").then_some(params.error).flatten();
    match method {
        "resources/list" => Ok(list("resources", |case| format!(r#""uri":"corpus://{case}","name":"{case}""#))),
        "resources/templates/list" => {
            Ok(list("resourceTemplates", |case| format!(r#""uriTemplate":"{case}://{{id}}","name":"{case}""#)))
        }
        "prompts/list" => {
            Ok(list("prompts", |case| format!(r#""name":"{case}","arguments":[{{"name":"n","x":1.0}}]"#)))
        }
        "resources/read" => {
            let uri = params.uri.as_deref().unwrap_or_default();
            whole(asked(uri), uri.trim_start_matches("corpus://"), raw, |text| {
                format!(r#""contents":[{{"uri":"x:1","text":{text},"x-item":1.0}}]"#)
            })
        }
        "prompts/get" => {
            let name = params.name.as_deref().unwrap_or_default();
            whole(asked(name), name, raw, |text| {
                format!(r#""messages":[{{"role":"user","content":{{"type":"text","text":{text},"x":1e0}}}}]"#)
            })
        }
        _ => {
            let name = params.reference.as_ref().and_then(|reference| reference.name.as_deref()).unwrap_or_default();
            whole(asked(name), name, raw, |text| {
                format!(r#""completion":{{"values":[{text},"\u00e9\/"],"total":2.0,"x":9007199254740993}}"#)
            })
        }
    }
}

/// One entry for each case, with its text.
fn list(member: &str, entry: impl Fn(&str) -> String) -> String {
    let entries: Vec<String> = corpus::names()
        .iter()
        .map(|name| {
            let case = corpus::case(name).unwrap_or_default();
            format!(r#"{{{},"x-case":{case},"x-number":1.50}}"#, entry(name))
        })
        .collect();
    format!(r#"{{"{member}":[{}]"#, entries.join(","))
}

/// A result with the text of a case; of no case, with what was asked.
fn whole(error: Option<&RawValue>, case: &str, asked: &str, part: impl Fn(&str) -> String) -> Result<String, String> {
    if let Some(error) = error {
        return Err(error.get().to_owned());
    }
    Ok(match corpus::case(case) {
        Some(text) => format!(r#"{{"x-first":null,{},"x-case":{text}}}"#, part(r#""\u0041\ud83d\ude00""#)),
        None => format!("{{{}}}", part(&json!(asked).to_string())),
    })
}
