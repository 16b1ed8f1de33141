//! Keys against a store, with a manual clock.

use std::time::Duration;

use tempfile::TempDir;
use tokio::time::Instant;

use super::*;
use crate::engine::clock::Manual;
use crate::store::StoreSettings;

struct Scene {
    _folder: TempDir,
    store: Arc<dyn Store>,
    tokens: Arc<Tokens>,
    time: Arc<Manual>,
}

impl Scene {
    /// Makes the picture of the keys look as old as this.
    fn age(&self, age: Duration) {
        self.tokens.picture.write().unwrap().read_at = Some(Instant::now() - age);
    }
}

const NOW_MS: i64 = 1_000_000;

async fn scene() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("a.db").display());
    let store = crate::store::open(&url, &StoreSettings::for_tests()).await.unwrap();
    let (clock, time) = Clock::manual(NOW_MS);
    Scene { _folder: folder, tokens: Tokens::new(store.clone(), clock), store, time }
}

fn new(principal: &str, scopes: &[Scope]) -> NewToken {
    NewToken {
        principal: principal.into(),
        namespace: "default".into(),
        scopes: scopes.to_vec(),
        expires_at_ms: Some(NOW_MS + 500),
    }
}

#[tokio::test]
async fn a_key_is_recognised_as_its_principal_with_its_scopes() {
    let scene = scene().await;
    let (token, row) = create_token(&*scene.store, new("ci", &[Scope::Read, Scope::Call]), NOW_MS).await.unwrap();
    assert_eq!(token.len(), "dmcp_".len() + PREFIX_DIGITS + 1 + SECRET_DIGITS);
    assert_eq!(row.scopes, "call read");
    assert!(!format!("{row:?}").contains(&token[20..]));
    let principal = scene.tokens.check(&token).await.unwrap();
    assert_eq!((principal.subject.as_str(), principal.namespace.as_str()), ("ci", "default"));
    assert!(principal.scopes.permits(Scope::Call) && principal.scopes.permits(Scope::Read));
    assert!(!principal.scopes.permits(Scope::Cancel) && !principal.scopes.permits(Scope::Admin));
}

#[tokio::test]
async fn what_is_no_key_is_refused_without_a_look_at_the_store() {
    let scene = scene().await;
    scene.store.close().await;
    let hex = "0".repeat(64);
    for text in [
        "",
        "dmcp_",
        "secret",
        &format!("dmcp_{}", &hex[..12]),
        &format!("dmcp_{}_{}", &hex[..12], &hex[..63]),
        &format!("dmcp_{}_{hex}0", &hex[..12]),
        &format!("dmcp_{}_{}", &hex[..11], hex),
        &format!("DMCP_{}_{hex}", &hex[..12]),
        &format!("dmcp_{}_{}", &hex[..12], hex.replace('0', "G")),
        &format!("dmcp_{}_{}", &hex[..12], hex.replace('0', "A")),
        "dmcp_local_0000",
    ] {
        assert!(matches!(scene.tokens.check(text).await, Err(Denial::Malformed)), "{text}");
    }
    let well_formed = format!("dmcp_{}_{hex}", &hex[..12]);
    assert!(matches!(scene.tokens.check(&well_formed).await, Err(Denial::Store(_))));
}

#[tokio::test]
async fn a_key_with_another_secret_is_unknown() {
    let scene = scene().await;
    let (token, _) = create_token(&*scene.store, new("ci", &[Scope::Call]), NOW_MS).await.unwrap();
    let last = if token.ends_with('0') { "1" } else { "0" };
    let other = format!("{}{last}", &token[..token.len() - 1]);
    assert!(matches!(scene.tokens.check(&other).await, Err(Denial::Unknown)));
    assert!(scene.tokens.check(&token).await.is_ok());
}

#[tokio::test]
async fn a_key_expires_at_its_time() {
    let scene = scene().await;
    let (token, _) = create_token(&*scene.store, new("ci", &[Scope::Call]), NOW_MS).await.unwrap();
    scene.time.advance(499);
    assert!(scene.tokens.check(&token).await.is_ok());
    scene.time.advance(1);
    assert!(matches!(scene.tokens.check(&token).await, Err(Denial::Expired)));
}

#[tokio::test]
async fn a_revoked_key_stops_working_within_a_second_and_a_new_one_works_at_once() {
    let scene = scene().await;
    let (token, row) = create_token(&*scene.store, new("ci", &[Scope::Call]), NOW_MS).await.unwrap();
    assert!(scene.tokens.check(&token).await.is_ok());
    assert!(revoke_token(&*scene.store, &row.prefix, NOW_MS).await.unwrap());
    scene.age(STALE);
    assert!(matches!(scene.tokens.check(&token).await, Err(Denial::Revoked)));
    let (second, _) = create_token(&*scene.store, new("ci", &[Scope::Call]), NOW_MS).await.unwrap();
    assert!(scene.tokens.check(&second).await.is_ok());
    assert!(STALE < Duration::from_secs(1));
}

#[tokio::test]
async fn guessing_keys_reads_the_store_at_a_bounded_rate() {
    let scene = scene().await;
    let guess = format!("dmcp_{}_{}", "0".repeat(12), "0".repeat(64));
    assert!(matches!(scene.tokens.check(&guess).await, Err(Denial::Unknown)));
    let began = Instant::now();
    for _ in 0..3 {
        assert!(matches!(scene.tokens.check(&guess).await, Err(Denial::Unknown)));
    }
    assert!(began.elapsed() >= READ_GAP * 2, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_key_is_revoked_by_its_prefix_or_by_itself() {
    let scene = scene().await;
    let (token, _) = create_token(&*scene.store, new("ci", &[Scope::Call]), NOW_MS).await.unwrap();
    assert!(revoke_token(&*scene.store, &token, NOW_MS + 1).await.unwrap());
    assert!(!revoke_token(&*scene.store, "ffffffffffff", NOW_MS + 1).await.unwrap());
    assert_eq!(list_tokens(&*scene.store).await.unwrap()[0].revoked_at_ms, Some(NOW_MS + 1));
}

#[tokio::test]
async fn keys_that_could_never_be_used_rightly_are_not_made() {
    let scene = scene().await;
    let ok = || new("ci", &[Scope::Call]);
    for (made, code) in [
        (NewToken { principal: "anonymous".into(), ..ok() }, "invalid_principal"),
        (NewToken { principal: "a\nb".into(), ..ok() }, "invalid_principal"),
        (NewToken { principal: String::new(), ..ok() }, "invalid_principal"),
        (NewToken { namespace: "a/b".into(), ..ok() }, "invalid_namespace"),
        (NewToken { scopes: vec![], ..ok() }, "no_scope"),
        (NewToken { expires_at_ms: Some(NOW_MS), ..ok() }, "already_expired"),
    ] {
        assert_eq!(create_token(&*scene.store, made, NOW_MS).await.unwrap_err().code(), code);
    }
    assert!(list_tokens(&*scene.store).await.unwrap().is_empty());
}

#[test]
fn words_that_are_no_scopes_permit_nothing() {
    assert_eq!(parse_scopes("call, read  nonsense"), Scopes::of(&[Scope::Call, Scope::Read]));
    assert_eq!(parse_scopes("CALL"), Scopes::default());
    assert_eq!(parse_scopes(""), Scopes::default());
}
