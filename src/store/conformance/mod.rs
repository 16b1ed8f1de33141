//! What every driver must do, as one list of functions. A driver's tests stamp the list once; a command can run it
//! against somebody's own database. Knows no driver: it sees the trait only, and time is what it says.

mod commands;
mod inputs;
mod leasing;
mod listings;
mod observing;
mod payloads;
mod repeats;
mod retention;
mod scene;
mod series;
mod sessions;
mod storms;
#[cfg(test)]
pub(crate) mod story;
mod submissions;
mod tasks;
mod workers;

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
            repeats: [
                a_key_is_free_again_after_its_time,
                a_key_lives_while_its_execution_runs_or_is_unknown,
                an_ordered_retry_takes_over_the_key,
                an_unkeyed_repeat_takes_the_call_nobody_waits_for,
                an_undelivered_end_is_taken_within_the_window,
                a_delivered_end_is_taken_by_nobody,
                a_read_only_call_is_taken_after_its_end_only_with_a_handle,
                coalescing_attaches_to_a_call_that_is_waited_for,
                a_waited_call_is_told_when_asked,
                twins_are_equal_in_everything_that_tells_callers_apart,
                a_process_takes_back_only_its_own_waiting,
                a_dead_process_waits_for_nobody,
            ],
            commands: [
                a_lease_and_its_result_are_recorded,
                an_unknown_execution_answers_nothing,
                a_command_repeated_by_its_operation_answers_as_applied,
                a_repeated_command_is_known_after_a_reopening,
                a_stale_token_changes_nothing_and_leaves_a_note,
                notes_are_capped,
                a_lost_attempt_is_unknown_and_a_late_result_completes_it,
                an_error_that_ends_the_call_is_kept_with_its_payload,
                an_error_that_is_retried_keeps_no_payload,
                input_rounds_keep_or_give_back_the_lease,
                cancelling_says_whether_the_call_may_have_run,
                a_person_decides_about_an_unknown,
            ],
            leasing: [
                heartbeats_extend_many_leases_and_make_no_event,
                candidates_come_oldest_first_from_the_upstreams_asked_for,
                a_bound_execution_is_a_candidate_of_its_process_only,
                what_is_due_is_found_and_the_next_time_is_told,
                a_lease_ends_the_time_in_the_queue,
                a_dead_process_is_found_settled_and_forgotten,
                another_process_sees_what_one_wrote,
                a_change_by_another_process_wakes_who_waits_for_it,
            ],
            payloads: [
                payloads_keep_every_byte,
                a_large_payload_comes_back_in_one_piece,
            ],
            retention: [
                each_slice_goes_by_its_own_time,
                payloads_go_before_the_history,
                a_living_execution_and_an_unknown_one_are_kept,
                an_execution_is_kept_while_its_key_lives,
                a_key_taken_over_outlives_its_first_execution,
            ],
            listings: [
                pages_are_newest_first_and_meet_without_gaps,
                filters_hold_all_at_once,
                executions_are_found_by_key_time_attempts_and_error,
                a_recovered_execution_lost_an_attempt_and_completed,
                what_may_have_new_events_is_found,
                totals_count_every_state,
                tokens_are_added_listed_and_revoked_once,
                the_last_picture_of_an_upstream_is_kept,
                everything_is_there_after_a_reopening,
            ],
            series: [
                what_stands_is_told_of_those_one_asks_for,
                logs_come_whole_and_in_the_order_they_were_asked_for,
                minutes_are_kept_replaced_and_forgotten,
                what_rows_tell_of_a_span_is_what_the_logs_say,
            ],
            workers: [
                a_worker_registers_again_under_its_first_key,
                workers_are_read_again_only_when_something_changed,
                a_silent_remote_worker_is_dead_and_remembered_for_a_day,
                a_worker_that_left_is_dead_while_it_holds_leases,
                a_step_is_stored_once_by_whoever_holds_the_lease,
                the_newest_checkpoint_is_kept_and_goes_with_the_payloads,
            ],
            inputs: [
                a_question_is_stored_with_its_wait_and_answered_once,
                a_question_needs_the_lease,
                many_executions_ask_at_once_and_each_is_answered,
                a_question_of_a_lost_attempt_keeps_its_answer_for_the_next,
                a_parked_round_gives_its_lease_up_and_keeps_its_state,
                questions_of_what_has_ended_are_withdrawn_and_go_with_the_payloads,
                sealing_keys_rotate_and_the_one_before_is_kept,
            ],
            sessions: [
                a_session_comes_back_whole_in_another_process,
                a_closed_session_is_closed_for_everybody_and_changes_no_more,
                a_principal_has_at_most_so_many_sessions,
                sessions_are_listed_by_owner_and_page,
                a_stream_keeps_its_request_and_numbers_its_messages,
                expired_sessions_go_unless_a_call_of_theirs_runs,
            ],
            tasks: [
                a_task_is_kept_with_its_time,
                a_task_asked_for_again_lives_longer_and_one_that_is_over_starts_anew,
                the_end_that_was_shown_first_is_kept,
                an_end_that_has_moved_on_is_not_kept,
                tasks_are_listed_by_owner_newest_first,
                tasks_that_are_over_are_found_and_forgotten,
                a_task_goes_with_its_execution,
            ],
            observing: [
                what_is_committed_is_told_once_in_its_order,
            ],
            storms: [
                sixty_four_calls_with_one_key_are_one_execution,
                many_workers_get_one_lease_and_one_result,
                random_commands_of_two_processes_leave_every_row_the_fold_of_its_events,
                a_batch_decides_on_what_it_wrote_itself,
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
