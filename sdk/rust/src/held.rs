//! One leased call, as the thread that speaks to the server and the runtime of the handlers share it. Knows neither HTTP
//! nor handlers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// A job of the wire protocol.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    pub execution_id: String,
    pub lease_token: String,
    pub fencing_token: u64,
    pub attempt: u32,
    pub max_attempts: Option<u32>,
    pub tool: String,
    pub arguments: Option<Box<RawValue>>,
    pub meta: Option<Box<RawValue>>,
    pub effect_key: String,
    pub principal: Option<String>,
    pub namespace: Option<String>,
    #[serde(default)]
    pub steps: Option<HashMap<String, Box<RawValue>>>,
    #[serde(default)]
    pub checkpoint: Option<Box<RawValue>>,
}

/// What a handler came to, as JSON text.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// The text of the MCP result.
    Complete(String),
    /// The members of the object beside worker and lease.
    Fail(String),
    Release,
}

/// What the next heartbeat takes along, as JSON texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct News {
    pub progress: Option<String>,
    pub checkpoint: Option<String>,
}

impl News {
    pub fn is_empty(&self) -> bool {
        self.progress.is_none() && self.checkpoint.is_none()
    }

    /// What has arrived need not be sent again; what came meanwhile must.
    pub fn forget(&mut self, arrived: &News) {
        self.progress.take_if(|text| arrived.progress.as_ref() == Some(text));
        self.checkpoint.take_if(|text| arrived.checkpoint.as_ref() == Some(text));
    }
}

#[derive(Debug)]
pub(crate) struct Held {
    pub job: Job,
    pub dropped: CancellationToken,
    pub news: Mutex<News>,
    pub report: Mutex<Option<Report>>,
    is_begun: AtomicBool,
}

impl Held {
    pub fn new(job: Job) -> Held {
        Held {
            job,
            dropped: CancellationToken::new(),
            news: Mutex::default(),
            report: Mutex::default(),
            is_begun: AtomicBool::new(false),
        }
    }

    /// True for the one who asks first: the handler that begins it, or the conversation that gives it back unbegun.
    pub fn begin(&self) -> bool {
        !self.is_begun.swap(true, Ordering::AcqRel)
    }

    pub fn token(&self) -> &str {
        &self.job.lease_token
    }
}
