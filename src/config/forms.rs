//! Forms of single strings: durations, sizes, addresses, header names. Looks nothing up: a host that does not exist has a
//! correct form.

use super::error::{Message, quoted};
use super::units::{Bytes, LONGEST_MS, Millis};
use crate::model::redact;
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value as Schema;
use std::net::{IpAddr, SocketAddr};

/// What the listener serves besides the MCP endpoint, by the first part of the path.
const TAKEN: [&str; 5] = ["api", "worker", "healthz", "readyz", "metrics"];

/// Checks a string against the form that its schema names. `secret` keeps it out of the message.
pub(super) fn check(text: &str, schema: &Schema, secret: bool) -> Result<(), Message> {
    let value = || if secret { "has a value that".to_owned() } else { format!("is {}, which", quoted(text)) };
    let wrong = |what: &str, next: &str| Err(Message::new(format!("{} is {what}", value()), next));
    match schema.get("x-format").and_then(Schema::as_str).unwrap_or_default() {
        "duration" => match Millis::parse(text) {
            Some(duration) => check_duration(duration, schema),
            None => wrong("no duration", "write it as \"500ms\", \"30s\", \"10m\", \"24h\" or \"7d\", at most 3650d"),
        },
        "size" => match Bytes::parse(text) {
            Some(bytes) => check_bytes(i64::try_from(bytes.0).unwrap_or(i64::MAX), schema),
            None => wrong("no size", "write bytes, or a string such as \"4MiB\""),
        },
        "pattern" | "pointer" => {
            let (patterns, pointers) = match schema.get("x-format").and_then(Schema::as_str) {
                Some("pattern") => (Some(text), None),
                _ => (None, Some(text)),
            };
            match redact::Rules::parse(patterns, pointers, None) {
                Ok(_) => Ok(()),
                Err((_, fault)) => {
                    let next = "see \"Redaction\" in docs/operating.md for the forms";
                    Err(Message::new(
                        format!(
                            "{} {fault}",
                            if secret { "has a value that".to_owned() } else { format!("is {}, which", quoted(text)) }
                        ),
                        next,
                    ))
                }
            }
        }
        "listen" if text.parse::<SocketAddr>().is_err() => {
            wrong("no address to listen on", "write an IP address and a port, such as \"127.0.0.1:7400\"")
        }
        "store" => {
            let known = ["sqlite:", "postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
            if known && text != "sqlite:" {
                Ok(())
            } else {
                wrong("no address of a store", "write sqlite:PATH or postgres://…")
            }
        }
        "postgres" if text.starts_with("postgres://") || text.starts_with("postgresql://") => Ok(()),
        "postgres" => wrong("no address of a PostgreSQL server", "write postgres://…"),
        "http-url" => match reqwest::Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(()),
            _ => wrong("no http address", "write it as https://host/path"),
        },
        // Placeholders are judged where the rest of the tool is known.
        "http-url-template" if text.is_empty() => wrong("no http address", "write it as https://host/path"),
        "url-path" => {
            let valid = text.starts_with('/')
                && text.len() > 1
                && !text.ends_with('/')
                && !text.contains("//")
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "/-_.~".contains(c));
            let first = text.split('/').nth(1).unwrap_or_default();
            if !valid {
                wrong("no path", "write it as \"/mcp\"")
            } else if TAKEN.contains(&first) {
                wrong("taken by the server itself", "write it as \"/mcp\"")
            } else {
                Ok(())
            }
        }
        "log-filter" if !is_log_filter(text) => wrong(
            "no level or filter",
            "write error, warn, info, debug or trace, or a filter such as \"warn,durable_mcp=debug\"",
        ),
        "header" if !is_header(text) => wrong("no header name", "use letters, digits and `-`"),
        "network" if !is_network(text) => wrong("no address or network", "write it as \"10.0.0.7\" or \"10.0.0.0/8\""),
        "prefix" if text.len() > 48 || !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') => {
            wrong("no prefix", "use at most 48 characters of A-Z, a-z, 0-9, `_` and `-`")
        }
        "path" | "program" if text.is_empty() => wrong("no path", "give it a value, or leave the key out"),
        _ => Ok(()),
    }
}

/// Checks a size in bytes against the bounds of its schema.
pub(super) fn check_bytes(bytes: i64, schema: &Schema) -> Result<(), Message> {
    let bound = |key: &str| schema.get(key).and_then(Schema::as_i64);
    if let Some(least) = bound("x-min-bytes").filter(|least| bytes < *least) {
        return Err(Message::new(format!("is {bytes} bytes"), format!("use at least {}", Bytes(least.unsigned_abs()))));
    }
    match bound("x-max-bytes").filter(|most| bytes > *most) {
        Some(most) => {
            Err(Message::new(format!("is {bytes} bytes"), format!("use at most {}", Bytes(most.unsigned_abs()))))
        }
        None => Ok(()),
    }
}

fn check_duration(duration: Millis, schema: &Schema) -> Result<(), Message> {
    let bound = |key: &str| schema.get(key).and_then(Schema::as_i64);
    let most = bound("x-max-ms").unwrap_or(LONGEST_MS);
    if let Some(least) = bound("x-min-ms").filter(|least| duration.0 < *least) {
        return Err(Message::new(format!("is {duration}"), format!("use at least {}", Millis(least))));
    }
    if duration.0 > most {
        return Err(Message::new(format!("is {duration}"), format!("use at most {}", Millis(most))));
    }
    Ok(())
}

/// Whether the text can name an HTTP header.
pub(super) fn is_header(text: &str) -> bool {
    HeaderName::from_bytes(text.as_bytes()).is_ok()
}

/// Whether the text can be the value of an HTTP header.
pub(super) fn is_header_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}

/// Levels, and levels of targets. The library that reads it takes a misspelt level for a target, and says nothing more.
fn is_log_filter(text: &str) -> bool {
    let is_level =
        |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&&*word.to_ascii_lowercase());
    text.split(',').map(str::trim).all(|directive| match directive.rsplit_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => is_level(directive),
    })
}

fn is_network(text: &str) -> bool {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let widest = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= widest))
}
