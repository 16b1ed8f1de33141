//! Notifications between processes, where the database passes them on: one connection that listens, and says after commits
//! of this process what others may want to look at. What is said (`said.rs`) is no truth: whoever is concerned looks (R4).
//! Any failure here costs speed only, so nobody is told of one but the log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_fn;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use super::bind::{text, uuids};
use super::fault::{Fault, Sql};
use super::liveness::Liveness;
use super::pool::quoted;
use super::registry::clock;
use super::retry::jitter;
use super::said::Said;
use super::settings::PostgresSettings;
use super::tls::Target;
use super::vendor::Vendor;
use super::watch::Bell;
use crate::store::{Error, News, Result};

/// The shortest time between two notifications of one process: what is written meanwhile is told together.
const GAP: Duration = Duration::from_millis(15);
/// How often it is asked whether other processes live, which also proves that the connection does.
const COMPANY_LOOK: Duration = Duration::from_secs(2);
/// The first pause before listening again is at most this long; each further one may be twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// No pause is longer.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A way to listen.
#[derive(Clone)]
pub(super) struct Listener {
    target: Arc<Target>,
    settings: Arc<PostgresSettings>,
    liveness: Arc<Liveness>,
    /// Tells what this process said itself from what others say.
    name: Uuid,
}

/// Why nothing is listened to any more.
enum End {
    /// It may be possible later.
    Lost(Fault),
    /// This database has no notifications.
    Never(&'static str),
}

impl From<Fault> for End {
    fn from(fault: Fault) -> End {
        End::Lost(fault)
    }
}

impl From<tokio_postgres::Error> for End {
    fn from(error: tokio_postgres::Error) -> End {
        match error.code() {
            Some(&SqlState::FEATURE_NOT_SUPPORTED) => End::Never("it has no LISTEN"),
            _ => End::Lost(error.into()),
        }
    }
}

/// A connection whose messages are read.
struct Line {
    client: Client,
    reading: JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Listener {
    /// For the store at `url`; none where a pooler is in between and no other way is named.
    ///
    /// # Errors
    ///
    /// What is wrong with `listen_url`.
    pub(super) fn of(
        url: &str,
        settings: &Arc<PostgresSettings>,
        liveness: &Arc<Liveness>,
    ) -> Result<Option<Listener>> {
        let direct = match (&settings.listen_url, settings.pooled) {
            (Some(direct), _) => direct,
            (None, true) => return Ok(None),
            (None, false) => url,
        };
        let target = Target::of(direct, settings.root_certificates.as_deref()).map_err(|error| match error {
            Error::Unavailable(told) if settings.listen_url.is_some() => {
                Error::Unavailable(format!("store.listen_url, where wake-ups are listened for: {told}"))
            }
            other => other,
        })?;
        Ok(Some(Listener {
            target: Arc::new(target),
            settings: Arc::clone(settings),
            liveness: Arc::clone(liveness),
            name: Uuid::new_v4(),
        }))
    }

    /// Listens until it is aborted, or learns that there is nothing to listen to.
    pub(super) async fn run(self, bell: Arc<Bell>) {
        let (mut pause, mut told, mut lost) = (PAUSE_FIRST, false, false);
        loop {
            let since = Instant::now();
            let end = match self.listen(&bell, lost).await {
                Ok(never) => match never {},
                Err(end) => end,
            };
            bell.set_hears(false);
            lost = true;
            match end {
                End::Never(why) => {
                    tracing::info!("no wake-ups from the database: {why}; changes of other processes are polled for");
                    return;
                }
                End::Lost(fault) if !told => {
                    tracing::warn!(error = %fault.error, "no wake-ups from the database now; polling until there are");
                    told = true;
                }
                End::Lost(fault) => tracing::debug!(error = %fault.error, "no wake-ups from the database yet"),
            }
            if since.elapsed() > PAUSE_MAX {
                (pause, told) = (PAUSE_FIRST, false);
            }
            tokio::time::sleep(pause / 2 + jitter(pause / 2)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// `lost`: what this process would have said lately was not said.
    async fn listen(&self, bell: &Arc<Bell>, lost: bool) -> std::result::Result<std::convert::Infallible, End> {
        let mut line = within(self.settings.connect_timeout_ms, async { Ok(self.connect(bell).await?) }).await?;
        let channel = within(self.settings.connect_timeout_ms, self.subscribe(&line.client)).await?;
        tracing::debug!(place = self.target.place, channel, "listening for wake-ups");
        bell.set_hears(true);
        // The others learn that there is somebody to tell.
        let mut first = Said { begins: true, ..bell.unsaid() };
        if lost {
            first.news.add(News::anything());
        }
        let mut next = Instant::now();
        let mut looks = tokio::time::interval(COMPANY_LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        within(self.settings.statement_timeout_ms, self.say(&line.client, &channel, first)).await?;
        loop {
            tokio::select! {
                _ = &mut line.reading => return Err(Fault::lost("the connection that listens was lost").into()),
                _ = looks.tick() => {
                    let alone = self.is_alone(&line.client);
                    bell.set_company(!within(self.settings.statement_timeout_ms, alone).await?);
                }
                () = bell.written.notified() => {
                    tokio::time::sleep_until(next).await;
                    let said = bell.unsaid();
                    if said != Said::default() {
                        within(self.settings.statement_timeout_ms, self.say(&line.client, &channel, said)).await?;
                        next = Instant::now() + GAP;
                    }
                }
            }
        }
    }

    async fn connect(&self, bell: &Arc<Bell>) -> Sql<Line> {
        let connected = self.target.config.connect(self.target.tls.clone()).await;
        let (client, mut connection) = connected.map_err(|error| Fault::connecting(&self.target.place, &error))?;
        let (bell, own) = (Arc::clone(bell), self.name);
        let reading = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message
                    && let Some(said) = Said::read(notification.payload(), own)
                {
                    bell.hear(said);
                }
            }
        });
        Ok(Line { client, reading })
    }

    /// Listens to what is said about this schema; the channel.
    async fn subscribe(&self, client: &Client) -> std::result::Result<String, End> {
        let version = client.query_typed(Vendor::QUESTION, &[]).await?;
        let version: &str = version.first().map_or(Ok(""), |row| row.try_get(0))?;
        // R13: it says LISTEN is a syntax error, not that it has none.
        if Vendor::of(version) == Vendor::CockroachDb {
            return Err(End::Never("CockroachDB has no LISTEN"));
        }
        let mut set_up = format!("{UNFLUSHED}; SET statement_timeout = {}", self.settings.statement_timeout_ms);
        if let Some(schema) = &self.settings.schema {
            set_up.push_str(&format!("; SET search_path = {}", quoted(schema)));
        }
        client.batch_execute(&set_up).await?;
        let schema = client.query_typed(SCHEMA, &[]).await?;
        let schema: Option<&str> = schema.first().map_or(Ok(None), |row| row.try_get(0))?;
        let channel = channel_of(schema.unwrap_or_default());
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        Ok(channel)
    }

    /// Says what there is to look at.
    async fn say(&self, client: &Client, channel: &str, said: Said) -> std::result::Result<(), End> {
        let said = said.write(self.name);
        client.query_typed(SAY, &[text(&channel), text(&said)]).await?;
        Ok(())
    }

    /// True when no other process lives.
    async fn is_alone(&self, client: &Client) -> std::result::Result<bool, End> {
        let own: Vec<Uuid> = self.liveness.own().iter().map(|process| *process.as_uuid()).collect();
        let rows = client.query_typed(COMPANY, &[uuids(&own)]).await?;
        Ok(rows.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))? == 0)
    }
}

/// A notification is a commit of its own that would wait for the disk, and make the commits of calls wait for it.
const UNFLUSHED: &str = "SET synchronous_commit = off";

const SCHEMA: &str = "SELECT current_schema()::TEXT";

/// A statement of its own: inside the transaction that writes, one lock over all of them would order the commits.
const SAY: &str = "SELECT pg_notify($1, $2)";

const COMPANY: &str =
    concat!("SELECT count(*) FROM processes WHERE expires_at_ms > ", clock!(), " AND id <> ALL($1::UUID[])");

/// Channels belong to a database, stores to a schema; a channel's name is at most 63 bytes long.
pub(super) fn channel_of(schema: &str) -> String {
    let digest = hex::encode(Sha256::digest(schema.as_bytes()));
    format!("durable_mcp_{}", &digest[..16])
}

async fn within<T>(
    limit_ms: u64,
    work: impl Future<Output = std::result::Result<T, End>>,
) -> std::result::Result<T, End> {
    match tokio::time::timeout(Duration::from_millis(limit_ms), work).await {
        Ok(done) => done,
        Err(_) => Err(Fault::lost(format!("PostgreSQL did not answer within {limit_ms} ms")).into()),
    }
}

/// What the test of statements reads, with the types of its values.
#[cfg(test)]
pub(super) const STATEMENTS: &[(&str, &str)] = &[(SCHEMA, ""), (SAY, "text, text"), (COMPANY, "uuid[]")];
