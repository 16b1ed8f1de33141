//! A tool: its definition as the server shows it, and a handler whose types are forgotten. Runs nothing by itself.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{Failure, ToolError};
use crate::results::tool_result;

#[cfg(test)]
mod tests;

/// What may happen to a call whose attempt was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is run again, up to `max_attempts`.
    AtLeastOnce,
    /// It is not run again by itself.
    AtMostOnce,
}

/// The definition of a tool. Without a delivery a lost call is not run again, unless the annotations say that the tool is
/// read-only or idempotent.
#[derive(Clone, Debug)]
pub struct Tool {
    pub(crate) name: String,
    members: serde_json::Map<String, Value>,
}

impl Tool {
    pub fn new(name: impl Into<String>) -> Tool {
        let name = name.into();
        let mut tool = Tool { name: name.clone(), members: serde_json::Map::new() };
        tool.set("name", json!(name));
        tool
    }

    pub fn title(self, title: &str) -> Tool {
        self.with("title", json!(title))
    }

    pub fn description(self, description: &str) -> Tool {
        self.with("description", json!(description))
    }

    /// The JSON Schema of the arguments, in place of the one of the handler's argument type.
    pub fn input_schema(self, schema: Value) -> Tool {
        self.with("inputSchema", schema)
    }

    pub fn output_schema(self, schema: Value) -> Tool {
        self.with("outputSchema", schema)
    }

    /// MCP annotations, such as `readOnlyHint` and `idempotentHint`.
    pub fn annotations(self, annotations: Value) -> Tool {
        self.with("annotations", annotations)
    }

    pub fn delivery(self, delivery: Delivery) -> Tool {
        let name = match delivery {
            Delivery::AtLeastOnce => "at_least_once",
            Delivery::AtMostOnce => "at_most_once",
        };
        self.with("delivery", json!(name))
    }

    /// The longest attempt, in whole milliseconds.
    pub fn timeout(self, timeout: Duration) -> Tool {
        self.with("timeout_ms", json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1)))
    }

    pub fn max_attempts(self, max_attempts: u32) -> Tool {
        self.with("max_attempts", json!(max_attempts))
    }

    /// The definition, with the schema of `A` where none was given.
    pub(crate) fn definition<A: JsonSchema>(mut self) -> Value {
        if !self.members.contains_key("inputSchema") {
            let generator =
                SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None).into_generator();
            let mut schema = generator.into_root_schema_for::<A>();
            schema.remove("title");
            // Such as of `serde_json::Value`: no argument is named.
            if schema.get("type") != Some(&json!("object")) {
                schema = schemars::json_schema!({"type": "object"});
            }
            self.set("inputSchema", schema.to_value());
        }
        Value::Object(self.members)
    }

    fn with(mut self, name: &str, value: Value) -> Tool {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &str, value: Value) {
        self.members.insert(name.to_owned(), value);
    }
}

/// The arguments of a tool that takes none.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// The JSON text of an MCP result, or why there is none.
pub(crate) type Outcome = Result<String, Failure>;
pub(crate) type Running = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler with the types of its arguments and results forgotten.
pub(crate) type Handler = Arc<dyn Fn(Option<Box<RawValue>>, Context) -> Running + Send + Sync>;

pub(crate) fn handler<A, R, E, F, Fut>(function: F) -> Handler
where
    A: DeserializeOwned + Send + 'static,
    R: Serialize,
    E: Into<Failure>,
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    Arc::new(move |arguments, context| {
        let arguments = read::<A>(arguments.as_deref());
        let running = arguments.map(|arguments| function(arguments, context));
        Box::pin(async move { Ok(tool_result(&running?.await.map_err(Into::into)?)?) })
    })
}

/// Reads the arguments. What does not fit is the caller's mistake and answered as one.
fn read<A: DeserializeOwned>(arguments: Option<&RawValue>) -> Result<A, Failure> {
    let text = arguments.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| {
        let text = error.to_string();
        // The position in a text that the caller has never seen.
        let what = text.split(" at line ").next().unwrap_or_default();
        ToolError::new(format!("the arguments do not fit: {what}")).into()
    })
}
