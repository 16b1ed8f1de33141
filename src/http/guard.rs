//! Host and Origin against allow-lists, on every listener and before anything else reads the request: a web page whose
//! name was pointed at this machine (DNS rebinding) gets no further. Authenticates nobody.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};

use super::refusal::Refusal;

#[cfg(test)]
mod tests;

/// What a listener accepts besides loopback names and its own address.
#[derive(Clone, Debug)]
pub struct GuardSettings {
    /// The address listened on.
    pub listen: SocketAddr,
    /// Host names, with a port if only that port counts; `*` accepts every one.
    pub hosts: Vec<String>,
    /// Web origins such as `https://app.example`; `*` accepts every one.
    pub origins: Vec<String>,
}

/// The allow-lists of one listener.
#[derive(Debug)]
pub struct Guard {
    listen: IpAddr,
    any_host: bool,
    hosts: Vec<(String, Option<u16>)>,
    any_origin: bool,
    origins: Vec<String>,
}

/// The host of an authority, and its port if one is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Authority<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum Host<'a> {
    Ip(IpAddr),
    Name(&'a str),
}

/// Why a host is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepted {
    /// It is one of ours.
    Listed,
    /// Every host is.
    Any,
}

impl Guard {
    /// Reads the lists. Errors: an entry that is no host or no origin.
    pub fn new(settings: &GuardSettings) -> Result<Guard, String> {
        let mut hosts = Vec::new();
        for entry in settings.hosts.iter().filter(|entry| *entry != "*") {
            let authority = Authority::parse(entry)
                // An address of version 6 is often written without its brackets.
                .or_else(|| entry.parse().ok().map(|ip| Authority { host: Host::Ip(IpAddr::V6(ip)), port: None }))
                .ok_or_else(|| format!("`{entry}` is no host name"))?;
            hosts.push((authority.host.text(), authority.port));
        }
        let mut origins = Vec::new();
        for entry in settings.origins.iter().filter(|entry| *entry != "*") {
            let (scheme, rest) = split_origin(entry).ok_or_else(|| format!("`{entry}` is no origin"))?;
            origins.push(canonical(scheme, rest));
        }
        Ok(Guard {
            listen: settings.listen.ip().to_canonical(),
            any_host: settings.hosts.iter().any(|entry| entry == "*"),
            hosts,
            any_origin: settings.origins.iter().any(|entry| entry == "*"),
            origins,
        })
    }

    /// Judges the head of a request that came in at `local`. Errors: 421 for the host, 403 for the origin.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, local: Option<IpAddr>) -> Result<(), Refusal> {
        let host = single(headers, &HOST).and_then(Authority::parse).ok_or_else(wrong_host)?;
        let accepted = self.accepts_host(host, local).ok_or_else(wrong_host)?;
        if let Some(target) = uri.authority() {
            // A request for an absolute URL must not name another host than the header does.
            let same = Authority::parse(target.as_str()).is_some_and(|target| target.host == host.host);
            if !same {
                return Err(wrong_host());
            }
        }
        if !headers.contains_key(&ORIGIN) || self.any_origin {
            return Ok(());
        }
        let origin = single(headers, &ORIGIN).and_then(split_origin).ok_or_else(wrong_origin)?;
        if self.accepts_origin(origin, host, accepted) { Ok(()) } else { Err(wrong_origin()) }
    }

    fn accepts_host(&self, host: Authority<'_>, local: Option<IpAddr>) -> Option<Accepted> {
        if host.host.is_loopback() {
            return Some(Accepted::Listed);
        }
        if let Host::Ip(ip) = host.host {
            // An address in `Host` is no name that somebody could point elsewhere; it must only be ours. On a wildcard
            // listener the connection knows under which address it came in.
            let ours = |own: IpAddr| !own.is_unspecified() && own.to_canonical() == ip.to_canonical();
            if ours(self.listen) || local.is_some_and(ours) {
                return Some(Accepted::Listed);
            }
        }
        let text = host.host.text();
        let listed = self.hosts.iter().any(|(name, port)| *name == text && (port.is_none() || *port == host.port));
        if listed {
            return Some(Accepted::Listed);
        }
        self.any_host.then_some(Accepted::Any)
    }

    fn accepts_origin(&self, (scheme, rest): (&str, &str), host: Authority<'_>, accepted: Accepted) -> bool {
        let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        if let Some(origin) = Authority::parse(rest).filter(|_| web) {
            if origin.host.is_loopback() {
                return true;
            }
            // Our own page, unless every host is accepted: then a rebound name would be its own origin too.
            if accepted == Accepted::Listed && origin == host {
                return true;
            }
        }
        let text = canonical(scheme, rest);
        self.origins.contains(&text)
    }
}

impl<'a> Authority<'a> {
    /// Reads `host`, `host:port` or `[v6]:port`; nothing with credentials, zones or an empty part.
    fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, after) = rest.split_once(']')?;
            let host = Host::Ip(IpAddr::V6(address.parse::<Ipv6Addr>().ok()?));
            let port = match after.strip_prefix(':') {
                Some(port) => Some(parse_port(port)?),
                None if after.is_empty() => None,
                None => return None,
            };
            return Some(Self { host, port });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(parse_port(port)?)),
            None => (text, None),
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if name.is_empty() || name.len() > 253 || !name.bytes().all(plain) {
            return None;
        }
        let host = name.parse::<Ipv4Addr>().map_or(Host::Name(name), |ip| Host::Ip(IpAddr::V4(ip)));
        Some(Self { host, port })
    }
}

impl Host<'_> {
    fn is_loopback(self) -> bool {
        match self {
            Host::Ip(ip) => ip.to_canonical().is_loopback(),
            Host::Name(name) => name.eq_ignore_ascii_case("localhost"),
        }
    }

    fn text(self) -> String {
        match self {
            Host::Ip(ip) => ip.to_canonical().to_string(),
            Host::Name(name) => name.to_ascii_lowercase(),
        }
    }
}

impl PartialEq for Host<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Host::Ip(one), Host::Ip(two)) => one.to_canonical() == two.to_canonical(),
            (Host::Name(one), Host::Name(two)) => one.eq_ignore_ascii_case(two),
            _ => false,
        }
    }
}

impl Eq for Host<'_> {}

/// The value of a header that is there exactly once, as text.
pub(super) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn parse_port(text: &str) -> Option<u16> {
    // `u16::from_str` takes a leading plus.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Scheme and authority of a serialised origin (RFC 6454 §6.2); `null` is none.
fn split_origin(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let plain = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte));
    (!scheme.is_empty() && scheme.bytes().all(good) && plain).then_some((scheme, rest))
}

fn canonical(scheme: &str, rest: &str) -> String {
    let (scheme, rest) = (scheme.to_ascii_lowercase(), rest.to_ascii_lowercase());
    let default_port = match scheme.as_str() {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let rest = rest.strip_suffix(default_port).unwrap_or(&rest);
    format!("{scheme}://{rest}")
}

fn wrong_host() -> Refusal {
    Refusal::new(
        StatusCode::MISDIRECTED_REQUEST,
        "host_not_allowed",
        "this host is not served here",
        "use the address the server listens on, or add the host to server.allowed_hosts",
    )
}

fn wrong_origin() -> Refusal {
    Refusal::new(
        StatusCode::FORBIDDEN,
        "origin_not_allowed",
        "web pages of this origin may not use this server",
        "add the origin to server.allowed_origins if you trust it",
    )
}
