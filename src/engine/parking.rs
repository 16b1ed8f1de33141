//! A claim of a remote worker while it waits in this process: room for calls, and the calls it was given. Knows no
//! store: what is given here is leased already.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::model::execution::Head;
use crate::model::id::ProcessId;
use crate::store::{LeaseRef, Payload};

/// A leased execution on its way to a remote worker.
#[derive(Debug)]
pub struct Leased {
    /// The row, leased.
    pub head: Arc<Head>,
    /// The call's arguments.
    pub arguments: Payload,
    /// What else of the call goes to the tool.
    pub meta: Option<Payload>,
}

impl Leased {
    /// The lease.
    pub fn lease(&self) -> LeaseRef {
        LeaseRef { id: self.head.id(), fencing_token: self.head.fencing_token }
    }
}

/// A waiting claim.
#[derive(Debug)]
pub struct Parked {
    worker: (String, ProcessId),
    state: Mutex<State>,
    told: Notify,
}

#[derive(Debug)]
struct State {
    /// Calls it still has room for.
    room: usize,
    /// Takes calls that have just arrived. Until then, and once it was given one, it takes what it finds itself.
    admits: bool,
    /// Places that were taken and not yet given a call or given up.
    open: usize,
    given: Vec<Leased>,
    /// It was given a call.
    served: bool,
    /// Whoever claimed is not there any more.
    gone: bool,
}

impl Parked {
    /// A claim of the worker of this name and id with room for so many calls.
    pub(super) fn new(worker: (String, ProcessId), room: usize) -> Arc<Parked> {
        let state = State { room, admits: false, open: 0, given: Vec::new(), served: false, gone: false };
        Arc::new(Parked { worker, state: Mutex::new(state), told: Notify::new() })
    }

    /// A place for a call that has just arrived.
    pub(super) fn admit(self: &Arc<Self>) -> Option<Place> {
        let mut state = self.state();
        let admits = state.admits;
        admits.then(|| self.take(&mut state)).flatten()
    }

    /// A place for a call that the claim itself found in the store.
    pub(super) fn reserve(self: &Arc<Self>) -> Option<Place> {
        self.take(&mut self.state())
    }

    fn take(self: &Arc<Self>, state: &mut State) -> Option<Place> {
        if state.room == 0 || state.gone {
            return None;
        }
        state.room -= 1;
        state.open += 1;
        Some(Place { parked: self.clone(), is_open: true })
    }

    /// Calls it still has room for; none once whoever claimed is gone.
    pub(super) fn room(&self) -> usize {
        let state = self.state();
        if state.gone { 0 } else { state.room }
    }

    /// True when it may look for work.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state();
        state.room > 0 && !state.gone
    }

    /// From here on it takes calls that have just arrived, or does so no more.
    pub(super) fn set_admits(&self, admits: bool) {
        self.state().admits = admits;
    }

    #[cfg(test)]
    pub(super) fn admits(&self) -> bool {
        self.state().admits
    }

    /// True once it was given a call.
    pub(super) fn was_given(&self) -> bool {
        self.state().served
    }

    /// What it was given, once nobody holds a place any more.
    pub(super) fn settled(&self) -> Option<Vec<Leased>> {
        let mut state = self.state();
        (state.open == 0).then(|| std::mem::take(&mut state.given))
    }

    /// Whoever claimed is gone: nothing more is taken. Returns what was given and reached nobody.
    pub(super) fn leave(&self) -> Vec<Leased> {
        let mut state = self.state();
        state.gone = true;
        std::mem::take(&mut state.given)
    }

    /// Lets the claim look again.
    pub(super) fn wake(&self) {
        self.told.notify_one();
    }

    /// Resolves when there is something to look at.
    pub(super) fn told(&self) -> Notified<'_> {
        self.told.notified()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to give a claim one call; given up when dropped.
#[derive(Debug)]
pub struct Place {
    parked: Arc<Parked>,
    is_open: bool,
}

impl Place {
    /// Who gets the lease: its name, and the id that stands for its process.
    pub(super) fn worker(&self) -> (&String, ProcessId) {
        let (name, id) = &self.parked.worker;
        (name, *id)
    }

    /// Gives the call. Errors: whoever claimed is gone; the call comes back.
    pub(super) fn give(mut self, leased: Leased) -> Result<(), Leased> {
        self.is_open = false;
        let mut state = self.parked.state();
        state.open -= 1;
        let fate = if state.gone {
            Err(leased)
        } else {
            state.given.push(leased);
            state.served = true;
            // An answer that has a call waits for no further ones.
            state.admits = false;
            Ok(())
        };
        drop(state);
        self.parked.wake();
        fate
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_open {
            let mut state = self.parked.state();
            state.open -= 1;
            state.room += 1;
            drop(state);
            self.parked.wake();
        }
    }
}
