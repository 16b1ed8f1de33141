//! From a tool's templates and one call's arguments to the request that is sent. Pure. An argument changes values inside
//! the parts of the address that the operator gave it, and never host, path or header lines besides.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::value::RawValue;
use thiserror::Error;

use super::address::{Reach, Unreachable};
use crate::model::id::ExecutionId;
use crate::model::json::members;
use crate::worker::template::{self, Part, Source, TemplateError, Values, join, parts, plain};
use crate::worker::upstream::Secret;

/// The header with the effect key, which many services deduplicate by.
pub const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The header with the lease's number.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-durable-mcp-fencing-token");
/// The header with the execution's id.
pub const EXECUTION_HEADER: HeaderName = HeaderName::from_static("x-durable-mcp-execution-id");

/// Stands for a placeholder while an address is looked at as an address; no host can have it.
const PROBE: &str = "x";

/// What a tool sends, as the operator wrote it: every text may hold placeholders.
#[derive(Clone, Debug)]
pub struct Template {
    /// The method.
    pub method: Method,
    /// The address; placeholders in path and query only.
    pub url: String,
    /// Headers, values secret.
    pub headers: Vec<(String, Secret)>,
    /// Parameters added to those of the address; absent: with a method without a body, the arguments that the path does
    /// not name.
    pub query: Option<Vec<(String, Secret)>>,
    /// A JSON text; absent: the arguments, for a method with a body.
    pub body: Option<String>,
}

/// One attempt's share of the request.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The arguments' exact text.
    pub arguments: &'a str,
    /// The key for the tool's own external writes.
    pub effect_key: ExecutionId,
    /// The execution.
    pub execution: ExecutionId,
    /// The lease's number.
    pub fencing_token: i64,
}

/// What is sent.
#[derive(Debug)]
pub struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<String>,
}

/// Why an address cannot be one of a tool.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UrlError {
    /// No http or https address.
    #[error("it is no http or https address")]
    NotHttp,
    /// An argument could choose whom to talk to.
    #[error("it has a placeholder before its path")]
    OpenHost,
    /// A part that is never sent.
    #[error("it has a fragment")]
    Fragment,
    /// A placeholder nobody knows.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A host that may not be talked to.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
}

/// Why a call makes no request. For the caller: names arguments and headers, never the operator's values.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unsendable {
    /// An argument that a template needs is absent.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A part of the path would be empty or a step to another folder.
    #[error("a value for the address is empty, `.` or `..`, which would make it another address")]
    Path,
    /// A value with a line break or another character that headers cannot have.
    #[error("a value for the header {0} has characters that no header can carry")]
    Header(String),
    /// The whole is no address.
    #[error("the values make no address")]
    Url,
}

/// Reads an address with placeholders and checks what can be checked before a call.
///
/// # Errors
/// Says why it can be none.
pub fn check_url(url: &str, reach: &Reach) -> Result<Url, UrlError> {
    template::check_text(url)?;
    for part in parts(url) {
        // The address is cut at these before its placeholders are read.
        if let Part::Placeholder(name) = part
            && name.contains(['/', '?', '#'])
        {
            return Err(TemplateError::Placeholder(name.to_owned()).into());
        }
    }
    let (authority, _) = split(url);
    if authority.contains("{{") {
        return Err(UrlError::OpenHost);
    }
    let probe = join(&parts(url), &|_| Ok(Some(format!("\"{PROBE}\""))), &|text| text.to_owned())?;
    let probe = Url::parse(&probe).map_err(|_| UrlError::NotHttp)?;
    if !matches!(probe.scheme(), "http" | "https") || !probe.has_host() {
        return Err(UrlError::NotHttp);
    }
    if probe.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    reach.check(&probe)?;
    Ok(probe)
}

/// Scheme and host, and the rest.
fn split(url: &str) -> (&str, &str) {
    let host_at = url.find("://").map_or(0, |at| at + 3);
    let path_at = url[host_at..].find(['/', '?', '#', '\\']).map_or(url.len(), |at| host_at + at);
    url.split_at(path_at)
}

/// Whether requests of this method carry the arguments in their body.
fn has_body(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::DELETE)
}

impl Template {
    /// The request of one attempt.
    ///
    /// # Errors
    /// Says why the arguments make none; nothing was sent then.
    pub fn fill(&self, attempt: Attempt<'_>) -> Result<Outgoing, Unsendable> {
        let values = Values { arguments: attempt.arguments, effect_key: attempt.effect_key };
        let mut headers = HeaderMap::new();
        let body = self.body(&values, attempt.arguments)?;
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let numbers = [
            (KEY_HEADER, attempt.effect_key.to_string()),
            (TOKEN_HEADER, attempt.fencing_token.to_string()),
            (EXECUTION_HEADER, attempt.execution.to_string()),
        ];
        for (name, value) in numbers {
            headers.insert(name, HeaderValue::try_from(value).expect("ids and numbers are visible ASCII"));
        }
        for (name, template) in &self.headers {
            let Some(text) = optional(template.expose(), &values)? else { continue };
            let unsendable = || Unsendable::Header(name.clone());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
            let mut value = HeaderValue::from_str(&text).map_err(|_| unsendable())?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(Outgoing { method: self.method.clone(), url: self.url(&values, attempt.arguments)?, headers, body })
    }

    fn body(&self, values: &Values<'_>, arguments: &str) -> Result<Option<String>, Unsendable> {
        match &self.body {
            Some(template) => Ok(Some(template::fill_json(template, &|source| Ok(values.get(source)))?)),
            None => Ok(has_body(&self.method).then(|| arguments.to_owned())),
        }
    }

    fn url(&self, values: &Values<'_>, arguments: &str) -> Result<Url, Unsendable> {
        let (authority, rest) = split(&self.url);
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let lookup = |source: &Source| values.need(source).map(Some);
        let mut text = authority.to_owned();
        for (at, segment) in path.split('/').enumerate() {
            if at > 0 {
                text.push('/');
            }
            let parts = parts(segment);
            let open = parts.iter().any(|part| matches!(part, Part::Placeholder(_)));
            let filled = join(&parts, &lookup, &|text| encoded(text))?;
            let seen = filled.to_ascii_lowercase().replace("%2e", ".");
            if open && matches!(seen.as_str(), "" | "." | "..") {
                return Err(Unsendable::Path);
            }
            text.push_str(&filled);
        }
        if let Some(query) = query {
            text.push('?');
            text.push_str(&join(&parts(query), &lookup, &|text| encoded(text))?);
        }
        let mut url = Url::parse(&text).map_err(|_| Unsendable::Url)?;
        for (name, value) in self.parameters(values, arguments)? {
            url.query_pairs_mut().append_pair(&name, &value);
        }
        Ok(url)
    }

    fn parameters(&self, values: &Values<'_>, arguments: &str) -> Result<Vec<(String, String)>, TemplateError> {
        let mut found = Vec::new();
        if let Some(query) = &self.query {
            for (name, template) in query {
                match parts(template.expose()).as_slice() {
                    [Part::Placeholder(source)] => {
                        let json = values.get(&Source::parse(source)?);
                        found.extend(texts(json.as_deref()).into_iter().map(|text| (name.clone(), text)));
                    }
                    parts => {
                        let lookup = |source: &Source| values.need(source).map(Some);
                        found.push((name.clone(), join(parts, &lookup, &|text| text.to_owned())?));
                    }
                }
            }
        } else if !has_body(&self.method) && self.body.is_none() {
            for (name, json) in members(arguments).unwrap_or_default() {
                if !self.names(&name) {
                    found.extend(texts(Some(json.get())).into_iter().map(|text| (name.to_string(), text)));
                }
            }
        }
        Ok(found)
    }

    /// Whether the address itself takes this argument.
    fn names(&self, argument: &str) -> bool {
        parts(&self.url).iter().any(|part| match part {
            Part::Placeholder(name) => {
                let path = name.strip_prefix("arguments.");
                path.is_some_and(|path| path.split('.').next() == Some(argument))
            }
            Part::Text(_) => false,
        })
    }
}

/// The text of a template that may be left out: one absent or null argument and nothing else.
fn optional(template: &str, values: &Values<'_>) -> Result<Option<String>, TemplateError> {
    match parts(template).as_slice() {
        [Part::Placeholder(name)] => {
            Ok(values.get(&Source::parse(name)?).filter(|json| json != "null").map(|json| plain(&json)))
        }
        parts => join(parts, &|source| values.need(source).map(Some), &|text| text.to_owned()).map(Some),
    }
}

/// The texts of a parameter: one of each item of a list, none of what is absent or null.
fn texts(json: Option<&str>) -> Vec<String> {
    let Some(json) = json else { return Vec::new() };
    let items: Vec<&RawValue> = match json.starts_with('[') {
        true => serde_json::from_str(json).unwrap_or_default(),
        false => serde_json::from_str(json).into_iter().collect(),
    };
    items.into_iter().map(RawValue::get).filter(|item| *item != "null").map(plain).collect()
}

/// A text as one part of an address: all but the unreserved characters of RFC 3986 as `%XX`.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
