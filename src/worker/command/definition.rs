//! The tool object of a command, made of what the configuration says. Checks no more of a schema than MCP asks of every
//! server.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::json::one_line;

/// How a command is described to clients; schemas are the operator's JSON texts.
#[derive(Clone, Debug, Default)]
pub struct Definition {
    /// The tool's name.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// JSON Schema of its arguments; absent: any object.
    pub input_schema: Option<String>,
    /// JSON Schema of its structured result.
    pub output_schema: Option<String>,
    /// Hints for clients (MCP `ToolAnnotations`), a JSON object.
    pub annotations: Option<String>,
}

/// Why a description makes no tool object.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DefinitionError {
    /// A text that is no JSON object.
    #[error("{member} of tool {tool} is not a JSON object")]
    NotObject {
        /// The tool.
        tool: String,
        /// Which text.
        member: &'static str,
    },
    /// A schema of something else than an object.
    #[error("{member} of tool {tool} must have \"type\": \"object\"")]
    NotOfObjects {
        /// The tool.
        tool: String,
        /// Which text.
        member: &'static str,
    },
}

impl DefinitionError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            DefinitionError::NotObject { .. } => "definition_not_object",
            DefinitionError::NotOfObjects { .. } => "definition_not_of_objects",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolObject<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Box<RawValue>>,
}

impl Definition {
    /// The tool object (MCP `Tool`), schemas byte for byte but on one line.
    ///
    /// # Errors
    /// When a schema or the annotations are no JSON object, or a schema is not one of objects.
    pub fn tool_object(&self) -> Result<Box<RawValue>, DefinitionError> {
        let object = ToolObject {
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref(),
            input_schema: self
                .schema("input_schema", self.input_schema.as_deref().unwrap_or(r#"{"type":"object"}"#))?,
            output_schema: self.output_schema.as_deref().map(|text| self.schema("output_schema", text)).transpose()?,
            annotations: self.annotations.as_deref().map(|text| self.object("annotations", text)).transpose()?,
        };
        // Strings and raw JSON always serialise.
        Ok(serde_json::value::to_raw_value(&object).expect("a tool object is always JSON"))
    }

    fn schema(&self, member: &'static str, text: &str) -> Result<Box<RawValue>, DefinitionError> {
        #[derive(Deserialize)]
        struct Peek {
            #[serde(rename = "type")]
            of: String,
        }
        let schema = self.object(member, text)?;
        match serde_json::from_str::<Peek>(schema.get()) {
            Ok(peek) if peek.of == "object" => Ok(schema),
            _ => Err(DefinitionError::NotOfObjects { tool: self.name.clone(), member }),
        }
    }

    fn object(&self, member: &'static str, text: &str) -> Result<Box<RawValue>, DefinitionError> {
        let text = text.trim();
        RawValue::from_string(one_line(text).into_owned())
            .ok()
            .filter(|raw| raw.get().starts_with('{'))
            .ok_or_else(|| DefinitionError::NotObject { tool: self.name.clone(), member })
    }
}
