//! Connections that only read. Single rows are read where they are asked for, without a change of threads; lists run
//! on threads that may block, on connections of their own, so that no list makes a single row wait.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use rusqlite::Connection;

use super::fault::Sql;
use super::writer::CLOSED;
use crate::store::{Error, Result};

/// A set of connections.
#[derive(Clone)]
pub(super) struct Readers {
    connections: Arc<[Mutex<Option<Connection>>]>,
}

impl Readers {
    pub(super) fn new(connections: Vec<Connection>) -> Readers {
        Readers { connections: connections.into_iter().map(|connection| Mutex::new(Some(connection))).collect() }
    }

    /// Reads here and now when a connection is free, else on a thread that may block.
    pub(super) async fn point<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        if let Some(connection) = self.free() {
            return run(&connection, read);
        }
        self.list(read).await
    }

    /// Reads on a thread that may block.
    pub(super) async fn list<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let readers = self.clone();
        let done = tokio::task::spawn_blocking(move || match readers.free() {
            Some(connection) => run(&connection, read),
            None => run(&readers.first(), read),
        });
        done.await.map_err(|error| Error::Internal(format!("a read was lost: {error}")))?
    }

    /// Closes every connection once its read is done.
    pub(super) fn close(&self) {
        for connection in self.connections.iter() {
            drop(lock(connection).take());
        }
    }

    /// How many are at work, and how many are free.
    pub(super) fn standing(&self) -> (usize, usize) {
        let busy = |connection: &&Mutex<_>| matches!(connection.try_lock(), Err(TryLockError::WouldBlock));
        let busy = self.connections.iter().filter(busy).count();
        (busy, self.connections.len() - busy)
    }

    fn free(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        self.connections.iter().find_map(|connection| match connection.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    fn first(&self) -> MutexGuard<'_, Option<Connection>> {
        lock(&self.connections[0])
    }
}

/// A panic in a read leaves the connection as good as before: statements reset themselves.
fn lock(connection: &Mutex<Option<Connection>>) -> MutexGuard<'_, Option<Connection>> {
    connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn run<T>(connection: &Option<Connection>, read: impl FnOnce(&Connection) -> Sql<T>) -> Result<T> {
    let Some(connection) = connection else { return Err(Error::Unavailable(CLOSED.into())) };
    read(connection).map_err(|fault| match fault.error {
        // A reader writes nothing: what the driver calls unwritable is unreadable here.
        Error::CannotWrite(text) => Error::Unavailable(text),
        error => error,
    })
}
