//! The dashboard: a page that is part of the program, served at `/`. It holds no data and needs no credential; what it
//! shows it asks the API for, like everybody else. Its sources are in `dashboard/`.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};

/// A file of the page.
struct File {
    path: &'static str,
    media_type: &'static str,
    body: &'static [u8],
}

const FILES: [File; 4] = [
    File { path: "/", media_type: "text/html; charset=utf-8", body: include_bytes!("../../dashboard/dist/index.html") },
    File {
        path: "/dashboard.js",
        media_type: "text/javascript; charset=utf-8",
        body: include_bytes!("../../dashboard/dist/dashboard.js"),
    },
    File {
        path: "/dashboard.css",
        media_type: "text/css; charset=utf-8",
        body: include_bytes!("../../dashboard/dist/dashboard.css"),
    },
    File { path: "/icon.svg", media_type: "image/svg+xml", body: include_bytes!("../../dashboard/dist/icon.svg") },
];

/// Nothing from elsewhere, no inline script or style, no frame around it, no form that leaves.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Whether a path is a file of the page: those are for everybody who may reach the listener.
pub fn serves(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// The routes of the page's files.
pub fn routes() -> Router {
    FILES.iter().fold(Router::new(), |router, file| {
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(file.body)[..16]));
        // The files of the page are no part of the API, and of its document.
        router.route_service(file.path, get(async move |headers: HeaderMap| answer(file, &tag, &headers)))
    })
}

fn answer(file: &'static File, tag: &str, asked: &HeaderMap) -> Response {
    let headers: [(HeaderName, &str); 7] = [
        (CONTENT_TYPE, file.media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        // The names stay the same over releases: a browser asks each time, and is told that nothing changed.
        (CACHE_CONTROL, "no-cache"),
        (ETAG, tag),
    ];
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|value| value == tag);
    match known {
        true => (StatusCode::NOT_MODIFIED, headers.map(|(name, value)| (name, value.to_owned()))).into_response(),
        false => (headers.map(|(name, value)| (name, value.to_owned())), file.body).into_response(),
    }
}
