//! The shape of every `--json` output, as JSON Schema made from the types that are printed. `docs/schemas/` holds them as
//! files; a test keeps the two alike and asks for a line here from each command with `--json`. Prints nothing.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::bench::BenchView;
use super::call::CallView;
use super::db::status::StatusLine;
use super::db::verify::VerifyView;
use super::db::{ConformanceView, PruneView};
use super::demo::Report;
use super::doctor::Check;
use super::install::Row;
use super::source::Done;
use super::token::TokenView;
use crate::engine::export::ExportLine;
use crate::engine::remote::listing::WorkerView;
use crate::engine::sessions::SessionView;
use crate::engine::view::{ChangeView, EventView, ExecutionView, ResultView, ToolView};
use crate::engine::why::Why;

/// One command with `--json`.
pub struct Output {
    /// Its words, such as `executions list`.
    pub command: &'static str,
    /// The schema of each line.
    make: fn() -> Schema,
}

/// Every command with `--json`.
pub const OUTPUTS: &[Output] = &[
    Output { command: "bench", make: of::<BenchView> },
    Output { command: "call", make: of::<CallView> },
    Output { command: "config show", make: of::<ConfigView> },
    Output { command: "db conformance", make: of::<ConformanceView> },
    Output { command: "db prune", make: of::<PruneView> },
    Output { command: "db status", make: of::<StatusLine> },
    Output { command: "db verify", make: of::<VerifyView> },
    Output { command: "demo crash", make: of::<Report<'static>> },
    Output { command: "doctor", make: of::<Check> },
    Output { command: "executions cancel", make: of::<Done> },
    Output { command: "executions events", make: of::<EventView> },
    Output { command: "executions export", make: of::<ExportLine<'static>> },
    Output { command: "executions list", make: of::<ExecutionView<'static>> },
    Output { command: "executions result", make: of::<ResultView<'static>> },
    Output { command: "executions show", make: of::<ExecutionView<'static>> },
    Output { command: "executions tail", make: of::<ChangeView<'static>> },
    Output { command: "executions why", make: of::<Why> },
    Output { command: "install", make: of::<Row> },
    Output { command: "sessions close", make: of::<SessionView> },
    Output { command: "sessions list", make: of::<SessionView> },
    Output { command: "token create", make: of::<TokenView<'static>> },
    Output { command: "token list", make: of::<TokenView<'static>> },
    Output { command: "token revoke", make: of::<TokenView<'static>> },
    Output { command: "tools list", make: of::<ToolView<'static>> },
    Output { command: "tools show", make: of::<ToolView<'static>> },
    Output { command: "workers drain", make: of::<WorkerView> },
    Output { command: "workers list", make: of::<WorkerView> },
];

/// Commands that print what another one prints.
pub const ALIKE: &[(&str, &str)] = &[
    ("demo duplicate", "demo crash"),
    ("demo fencing", "demo crash"),
    ("demo retry", "demo crash"),
    ("demo stack", "demo crash"),
    ("executions resolve", "executions cancel"),
    ("executions retry", "executions cancel"),
    ("executions wait", "executions show"),
    ("uninstall", "install"),
];

impl Output {
    /// The file in `docs/schemas/`.
    pub fn file(&self) -> String {
        file_of(self.command)
    }

    /// The schema of each line that the command prints.
    pub fn schema(&self) -> Value {
        let mut schema = (self.make)().to_value();
        schema["title"] = json!(format!("durable-mcp {} --json", self.command));
        schema
    }
}

/// The file of a command's schema.
pub fn file_of(command: &str) -> String {
    let command = ALIKE.iter().find(|(alike, _)| *alike == command).map_or(command, |(_, other)| other);
    format!("{}.json", command.replace(' ', "-"))
}

fn of<T: JsonSchema>() -> Schema {
    // As things are written, not as they may be read: members that are always there are required.
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    SchemaGenerator::new(settings).into_root_schema_for::<T>()
}

/// What `config show --json` prints, which is made member by member from the configuration itself.
#[derive(JsonSchema)]
#[schemars(rename = "Configuration")]
#[allow(dead_code, reason = "it describes what is printed")]
struct ConfigView {
    /// The file, if there is one.
    file: Option<String>,
    /// Every setting in force by its path, such as `worker.slots`.
    settings: BTreeMap<String, SettingView>,
    /// What is odd about the configuration.
    warnings: Vec<String>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Setting")]
#[allow(dead_code, reason = "it describes what is printed")]
struct SettingView {
    /// The value; what is secret is `***`.
    value: Value,
    /// Where it comes from.
    source: SettingSource,
    /// The flag or the variable.
    #[schemars(extend("type" = "string"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The line of the file.
    #[schemars(extend("type" = "integer"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The path of the setting that it has its value from.
    #[schemars(extend("type" = "string"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited_from: Option<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code, reason = "it describes what is printed")]
enum SettingSource {
    Flag,
    Env,
    File,
    Default,
}
