//! What is struck out of calls before anything of them is kept, as it is written; `model::redact` knows what it means.

use super::secret::Text;
use crate::model::redact::Rules;
use schemars::JsonSchema;
use serde::Deserialize;

/// What is struck out of calls before anything of them is stored, logged or told; the tool and whoever waits for it get
/// the true values. The rules of all levels hold together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Redaction {
    /// Regular expressions; what they match in any text of a call is struck, at any depth.
    #[schemars(
        length(max = 64),
        extend("items" = { "type": "string", "minLength": 1, "maxLength": 1024, "x-format": "pattern" })
    )]
    pub patterns: Vec<Text>,
    /// JSON pointers into the arguments; `*` is any member or element, `**` any number of levels.
    #[schemars(
        length(max = 64),
        extend("items" = { "type": "string", "minLength": 1, "maxLength": 1024, "x-format": "pointer" })
    )]
    pub arguments: Vec<Text>,
    /// The same into the result, such as `/structuredContent/token`.
    #[schemars(
        length(max = 64),
        extend("items" = { "type": "string", "minLength": 1, "maxLength": 1024, "x-format": "pointer" })
    )]
    pub results: Vec<Text>,
}

impl Redaction {
    /// These rules and those of `more`.
    pub fn with(mut self, more: &Redaction) -> Redaction {
        self.patterns.extend(more.patterns.iter().cloned());
        self.arguments.extend(more.arguments.iter().cloned());
        self.results.extend(more.results.iter().cloned());
        self
    }

    /// True when nothing is struck.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.arguments.is_empty() && self.results.is_empty()
    }

    /// The rules, ready for use. What was loaded holds none that can not be used; one would strike nothing.
    pub fn rules(&self) -> Rules {
        let texts = |list: &[Text]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let (patterns, arguments, results) = (texts(&self.patterns), texts(&self.arguments), texts(&self.results));
        Rules::parse(
            patterns.iter().map(String::as_str),
            arguments.iter().map(String::as_str),
            results.iter().map(String::as_str),
        )
        .expect("checked when it was loaded")
    }
}
