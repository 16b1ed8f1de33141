//! The listener's address: free, ours, or somebody else's. Listens for a moment and asks at most once.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use super::check::Check;
use crate::config::{Loaded, Source};

/// A server of ours on the same machine answers at once.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);

/// Checks the address of the configuration.
pub async fn check(loaded: &Loaded) -> Check {
    let address = loaded.config.server.listen;
    let check = Check::of("port", Some(&address.to_string()));
    if address.port() == 0 {
        return Check { message: "a free one is taken at each start".into(), ..check };
    }
    match TcpListener::bind(address) {
        Ok(_) => Check { message: "free".into(), ..check },
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match is_ours(address).await {
            true => Check { message: "a durable-mcp serves there".into(), ..check },
            false => {
                let message = "another program listens there";
                let next = format!(
                    "stop it, or choose another with server.listen; `ss -ltnp 'sport = :{}'` names it",
                    address.port()
                );
                // Who only wraps servers needs no port.
                match loaded.source(&["server", "listen"]) {
                    Source::Default if loaded.config.servers.is_empty() => check.warn(message, next),
                    _ => check.fail(message, next),
                }
            }
        },
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            check.fail("this machine has no such address", "correct server.listen")
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            check.fail("this user may not listen there", "choose a port above 1023 with server.listen")
        }
        Err(error) => check.fail(format!("it can not be listened on: {error}"), "correct server.listen"),
    }
}

async fn is_ours(address: SocketAddr) -> bool {
    let Some(client) = asking(ASK_TIMEOUT) else { return false };
    let url = format!("http://{}/healthz", on_this_machine(address));
    let Ok(answer) = client.get(url).send().await else { return false };
    let Ok(mut answer) = answer.error_for_status() else { return false };
    // Anybody may serve a large page there.
    let Ok(Some(body)) = answer.chunk().await else { return false };
    serde_json::from_slice::<serde_json::Value>(&body).is_ok_and(|body| body["status"] == "alive")
}

/// The address under which a listener of this machine is reached from it: who listens on every address answers on the
/// loopback one.
pub(super) fn on_this_machine(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        ip if ip.is_ipv4() => [127, 0, 0, 1].into(),
        _ => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

/// A client for one question to this machine.
pub(super) fn asking(patience: Duration) -> Option<reqwest::Client> {
    // Another part of the process may have chosen a provider already; the first one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().tls_certs_only(std::iter::empty()).timeout(patience);
    client.redirect(reqwest::redirect::Policy::none()).build().ok()
}
