//! Where a running server is, and with which credential it is asked. Connects to nothing.

use std::path::Path;

use reqwest::Url;

use super::failure::Failure;
use crate::http::local_token;

/// Where a server listens when nobody says otherwise.
pub const DEFAULT: &str = "http://127.0.0.1:7400";

/// The addresses of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What the API's paths are appended to; without a slash at the end.
    pub base: String,
    /// The MCP endpoint.
    pub endpoint: String,
    url: Url,
}

impl Address {
    /// Reads `http://host:port`, or the address of an MCP endpoint (`…/mcp`, `…/mcp/NAMESPACE`).
    pub fn parse(text: &str) -> Result<Address, Failure> {
        let wrong = |why: &str| {
            // It may hold a password and is not repeated.
            Failure::usage(format!("the server's address {why}")).next(format!("write it as {DEFAULT}"))
        };
        let url = Url::parse(text).map_err(|_| wrong("is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong("is not http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has more than host, port and path"));
        }
        let origin = url.origin().ascii_serialization();
        let path = url.path().trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        let mcp_at = segments.iter().rposition(|segment| *segment == "mcp").filter(|at| segments.len() - at <= 2);
        let (base, endpoint) = match mcp_at {
            Some(at) => (segments[..at].join("/"), path.to_owned()),
            None => (path.to_owned(), format!("{path}/mcp")),
        };
        Ok(Address { base: format!("{origin}{base}"), endpoint: format!("{origin}{endpoint}"), url })
    }

    /// True when the address is one of this machine alone.
    pub fn is_loopback(&self) -> bool {
        self.url.host_str().is_some_and(|host| {
            let host = host.trim_matches(['[', ']']);
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
        })
    }

    /// True when nothing of the conversation is encrypted.
    pub fn is_clear(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The token that the server of this user at this address wrote for its user.
    pub fn local_token(&self, data_dir: &Path) -> Option<String> {
        local_token::find(data_dir, self.url.host_str()?, self.url.port_or_known_default()?)
    }
}
