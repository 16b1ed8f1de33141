//! JSON inside the configuration, kept as text so that numbers and member order stay as written. Does not know what the
//! text means: schemas and templates are read where they are used.

use super::secret::MASK;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// A JSON object as text.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

/// A JSON object, written in place or in a file of its own. After `config::load` always the object.
#[derive(Clone)]
pub enum JsonSource {
    Here(Json),
    File(PathBuf),
}

impl Json {
    /// The text.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads a text; errors with what is wrong when it is no JSON object.
    pub fn parse(text: &str) -> Result<Self, String> {
        let raw: Box<RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if raw.get().starts_with('{') { Ok(Self(raw)) } else { Err("it is no JSON object".to_owned()) }
    }
}

impl JsonSource {
    /// The object; `None` while it is still in its file.
    pub fn object(&self) -> Option<&RawValue> {
        match self {
            Self::Here(json) => Some(json.raw()),
            Self::File(_) => None,
        }
    }

    /// The file that still has to be read.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Here(_) => None,
            Self::File(path) => Some(path),
        }
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::parse("{}").expect("an empty object is JSON")
    }
}

// A template may carry what came through `${…}`.
impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Debug for JsonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

// The checks turn a table into its JSON text before serde sees it, because serde would lose its order.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for JsonSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with('{') {
            Json::parse(&text).map(Self::Here).map_err(de::Error::custom)
        } else {
            Ok(Self::File(PathBuf::from(text)))
        }
    }
}

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-json": true })
    }
}

impl JsonSchema for JsonSource {
    fn schema_name() -> Cow<'static, str> {
        "JsonSource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object"], "x-json": true, "x-format": "path" })
    }
}
