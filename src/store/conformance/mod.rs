//! What every driver must do, as one list of functions. A driver's tests stamp the list once; a command can run it
//! against somebody's own database. Knows no driver: it sees the trait only, and time is what it says.

mod commands;
mod scene;
mod submissions;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use std::sync::Arc;

pub use self::scene::{Failure, Scene};
use super::{Result, Store};

/// Where a case runs: a database, and a way to open it. Each call stands for one more process on the same database.
#[async_trait]
pub trait Ground: Send + Sync {
    /// Opens the database.
    async fn open(&self) -> Result<Arc<dyn Store>>;

    /// Where the random numbers of a case start: the same seed makes the same ids.
    fn seed(&self) -> u64 {
        1
    }
}

/// One thing every driver must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// A sentence.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Ground) -> BoxFuture<'a, std::result::Result<(), Failure>>,
}

impl Case {
    /// Runs it on `ground`.
    pub async fn run(&self, ground: &dyn Ground) -> std::result::Result<(), Failure> {
        (self.run)(ground).await
    }
}

/// Hands the list of all cases, by theme, to a macro.
macro_rules! store_cases {
    ($use_list:ident) => {
        $use_list! {
            submissions: [
                a_new_call_is_stored_with_its_events_and_payloads,
                a_call_can_be_stored_already_leased,
                a_delayed_call_is_scheduled,
                the_same_key_and_arguments_find_the_same_execution,
                the_same_key_with_other_arguments_is_a_conflict,
                another_principals_key_is_a_conflict_without_its_id,
                a_key_is_found_by_its_scope,
                a_submission_repeated_by_its_operation_changes_nothing,
            ],
            commands: [
                a_lease_and_its_result_are_recorded,
                an_unknown_execution_answers_nothing,
                a_command_repeated_by_its_operation_answers_as_applied,
            ],
        }
    };
}

macro_rules! list_cases {
    ($($theme:ident: [$($case:ident,)*],)*) => {
        /// Every case.
        pub fn cases() -> Vec<Case> {
            vec![$($(Case {
                name: stringify!($case),
                run: |ground| Box::pin($theme::$case(ground)),
            },)*)*]
        }
    };
}

store_cases!(list_cases);
#[cfg(test)]
pub(crate) use store_cases;
