//! Where the server is, and with which credential it is asked. Connects to nothing.
//!
//! Without a token of its own a worker uses the one that a server without authentication writes for its user:
//! `servers/<host>_<port>.token` in its data folder. It is read again when the server refuses it, because a restarted
//! server writes a new one.

use std::ffi::OsString;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;

#[cfg(test)]
mod tests;

/// Where a server listens when nobody says otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:7400";

/// An address that can not be used. It may hold a password and is not repeated.
#[derive(Debug, thiserror::Error)]
#[error("the server's address {0}; write it as {DEFAULT_URL}")]
pub struct AddressError(&'static str);

/// The base of the server's paths, and the token for it.
#[derive(Clone)]
pub struct ServerAddress {
    base: String,
    host: String,
    port: u16,
    given: Option<String>,
    data_folder: PathBuf,
}

/// Reads a variable of the environment.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl ServerAddress {
    /// The URL, else `DURABLE_MCP_URL`, else http://127.0.0.1:7400; the token, else `DURABLE_MCP_TOKEN`, else the local
    /// token of a server of this user.
    pub fn new(url: Option<&str>, token: Option<&str>) -> Result<ServerAddress, AddressError> {
        ServerAddress::in_env(url, token, &|name| std::env::var_os(name))
    }

    pub(crate) fn in_env(url: Option<&str>, token: Option<&str>, env: Env) -> Result<ServerAddress, AddressError> {
        let text_of = |name: &str| env(name).and_then(|value| value.into_string().ok()).filter(|text| !text.is_empty());
        let text = url.map(str::to_owned).or_else(|| text_of("DURABLE_MCP_URL")).unwrap_or(DEFAULT_URL.to_owned());
        let url = Url::parse(&text).map_err(|_| AddressError("is no URL"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(AddressError("is not http or https"));
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError("has more than host, port and path"));
        }
        Ok(ServerAddress {
            base: format!("{}{}", url.origin().ascii_serialization(), without_endpoint(url.path())),
            host: url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default().unwrap_or_default(),
            given: token.map(str::to_owned).or_else(|| text_of("DURABLE_MCP_TOKEN")),
            data_folder: data_folder(env),
        })
    }

    /// What paths are appended to; without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// True when nothing of the conversation is encrypted.
    pub(crate) fn is_clear(&self) -> bool {
        self.base.starts_with("http:")
    }

    /// True when the address is one of this machine alone.
    pub fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    }

    /// The token given, else the server's local one as it is now.
    pub fn token(&self) -> Option<String> {
        self.given.clone().or_else(|| self.local_token())
    }

    fn local_token(&self) -> Option<String> {
        if !self.is_loopback() {
            return None;
        }
        let folder = self.data_folder.join("servers");
        if let Ok(ip) = self.host.parse::<IpAddr>()
            && let Some(token) = read(&folder.join(format!("{ip}_{}.token", self.port)))
        {
            return Some(token);
        }
        // A loopback name reaches any of the loopback addresses.
        let end = format!("_{}.token", self.port);
        let mut paths: Vec<_> = fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end)));
        paths.sort();
        paths.iter().find_map(|path| read(path))
    }
}

/// The data folder of the server of this user.
fn data_folder(env: Env) -> PathBuf {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("DURABLE_MCP_DATA_DIR") {
        return folder;
    }
    let share = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    let data_home = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    data_home.unwrap_or_else(|| set("HOME").unwrap_or_default().join(share)).join("durable-mcp")
}

/// The path without an MCP endpoint (`…/mcp`, `…/mcp/NAMESPACE`) and without a slash at its end.
fn without_endpoint(path: &str) -> String {
    let segments: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let mcp_at = segments.iter().rposition(|segment| *segment == "mcp").filter(|at| segments.len() - at <= 2);
    segments[..mcp_at.unwrap_or(segments.len())].join("/")
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
