//! Which unkeyed executions are alike to a call: asked of the database, and of the rows that a batch has changed itself.
//! Whether one of them takes the call is decided by the model.

use crate::model::execution::{Head, Identification};
use crate::store::Submit;
use crate::store::deciding;

macro_rules! twins_where {
    ($waiter:literal, $limit:literal) => {
        concat!(
            "(SELECT e.id FROM executions e WHERE e.arguments_hash = g.hash AND e.key IS NULL \
             AND e.delivered_at_ms IS NULL AND e.namespace = g.namespace AND e.upstream = g.upstream \
             AND e.tool = g.tool AND e.principal = g.principal AND e.caller = g.caller \
             AND (e.ended_at_ms IS NULL OR e.ended_at_ms > g.since_ms) AND ",
            $waiter,
            " ORDER BY e.id LIMIT ",
            $limit,
            ")"
        )
    };
}

/// Every twin that may take a call. Of those waited for in this process one is enough: they are alike to the rules, and a
/// client that sends the same call a hundred times has a hundred of them.
pub(super) const TWINS: &str = concat!(
    "SELECT t.id FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], \
     $7::BIGINT[]) AS g(hash, namespace, upstream, tool, principal, caller, since_ms) \
     CROSS JOIN LATERAL (",
    twins_where!("e.waiter IS NULL", "$8"),
    " UNION ALL ",
    twins_where!("e.waiter IS NOT NULL AND e.waiter <> ALL($9::UUID[])", "$8"),
    " UNION ALL ",
    twins_where!("e.waiter = ANY($9::UUID[])", "1"),
    ") AS t(id)"
);

/// Twins matter to the call.
pub(super) fn asks_for_twins(submit: &Submit) -> bool {
    submit.submission.ident.key.is_none() && deciding::asks_for_twins(submit)
}

/// A twin that ended before then takes no call.
pub(super) fn since_ms(submit: &Submit) -> i64 {
    submit.now_ms.saturating_sub(submit.submission.identity.reattach_window_ms)
}

/// What the statement asks of a row of the database, for one that this batch has changed or stored.
pub(super) fn is_twin(head: &Head, ident: &Identification, since_ms: i64) -> bool {
    let other = &head.ident;
    other.key.is_none()
        && head.delivered_at_ms.is_none()
        && other.arguments_hash == ident.arguments_hash
        && other.namespace == ident.namespace
        && other.upstream == ident.upstream
        && other.tool == ident.tool
        && other.principal == ident.principal
        && other.caller == ident.caller
        && head.ended_at_ms.is_none_or(|ended_at_ms| ended_at_ms > since_ms)
}
