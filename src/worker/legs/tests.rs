//! Which calls share a leg, and when legs end.

use super::*;
use crate::engine::tests::rig::Rig;
use crate::worker::upstream::Status;
use crate::worker::upstream::tests::unguarded;

/// A server in sh that answers the handshake with its process id and lists no tools.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"instructions":"'$$'"}}' ;;
    *'"resources/subscribe"'*|*'"resources/unsubscribe"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
    *'"tools/list"'*) printf '%s\n' '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t"}]}}' ;;
  esac
done
"#;

fn settings() -> UpstreamSettings {
    unguarded("s", "sh", &["-c", SERVER])
}

fn client(session: Option<&str>) -> ClientContext {
    ClientContext { session: session.map(str::to_owned), ..ClientContext::default() }
}

fn whose<'a>(principal: &'a str, client: &'a ClientContext) -> Whose<'a> {
    Whose { namespace: "default", principal, client }
}

async fn pid(upstream: &Upstream) -> String {
    let mut status = upstream.status();
    let ready = status.wait_for(|status| matches!(status, Status::Ready(_)));
    let ready = tokio::time::timeout(Duration::from_secs(20), ready).await.unwrap().unwrap().clone();
    let Status::Ready(facts) = ready else { unreachable!() };
    facts.instructions.unwrap()
}

async fn legs(isolation: Isolation, legs_max: usize) -> (Rig, Arc<Engine>, Arc<Legs>) {
    let rig = Rig::new();
    let (engine, _) = rig.engine_with(crate::engine::Settings::default(), None).await;
    let legs = Legs::start(&engine, settings(), LegSettings { isolation, legs_max, ..LegSettings::default() });
    (rig, engine, legs)
}

#[tokio::test]
async fn each_session_has_its_own_process_and_its_calls_share_it() {
    let (_rig, engine, legs) = legs(Isolation::Session, 8).await;
    let (one, two) = (client(Some("one")), client(Some("two")));
    let first = legs.of(whose("ann", &one)).await.unwrap();
    let second = legs.of(whose("ann", &one)).await.unwrap();
    let other = legs.of(whose("ann", &two)).await.unwrap();
    assert_eq!(pid(first.upstream()).await, pid(second.upstream()).await);
    assert_ne!(pid(first.upstream()).await, pid(other.upstream()).await);
    assert_ne!(pid(first.upstream()).await, pid(legs.shared()).await);
    // The lists are those of the shared leg, which nobody reads again.
    pid(legs.shared()).await;
    assert_eq!(legs.count(), 2);

    let mut ended = first.upstream().status();
    engine.session_ended("one");
    drop((first, second));
    ended.wait_for(|status| matches!(status, Status::Stopped)).await.unwrap();
    assert_eq!(legs.count(), 1);
}

#[tokio::test]
async fn principals_share_nothing_and_sessions_of_one_do() {
    let (_rig, _engine, legs) = legs(Isolation::Principal, 8).await;
    let (one, two) = (client(Some("one")), client(Some("two")));
    let ann = legs.of(whose("ann", &one)).await.unwrap();
    let too = legs.of(whose("ann", &two)).await.unwrap();
    let bob = legs.of(whose("bob", &one)).await.unwrap();
    assert_eq!(pid(ann.upstream()).await, pid(too.upstream()).await);
    assert_ne!(pid(ann.upstream()).await, pid(bob.upstream()).await);
    assert!(!ann.upstream().settings().scope.can_be_asked, "a principal may have many clients");
}

#[tokio::test]
async fn a_call_of_its_own_ends_with_its_leg() {
    let (_rig, _engine, legs) = legs(Isolation::Call, 8).await;
    let nobody = client(None);
    let taken = legs.of(whose("ann", &nobody)).await.unwrap();
    let mut status = taken.upstream().status();
    assert_ne!(pid(taken.upstream()).await, pid(legs.of(whose("ann", &nobody)).await.unwrap().upstream()).await);
    drop(taken);
    status.wait_for(|status| matches!(status, Status::Stopped)).await.unwrap();
    assert_eq!(legs.count(), 0);
}

#[tokio::test]
async fn the_leg_that_was_idle_the_longest_makes_room_and_one_in_use_does_not() {
    let (_rig, _engine, legs) = legs(Isolation::Session, 1).await;
    let (one, two) = (client(Some("one")), client(Some("two")));
    let first = legs.of(whose("ann", &one)).await.unwrap();
    assert!(legs.of(whose("ann", &two)).await.err().unwrap().contains("most"));
    let mut status = first.upstream().status();
    drop(first);
    let second = legs.of(whose("ann", &two)).await.unwrap();
    status.wait_for(|status| matches!(status, Status::Stopped)).await.unwrap();
    drop(second);
    assert_eq!(legs.count(), 1);
}

#[tokio::test]
async fn a_leg_by_which_a_client_listens_is_not_idle() {
    let rig = Rig::new();
    let (engine, _) = rig.engine_with(crate::engine::Settings::default(), None).await;
    let idle = Duration::from_millis(20);
    let own = LegSettings { isolation: Isolation::Session, idle, ..LegSettings::default() };
    let legs = Legs::start(&engine, settings(), own);
    let (one, two) = (client(Some("one")), client(Some("two")));
    let listening = legs.of(whose("ann", &one)).await.unwrap();
    let subscribe = crate::worker::upstream::Request::new("resources/subscribe").with("uri", "\"a://1\"");
    listening.upstream().subscribe(&subscribe, "a://1").await.unwrap();
    let mut listens = listening.upstream().status();
    drop(listening);
    let other = legs.of(whose("ann", &two)).await.unwrap();
    let mut status = other.upstream().status();
    drop(other);
    status.wait_for(|status| matches!(status, Status::Stopped)).await.unwrap();
    assert_eq!(legs.count(), 1);
    legs.present(whose("ann", &one)).unwrap().unsubscribe("a://1").await.unwrap();
    listens.wait_for(|status| matches!(status, Status::Stopped)).await.unwrap();
}

#[tokio::test]
async fn the_one_client_of_a_process_has_the_one_leg_with_what_it_can() {
    let rig = Rig::new();
    let (engine, _) = rig.engine_with(crate::engine::Settings::default(), None).await;
    let capabilities = RawValue::from_string(r#"{"roots":{}}"#.to_owned()).ok();
    let client = Arc::new(ClientContext { capabilities, ..client(Some("stdio")) });
    engine.only_client(client.clone());
    let settings = LegSettings { isolation: Isolation::Session, only_client: true, ..LegSettings::default() };
    let legs = Legs::start(&engine, super::tests::settings(), settings);
    let taken = legs.of(whose("ann", &client)).await.unwrap();
    assert_eq!(pid(taken.upstream()).await, pid(legs.shared()).await);
    assert!(taken.upstream().settings().scope.can_be_asked);
    assert_eq!(legs.count(), 0);
}
