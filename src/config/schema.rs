//! The JSON Schema of the configuration, made from the structs. Besides the standard words it has ours, which start with
//! `x-`: form, bounds of durations and sizes, where a value is inherited from. Checks nothing itself.

use super::settings::Config;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Returns the JSON Schema of the configuration, with every setting, its type, default, bounds and description.
pub fn schema() -> Value {
    let mut schema = tree().clone();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!("DurableMCP configuration"));
    }
    schema
}

/// The same, made once.
pub(super) fn tree() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
        tidy(&mut schema);
        schema
    });
    &SCHEMA
}

/// The properties of an object's schema, in the order of their names.
pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The schema of the entries of a table with free names.
pub(super) fn entries(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|inner| inner.is_object())
}

/// The words that an enumeration permits.
pub(super) fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    let variants = schema.get("oneOf")?.as_array()?;
    Some(variants.iter().filter_map(|variant| variant.get("const")?.as_str()).collect())
}

/// Neither file format has a null that means something, so the schema has none either; and tables are closed.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for variants in ["anyOf", "oneOf"] {
        let Some(Value::Array(list)) = object.get_mut(variants) else { continue };
        let before = list.len();
        list.retain(|variant| variant.get("type") != Some(&json!("null")));
        if list.len() == 1 && before == 2 {
            let inner = list.remove(0);
            object.remove(variants);
            if let Value::Object(inner) = inner {
                // The description of the field says more than that of its type.
                for (key, value) in inner {
                    object.entry(key).or_insert(value);
                }
            }
        }
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if types.len() == 1 {
            let only = types.remove(0);
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    // Whole tables as defaults repeat the defaults inside them.
    if matches!(object.get("default"), Some(Value::Null | Value::Object(_))) {
        object.remove("default");
    }
    if object.get("x-secret") == Some(&Value::Bool(false)) {
        object.remove("x-secret");
    }
    if object.contains_key("properties") && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for_each_inner(object, tidy);
}

fn for_each_inner(object: &mut Map<String, Value>, visit: fn(&mut Value)) {
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(visit);
    }
    for key in ["additionalProperties", "items"] {
        if let Some(inner) = object.get_mut(key) {
            visit(inner);
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(list)) = object.get_mut(key) {
            list.iter_mut().for_each(visit);
        }
    }
}
