//! A schema that is there for one case of the conformance suite, on somebody's own database, and gone after it.

use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use super::fault::Fault;
use super::pool::{Connector, quoted};
use super::settings::PostgresSettings;
use super::tls::Target;
use super::{DatabaseLook, PostgresStore, inspect};
use crate::store::conformance::Ground;
use crate::store::{Result, Store};

/// An empty schema of its own. It has to be dropped by [`Throwaway::drop_schema`]: nothing else can wait for a database.
#[derive(Debug)]
pub struct Throwaway {
    url: String,
    settings: PostgresSettings,
    name: String,
}

impl Throwaway {
    /// Makes one in the database at `url`.
    ///
    /// # Errors
    ///
    /// One sentence without the password: the database can not be reached, or its user may not create a schema.
    pub async fn create(url: &str, settings: &PostgresSettings) -> Result<Throwaway> {
        let name = format!("durable_mcp_conformance_{}", &Uuid::new_v4().simple().to_string()[..12]);
        order(url, settings, &format!("CREATE SCHEMA {}", quoted(&name))).await?;
        let settings = PostgresSettings { schema: Some(name.clone()), migrates: true, ..settings.clone() };
        Ok(Throwaway { url: url.to_owned(), settings, name })
    }

    /// What people have to drop themselves when the program could not.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the database says of itself to somebody who works in this schema.
    ///
    /// # Errors
    ///
    /// As of [`inspect::look`].
    pub async fn look(&self) -> Result<DatabaseLook> {
        inspect::look(&self.url, &self.settings).await
    }

    /// Drops it with all that is in it.
    ///
    /// # Errors
    ///
    /// What the database says; then the schema is still there.
    pub async fn drop_schema(&self) -> Result<()> {
        order(&self.url, &self.settings, &format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(&self.name))).await
    }
}

/// On a connection that belongs to no schema yet.
async fn order(url: &str, settings: &PostgresSettings, sql: &str) -> Result<()> {
    let settings = PostgresSettings { schema: None, ..settings.clone() };
    let target = Target::of(url, settings.root_certificates.as_deref())?;
    let client = Connector::new(target, Arc::new(settings)).connect().await.map_err(|fault| fault.error)?;
    client.batch_execute(sql).await.map_err(|error| Fault::from(error).error)
}

#[async_trait]
impl Ground for Throwaway {
    async fn open(&self) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(PostgresStore::open(&self.url, &self.settings).await?))
    }
}
