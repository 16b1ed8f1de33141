//! `resources/read`, `prompts/get` and `completion/complete`: to the upstream whose it is, and its answer back. Where that
//! is not known, the likely ones are asked in turn until one does not say "not found". Stores nothing.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::bridge::{self, Bridge};
use super::face::{Face, SERVER_INFO};
use super::going::{Answering, Finished, Going, Teller, progress_teller};
use super::input::{KEYS_FRESH_MS, KEYS_LOOK_MS};
use super::offering::{Kind, Offering, Source};
use super::reject::{RpcError, code, push_json_string};
use super::requests::{Asker, Request};
use super::sealed_state::{BadState, digest};
use super::sealing::Bound;
use super::splice::{self, Edit};
use crate::engine::forward::{Forward, ForwardError, Forwarded};
use crate::model::json;
use crate::model::payload::Payload;
use crate::model::revision::Era;

/// How long a client may take to answer the questions of a prompt or a resource.
const STATE_TTL_MS: i64 = 3_600_000;

/// One upstream to ask, and how.
pub(super) struct Candidate {
    upstream: String,
    era: Option<Era>,
    params: Payload,
}

impl Candidate {
    pub(super) fn new(source: &Source, params: Payload) -> Candidate {
        Candidate { upstream: source.name.clone(), era: source.era, params }
    }
}

/// Whom to ask what.
struct Plan {
    method: String,
    candidates: Vec<Candidate>,
    /// What is said when nobody is left to ask.
    not_found: RpcError,
    digest: [u8; 32],
}

/// What is sealed into the `requestState` of a prompt or a resource: whose it is, and what that one sealed.
#[derive(Deserialize, Serialize)]
struct Inner {
    upstream: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// It asked by an error, as upstreams do that know no rounds: the answers are not for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_error: bool,
}

impl Face {
    /// `resources/read`.
    pub(super) async fn read_resource(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let Some(uri) = request.params.text("uri") else { return missing("params.uri") };
        let params: Payload = request.text().into();
        let offering = self.offering_with(&asker.principal.namespace, (Kind::Resources, &uri)).await;
        let candidates = offering.owners_of(&uri).into_iter().map(|source| Candidate::new(source, params.clone()));
        self.forward(candidates.collect(), resource_not_found(&uri, asker.era()), (request, asker)).await
    }

    /// `prompts/get`.
    pub(super) async fn get_prompt(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let Some(name) = request.params.text("name") else { return missing("params.name") };
        let offering = self.offering_with(&asker.principal.namespace, (Kind::Prompts, &name)).await;
        let owners = self.owners_of_prompt(&offering, &asker.principal.namespace, &name);
        let candidates = owners.into_iter().filter_map(|(source, own)| {
            let named = match own == name {
                true => request.text().to_owned(),
                false => splice::edited(request.text(), &[Edit::Set("name", quoted(&own).into())])?,
            };
            Some(Candidate::new(source, named.into()))
        });
        self.forward(candidates.collect(), unknown_prompt(&name), (request, asker)).await
    }

    /// `completion/complete`.
    pub(super) async fn complete(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let reference = request.params.get("ref").and_then(|reference| json::members(reference.get()));
        let Some(reference) = reference else { return missing("params.ref") };
        let text = |name: &str| {
            let found = reference.iter().rev().find(|(member, _)| member == name);
            found.and_then(|(_, value)| json::text(value)).map(|text| text.into_owned())
        };
        let offering = self.offering(&asker.principal.namespace).await;
        if let Some(uri) = text("uri") {
            let params: Payload = request.text().into();
            let owners = offering.owners_of_template(&uri);
            let candidates = owners.into_iter().map(|source| Candidate::new(source, params.clone())).collect();
            return self.forward(candidates, resource_not_found(&uri, asker.era()), (request, asker)).await;
        }
        let Some(name) = text("name") else { return missing("params.ref.name or params.ref.uri") };
        let owners = self.owners_of_prompt(&offering, &asker.principal.namespace, &name);
        let candidates = owners.into_iter().filter_map(|(source, own)| {
            let edit = [Edit::Set("name", quoted(&own).into())];
            let named = match own == name {
                true => request.text().to_owned(),
                false => splice::edited(request.text(), &[Edit::Within("ref", &edit)])?,
            };
            Some(Candidate::new(source, named.into()))
        });
        self.forward(candidates.collect(), unknown_prompt(&name), (request, asker)).await
    }

    /// What a namespace sees, at once if this is listed already: an upstream that starts slowly delays nobody else.
    async fn offering_with(&self, namespace: &str, (kind, exposed): (Kind, &str)) -> Arc<Offering> {
        let now = self.offering_now(namespace);
        if now.find(kind, exposed).is_some() { now } else { self.offering(namespace).await }
    }

    /// Whose prompt a name may be, and what it is called there: who lists it, else each upstream whose prefix it has.
    fn owners_of_prompt<'o>(&self, offering: &'o Offering, namespace: &str, name: &str) -> Vec<(&'o Source, String)> {
        if let Some(entry) = offering.find(Kind::Prompts, name) {
            return vec![(&offering.sources[entry.source], entry.own.clone())];
        }
        let exposure = &self.settings.exposure;
        if !exposure.shows_prompt(namespace, name) {
            return Vec::new();
        }
        let unlisted = offering.sources.iter().filter(|source| source.declared.prompts || source.is_unknown);
        unlisted
            .filter_map(|source| {
                let prefix = exposure.prefixes.get(&source.name).map_or("", String::as_str);
                Some((source, name.strip_prefix(prefix)?.to_owned()))
            })
            .collect()
    }

    /// Asks the candidates in turn.
    async fn forward(
        self: &Arc<Self>,
        mut candidates: Vec<Candidate>,
        not_found: RpcError,
        (request, asker): (Request<'_>, &Asker),
    ) -> Answering {
        if let Err(error) = asker.may_call() {
            return Finished::error(error).into();
        }
        let digest = digest(request.params);
        if asker.era() == Era::Modern && request.params.get("requestState").is_some() {
            let state = request.params.text("requestState").unwrap_or_default();
            match self.continued(candidates, &state, (bound(&digest, request.method, asker), request)).await {
                Ok(only) => candidates = vec![only],
                Err(bad) => return Finished::error(bad.rpc_error()).into(),
            }
        }
        if candidates.is_empty() {
            return Finished::error(not_found).into();
        }
        let plan = Plan { method: request.method.to_owned(), candidates, not_found, digest };
        let progress = request.progress(asker.revision);
        let (face, asker) = (self.clone(), asker.clone());
        let withdrawn = asker.withdrawn.clone();
        let answering = |teller: Teller| async move {
            let on_progress = progress_teller(teller, progress);
            Some(face.ask_in_turn(plan, &asker, &on_progress).await)
        };
        Answering::Going(Going::begin(withdrawn, false, answering))
    }

    async fn ask_in_turn(
        &self,
        plan: Plan,
        asker: &Asker,
        on_progress: &(dyn Fn(crate::engine::waiters::Progress) + Send + Sync),
    ) -> Finished {
        let (mut refused, mut unreached) = (None, None);
        for candidate in &plan.candidates {
            let forward = asker.forward(&candidate.upstream, &plan.method, candidate.params.clone());
            match self.engine.forward(forward, on_progress).await {
                Ok(Forwarded::Result(result)) => {
                    return self.forwarded_result(&result, candidate, (&plan, asker)).await;
                }
                Ok(Forwarded::Error(error)) => {
                    let finished = self.forwarded_error(&error, candidate, (&plan, asker)).await;
                    if !bridge::is_not_found(&error) {
                        return finished;
                    }
                    refused.get_or_insert(finished);
                }
                Err(error) => {
                    unreached.get_or_insert(Finished::error(unreachable(&candidate.upstream, &error)));
                }
            }
        }
        // Whoever was not reached may have had it.
        unreached.or(refused).unwrap_or_else(|| Finished::error(plan.not_found))
    }

    async fn forwarded_result(&self, result: &str, from: &Candidate, (plan, asker): (&Plan, &Asker)) -> Finished {
        // Up to 2025-11-25 a member of that name is the upstream's own.
        let may_ask = asker.era() == Era::Modern || from.era != Some(Era::Legacy);
        if !may_ask || bridge::result_type(result).as_deref() != Some("input_required") {
            return Finished { reply: bridge::result(result, plan.bridge(from, asker)), source: HANDLER };
        }
        if asker.era() == Era::Legacy {
            let words = format!("{} asks the client something, which this revision cannot carry here", from.upstream);
            return Finished::error(RpcError::new(code::INTERNAL_ERROR, words));
        }
        let state = json::members(result)
            .and_then(|members| members.into_iter().rev().find(|(name, _)| name == "requestState"))
            .and_then(|(_, value)| json::text(value));
        let state = state.map(|state| state.into_owned());
        let inner = Inner { upstream: from.upstream.clone(), state, by_error: false };
        let sealed = self.sealed(&inner, (plan, asker)).await;
        let info = [Edit::Default(splice::SERVER_INFO_MEMBER, SERVER_INFO.into())];
        let edits = [Edit::Set("requestState", quoted(&sealed).into()), Edit::Within("_meta", &info)];
        Finished::result(splice::edited(result, &edits).unwrap_or_else(|| result.to_owned()))
    }

    async fn forwarded_error(&self, error: &str, from: &Candidate, (plan, asker): (&Plan, &Asker)) -> Finished {
        if asker.era() == Era::Modern
            && matches!(plan.method.as_str(), "prompts/get" | "resources/read")
            && asker.client.declares(&["elicitation", "url"])
            && let Some(questions) = bridge::url_questions(error)
        {
            let inner = Inner { upstream: from.upstream.clone(), state: None, by_error: true };
            let sealed = quoted(&self.sealed(&inner, (plan, asker)).await);
            return Finished::result(format!(
                "{{\"resultType\":\"input_required\",\"inputRequests\":{questions},\"requestState\":{sealed},\
                 \"_meta\":{{\"{}\":{SERVER_INFO}}}}}",
                splice::SERVER_INFO_MEMBER,
            ));
        }
        Finished { reply: bridge::error(error, plan.bridge(from, asker)), source: HANDLER }
    }

    async fn sealed(&self, inner: &Inner, (plan, asker): (&Plan, &Asker)) -> String {
        // Strings always serialise.
        let inner = serde_json::to_vec(inner).expect("a state is always JSON");
        let expires_at_ms = self.engine.clock().now_ms() + STATE_TTL_MS;
        // Where the store cannot be read, the state is good in this process.
        drop(self.sealer(KEYS_FRESH_MS).await);
        self.state_keys.seal(&bound(&plan.digest, &plan.method, asker), &inner, expires_at_ms)
    }

    /// The one candidate that asked, with what it sealed in place of what the client was given.
    async fn continued(
        &self,
        candidates: Vec<Candidate>,
        state: &str,
        (bound, request): (Bound, Request<'_>),
    ) -> Result<Candidate, BadState> {
        let now_ms = self.engine.clock().now_ms();
        // Without the store's keys this process opens what it sealed itself.
        drop(self.sealer(KEYS_FRESH_MS).await);
        let opened = match self.state_keys.open(&bound, state, now_ms) {
            Ok(opened) => opened,
            Err(BadState) => {
                // Another process may have made a new key since.
                drop(self.sealer(KEYS_LOOK_MS).await);
                self.state_keys.open(&bound, state, now_ms)?
            }
        };
        let inner: Inner = serde_json::from_slice(&opened).map_err(|_| BadState)?;
        let mut asked = candidates.into_iter().filter(|candidate| candidate.upstream == inner.upstream);
        let mut candidate = asked.next().ok_or(BadState)?;
        let params = match &inner.state {
            Some(state) => splice::edited(&candidate.params, &[Edit::Set("requestState", quoted(state).into())]),
            None if !inner.by_error => splice::without(&candidate.params, &["requestState"]),
            None => splice::without(&candidate.params, &["requestState", "inputResponses"]),
        };
        tracing::debug!(upstream = candidate.upstream, method = request.method, "a round goes on");
        candidate.params = params.ok_or(BadState)?.into();
        Ok(candidate)
    }
}

const HANDLER: super::reject::Source = super::reject::Source::Handler;

impl Plan {
    fn bridge(&self, from: &Candidate, asker: &Asker) -> Bridge<'_> {
        Bridge { method: &self.method, upstream: from.era, client: asker.era() }
    }
}

impl Asker {
    /// A request of this client's to an upstream.
    pub(super) fn forward(&self, upstream: &str, method: &str, params: Payload) -> Forward {
        Forward {
            upstream: upstream.to_owned(),
            method: method.to_owned(),
            params: Some(params),
            client: self.client.clone(),
            namespace: self.principal.namespace.to_string(),
            principal: self.principal.subject.to_string(),
            timeout_ms: None,
        }
    }
}

fn bound(digest: &[u8; 32], method: &str, asker: &Asker) -> Bound {
    Bound::to(&asker.principal, method, &[digest])
}

/// The error when an upstream was not asked, or did not answer.
pub(super) fn unreachable(upstream: &str, error: &ForwardError) -> RpcError {
    let data = json!({ "type": error.code(), "upstream": upstream, "retryable": true });
    RpcError::new(code::INTERNAL_ERROR, format!("{upstream}: {error}")).with_data(&data)
}

pub(super) fn resource_not_found(uri: &str, era: Era) -> RpcError {
    let code = match era {
        Era::Legacy => bridge::RESOURCE_NOT_FOUND,
        Era::Modern => code::INVALID_PARAMS,
    };
    RpcError::new(code, "resource not found").with_data(&json!({ "uri": uri }))
}

fn unknown_prompt(name: &str) -> RpcError {
    let shown: String = name.chars().take(80).collect();
    RpcError::new(code::INVALID_PARAMS, format!("unknown prompt: {shown}"))
}

pub(super) fn missing(member: &str) -> Answering {
    Finished::error(RpcError::new(code::INVALID_PARAMS, format!("{member} is missing"))).into()
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_json_string(&mut quoted, text);
    quoted
}
