//! `/api/v1/executions/{id}/payloads/{kind}`: an exact text piece by piece, so that nobody has to hold a large one whole.
//! Looks into none of them.

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::filters::number;
use super::{Caller, Source, find};
use crate::http::openapi::Refused;
use crate::http::refusal::{Refusal, json};
use crate::store::PayloadKind;

const KINDS: [PayloadKind; 4] = [PayloadKind::Arguments, PayloadKind::Meta, PayloadKind::Result, PayloadKind::Error];

/// A piece of an exact text.
#[derive(Serialize, ToSchema)]
#[schema(as = PayloadPiece)]
pub struct PieceView {
    /// Which text.
    kind: &'static str,
    /// Its number, from 0.
    piece: u32,
    /// How many there are; put together they are the text, byte for byte. 0: nothing is stored, or retention deleted it.
    pieces: u32,
    /// The piece: at most a mebibyte, never cut inside a character.
    text: String,
}

/// Shows a piece of the exact text of the arguments, of what else of the call goes to the tool (`meta`), of the result or
/// of the tool's error.
#[utoipa::path(
    get,
    path = "/api/v1/executions/{id}/payloads/{kind}",
    tag = "executions",
    params(
        ("id" = String, Path, description = "The execution's id."),
        ("kind" = String, Path, description = "`arguments`, `meta`, `result` or `error`."),
        ("piece" = Option<u32>, Query, description = "Which piece, from 0; the first without it."),
    ),
    responses(Refused, (status = 200, description = "The piece.", body = PieceView)),
)]
pub(in crate::http) async fn piece(
    State(engine): Source,
    Extension(access): Caller,
    Path((id, kind)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refusal> {
    access.require_payloads()?;
    let mut wanted = 0;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "piece" => wanted = number(&value, "piece", 0..=i64::from(u32::MAX))?,
            _ => return Err(Refusal::bad_request("there is no such parameter", "the parameter is piece")),
        }
    }
    let number = u32::try_from(wanted).unwrap_or(u32::MAX);
    let missing = || {
        let next = "the texts are arguments, meta, result and error; the first piece says how many there are";
        Refusal::not_found("there is no such text, or no such piece of it", next)
    };
    let store = engine.store();
    let head = find(&**store, &access, &id).await?;
    let kind = KINDS.into_iter().find(|known| known.as_str() == kind).ok_or_else(missing)?;
    let found = store.payload_piece(head.id(), kind, number).await.map_err(|error| Refusal::store(&error))?;
    let (pieces, text) = match found {
        Some(found) => (found.pieces, found.text),
        None if number == 0 => (0, String::new()),
        None => return Err(missing()),
    };
    let view = PieceView { kind: kind.as_str(), piece: number, pieces, text };
    Ok(json(StatusCode::OK, &view))
}
