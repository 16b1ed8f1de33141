//! Which resource template a URI may come from (RFC 6570, read backwards). Answers "may", not "does": several templates
//! can match one URI, and only the server knows. Expands nothing.

#[cfg(test)]
mod tests;

/// Longer URIs and templates with more pieces match nothing: the work grows with the product of both.
const URI_BYTES_MAX: usize = 4_096;
const PIECES_MAX: usize = 64;

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Literal(&'t str),
    /// Any text without the characters that end a part of a URI.
    Part,
    /// Any text, also none.
    Rest,
}

/// True when `uri` may be an expansion of `template`. A malformed template matches only itself.
pub fn may_expand_to(template: &str, uri: &str) -> bool {
    if template == uri {
        return true;
    }
    if uri.len() > URI_BYTES_MAX {
        return false;
    }
    pieces(template).is_some_and(|pieces| pieces.len() <= PIECES_MAX && matches(&pieces, uri.as_bytes()))
}

fn pieces(template: &str) -> Option<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            pieces.push(Piece::Literal(&rest[..open]));
        }
        let close = open + rest[open..].find('}')?;
        let expression = &rest[open + 1..close];
        let several = expression.contains([',', '*']);
        pieces.push(match expression.as_bytes().first()? {
            b'+' | b'#' | b'/' | b'?' | b'&' | b';' => Piece::Rest,
            _ if several => Piece::Rest,
            _ => Piece::Part,
        });
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest));
    }
    Some(pieces)
}

/// The set of places in the URI that the pieces so far can end at, moved on piece by piece.
fn matches(pieces: &[Piece<'_>], uri: &[u8]) -> bool {
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for piece in pieces {
        let mut next = vec![false; uri.len() + 1];
        match piece {
            Piece::Literal(text) => {
                for at in (0..=uri.len()).filter(|at| ends[*at]) {
                    if uri[at..].starts_with(text.as_bytes()) {
                        next[at + text.len()] = true;
                    }
                }
            }
            Piece::Rest => {
                let first = ends.iter().position(|end| *end);
                next[first.unwrap_or(uri.len() + 1).min(uri.len() + 1)..].fill(true);
            }
            Piece::Part => {
                let mut reached = false;
                for at in 0..=uri.len() {
                    reached = ends[at] || (reached && at > 0 && !matches!(uri[at - 1], b'/' | b'?' | b'#'));
                    next[at] = reached;
                }
            }
        }
        ends = next;
    }
    ends[uri.len()]
}
