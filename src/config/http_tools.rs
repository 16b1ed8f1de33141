//! What only the keys of one `[tools.NAME]` together can get wrong: whether it is a command or an HTTP request, its
//! address and its templates. Resolves no name and reaches nobody.

use super::error::{ErrorKind, Message, Problems, quoted};
use super::forms;
use super::node::{Entry, Node, Place, Value};
use crate::worker::http_call::{Reach, UrlError, check_url};
use crate::worker::template::{self, TemplateError};

/// Keys that only a command has.
const OF_COMMANDS: [&str; 2] = ["cwd", "env"];
/// Keys that only an HTTP request has.
const OF_REQUESTS: [&str; 7] =
    ["method", "headers", "query", "body", "retry_on_status", "allow_private", "max_response"];

/// Checks one tool; `root` holds what is said for all of them.
pub(super) fn check(entry: &Entry, root: &Node, problems: &mut Problems) {
    let (name, tool) = (quoted(&entry.key), &entry.node);
    if tool.broken {
        return;
    }
    let mut conflict = |place: &Place, reason: String, next: &str| {
        problems.error(ErrorKind::Conflict, place, Message::new(reason, next));
    };
    let (unfit, is, other) = match (tool.entry("command"), tool.entry("url")) {
        (None, None) => {
            let next = "add `command` for a program or `url` for an HTTP request";
            return conflict(&entry.place, format!("tool {name} has neither `command` nor `url`"), next);
        }
        (Some(_), Some(url)) => {
            return conflict(&url.place, format!("tool {name} has both `command` and `url`"), "keep one of the two");
        }
        (Some(_), None) => (OF_REQUESTS.as_slice(), "a command", "use `url` instead of `command`"),
        (None, Some(_)) => (OF_COMMANDS.as_slice(), "a URL", "use `command` instead of `url`"),
    };
    for wrong in unfit.iter().filter_map(|key| tool.entry(key)) {
        let reason = format!("tool {name} is {is} and has {}", quoted(&wrong.key));
        conflict(&wrong.place, reason, &format!("remove it, or {other}"));
    }
    match tool.entry("command") {
        Some(command) => check_program(&name, command, problems),
        None => check_request(&name, tool, (root, problems)),
    }
}

fn check_program(name: &str, command: &Entry, problems: &mut Problems) {
    if let Value::Array(items) = &command.node.value
        && items.first().and_then(Node::text) == Some("")
    {
        let message = Message::new(format!("tool {name} has an empty program"), "name a program first");
        problems.error(ErrorKind::Value, &command.node.place, message);
    }
}

fn check_request(name: &str, tool: &Node, (root, problems): (&Node, &mut Problems)) {
    let mut wrong = |node: &Node, reason: String, next: &str| {
        problems.error(ErrorKind::Value, &node.place, Message::new(reason, next));
    };
    if let Some(node) = tool.get(&["url"])
        && let Some(url) = node.text()
        && let Err(error) = check_url(url, &reach(tool, root))
    {
        let next = match &error {
            UrlError::NotHttp => "write it as https://host/path",
            UrlError::OpenHost => "write scheme, host and port as they are; arguments go after them",
            UrlError::Fragment => "remove what follows the `#`",
            UrlError::Template(_) => PLACEHOLDERS,
            UrlError::Unreachable(_) => "set allow_private = true, or add the host to http_tools.private_hosts",
        };
        // An address may hold a password, and a mistyped one more than that.
        let reason = match &error {
            UrlError::Template(error) => reason(node, error),
            UrlError::Unreachable(_) => "names a host that only this machine or its network can reach".to_owned(),
            UrlError::NotHttp => "is no http address".to_owned(),
            UrlError::OpenHost => "has a placeholder before its path".to_owned(),
            UrlError::Fragment => "has a fragment, which is never sent".to_owned(),
        };
        wrong(node, format!("the `url` of tool {name} {reason}"), next);
    }
    for key in ["headers", "query"] {
        for entry in tool.entry(key).map(|table| table.node.entries()).into_iter().flatten() {
            let Some(text) = entry.node.text() else { continue };
            let what = format!("{} in the {key} of tool {name}", quoted(&entry.key));
            if let Err(error) = template::check_text(text) {
                wrong(&entry.node, format!("{what} {}", reason(&entry.node, &error)), PLACEHOLDERS);
            } else if key == "headers" && !forms::is_header_value(text) {
                let next = "remove line breaks and control characters";
                wrong(&entry.node, format!("{what} has a value that no header can carry"), next);
            }
        }
    }
    if let Some(node) = tool.get(&["body"])
        && let Some(json) = node.text()
        && let Err(error) = template::check_json(json)
    {
        wrong(node, format!("the `body` of tool {name} {}", reason(node, &error)), PLACEHOLDERS);
    }
    if let Some(node) = tool.get(&["body"])
        && matches!(tool.get(&["method"]).and_then(Node::text), Some("GET" | "HEAD"))
    {
        let reason = format!("tool {name} is a GET or HEAD and has a `body`");
        let next = "use `query`, or another method";
        problems.error(ErrorKind::Conflict, &node.place, Message::new(reason, next));
    }
}

const PLACEHOLDERS: &str = "use {{arguments.NAME}} or {{effect_key}}";

fn reason(node: &Node, error: &TemplateError) -> String {
    match error {
        TemplateError::Placeholder(name) if !node.any_secret() => {
            format!("has the placeholder {}, which is not known", quoted(name))
        }
        _ => "has a placeholder that is not known".to_owned(),
    }
}

fn reach(tool: &Node, root: &Node) -> Reach {
    let listed = root.get(&["http_tools", "private_hosts"]).map(|node| &node.value);
    let private_hosts = match listed {
        Some(Value::Array(hosts)) => hosts.iter().filter_map(Node::text).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let allow_private = matches!(tool.get(&["allow_private"]).map(|node| &node.value), Some(Value::Boolean(true)));
    Reach { allow_private, private_hosts }
}
