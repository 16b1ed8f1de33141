//! Which addresses a call may go to: public ones, unless the operator allowed more. A name is resolved once, and the
//! connection goes to what was checked, so that a name cannot point elsewhere between check and connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

/// Who may be reached beyond public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Everybody.
    pub allow_private: bool,
    /// These hosts, by the name or address that the URL has.
    pub private_hosts: Vec<String>,
}

/// Why a host is not talked to.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unreachable {
    /// Every address of it is private, loopback, link-local or otherwise not public.
    #[error("{0} has no public address; private ones need allow_private or http_tools.private_hosts")]
    Private(String),
    /// There is no such name.
    #[error("the name {0} cannot be resolved")]
    Unknown(String),
}

impl Reach {
    /// Whether this host may be reached whatever its address is.
    pub fn covers(&self, host: &str) -> bool {
        let host = bare(host);
        self.allow_private || self.private_hosts.iter().any(|listed| bare(listed).eq_ignore_ascii_case(host))
    }

    /// Judges what can be judged without a look-up: addresses, and the names of this machine.
    ///
    /// # Errors
    /// When the host can only be a private one and is not allowed.
    pub fn check(&self, url: &Url) -> Result<(), Unreachable> {
        let name = url.host_str().unwrap_or_default();
        // The parser has brought every spelling of an address (0x7f.1, 2130706433) to its usual one.
        let private = match bare(name).parse::<IpAddr>() {
            Ok(address) => !is_public(address),
            Err(_) => bare(name) == "localhost" || bare(name).ends_with(".localhost"),
        };
        match private && !self.covers(name) {
            true => Err(Unreachable::Private(name.to_owned())),
            false => Ok(()),
        }
    }

    /// Of the addresses of a host, those that may be connected to.
    ///
    /// # Errors
    /// When there are none.
    pub fn admit(&self, host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Unreachable> {
        if found.is_empty() {
            return Err(Unreachable::Unknown(host.to_owned()));
        }
        let covered = self.covers(host);
        let admitted: Vec<_> = found.into_iter().filter(|address| covered || is_public(address.ip())).collect();
        match admitted.is_empty() {
            true => Err(Unreachable::Private(host.to_owned())),
            false => Ok(admitted),
        }
    }
}

impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => found.collect(),
                Err(_) => Vec::new(),
            };
            let admitted = reach.admit(host, found)?;
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.')
}

/// Whether an address is one of the open internet (IANA special-purpose registries).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        // "This network", shared addresses of providers, protocol assignments, benchmarks, reserved.
        || a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240;
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match words {
        // An IPv4 address in one of its disguises is what that address is.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Nothing of the rest is public outside of 2000::/3, which leaves out ::, ::1, fc00::/7, fe80::/10 and ff00::/8.
        [first, ..] if first & 0xe000 != 0x2000 => false,
        // Protocol assignments with Teredo, and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        _ => true,
    }
}
