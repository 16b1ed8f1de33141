//! The idempotency key of a call in all its spellings; those that are used must agree. Does not look the key up, and
//! does not make one for a call without.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::call_params::CallParams;
use super::reject::{RpcError, code};
use crate::model::json;

#[cfg(test)]
mod tests;

const KEY_BYTES_MAX: usize = 255;

/// Where a key was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `_meta["durable-mcp/idempotencyKey"]`
    VendorMeta,
    /// `_meta["idempotencyKey"]`
    PlainMeta,
    /// `params.idempotencyKey`
    Params,
    /// The HTTP header `Idempotency-Key`.
    Header,
    /// The argument that the tool's `key_argument` names.
    Argument,
}

impl Spelling {
    pub fn name(self) -> &'static str {
        match self {
            Spelling::VendorMeta => "_meta[\"durable-mcp/idempotencyKey\"]",
            Spelling::PlainMeta => "_meta[\"idempotencyKey\"]",
            Spelling::Params => "params.idempotencyKey",
            Spelling::Header => "the header Idempotency-Key",
            Spelling::Argument => "the tool's key argument",
        }
    }
}

/// Why keys are refused. Nothing is stored then; the keys themselves are not echoed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the idempotency key in {} is not a string", .0.name())]
    NotText(Spelling),
    #[error("the idempotency key in {} is not 1 to 255 visible ASCII characters", .0.name())]
    NotVisible(Spelling),
    #[error("two idempotency keys disagree: {} and {}", .first.name(), .second.name())]
    Disagree { first: Spelling, second: Spelling },
}

impl KeyError {
    pub fn code(&self) -> i64 {
        code::INVALID_PARAMS
    }

    pub fn rpc_error(&self) -> RpcError {
        RpcError::new(self.code(), self.to_string())
    }
}

/// The key of a call, or none. `headers` are the values of `Idempotency-Key`, `key_argument` is the tool's setting.
pub fn resolve<'a>(
    call: &CallParams<'a>,
    headers: impl IntoIterator<Item = &'a [u8]>,
    key_argument: Option<&str>,
) -> Result<Option<Cow<'a, str>>, KeyError> {
    let mut keys = Keys::default();
    keys.offer_raw(Spelling::VendorMeta, call.meta.vendor_key)?;
    keys.offer_raw(Spelling::PlainMeta, call.meta.plain_key)?;
    keys.offer_raw(Spelling::Params, call.idempotency_key)?;
    for header in headers {
        keys.offer_header(header)?;
    }
    if let (Some(name), Some(arguments)) = (key_argument, call.arguments) {
        keys.offer_argument(arguments, name)?;
    }
    Ok(keys.agreed())
}

/// Collects spellings one by one.
#[derive(Debug, Default)]
pub struct Keys<'a> {
    first: Option<(Spelling, Cow<'a, str>)>,
}

impl<'a> Keys<'a> {
    /// Adds a key. Errors: it is not 1–255 visible ASCII characters, or differs from one given before.
    pub fn offer(&mut self, spelling: Spelling, key: Cow<'a, str>) -> Result<(), KeyError> {
        let is_visible = key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(KeyError::NotVisible(spelling));
        }
        match &self.first {
            Some((first, agreed)) if *agreed != key => Err(KeyError::Disagree { first: *first, second: spelling }),
            Some(_) => Ok(()),
            None => {
                self.first = Some((spelling, key));
                Ok(())
            }
        }
    }

    /// The one key that was given.
    pub fn agreed(self) -> Option<Cow<'a, str>> {
        self.first.map(|(_, key)| key)
    }

    fn offer_raw(&mut self, spelling: Spelling, value: Option<&'a RawValue>) -> Result<(), KeyError> {
        match value {
            Some(value) => self.offer(spelling, json::text(value).ok_or(KeyError::NotText(spelling))?),
            None => Ok(()),
        }
    }

    /// The IETF draft writes the header as a quoted string (RFC 8941), practice writes it bare: both are read.
    fn offer_header(&mut self, value: &'a [u8]) -> Result<(), KeyError> {
        let bad = KeyError::NotVisible(Spelling::Header);
        let text = std::str::from_utf8(value).map_err(|_| bad.clone())?.trim_matches([' ', '\t']);
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let key = match inner {
            Some(inner) => unquoted(inner).ok_or(bad)?,
            None => Cow::Borrowed(text),
        };
        self.offer(Spelling::Header, key)
    }

    /// A key argument that is an integer counts by its digits; `null` counts as absent.
    fn offer_argument(&mut self, arguments: &'a RawValue, name: &str) -> Result<(), KeyError> {
        let members = json::members(arguments.get()).unwrap_or_default();
        let Some((_, value)) = members.into_iter().find(|(member, _)| member == name) else {
            return Ok(());
        };
        if json::is_null(value) {
            return Ok(());
        }
        if value.get().parse::<i128>().is_ok() {
            return self.offer(Spelling::Argument, Cow::Borrowed(value.get()));
        }
        self.offer_raw(Spelling::Argument, Some(value))
    }
}

/// The inside of a quoted string of RFC 8941: a backslash stands only before a quote or a backslash.
fn unquoted(inner: &str) -> Option<Cow<'_, str>> {
    if !inner.contains(['\\', '"']) {
        return Some(Cow::Borrowed(inner));
    }
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => plain.push(chars.next().filter(|next| matches!(next, '"' | '\\'))?),
            '"' => return None,
            other => plain.push(other),
        }
    }
    Some(Cow::Owned(plain))
}
