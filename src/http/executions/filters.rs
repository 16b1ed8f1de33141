//! The filters of executions: one set for the list, the stream of events, the export and orders by filter. What the caller
//! may see bounds what it asks for.

use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::auth::Access;
use crate::http::refusal::Refusal;
use crate::model::execution::State;
use crate::model::id::ExecutionId;
use crate::store::ListQuery;

/// The names of the filters, for refusals.
pub const NAMES: &str = "state, tool, upstream, namespace, principal, key, id_prefix, error_code, attempts_over, since, \
                         until, recovered";

/// More attempts than anybody permits.
const ATTEMPTS_MAX: i64 = 1_000_000;

/// What an execution must be, all at once. For the document; a query is read by [`Filter::take`].
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only described")]
pub struct FilterParams {
    /// Only these states, separated by commas.
    #[param(example = "failed,unknown")]
    state: Option<String>,
    /// Only this tool, by its own name at its server.
    tool: Option<String>,
    /// Only tools of this server.
    upstream: Option<String>,
    /// Only this namespace.
    namespace: Option<String>,
    /// Only this principal.
    principal: Option<String>,
    /// Only this idempotency key.
    key: Option<String>,
    /// Only ids that start with this text.
    id_prefix: Option<String>,
    /// Only executions whose last error has this code.
    #[param(example = "lease_expired")]
    error_code: Option<String>,
    /// Only executions with more attempts than this.
    #[param(minimum = 0, maximum = 1_000_000)]
    attempts_over: Option<u32>,
    /// Only executions submitted then or later (RFC 3339).
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only executions submitted before then (RFC 3339).
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only executions that completed although an attempt was lost.
    recovered: Option<bool>,
}

/// The same in a body.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = ExecutionFilter)]
pub struct FilterBody {
    /// Only these states.
    state: Option<Vec<String>>,
    /// Only this tool, by its own name at its server.
    tool: Option<String>,
    /// Only tools of this server.
    upstream: Option<String>,
    /// Only this namespace.
    namespace: Option<String>,
    /// Only this principal.
    principal: Option<String>,
    /// Only this idempotency key.
    key: Option<String>,
    /// Only ids that start with this text.
    id_prefix: Option<String>,
    /// Only executions whose last error has this code.
    error_code: Option<String>,
    /// Only executions with more attempts than this.
    attempts_over: Option<u32>,
    /// Only executions submitted then or later (RFC 3339).
    since: Option<String>,
    /// Only executions submitted before then (RFC 3339).
    until: Option<String>,
    /// Only executions that completed although an attempt was lost.
    recovered: Option<bool>,
}

/// Filters while they are read.
#[derive(Debug, Default)]
pub struct Filter {
    wanted: ListQuery,
    namespace: Option<String>,
    principal: Option<String>,
    recovered: Option<String>,
}

impl Filter {
    /// Takes a parameter; false when there is no filter of that name. Errors: its value can not be used, or it stands
    /// twice.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, Refusal> {
        let wanted = &mut self.wanted;
        match name {
            "state" => wanted.states.extend(states(value)?),
            "tool" => set(&mut wanted.tool, name, value.to_owned())?,
            "upstream" => set(&mut wanted.upstream, name, value.to_owned())?,
            "namespace" => set(&mut self.namespace, name, value.to_owned())?,
            "principal" => set(&mut self.principal, name, value.to_owned())?,
            "key" => set(&mut wanted.key, name, value.to_owned())?,
            "id_prefix" => set(&mut wanted.id_prefix, name, value.to_ascii_lowercase())?,
            "error_code" => set(&mut wanted.error_code, name, value.to_owned())?,
            "attempts_over" => {
                let number = number(value, "attempts_over", 0..=ATTEMPTS_MAX)?;
                set(&mut wanted.attempts_over, name, u32::try_from(number).unwrap_or(u32::MAX))?;
            }
            "since" => set(&mut wanted.since_ms, name, time(value, "since")?)?,
            "until" => set(&mut wanted.until_ms, name, time(value, "until")?)?,
            "recovered" => {
                set(&mut self.recovered, name, value.to_owned())?;
                wanted.recovered = boolean(value, "recovered")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What the caller may see of it; `None` when it asks for what it may not see, which is nothing.
    pub fn bounded(self, access: &Access) -> Option<ListQuery> {
        let namespace = bounded(access.namespace(), self.namespace)?;
        let principal = bounded(access.owner(), self.principal)?;
        Some(ListQuery { namespace, principal, ..self.wanted })
    }
}

impl FilterBody {
    /// The same as parameters.
    pub fn filter(self) -> Result<Filter, Refusal> {
        let mut filter = Filter::default();
        let attempts_over = self.attempts_over.map(|number| number.to_string());
        let recovered = self.recovered.map(|recovered| recovered.to_string());
        let given = [
            ("state", self.state.map(|states| states.join(","))),
            ("tool", self.tool),
            ("upstream", self.upstream),
            ("namespace", self.namespace),
            ("principal", self.principal),
            ("key", self.key),
            ("id_prefix", self.id_prefix),
            ("error_code", self.error_code),
            ("attempts_over", attempts_over),
            ("since", self.since),
            ("until", self.until),
            ("recovered", recovered),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                filter.take(name, &value)?;
            }
        }
        Ok(filter)
    }
}

/// The narrower of a border and a wish; `None` when the wish lies outside.
fn bounded(border: Option<&str>, wish: Option<String>) -> Option<Option<String>> {
    match (border, wish) {
        (Some(border), Some(wish)) if border != wish => None,
        (Some(border), _) => Some(Some(border.to_owned())),
        (None, wish) => Some(wish),
    }
}

/// An id in its one spelling.
pub fn parse_id(text: &str) -> Option<ExecutionId> {
    text.parse().ok().filter(|id: &ExecutionId| text.eq_ignore_ascii_case(&id.to_string()))
}

/// A number in its range. Errors: it is none.
pub fn number(value: &str, name: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, Refusal> {
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<i64> = digits.then(|| value.parse().ok()).flatten();
    let takes = || format!("{} to {}", range.start(), range.end());
    number.filter(|number| range.contains(number)).ok_or_else(|| wrong(name, &takes()))
}

/// A time in milliseconds since the epoch. Errors: it is none.
pub fn time(value: &str, name: &str) -> Result<i64, Refusal> {
    let time: Result<Timestamp, _> = value.parse();
    time.map(|time| time.as_millisecond()).map_err(|_| wrong(name, "a time such as 2026-11-29T08:00:00Z"))
}

fn boolean(value: &str, name: &str) -> Result<bool, Refusal> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong(name, "true or false")),
    }
}

fn states(value: &str) -> Result<Vec<State>, Refusal> {
    let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    let parse =
        |name| State::parse(name).ok_or_else(|| wrong("state", &format!("one or more of {}", names.join(", "))));
    value.split(',').map(parse).collect()
}

fn set<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), Refusal> {
    if place.is_some() {
        return Err(Refusal::bad_request("a parameter stands twice", format!("give `{name}` once")));
    }
    *place = Some(value);
    Ok(())
}

/// The refusal of a value.
pub fn wrong(name: &str, takes: &str) -> Refusal {
    Refusal::bad_request(format!("the value of `{name}` can not be used"), format!("`{name}` takes {takes}"))
}

/// The refusal of a parameter that is not among these besides the filters.
pub fn unknown_parameter(others: &str) -> Refusal {
    Refusal::bad_request("there is no such parameter", format!("the parameters are {NAMES}, {others}"))
}
