//! A configuration to begin with: every section with its settings, each at its default and switched off, made from the schema;
//! and examples of what has no default. Describes nothing by itself.

use serde_json::Value;

const HEAD: &str = "\
# Configuration of durable-mcp. Everything here is at its default: take the `#` away from a line to change it.
# Check it with `durable-mcp config check --config FILE`, see all effective values with `durable-mcp config show --config FILE`.
# Secrets do not belong here: write ${NAME} for an environment variable, ${file:/path} for the content of a file.

# --- MCP servers behind durable-mcp. Their tools are offered as NAME__tool; with prefix = \"\" under their own names.

# [servers.github]                            # over stdio
# command = \"npx\"
# args = [\"-y\", \"@modelcontextprotocol/server-github\"]
# env = { GITHUB_PERSONAL_ACCESS_TOKEN = \"${GITHUB_TOKEN}\" }

# [servers.github.tools.create_issue]         # what a lost call may do: run again (at_least_once), or not (at_most_once)
# delivery = \"at_most_once\"

# [servers.crm]                               # over Streamable HTTP
# url = \"https://crm.example.com/mcp\"
# headers = { Authorization = \"Bearer ${CRM_TOKEN}\" }

# --- Commands as tools: no shell, arguments as JSON on stdin, the result from stdout.

# [tools.thumbnail]
# description = \"Makes a thumbnail of an image.\"
# command = [\"./thumbnail.sh\"]
# input_schema = { type = \"object\" }
# delivery = \"at_least_once\"

# --- Namespaces of callers with API keys ([auth] mode = \"token\").

# [namespaces.finance]
# display_name = \"Finance\"
# tools = [\"crm__*\"]

# --- Settings.
";

/// Sections that are written in the order in which people need them; the others follow by name.
const FIRST: [&str; 4] = ["server", "store", "auth", "defaults"];
/// Tables with names of their own have no defaults; the head has examples.
const NAMED: [&str; 3] = ["servers", "tools", "namespaces"];

/// The whole file.
pub fn file() -> String {
    let schema = crate::config::schema();
    let mut out = HEAD.to_owned();
    let Some(sections) = schema["properties"].as_object() else { return out };
    let first = FIRST.iter().filter_map(|name| sections.get_key_value(*name));
    let others = sections.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()) && !NAMED.contains(&name.as_str()));
    for (name, schema) in first.chain(others) {
        section(&mut out, name, schema);
    }
    out
}

fn section(out: &mut String, path: &str, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let is_table = |inner: &Value| inner.get("properties").is_some();
    out.push_str(&format!("\n# {}\n[{path}]\n", sentence(schema)));
    for (name, inner) in properties.iter().filter(|(_, inner)| !is_table(inner)) {
        let setting = format!("# {name} = {}", value(inner));
        out.push_str(&format!("{setting:<44} # {}\n", sentence(inner)));
    }
    for (name, inner) in properties.iter().filter(|(_, inner)| is_table(inner)) {
        section(out, &format!("{path}.{name}"), inner);
    }
}

/// The default, or an empty value of the kind.
fn value(schema: &Value) -> String {
    match schema.get("default") {
        Some(Value::Null) | None => match schema["type"].as_str() {
            Some("array") => "[]".to_owned(),
            Some("boolean") => "true".to_owned(),
            Some("integer" | "number") => "1".to_owned(),
            Some("object") => "{}".to_owned(),
            _ => "\"\"".to_owned(),
        },
        // JSON's strings, numbers, booleans and lists of them are TOML's.
        Some(value) => value.to_string(),
    }
}

fn sentence(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().split('\n').next().unwrap_or_default().to_owned()
}
