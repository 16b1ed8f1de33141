//! `tools/call` from its parameters to a [`Conversation`], without a transport: find the tool and the key, submit, or do
//! what a built-in tool says. Waits for nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::answer::{self, Audience, Reply};
use super::builtin::{self, Builtin};
use super::call_params::CallParams;
pub use super::conversation::{Answered, Conversation, Hold, Step, progress_params};
use super::conversation::{Asking, Kind};
use super::face::Face;
use super::input;
use super::keys;
use super::progress::Rising;
use super::reject::{RpcError, code, require};
use super::session::Flight;
use super::task::create::{Pending, Related};
use super::task::failed as task_failed;
use super::task::offer::{Offer, offer};
use super::task::projection::Status;
use crate::engine::catalog::Tool;
use crate::engine::client::{self, ClientContext};
use crate::engine::inputs::RESPONSES_MEMBER;
use crate::engine::spans;
use crate::engine::submit::Call;
use crate::engine::ticket::Ticket;
use crate::engine::view::Time;
use crate::model::event::Order;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::model::json::quoted;
use crate::model::payload::Payload;
use crate::model::policy::{OnDisconnect, Unkeyed};
use crate::model::principal::{Principal, Scope};
use crate::model::revision::{Era, Revision};
use crate::model::trace::TraceContext;
use crate::store::TaskVariant;
use crate::telemetry::here;

/// Who calls, and how the answer has to look.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// Without authentication: the client's name, or its session.
    pub name: String,
    /// The era of the request.
    pub era: Era,
    /// The HTTP header `Idempotency-Key`, each time it was sent.
    pub key_headers: Vec<Vec<u8>>,
    /// What an upstream may need to know of the client.
    pub client: Arc<ClientContext>,
    /// The trace context in the HTTP headers; one in `_meta` comes first.
    pub trace: TraceContext,
}

impl Caller {
    /// The revision of the request.
    pub fn revision(&self) -> Revision {
        self.client.revision.as_deref().and_then(Revision::find).unwrap_or(Revision::ASSUMED)
    }
}

/// What becomes of an offer.
enum Offered {
    /// The call is a task; this is its answer.
    Task(Reply),
    /// The call may become one while it waits.
    Later(Option<Pending>),
}

/// What a call becomes at first.
pub enum Begun {
    /// The answer is there.
    Answer(Answered),
    /// It has to be waited for.
    Waiting(Box<Conversation>),
}

impl Face {
    /// Takes a call in. `flight` is its entry among the requests in flight, for cancellations.
    pub async fn call(
        self: &Arc<Self>,
        params: &CallParams<'_>,
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Begun {
        let begun = match params.request_state.as_deref() {
            // It goes to its execution before any key is looked at.
            Some(state) => Box::pin(self.continue_call((params, state), caller, flight)).await,
            None => self.begin(params, caller, flight).await,
        };
        match begun {
            Ok(Begun::Waiting(mut conversation)) if caller.era == Era::Modern => {
                let arguments = params.arguments.map_or("{}", |raw| raw.get());
                conversation.request = Some((params.name.to_string(), arguments.into()));
                Begun::Waiting(conversation)
            }
            Ok(begun) => begun,
            Err(error) => Begun::Answer(Answered::of(Reply::Error(error))),
        }
    }

    async fn begin(
        self: &Arc<Self>,
        params: &CallParams<'_>,
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Result<Begun, RpcError> {
        require(&caller.principal, Scope::Call)?;
        if let Some(called) = builtin::called(&params.name, params.arguments, self.settings.builtins) {
            return Box::pin(self.builtin(called?, params.meta.wait_ms, caller, flight)).await;
        }
        let namespace = &caller.principal.namespace;
        let tool = self.tool(&params.name, namespace).await.ok_or_else(|| self.unknown_tool(&params.name))?;
        let offered = offer(params, caller.revision(), &tool)?;
        // Answers to what was never asked here are a new wish.
        let tool = match input::unasked_responses(params) {
            Some(_) => fresh(&tool),
            None => tool,
        };
        let headers = caller.key_headers.iter().map(Vec::as_slice);
        let key = keys::resolve(params, headers, tool.service.key_argument.as_deref()).map_err(|e| e.rpc_error())?;
        let arguments = params.arguments.map_or("{}", |raw| raw.get());
        let arguments_max = self.settings.argument_bytes_max;
        if arguments.len() > arguments_max {
            let words = format!("the arguments are longer than {arguments_max} bytes; limits.argument_bytes sets this");
            return Err(RpcError::new(code::INVALID_PARAMS, words));
        }
        let call = Call {
            tool: tool.clone(),
            principal: caller.principal.clone(),
            caller: if caller.principal.is_anonymous() { caller.name.clone() } else { String::new() },
            key: key.map(|key| key.into_owned()),
            arguments: arguments.into(),
            meta: stored_meta(params, caller, tool.wants_client),
        };
        let ticket = self.engine.submit(call).await.map_err(|error| answer::refused(&error))?;
        let wait_ms = params.meta.wait_ms.unwrap_or(tool.service.wait_ms);
        let audience = self.audience(caller.era);
        let pending = match self.offered(offered, &ticket, wait_ms).await? {
            Offered::Later(pending) => pending,
            Offered::Task(reply) => {
                if caller.era == Era::Legacy {
                    let whose = (&caller.principal, caller.client.session.as_deref());
                    self.tell_of_task(ticket.id(), whose, Status::Working);
                }
                let response = tool.service.response;
                return Ok(Begun::Answer(Answered { reply, hold: Some((ticket, Kind::Whole)), response }));
            }
        };
        if wait_ms == 0 && ticket.settled().is_none() {
            let reply = answer::accepted(&ticket.head, tool.has_output_schema, ticket.attached, audience);
            let response = tool.service.response;
            return Ok(Begun::Answer(Answered { reply, hold: Some((ticket, Kind::Whole)), response }));
        }
        let mut conversation = self.conversation(ticket, &params.name, (wait_ms, audience), caller);
        conversation.on_disconnect = tool.service.on_disconnect;
        conversation.response = tool.service.response;
        conversation.pending = pending;
        Ok(conversation.begun(flight))
    }

    /// Makes a task of the call at once where that was asked for, or says when it becomes one.
    async fn offered(&self, offer: Option<Offer>, ticket: &Ticket, wait_ms: i64) -> Result<Offered, RpcError> {
        let Some(offer) = offer else { return Ok(Offered::Later(None)) };
        let after_ms = offer.after_ms.map(|after_ms| after_ms.min(wait_ms));
        if after_ms.is_some_and(|after_ms| after_ms > 0 || ticket.settled().is_some()) {
            return Ok(Offered::Later(Some(Pending::of(offer, after_ms.unwrap_or_default()))));
        }
        match Box::pin(self.create_task(ticket.id(), &offer.wish)).await {
            Ok(reply) => Ok(Offered::Task(reply)),
            // Who decides is the server: without a task the answer itself is as good.
            Err(error) if offer.wish.variant == TaskVariant::Extension => {
                tracing::warn!(execution = %ticket.id(), "a call could not become a task: {}", error.message);
                Ok(Offered::Later(None))
            }
            Err(error) => Err(error),
        }
    }

    /// A request that waits for the end of a task, for as long as the task can be read.
    pub(super) async fn await_task(
        self: &Arc<Self>,
        related: Related,
        left_ms: i64,
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Begun {
        let ticket = match self.engine.attach(related.id, &caller.principal).await {
            Ok(ticket) => ticket,
            Err(error) => return Begun::Answer(Answered::of(Reply::Error(task_failed(error).1))),
        };
        let name = ticket.head.ident.tool.clone();
        let mut conversation = self.conversation(ticket, &name, (left_ms, self.audience(caller.era)), caller);
        conversation.deadline = Instant::now() + Duration::from_millis(left_ms.max(0) as u64);
        conversation.only_asks = true;
        conversation.related = Some(related);
        conversation.begun(flight)
    }

    async fn builtin(
        self: &Arc<Self>,
        called: Builtin,
        wait_ms: Option<i64>,
        caller: &Caller,
        flight: Option<Arc<Flight>>,
    ) -> Result<Begun, RpcError> {
        let refused = |error: crate::engine::Error| answer::refused(&error);
        let audience = self.audience(caller.era);
        match called {
            Builtin::List | Builtin::Result { execution: None, .. } => {
                Ok(Begun::Answer(Answered::of(answer::plain(&self.unfinished(caller).await?, false, caller.era))))
            }
            Builtin::Result { execution: Some(id), wait_ms: own_wait_ms } => {
                let ticket = self.attach(id, caller).await?;
                let wait_ms = own_wait_ms.or(wait_ms).unwrap_or(self.settings.result_wait_ms);
                let name = ticket.head.ident.tool.clone();
                let mut conversation = self.conversation(ticket, &name, (wait_ms, audience), caller);
                conversation.only_asks = true;
                Ok(conversation.begun(flight))
            }
            Builtin::Part { execution, from } => {
                let ticket = self.attach(execution, caller).await?;
                Ok(Begun::Answer(Answered::of(self.part(&ticket, &from, caller.era).await?)))
            }
            Builtin::Cancel(id) => {
                require(&caller.principal, Scope::Cancel)?;
                let ticket = self.attach(id, caller).await?;
                let order = Order { principal: caller.principal.subject.clone(), reason: builtin_reason("cancel") };
                if ticket.settled().is_none() {
                    self.engine.cancel(id, order).await.map_err(refused)?;
                }
                let name = ticket.head.ident.tool.clone();
                let wait_ms = self.settings.result_wait_ms;
                Ok(self.conversation(ticket, &name, (wait_ms, audience), caller).begun(flight))
            }
            Builtin::Retry { execution: id, reason } => {
                drop(self.attach(id, caller).await?);
                let order = Order { principal: caller.principal.subject.clone(), reason };
                self.engine.retry_unknown(id, order).await.map_err(refused)?;
                let ticket = self.attach(id, caller).await?;
                let wait_ms = wait_ms.unwrap_or(self.settings.result_wait_ms);
                let name = ticket.head.ident.tool.clone();
                Ok(self.conversation(ticket, &name, (wait_ms, audience), caller).begun(flight))
            }
        }
    }

    /// A hold on the caller's own execution; a foreign one is as if it were missing.
    async fn attach(self: &Arc<Self>, id: ExecutionId, caller: &Caller) -> Result<Ticket, RpcError> {
        self.engine.attach(id, &caller.principal).await.map_err(|error| answer::refused(&error))
    }

    async fn unfinished(&self, caller: &Caller) -> Result<String, RpcError> {
        use crate::model::execution::State;

        let anonymous = caller.principal.is_anonymous();
        let query = crate::store::ListQuery {
            namespace: Some(caller.principal.namespace.clone()),
            principal: Some(caller.principal.subject.clone()),
            caller: anonymous.then(|| caller.name.clone()),
            states: State::ALL.into_iter().filter(|state| !state.is_ended()).collect(),
            limit: 50,
            ..Default::default()
        };
        let heads = self.engine.store().list(query).await.map_err(|error| answer::refused(&error.into()))?;
        if heads.is_empty() {
            return Ok("You have no unfinished calls.".into());
        }
        let line = |head: &Head| {
            let key = head.ident.key.as_ref().map(|key| format!("  {key}")).unwrap_or_default();
            let since = Time(head.created_at_ms);
            format!("{}  {}  {}  {since}{key}", head.id(), head.state.as_str(), head.ident.tool)
        };
        let lines: Vec<String> = heads.iter().map(line).collect();
        Ok(format!("Your unfinished calls (execution id, state, tool, since, key):\n{}", lines.join("\n")))
    }

    pub(super) fn conversation(
        self: &Arc<Self>,
        ticket: Ticket,
        tool_name: &str,
        (wait_ms, audience): (i64, Audience),
        caller: &Caller,
    ) -> Conversation {
        let wait = Duration::from_millis(wait_ms.clamp(0, MAX_WAIT_MS) as u64);
        Conversation {
            face: self.clone(),
            ticket: Some(ticket),
            flight: None,
            tool_name: tool_name.to_owned(),
            on_disconnect: OnDisconnect::Detach,
            only_asks: false,
            deadline: Instant::now() + wait,
            audience,
            rising: Rising::default(),
            order: Order { principal: caller.principal.subject.clone(), reason: "cancelled by the client".into() },
            response: None,
            pending: None,
            related: None,
            client: caller.client.clone(),
            principal: caller.principal.clone(),
            request: None,
            asking: Asking::default(),
        }
    }

    /// The caller waits again for an execution of its own, by a call of the same tool.
    pub(super) async fn wait_again(
        self: &Arc<Self>,
        id: ExecutionId,
        (params, caller): (&CallParams<'_>, &Caller),
        flight: Option<Arc<Flight>>,
    ) -> Result<Begun, RpcError> {
        let ticket = self.attach(id, caller).await?;
        let tool = self.engine.catalog().listing().find(&params.name, &caller.principal.namespace).cloned();
        let service = tool.as_ref().map(|tool| &tool.service);
        let budget_ms = service.map_or(self.settings.result_wait_ms, |service| service.wait_ms);
        let wait_ms = params.meta.wait_ms.unwrap_or(budget_ms);
        let audience = self.audience(caller.era);
        let offered = match &tool {
            Some(tool) => offer(params, caller.revision(), tool)?,
            None => None,
        };
        let pending = match self.offered(offered, &ticket, wait_ms).await? {
            Offered::Later(pending) => pending,
            Offered::Task(reply) => {
                let response = service.and_then(|service| service.response);
                return Ok(Begun::Answer(Answered { reply, hold: Some((ticket, Kind::Whole)), response }));
            }
        };
        let mut conversation = self.conversation(ticket, &params.name, (wait_ms, audience), caller);
        conversation.pending = pending;
        if let Some(service) = service {
            conversation.on_disconnect = service.on_disconnect;
            conversation.response = service.response;
        }
        Ok(conversation.begun(flight))
    }

    pub(super) fn audience(&self, era: Era) -> Audience {
        Audience { era, builtins: self.settings.builtins }
    }

    fn unknown_tool(&self, name: &str) -> RpcError {
        let shown: String = name.chars().take(80).collect();
        let listing = self.engine.catalog().listing();
        let problems: Vec<String> = listing
            .upstreams
            .iter()
            .filter_map(|(upstream, offer)| offer.problem.as_ref().map(|problem| format!("{upstream}: {problem}")))
            .collect();
        let words = match problems.is_empty() {
            true => format!("unknown tool: {shown}"),
            false => format!("unknown tool: {shown} (not available: {})", problems.join("; ")),
        };
        RpcError::new(code::INVALID_PARAMS, words)
    }
}

/// The longest wait, in milliseconds.
const MAX_WAIT_MS: i64 = 86_400_000;

/// What a person asked for through a built-in tool.
fn builtin_reason(verb: &str) -> String {
    format!("{verb} by the client")
}

/// What is kept of the call beside its arguments, as one object: the caller's `_meta` members that the protocol and we
/// do not own, the trace context, and under our own names what never goes upstream as it is.
fn stored_meta(params: &CallParams<'_>, caller: &Caller, wants_client: bool) -> Option<Payload> {
    let client = &*caller.client;
    let meta = &params.meta;
    let trace = meta.trace.clone().or(caller.trace.clone());
    let mut members: Vec<String> =
        trace.parts().map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect();
    if trace.traceparent.is_none()
        && let Some(place) = here::span().place()
    {
        members.push(format!("\"{}\":{}", spans::MEMBER, quoted(&place.traceparent())));
    }
    for (name, value) in &meta.passthrough {
        members.push(format!("{}:{}", serde_json::json!(name), value.get()));
    }
    if let Some(responses) = input::unasked_responses(params).filter(|_| wants_client) {
        members.push(format!("\"{RESPONSES_MEMBER}\":{responses}"));
    }
    if wants_client && says_something(client) {
        members.push(format!("\"{}\":{}", client::MEMBER, client.to_json()));
    }
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")).into())
}

/// A legacy client that declares nothing and has no session is like any other: nothing has to be kept of it. That a modern
/// one declares nothing has to be known: it cannot be given what others can.
fn says_something(client: &ClientContext) -> bool {
    let declares = client.capabilities.as_deref().is_some_and(|raw| !matches!(raw.get(), "{}" | "null"));
    declares || client.is_modern() || client.session.is_some() || client.log_level.is_some()
}

/// The tool, with calls without a key that are never taken for an earlier one.
fn fresh(tool: &Arc<Tool>) -> Arc<Tool> {
    let mut tool = (**tool).clone();
    tool.identity.unkeyed = Unkeyed::None;
    Arc::new(tool)
}
