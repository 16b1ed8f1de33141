//! What every HTTP client of a worker has in common: TLS, the name it goes by, and how its errors read. Opens no
//! connection; who may be talked to is decided where a client is made.

use reqwest::{ClientBuilder, Url};

/// A client for this address that follows no redirects: one could carry configured headers to another host, and a POST
/// must not become a GET.
pub fn builder(url: &Url) -> ClientBuilder {
    // Another part of the process may have chosen a provider already; the first one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("durable-mcp/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true);
    match url.scheme() {
        // No certificates are needed, so that a machine without any can still reach a server in the clear.
        "http" => builder.tls_certs_only(std::iter::empty()),
        _ => builder,
    }
}

/// An error of the client with its causes and without the URL, whose query may hold a secret.
pub fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
