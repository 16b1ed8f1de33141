//! Identity from headers that an authenticating proxy sets. Believes them from listed peers only; everybody else can
//! write headers too.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName};

use super::guard::single;
use super::network::Network;
use super::token::{is_namespace, is_principal, parse_scopes};
use crate::model::principal::{ANONYMOUS, DEFAULT_NAMESPACE, Principal, Scope, Scopes};

/// Which headers count, and from whom.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Names the principal.
    pub principal_header: String,
    /// Names the namespace; absent in a request: `default`.
    pub namespace_header: String,
    /// Names the scopes, separated by spaces or commas; absent in a request: call, read, cancel.
    pub scopes_header: String,
    /// Addresses and networks of the proxies.
    pub peers: Vec<String>,
}

/// A reader of identity headers.
#[derive(Debug)]
pub struct Proxy {
    principal: HeaderName,
    namespace: HeaderName,
    scopes: HeaderName,
    peers: Vec<Network>,
}

/// Why there is no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The request comes from somebody who is no proxy of ours.
    Peer,
    /// A header is missing, stands twice, or holds what can be no such name.
    Header,
}

impl Proxy {
    /// Errors: a sentence about the entry that can not be used.
    pub fn new(settings: &ProxySettings) -> Result<Proxy, String> {
        let header = |name: &str| {
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no name of a header"))
        };
        if settings.peers.is_empty() {
            return Err("auth mode `proxy` needs at least one address in auth.proxy.peers".to_owned());
        }
        Ok(Proxy {
            principal: header(&settings.principal_header)?,
            namespace: header(&settings.namespace_header)?,
            scopes: header(&settings.scopes_header)?,
            peers: settings.peers.iter().map(|peer| Network::parse(peer)).collect::<Result<_, _>>()?,
        })
    }

    /// Whose request this is.
    pub fn check(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Principal, Denial> {
        if !peer.is_some_and(|peer| self.peers.iter().any(|network| network.contains(peer))) {
            return Err(Denial::Peer);
        }
        let value = |name| match headers.contains_key(name) {
            true => single(headers, name).map(|text| Some(text.trim())).ok_or(Denial::Header),
            false => Ok(None),
        };
        let subject = value(&self.principal)?.filter(|text| is_principal(text) && *text != ANONYMOUS);
        let subject = subject.ok_or(Denial::Header)?;
        let namespace = value(&self.namespace)?.unwrap_or(DEFAULT_NAMESPACE);
        if !is_namespace(namespace) {
            return Err(Denial::Header);
        }
        let usual = || Scopes::of(&[Scope::Call, Scope::Read, Scope::Cancel]);
        let scopes = value(&self.scopes)?.map_or_else(usual, parse_scopes);
        Ok(Principal { subject: subject.to_owned(), namespace: namespace.to_owned(), scopes })
    }
}
