//! Requests before upstreams that answer by a script: who is asked what, and what the client reads.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::*;
use crate::engine::Settings as EngineSettings;
use crate::engine::catalog::{Listed, Offer};
use crate::engine::forward::{Forward, ForwardError, Forwarded, Forwarder, OnProgress};
use crate::engine::notices::{Addressee, Notice};
use crate::engine::tests::rig::{Rig, soon};
use crate::engine::waiters::Progress;
use crate::mcp::answer::Reply;
use crate::mcp::exposure::Exposure;
use crate::mcp::face::Settings;
use crate::mcp::going::Said;
use crate::mcp::hearing::{Ear, LegacyHearing};

type Script = Box<dyn Fn(&Forward) -> Result<Forwarded, ForwardError> + Send + Sync>;

/// An upstream that notes what it is asked.
struct Scripted {
    asked: Arc<Mutex<Vec<(String, String)>>>,
    script: Script,
}

#[async_trait]
impl Forwarder for Scripted {
    async fn forward(&self, request: Forward, on_progress: OnProgress<'_>) -> Result<Forwarded, ForwardError> {
        let params = request.params.clone().unwrap_or_else(|| "".into());
        self.asked.lock().unwrap().push((format!("{} {}", request.upstream, request.method), params.to_string()));
        on_progress(Progress { progress: 1.0, total: None, message: Some("half".into()) });
        (self.script)(&request)
    }
}

fn result(value: &str) -> Result<Forwarded, ForwardError> {
    Ok(Forwarded::Result(value.into()))
}

fn missing() -> Result<Forwarded, ForwardError> {
    Ok(Forwarded::Error(r#"{"code":-32002,"message":"Resource not found","data":{"uri":"x"}}"#.into()))
}

struct Scene {
    _rig: Rig,
    face: Arc<Face>,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl Scene {
    /// Two upstreams: `one` is legacy, `two` is modern. `two` lists a template and a prompt, `one` 250 resources.
    async fn new(one: Script, two: Script) -> Scene {
        let rig = Rig::new();
        let engine = rig.bare_engine(rig.store().await, EngineSettings::default(), None).await;
        let listed = |items: Vec<Value>| Listed {
            items: items.iter().map(|item| serde_json::value::to_raw_value(item).unwrap()).collect(),
            cache: None,
        };
        let capabilities = |value: Value| Some(serde_json::value::to_raw_value(&value).unwrap().into());
        engine.catalog().publish(crate::engine::tests::rig::UPSTREAM, Offer { known: true, ..Offer::default() });
        let offer = Offer {
            known: true,
            revision: Some(Revision::V2025_11_25),
            resources: listed((0..250).map(|at| json!({"uri": format!("r:{at}"), "name": "r"})).collect()),
            capabilities: capabilities(json!({"resources": {"subscribe": true}, "logging": {}})),
            ..Offer::default()
        };
        engine.catalog().publish("one", offer);
        let offer = Offer {
            known: true,
            revision: Some(Revision::V2026_07_28),
            templates: listed(vec![json!({"uriTemplate": "t:{id}", "name": "t"})]),
            prompts: listed(vec![json!({"name": "greet"})]),
            capabilities: capabilities(json!({"resources": {}, "prompts": {}, "completions": {}})),
            ..Offer::default()
        };
        engine.catalog().publish("two", offer);
        let asked = Arc::<Mutex<Vec<(String, String)>>>::default();
        let scripts = [("one", one), ("two", two)];
        for (upstream, script) in scripts {
            engine.forwarders().set(upstream, Arc::new(Scripted { asked: asked.clone(), script }));
        }
        let prefixes = HashMap::from([("two".to_owned(), "two__".to_owned())]);
        let exposure = Exposure { prefixes, ..Exposure::default() };
        let face = Face::new(engine, Settings { exposure, ..Settings::default() });
        Scene { _rig: rig, face, asked }
    }

    async fn ask(&self, asker: &Asker, method: &str, params: Value) -> Answering {
        let id = Id::from_number(1);
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        let params = Params::split(Some(&raw));
        let meta = Meta::of(&params).unwrap();
        self.face.request(Request { id: &id, method, params: &params, raw: Some(&raw), meta: &meta }, asker).await
    }

    async fn answer(&self, asker: &Asker, method: &str, params: Value) -> Value {
        let finished = soon(self.ask(asker, method, params).await.end()).await;
        match finished.reply {
            Reply::Result(text) => json!({ "result": serde_json::from_str::<Value>(&text.into_whole()).unwrap() }),
            Reply::RawError(text) => json!({ "error": serde_json::from_str::<Value>(&text).unwrap() }),
            Reply::Error(error) => {
                let mut text = String::new();
                error.write(&mut text);
                json!({ "error": serde_json::from_str::<Value>(&text).unwrap() })
            }
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(what, _)| what.clone()).collect()
    }
}

fn asker(revision: Revision) -> Asker {
    let session = (!revision.is_modern()).then(|| "s".to_owned());
    let client = ClientContext { revision: Some(revision.name().to_owned()), session, ..ClientContext::default() };
    Asker {
        principal: Principal::anonymous(),
        revision,
        client: Arc::new(client),
        wishes: (!revision.is_modern()).then(Arc::default),
        session: None,
        withdrawn: CancellationToken::new(),
    }
}

fn legacy() -> Asker {
    asker(Revision::V2025_11_25)
}

fn modern() -> Asker {
    asker(Revision::V2026_07_28)
}

fn nothing() -> Script {
    Box::new(|_| missing())
}

#[tokio::test]
async fn a_resource_is_read_where_it_may_be_and_then_elsewhere() {
    let two: Script =
        Box::new(|_| result(r#"{"resultType":"complete","contents":[1.0],"ttlMs":9,"cacheScope":"public"}"#));
    let scene = Scene::new(nothing(), two).await;
    let read = scene.answer(&legacy(), "resources/read", json!({"uri": "t:1"})).await;
    assert_eq!(read, json!({"result": {"contents": [1.0]}}));
    assert_eq!(scene.asked(), ["two resources/read"]);
    let read = scene.answer(&modern(), "resources/read", json!({"uri": "r:1"})).await;
    assert_eq!((&read["result"]["ttlMs"], &read["result"]["cacheScope"]), (&json!(9), &json!("public")));
    assert_eq!(scene.asked()[1..], ["one resources/read", "two resources/read"]);
}

#[tokio::test]
async fn a_resource_that_nobody_has_is_an_error_of_the_clients_era() {
    let scene = Scene::new(nothing(), nothing()).await;
    let read = scene.answer(&legacy(), "resources/read", json!({"uri": "z:1"})).await;
    assert_eq!(read["error"]["code"], -32002);
    let read = scene.answer(&modern(), "resources/read", json!({"uri": "z:1"})).await;
    assert_eq!(read["error"]["code"], -32602);
    assert_eq!(scene.answer(&modern(), "resources/read", json!({})).await["error"]["code"], -32602);
}

#[tokio::test]
async fn an_upstream_that_is_not_reached_is_said_to_be_so_unless_another_one_answers() {
    let down: Script = Box::new(|_| Err(ForwardError::Unreachable("it is down".into())));
    let scene = Scene::new(down, nothing()).await;
    let read = scene.answer(&legacy(), "resources/read", json!({"uri": "r:1"})).await;
    assert_eq!(read["error"]["data"]["type"], "unreachable");
}

#[tokio::test]
async fn a_prompt_and_its_completion_go_to_their_owner_under_its_own_name() {
    let two: Script = Box::new(|_| result("{}"));
    let scene = Scene::new(nothing(), two).await;
    scene.answer(&legacy(), "prompts/get", json!({"name": "two__greet", "arguments": {"a": "1"}})).await;
    scene.answer(&legacy(), "prompts/get", json!({"name": "two__unlisted"})).await;
    let reference =
        json!({"ref": {"type": "ref/prompt", "name": "two__greet"}, "argument": {"name": "a", "value": ""}});
    scene.answer(&legacy(), "completion/complete", reference).await;
    let reference = json!({"ref": {"type": "ref/resource", "uri": "t:{id}"}, "argument": {"name": "id", "value": ""}});
    scene.answer(&legacy(), "completion/complete", reference).await;
    let asked = scene.asked.lock().unwrap().clone();
    assert_eq!(asked[0].1, r#"{"arguments":{"a":"1"},"name":"greet"}"#);
    assert_eq!(asked[1].1, r#"{"name":"unlisted"}"#);
    assert!(asked[2].1.contains(r#""ref":{"name":"greet","type":"ref/prompt"}"#), "{asked:?}");
    assert_eq!(asked[3].0, "two completion/complete");
    let unknown = scene.answer(&legacy(), "prompts/get", json!({"name": "greet"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn a_long_list_comes_in_pages_whose_cursors_nobody_can_make() {
    let scene = Scene::new(nothing(), nothing()).await;
    let first = scene.answer(&modern(), "resources/list", json!({})).await;
    let cursor = &first["result"]["nextCursor"];
    assert_eq!(first["result"]["resources"].as_array().unwrap().len(), 200);
    assert_eq!((&first["result"]["ttlMs"], &first["result"]["cacheScope"]), (&json!(60_000), &json!("private")));
    let second = scene.answer(&legacy(), "resources/list", json!({"cursor": cursor})).await;
    assert_eq!(second["result"]["resources"].as_array().unwrap().len(), 50);
    assert_eq!(second["result"]["resources"][49]["uri"], "r:249");
    assert!(second["result"].get("ttlMs").is_none() && second["result"].get("nextCursor").is_none());
    for (method, cursor) in
        [("resources/list", json!("x")), ("prompts/list", cursor.clone()), ("resources/list", json!(1))]
    {
        let refused = scene.answer(&legacy(), method, json!({ "cursor": cursor })).await;
        assert_eq!(refused["error"]["code"], -32602, "{method} {cursor}");
    }
    let templates = scene.answer(&legacy(), "resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "t:{id}");
    let prompts = scene.answer(&legacy(), "prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"][0]["name"], "two__greet");
}

#[tokio::test]
async fn the_questions_of_a_prompt_carry_a_sealed_state_back_to_who_asked() {
    let two: Script = Box::new(|forward| {
        let params: Value = serde_json::from_str(forward.params.as_deref().unwrap()).unwrap();
        match params.get("requestState") {
            Some(state) if state == "inner" => result(r#"{"resultType":"complete","messages":[]}"#),
            Some(_) => Ok(Forwarded::Error(r#"{"code":-32602,"message":"bad state"}"#.into())),
            None => result(r#"{"resultType":"input_required","inputRequests":{"k":{}},"requestState":"inner"}"#),
        }
    });
    let scene = Scene::new(nothing(), two).await;
    let params = json!({"name": "two__greet", "arguments": {"a": "1"}});
    let asked = scene.answer(&modern(), "prompts/get", params.clone()).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    assert_ne!(state, "inner");
    assert!(asked["result"].get("ttlMs").is_none());
    let mut again = params.clone();
    again["inputResponses"] = json!({"k": {"action": "accept"}});
    again["requestState"] = json!(state);
    let answered = scene.answer(&modern(), "prompts/get", again.clone()).await;
    assert_eq!(answered["result"]["messages"], json!([]));
    let mut tampered = again.clone();
    tampered["requestState"] = json!(format!("{state}-x"));
    let mut other = again.clone();
    other["arguments"]["a"] = json!("2");
    for refused in [tampered, other] {
        assert_eq!(scene.answer(&modern(), "prompts/get", refused).await["error"]["code"], -32602);
    }
    let foreign = Asker { principal: Principal { subject: "bob".into(), ..Principal::anonymous() }, ..modern() };
    assert_eq!(scene.answer(&foreign, "prompts/get", again).await["error"]["code"], -32602);
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_a_withdrawn_request_has_none() {
    let scene = Scene::new(Box::new(|_| result(r#"{"contents":[]}"#)), nothing()).await;
    let params = json!({"uri": "r:1", "_meta": {"progressToken": "p"}});
    let Answering::Going(mut going) = scene.ask(&legacy(), "resources/read", params.clone()).await else { panic!() };
    let Said::Message(progress) = soon(going.next()).await else { panic!() };
    assert!(progress.contains(r#""progressToken":"p","progress":1,"message":"half""#), "{progress}");
    assert!(matches!(soon(going.next()).await, Said::End(_)));
    let asker = legacy();
    let Answering::Going(mut going) = scene.ask(&asker, "resources/read", params).await else { panic!() };
    asker.withdrawn.cancel();
    assert!(matches!(soon(going.next()).await, Said::Over));
}

#[tokio::test]
async fn a_session_hears_what_it_subscribed_to_and_from_its_level_on() {
    let scene = Scene::new(Box::new(|_| result("{}")), nothing()).await;
    let asker = legacy();
    let wishes = asker.wishes.clone().unwrap();
    let ear = Ear { principal: asker.principal.clone(), session: Some("s".into()) };
    let mut hearing = LegacyHearing::new(&scene.face, ear, &wishes);
    let tell = |to: Addressee, method: &str, params: Value| {
        let params = Some(params.to_string().into());
        scene.face.engine.tell(Notice { upstream: "one".into(), to, method: method.into(), params });
    };
    assert_eq!(scene.answer(&asker, "resources/subscribe", json!({"uri": "r:1"})).await, json!({"result": {}}));
    assert_eq!(scene.answer(&asker, "logging/setLevel", json!({"level": "warning"})).await, json!({"result": {}}));
    assert_eq!(scene.answer(&asker, "logging/setLevel", json!({"level": "loud"})).await["error"]["code"], -32602);
    assert_eq!(scene.asked(), ["one resources/subscribe", "one logging/setLevel"]);
    let (everybody, updated) = (Addressee::Everybody, "notifications/resources/updated");
    tell(everybody.clone(), updated, json!({"uri": "r:2"}));
    tell(everybody.clone(), "notifications/message", json!({"level": "info", "data": 1}));
    tell(Addressee::Session("other".into()), "notifications/message", json!({"level": "error", "data": 2}));
    tell(Addressee::Session("s".into()), "notifications/message", json!({"level": "error", "data": 3}));
    tell(everybody.clone(), updated, json!({"uri": "r:1"}));
    assert!(soon(hearing.next()).await.contains(r#""data":3"#));
    assert!(soon(hearing.next()).await.contains(r#""uri":"r:1""#));
    assert_eq!(wishes.uris(), ["r:1"]);
    // A list that its upstream says has changed is told, although it is the same.
    tell(everybody, "notifications/prompts/list_changed", json!({}));
    assert!(soon(hearing.next()).await.contains("prompts/list_changed"));
    scene.answer(&asker, "resources/unsubscribe", json!({"uri": "r:1"})).await;
    assert!(wishes.uris().is_empty());
}

#[tokio::test]
async fn a_modern_stream_is_acknowledged_first_marks_each_message_and_ends_in_order() {
    let scene = Scene::new(Box::new(|_| result("{}")), nothing()).await;
    let filter = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["r:1", "t:1"]}});
    let Answering::Going(mut going) = scene.ask(&modern(), "subscriptions/listen", filter).await else { panic!() };
    assert!(going.is_stream);
    let mut message = async || match soon(going.next()).await {
        Said::Message(message) => serde_json::from_str::<Value>(&message).unwrap(),
        Said::End(finished) => json!({ "end": format!("{:?}", finished.reply) }),
        Said::Over => panic!("over"),
    };
    let acknowledged = message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(acknowledged["params"]["_meta"][id], 1);
    // Whoever has the template declares no subscriptions, and the other one takes any.
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["r:1", "t:1"]});
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    for (method, uri) in [("prompts/list_changed", ""), ("resources/updated", "r:9"), ("resources/updated", "r:1")] {
        let params = Some(json!({ "uri": uri }).to_string().into());
        let method = format!("notifications/{method}");
        scene.face.engine.tell(Notice { upstream: "one".into(), to: Addressee::Everybody, method, params });
    }
    let updated = message().await;
    assert_eq!((&updated["params"]["uri"], &updated["params"]["_meta"][id]), (&json!("r:1"), &json!(1)));
    let tool = Offer { known: true, ..Offer::default() };
    scene.face.engine.catalog().publish("two", tool);
    scene.face.draining.cancel();
    let end = message().await;
    assert!(end["end"].as_str().unwrap().contains("subscriptionId"), "{end}");
}

#[tokio::test]
async fn capabilities_are_the_union_of_the_upstreams() {
    let scene = Scene::new(nothing(), nothing()).await;
    let discovered = scene.answer(&modern(), "server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["resources"], json!({"subscribe": true, "listChanged": true}));
    assert_eq!((&capabilities["prompts"], &capabilities["completions"]), (&json!({"listChanged": true}), &json!({})));
    assert!(capabilities.get("logging").is_some() && capabilities.get("tasks").is_none());
    assert_eq!(discovered["result"]["resultType"], "complete");
}

#[tokio::test]
async fn methods_of_the_other_era_are_unknown() {
    let scene = Scene::new(nothing(), nothing()).await;
    for method in ["resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"] {
        assert_eq!(scene.answer(&modern(), method, json!({"uri": "r:1"})).await["error"]["code"], -32601, "{method}");
    }
    for method in ["subscriptions/listen", "server/discover"] {
        assert_eq!(scene.answer(&legacy(), method, json!({})).await["error"]["code"], -32601, "{method}");
    }
}
