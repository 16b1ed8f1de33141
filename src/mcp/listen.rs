//! `subscriptions/listen` (2026-07-28): a stream of what the client asked to hear, acknowledged first, each message under
//! the request's id, ended in order when this server goes. State ends with the stream. Knows no transport.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::answer;
use super::face::{Face, SERVER_INFO};
use super::going::{Answering, Finished, Going, Teller};
use super::hearing::{Ear, Heard, Hearing, List};
use super::offering::Declared;
use super::reject::{RpcError, code};
use super::requests::{Asker, Request};
use super::splice::{self, Edit};
use super::subscription::{Subscription, covers};
use super::task;
use super::task::news::Followed;
use crate::engine::notices;

/// The `_meta` member that says which subscription a message belongs to.
pub const SUBSCRIPTION_MEMBER: &str = "io.modelcontextprotocol/subscriptionId";

/// How long the acknowledgement waits for upstreams; resources of slower ones are not honoured.
const SUBSCRIBE_PATIENCE: Duration = Duration::from_secs(10);

/// What the client asked to hear.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: Option<bool>,
    prompts_list_changed: Option<bool>,
    resources_list_changed: Option<bool>,
    resource_subscriptions: Option<Vec<String>>,
    task_ids: Option<Vec<String>>,
}

impl Filter {
    fn read(request: &Request<'_>, each_max: usize) -> Result<Filter, RpcError> {
        let wrong = |words: String| RpcError::new(code::INVALID_PARAMS, words);
        let Some(notifications) = request.params.get("notifications") else {
            return Err(wrong("params.notifications is missing".into()));
        };
        let filter: Filter = serde_json::from_str(notifications.get())
            .map_err(|error| wrong(format!("params.notifications is not a filter: {error}")))?;
        let resources = filter.resource_subscriptions.as_ref().map_or(0, Vec::len);
        let tasks = filter.task_ids.as_ref().map_or(0, Vec::len);
        if resources > each_max || tasks > each_max {
            let words = format!("more than {each_max} resources or tasks; server.max_subscriptions sets this");
            return Err(wrong(words));
        }
        Ok(filter)
    }

    fn wants(&self, list: List) -> bool {
        let wish = match list {
            List::Tools => self.tools_list_changed,
            List::Prompts => self.prompts_list_changed,
            List::Resources => self.resources_list_changed,
        };
        wish == Some(true)
    }

    /// Only what this server can do for this client.
    fn within(self, declared: Declared) -> Filter {
        Filter {
            prompts_list_changed: self.prompts_list_changed.filter(|_| declared.prompts),
            resources_list_changed: self.resources_list_changed.filter(|_| declared.resources),
            ..self
        }
    }
}

impl Face {
    /// `subscriptions/listen`.
    pub(super) async fn listen(self: &Arc<Self>, request: Request<'_>, asker: &Asker) -> Answering {
        let filter = match Filter::read(&request, self.engine.settings().sessions.subscriptions_max) {
            Ok(filter) => filter,
            Err(error) => return Finished::error(error).into(),
        };
        if filter.resource_subscriptions.as_ref().is_some_and(|uris| !uris.is_empty())
            && let Err(error) = asker.may_call()
        {
            return Finished::error(error).into();
        }
        let Ok(place) = self.listeners.clone().try_acquire_owned() else {
            let words = "too many subscriptions are open; end some of them or try again later";
            return Finished::error(answer::overload(words.into())).into();
        };
        let tasks = match &filter.task_ids {
            Some(_) if !task::is_declared(request.meta.protocol.client_capabilities) => {
                return Finished::error(task::not_declared()).into();
            }
            Some(ids) => match self.follow_tasks(ids, &asker.principal).await {
                Ok(followed) => Some(followed),
                Err(error) => return Finished::error(answer::refused(&error)).into(),
            },
            None => None,
        };
        let (face, asker, id) = (self.clone(), asker.clone(), request.id.raw().to_owned());
        let withdrawn = asker.withdrawn.clone();
        Answering::Going(Going::begin(withdrawn, true, |teller| async move {
            let _place = place;
            // Before anything is subscribed to, so that nothing falls between.
            let ear = Ear { principal: asker.principal.clone(), session: asker.client.session.clone() };
            let hearing = Hearing::new(&face, ear, None);
            let declared = face.offering(&asker.principal.namespace).await.declared;
            let filter = filter.within(declared);
            let resources =
                face.subscribe_all(filter.resource_subscriptions.as_deref().unwrap_or_default(), &asker).await;
            let listener = Listener { id, filter, resources, teller };
            listener.acknowledge(tasks.as_ref().map(|tasks| &*tasks.ids)).await;
            Some(listener.listen(&face, hearing, tasks).await)
        }))
    }

    /// Subscribes to as many of the resources as can be had in time.
    async fn subscribe_all(&self, uris: &[String], asker: &Asker) -> HashMap<String, Subscription> {
        let subscribing = uris.iter().map(|uri| async move {
            let params = json!({ "uri": uri }).to_string().into();
            let made = tokio::time::timeout(SUBSCRIBE_PATIENCE, self.subscribed(uri, params, asker)).await;
            let (subscription, _) = made.ok()?.ok()?;
            Some((uri.clone(), subscription))
        });
        futures_util::future::join_all(subscribing).await.into_iter().flatten().collect()
    }
}

/// One open stream.
struct Listener {
    /// The request's id, as written.
    id: String,
    filter: Filter,
    /// What is subscribed to, until this is dropped.
    resources: HashMap<String, Subscription>,
    teller: Teller,
}

impl Listener {
    async fn acknowledge(&self, tasks: Option<&[String]>) {
        let mut honoured = serde_json::Map::new();
        for (name, list) in [
            ("toolsListChanged", List::Tools),
            ("promptsListChanged", List::Prompts),
            ("resourcesListChanged", List::Resources),
        ] {
            if self.filter.wants(list) {
                honoured.insert(name.to_owned(), json!(true));
            }
        }
        if let Some(uris) = &self.filter.resource_subscriptions {
            let uris: Vec<&String> = uris.iter().filter(|uri| self.resources.contains_key(*uri)).collect();
            if !uris.is_empty() {
                honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
            }
        }
        if let Some(ids) = tasks {
            honoured.insert("taskIds".to_owned(), json!(ids));
        }
        let params = json!({ "notifications": honoured }).to_string();
        self.tell("notifications/subscriptions/acknowledged", &params).await;
    }

    /// Tells what is heard until this server goes.
    async fn listen(self, face: &Face, mut hearing: Hearing, mut tasks: Option<Followed>) -> Finished {
        loop {
            let of_tasks = async {
                match &mut tasks {
                    Some(tasks) => tasks.news.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = face.draining.cancelled() => break,
                () = face.engine.draining().cancelled() => break,
                news = of_tasks => match news {
                    Some(params) => self.tell("notifications/tasks", &params).await,
                    None => tasks = None,
                },
                heard = hearing.next() => self.pass(heard).await,
            }
        }
        let id = &self.id;
        Finished::result(format!(
            "{{\"resultType\":\"complete\",\"_meta\":{{\"{SUBSCRIPTION_MEMBER}\":{id},\"{}\":{SERVER_INFO}}}}}",
            splice::SERVER_INFO_MEMBER,
        ))
    }

    async fn pass(&self, heard: Heard) {
        match heard {
            Heard::Changed(list) if self.filter.wants(list) => self.tell(list.method(), "{}").await,
            Heard::Updated { upstream, uri, params } => {
                let wanted = |(subscribed, made): (&String, &Subscription)| {
                    made.upstream() == upstream && covers(subscribed, &uri)
                };
                if self.resources.iter().any(wanted) {
                    self.tell(notices::RESOURCE_UPDATED, &params).await;
                }
            }
            Heard::Missed => {
                // Looking again where nothing changed does no harm.
                for list in List::ALL.into_iter().filter(|list| self.filter.wants(*list)) {
                    self.tell(list.method(), "{}").await;
                }
                for uri in self.resources.keys() {
                    self.tell(notices::RESOURCE_UPDATED, &json!({ "uri": uri }).to_string()).await;
                }
            }
            // Log notices belong to the request that they are about, and tasks are told of in the words of this revision.
            Heard::Changed(_) | Heard::Message(_) | Heard::Task(_) => {}
        }
    }

    async fn tell(&self, method: &str, params: &str) {
        let meta = [Edit::Set(SUBSCRIPTION_MEMBER, self.id.as_str().into())];
        let marked = splice::edited(params, &[Edit::Within("_meta", &meta)]);
        self.teller.tell(method, Some(marked.as_deref().unwrap_or(params))).await;
    }
}
