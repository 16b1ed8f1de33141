//! API keys: making them, and recognising them in time that does not depend on the secret. A key is stored as a hash and
//! shown once; a presented one is neither stored nor logged nor passed on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;
use tokio::time::Instant;

use crate::engine::clock::Clock;
use crate::model::principal::{ANONYMOUS, Principal, Scope, Scopes};
use crate::store::{self, Store, TokenRow};

#[cfg(test)]
mod tests;

/// What every key starts with, so that secret scanners know it.
const MARK: &str = "dmcp_";
/// Hex digits of the public part.
const PREFIX_DIGITS: usize = 12;
/// Hex digits of the secret part: 256 bits.
const SECRET_DIGITS: usize = 64;
/// A picture of the keys younger than this answers alone.
const FRESH: Duration = Duration::from_millis(250);
/// One older than this is read again first: a revoked key works for less than a second.
const STALE: Duration = Duration::from_millis(750);
/// Unknown keys make the store be read at most so often.
const READ_GAP: Duration = Duration::from_millis(50);

/// Why a key was not made.
#[derive(Debug, Error)]
pub enum Error {
    /// The subject can not be used.
    #[error("the principal `{0}` can not be used; take 1 to 255 visible characters other than `{ANONYMOUS}`")]
    Principal(String),
    /// The namespace can not be used.
    #[error("the namespace `{0}` can not be used; take 1 to 64 of A-Z, a-z, 0-9, `-` and `_`")]
    Namespace(String),
    /// A key that permits nothing is a mistake.
    #[error("a token needs at least one scope")]
    NoScope,
    /// It would never work.
    #[error("the token would already have expired")]
    Expired,
    /// The store could not do it.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Principal(_) => "invalid_principal",
            Error::Namespace(_) => "invalid_namespace",
            Error::NoScope => "no_scope",
            Error::Expired => "already_expired",
            Error::Store(error) => error.code(),
        }
    }
}

/// What a new key shall permit.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The subject.
    pub principal: String,
    /// The tenant border.
    pub namespace: String,
    /// What it permits.
    pub scopes: Vec<Scope>,
    /// Milliseconds since the epoch; absent: never.
    pub expires_at_ms: Option<i64>,
}

/// Makes a key and stores its hash. Returns the key itself, which nobody can read again, and its row.
pub async fn create_token(store: &dyn Store, new: NewToken, now_ms: i64) -> Result<(String, TokenRow), Error> {
    if !is_principal(&new.principal) || new.principal == ANONYMOUS {
        return Err(Error::Principal(new.principal));
    }
    if !is_namespace(&new.namespace) {
        return Err(Error::Namespace(new.namespace));
    }
    if new.scopes.is_empty() {
        return Err(Error::NoScope);
    }
    if new.expires_at_ms.is_some_and(|at| at <= now_ms) {
        return Err(Error::Expired);
    }
    let prefix = random_hex(PREFIX_DIGITS);
    let token = format!("{MARK}{prefix}_{}", random_hex(SECRET_DIGITS));
    let scopes: Vec<&str> = Scopes::of(&new.scopes).iter().map(Scope::as_str).collect();
    let row = TokenRow {
        prefix,
        sha256: hex::encode(Sha256::digest(token.as_bytes())),
        principal: new.principal,
        namespace: new.namespace,
        scopes: scopes.join(" "),
        created_at_ms: now_ms,
        expires_at_ms: new.expires_at_ms,
        revoked_at_ms: None,
    };
    store.put_token(row.clone()).await?;
    Ok((token, row))
}

/// Every key without its secret, newest first, revoked ones included.
pub async fn list_tokens(store: &dyn Store) -> store::Result<Vec<TokenRow>> {
    let mut rows = store.tokens().await?;
    rows.sort_by(|one, two| (two.created_at_ms, &two.prefix).cmp(&(one.created_at_ms, &one.prefix)));
    Ok(rows)
}

/// Ends a key for good; running servers refuse it within a second. False when there is none with this prefix.
pub async fn revoke_token(store: &dyn Store, prefix: &str, now_ms: i64) -> store::Result<bool> {
    // People paste what they have: the prefix, or the start of the key.
    let prefix = prefix.strip_prefix(MARK).unwrap_or(prefix);
    let prefix = prefix.split('_').next().unwrap_or(prefix);
    store.revoke_token(prefix, now_ms).await
}

/// Why a presented key is not accepted.
#[derive(Debug)]
pub enum Denial {
    /// It has not the form of a key.
    Malformed,
    /// Nobody made it.
    Unknown,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
    /// The store could not say.
    Store(store::Error),
}

/// The keys as this process knows them.
pub struct Tokens {
    store: Arc<dyn Store>,
    clock: Clock,
    picture: RwLock<Picture>,
    reading: tokio::sync::Mutex<()>,
    refreshing: AtomicBool,
}

#[derive(Default)]
struct Picture {
    by_prefix: HashMap<String, Known>,
    /// When the read of it began.
    read_at: Option<Instant>,
}

struct Known {
    sha256: [u8; 32],
    principal: Principal,
    expires_at_ms: Option<i64>,
    revoked: bool,
}

enum Sight {
    Known(Result<Principal, Denial>),
    Missing,
}

impl Tokens {
    /// Keys of this store; nothing is read yet.
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Arc<Tokens> {
        Arc::new(Tokens {
            store,
            clock,
            picture: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
            refreshing: AtomicBool::new(false),
        })
    }

    /// Whose key this is. Reads the store only when its picture is old or has no such key.
    pub async fn check(self: &Arc<Self>, presented: &str) -> Result<Principal, Denial> {
        let prefix = split(presented).ok_or(Denial::Malformed)?;
        let digest: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        let asked_at = Instant::now();
        let (sight, age) = self.look(prefix, &digest, asked_at);
        match (sight, age) {
            (Sight::Known(answer), Some(age)) if age < STALE => {
                if age >= FRESH {
                    self.refresh_beside();
                }
                return answer;
            }
            _ => self.read(asked_at).await.map_err(Denial::Store)?,
        }
        match self.look(prefix, &digest, asked_at).0 {
            Sight::Known(answer) => answer,
            Sight::Missing => Err(Denial::Unknown),
        }
    }

    fn look(&self, prefix: &str, digest: &[u8; 32], now: Instant) -> (Sight, Option<Duration>) {
        let picture = self.picture.read().unwrap_or_else(PoisonError::into_inner);
        let age = picture.read_at.map(|read_at| now.saturating_duration_since(read_at));
        let known = picture.by_prefix.get(prefix).filter(|known| known.sha256.ct_eq(digest).into());
        let Some(known) = known else { return (Sight::Missing, age) };
        let expired = known.expires_at_ms.is_some_and(|at| at <= self.clock.now_ms());
        let answer = match (known.revoked, expired) {
            (true, _) => Err(Denial::Revoked),
            (_, true) => Err(Denial::Expired),
            _ => Ok(known.principal.clone()),
        };
        (Sight::Known(answer), age)
    }

    /// Reads the keys again, unless somebody did since `asked_at`.
    async fn read(&self, asked_at: Instant) -> store::Result<()> {
        let _one = self.reading.lock().await;
        let read_at = self.picture.read().unwrap_or_else(PoisonError::into_inner).read_at;
        if read_at.is_some_and(|read_at| read_at >= asked_at) {
            return Ok(());
        }
        if let Some(read_at) = read_at {
            // Guessing keys must not become a load on the store; whoever asks meanwhile shares the read.
            tokio::time::sleep_until(read_at + READ_GAP).await;
        }
        let began = Instant::now();
        let rows = self.store.tokens().await?;
        let by_prefix = rows.into_iter().filter_map(known).collect();
        *self.picture.write().unwrap_or_else(PoisonError::into_inner) = Picture { by_prefix, read_at: Some(began) };
        Ok(())
    }

    fn refresh_beside(self: &Arc<Self>) {
        if self.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let tokens = self.clone();
        tokio::spawn(async move {
            if let Err(error) = tokens.read(Instant::now()).await {
                // Callers learn it themselves once the picture is stale.
                tracing::warn!(code = error.code(), "the API keys could not be read again");
            }
            tokens.refreshing.store(false, Ordering::Release);
        });
    }
}

fn known(row: TokenRow) -> Option<(String, Known)> {
    let mut sha256 = [0; 32];
    hex::decode_to_slice(&row.sha256, &mut sha256).ok()?;
    let scopes = parse_scopes(&row.scopes);
    let principal = Principal { subject: row.principal, namespace: row.namespace, scopes };
    let known = Known { sha256, principal, expires_at_ms: row.expires_at_ms, revoked: row.revoked_at_ms.is_some() };
    Some((row.prefix, known))
}

/// The prefix of a well-formed key.
fn split(presented: &str) -> Option<&str> {
    let (prefix, secret) = presented.strip_prefix(MARK)?.split_once('_')?;
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (digits(prefix, PREFIX_DIGITS) && digits(secret, SECRET_DIGITS)).then_some(prefix)
}

/// Scopes from text, separated by spaces or commas. What is no scope permits nothing.
pub(super) fn parse_scopes(text: &str) -> Scopes {
    let names = text.split([' ', ',', '\t']).filter(|name| !name.is_empty());
    Scopes::of(&names.filter_map(Scope::parse).collect::<Vec<_>>())
}

/// True for a subject that can be stored and shown.
pub(super) fn is_principal(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && !text.chars().any(|c| c.is_control() || c.is_whitespace() && c != ' ')
}

/// True for the name of a namespace.
pub(super) fn is_namespace(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(good)
}

/// So many random hex digits from the system's generator.
pub(super) fn random_hex(digits: usize) -> String {
    let mut bytes = vec![0; digits / 2];
    // Without a generator nothing here would be safe; no kernel we run on lacks one.
    getrandom::fill(&mut bytes).expect("the system's random generator works");
    hex::encode(bytes)
}
