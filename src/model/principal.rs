//! Who calls: the subject of a credential, its namespace and what it may do. Checks no credential itself.

use serde::{Deserialize, Serialize};

/// Who calls. Comes from a credential only, never from a body (guarantees, security musts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The subject; `anonymous` without authentication.
    pub subject: String,
    /// The tenant border everything of this caller lies in.
    pub namespace: String,
    /// What the credential permits.
    pub scopes: Scopes,
}

/// The subject of every caller while authentication is off.
pub const ANONYMOUS: &str = "anonymous";
/// The namespace that exists without being declared.
pub const DEFAULT_NAMESPACE: &str = "default";

impl Principal {
    /// The caller without authentication: may call and read, in the default namespace.
    pub fn anonymous() -> Self {
        Self {
            subject: ANONYMOUS.into(),
            namespace: DEFAULT_NAMESPACE.into(),
            scopes: Scopes::of(&[Scope::Call, Scope::Read, Scope::Cancel]),
        }
    }

    /// True when nobody proved who they are.
    pub fn is_anonymous(&self) -> bool {
        self.subject == ANONYMOUS
    }
}

/// One permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Call tools and fetch the results of own calls.
    Call,
    /// Read own executions; those of the whole namespace need `operate`.
    Read,
    /// Cancel executions.
    Cancel,
    /// Speak the worker protocol.
    Work,
    /// Retry, resolve, drain.
    Operate,
    /// Everything, tokens included.
    Admin,
}

impl Scope {
    /// Every scope, in the order of the documentation.
    pub const ALL: [Scope; 6] = [Scope::Call, Scope::Read, Scope::Cancel, Scope::Work, Scope::Operate, Scope::Admin];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Call => "call",
            Scope::Read => "read",
            Scope::Cancel => "cancel",
            Scope::Work => "work",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    /// Reads a wire name.
    pub fn parse(text: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// The set of exactly these.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | 1 << *scope as u8))
    }

    /// True when the set permits `scope`; `admin` permits everything.
    pub fn permits(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0 || self.0 & (1 << Scope::Admin as u8) != 0
    }

    /// The members, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & (1 << *scope as u8) != 0)
    }
}
