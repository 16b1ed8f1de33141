//! From a configured HTTP tool to its executor. Sends nothing.

use super::failure::Failure;
use super::settings;
use crate::config::Loaded;
use crate::config::tools::{Method, OwnTool};
use crate::worker::http_call::{HttpCall, Limits, RETRY_ON_STATUS, Reach, Settings, Template};
use crate::worker::upstream::Secret;

/// The executor of a tool with a `url`; `name` names it in what is said when it can be none.
pub fn executor(loaded: &Loaded, name: &str, tool: &OwnTool) -> Result<HttpCall, Failure> {
    let config = &loaded.config;
    let secrets = |table: &indexmap::IndexMap<String, crate::config::Secret>| -> Vec<(String, Secret)> {
        table.iter().map(|(name, value)| (name.clone(), Secret::new(value.expose()))).collect()
    };
    let template = Template {
        method: method(tool.method),
        url: tool.url.as_ref().map(|url| url.expose().to_owned()).unwrap_or_default(),
        headers: secrets(&tool.headers),
        query: tool.query.as_ref().map(secrets),
        body: tool.body.as_ref().map(|body| body.raw().get().to_owned()),
    };
    let settings = Settings {
        template,
        key_argument: tool.key_argument.as_ref().map(|name| name.to_string()),
        has_output_schema: tool.output_schema.is_some(),
        retry_on_status: tool.retry_on_status.clone().unwrap_or_else(|| RETRY_ON_STATUS.to_vec()),
        reach: Reach {
            allow_private: tool.allow_private.unwrap_or(false),
            private_hosts: config.http_tools.private_hosts.iter().map(|host| host.to_string()).collect(),
        },
        limits: Limits {
            connect_timeout: settings::duration(config.http_tools.connect_timeout),
            body_bytes: tool.max_response.unwrap_or(config.limits.result_bytes).len(),
            retry_after: settings::duration(config.http_tools.max_retry_after),
            ..Limits::default()
        },
    };
    HttpCall::new(settings).map_err(|error| Failure::usage(format!("tools.{name}: {error}")))
}

/// Whether requests of this method change nothing (RFC 9110, safe methods).
pub fn is_safe(method: Option<Method>) -> bool {
    matches!(method, Some(Method::Get | Method::Head))
}

fn method(method: Option<Method>) -> reqwest::Method {
    match method.unwrap_or(Method::Post) {
        Method::Get => reqwest::Method::GET,
        Method::Head => reqwest::Method::HEAD,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}
