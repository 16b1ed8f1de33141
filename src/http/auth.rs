//! Who is behind a request: by mode nobody, the owner of an API key, or whom a listed proxy names. The identity comes from
//! the credential only. What may be done with it is asked with [`Access`]; passes no credential on.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use super::guard::single;
use super::local_token::LocalToken;
use super::proxy::{self, Proxy};
use super::refusal::Refusal;
use super::token::{Denial, Tokens};
use crate::model::execution::Head;
use crate::model::principal::{Principal, Scope, Scopes};

#[cfg(test)]
mod tests;

/// The subject that acts with the local token.
pub const OPERATOR: &str = "operator";

/// How a listener learns who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It does not; loopback only.
    None,
    /// By API keys.
    Token,
    /// By identity headers of listed peers.
    Proxy,
}

/// Refuses an address that others can reach while nobody has to prove who they are. Errors: one line for the operator.
pub fn check_bind(listen: SocketAddr, mode: Mode) -> Result<(), String> {
    if mode != Mode::None || listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    Err(format!(
        "{listen} can be reached from other machines and auth.mode is `none`; set auth.mode to `token` or `proxy`, or \
         listen on 127.0.0.1"
    ))
}

/// The two ends of the connection a request came over; `listener.rs` puts it into the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Who is connected.
    pub peer: SocketAddr,
    /// Our own address of this connection.
    pub local: SocketAddr,
}

/// How a principal proved who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Not at all.
    None,
    /// With the local token: a user of this machine who owns the server.
    LocalToken,
    /// With a credential of its own.
    Credential,
}

/// A principal and how it proved who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who.
    pub principal: Principal,
    /// How.
    pub proof: Proof,
}

/// The authentication of one listener.
pub struct Auth {
    kind: Kind,
}

enum Kind {
    None(Option<LocalToken>),
    Token(Arc<Tokens>),
    Proxy(Proxy),
}

impl Auth {
    /// Nobody has to prove anything; the local token, if there is one, permits actions and payloads.
    pub fn none(local: Option<LocalToken>) -> Auth {
        Auth { kind: Kind::None(local) }
    }

    /// API keys.
    pub fn token(tokens: Arc<Tokens>) -> Auth {
        Auth { kind: Kind::Token(tokens) }
    }

    /// Identity headers.
    pub fn proxy(proxy: Proxy) -> Auth {
        Auth { kind: Kind::Proxy(proxy) }
    }

    /// Who is behind these headers from this peer. Errors: 401, or 503 when the store can not say.
    pub async fn identify(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Access, Refusal> {
        match &self.kind {
            Kind::None(local) => {
                // Another credential than ours means nothing here: a client may carry one for somebody else.
                let owner = local.as_ref().zip(bearer(headers)).is_some_and(|(local, text)| local.matches(text));
                Ok(if owner { Access::operator() } else { Access::anonymous() })
            }
            Kind::Token(tokens) => {
                let presented = bearer(headers).ok_or_else(|| unauthorized(headers))?;
                let principal = tokens.check(presented).await.map_err(denied)?;
                Ok(Access { principal, proof: Proof::Credential })
            }
            Kind::Proxy(proxy) => {
                let principal = proxy.check(headers, peer).map_err(|denial| match denial {
                    proxy::Denial::Peer => challenge("requests are accepted from the configured proxies only", ""),
                    proxy::Denial::Header => challenge("the proxy did not say who is calling", ""),
                })?;
                Ok(Access { principal, proof: Proof::Credential })
            }
        }
    }

    /// The principal behind the head of a request, for a router that is served without `front.rs`.
    pub async fn authorize(&self, parts: &Parts) -> Result<Principal, Response> {
        let peer = parts.extensions.get::<Connection>().map(|connection| connection.peer.ip());
        self.identify(&parts.headers, peer).await.map(|access| access.principal).map_err(IntoResponse::into_response)
    }

    /// Removes what was written for this run.
    pub fn close(&self) {
        if let Kind::None(Some(local)) = &self.kind {
            local.remove();
        }
    }
}

impl Access {
    /// Nobody in particular.
    pub fn anonymous() -> Access {
        Access { principal: Principal::anonymous(), proof: Proof::None }
    }

    fn operator() -> Access {
        let anonymous = Principal::anonymous();
        let scopes = Scopes::of(&[Scope::Call, Scope::Read, Scope::Cancel, Scope::Work, Scope::Operate, Scope::Admin]);
        Access { principal: Principal { subject: OPERATOR.to_owned(), scopes, ..anonymous }, proof: Proof::LocalToken }
    }

    /// Errors: 403 when the principal has not this scope; 401 when nobody proved anything and that could help.
    pub fn require(&self, scope: Scope) -> Result<(), Refusal> {
        if self.principal.scopes.permits(scope) {
            return Ok(());
        }
        Err(if self.proof == Proof::None { local_token_needed() } else { insufficient(scope) })
    }

    /// As [`Access::require`], for what changes something: without authentication it needs the local token in any case.
    pub fn require_action(&self, scope: Scope) -> Result<(), Refusal> {
        match self.proof {
            Proof::None => Err(local_token_needed()),
            Proof::LocalToken | Proof::Credential => self.require(scope),
        }
    }

    /// Errors: the caller may not read arguments and results.
    pub fn require_payloads(&self) -> Result<(), Refusal> {
        match self.proof {
            Proof::None => Err(local_token_needed()),
            Proof::LocalToken | Proof::Credential => self.require(Scope::Read),
        }
    }

    /// The namespace that bounds what is visible; absent: every one.
    pub fn namespace(&self) -> Option<&str> {
        (self.proof != Proof::LocalToken).then_some(self.principal.namespace.as_str())
    }

    /// The principal whose executions alone are visible; absent: those of everybody in the namespace.
    pub fn owner(&self) -> Option<&str> {
        let operates = self.principal.scopes.permits(Scope::Operate);
        (!operates).then_some(self.principal.subject.as_str())
    }

    /// True when the execution is visible at all; a foreign one is as if it were missing.
    pub fn sees(&self, head: &Head) -> bool {
        self.namespace().is_none_or(|namespace| namespace == head.ident.namespace)
            && self.owner().is_none_or(|owner| owner == head.ident.principal)
    }
}

/// The token of an `Authorization: Bearer` header (RFC 6750 §2.1) that is there exactly once.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn unauthorized(headers: &HeaderMap) -> Refusal {
    match headers.contains_key(AUTHORIZATION) {
        true => challenge("the credential has not the form of a token of this server", "invalid_token"),
        false => challenge("a token is needed", ""),
    }
}

fn denied(denial: Denial) -> Refusal {
    match denial {
        Denial::Malformed => challenge("the credential has not the form of a token of this server", "invalid_token"),
        Denial::Unknown => challenge("the token is not known here", "invalid_token"),
        Denial::Expired => challenge("the token has expired", "invalid_token"),
        Denial::Revoked => challenge("the token was revoked", "invalid_token"),
        Denial::Store(error) => Refusal::store(&error),
    }
}

/// RFC 6750 §3: no error code when no credential came.
fn challenge(sentence: &'static str, error: &'static str) -> Refusal {
    let header = match error {
        "" => "Bearer realm=\"durable-mcp\"".to_owned(),
        error => format!("Bearer realm=\"durable-mcp\", error=\"{error}\", error_description=\"{sentence}\""),
    };
    let next = "send `Authorization: Bearer dmcp_…`; `durable-mcp token create` makes a token";
    Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", sentence, next).with_challenge(header)
}

fn local_token_needed() -> Refusal {
    Refusal::new(
        StatusCode::UNAUTHORIZED,
        "local_token_needed",
        "this needs the local token of the server",
        "send it as `Authorization: Bearer …`; it is in the folder `servers` of the data folder, and the CLI finds it",
    )
    .with_challenge("Bearer realm=\"durable-mcp\"")
}

/// RFC 6750 §3.1.
fn insufficient(scope: Scope) -> Refusal {
    let header = format!("Bearer realm=\"durable-mcp\", error=\"insufficient_scope\", scope=\"{}\"", scope.as_str());
    let error = format!("the token lacks the scope `{}`", scope.as_str());
    let next = "use a token with this scope; `durable-mcp token create --scope …` makes one";
    Refusal::new(StatusCode::FORBIDDEN, "insufficient_scope", error, next).with_challenge(header)
}
