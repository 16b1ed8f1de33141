//! What the engine refuses a worker, as an answer over HTTP. One mapping.

use axum::http::StatusCode;

use crate::engine::remote::Refused;
use crate::http::refusal::Refusal;

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        let (status, next) = match &refused {
            Refused::WorkerUnknown => (StatusCode::NOT_FOUND, "register, then go on"),
            Refused::WorkerForeign => {
                (StatusCode::FORBIDDEN, "make a fresh random id, and register with the credential that is used then")
            }
            Refused::LeaseForeign => (StatusCode::FORBIDDEN, "send the token of a job that this worker claimed"),
            Refused::LeaseStale(_) => (StatusCode::CONFLICT, "drop the job: another worker has it"),
            Refused::LeaseLost(_) => (StatusCode::CONFLICT, "stop; a result that is there may be sent to complete"),
            Refused::ExecutionEnded(_) => (StatusCode::CONFLICT, "drop the job: nothing changes any more"),
            Refused::ToolNameTaken(_) => (StatusCode::CONFLICT, "give the tool another name"),
            Refused::TooManyWorkers(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "end workers that are not needed, or raise workers.max_registered")
            }
            Refused::TooManySteps(_) => (StatusCode::CONFLICT, "use fewer steps, or raise workers.max_steps"),
            Refused::Draining => (StatusCode::SERVICE_UNAVAILABLE, "try another server, or this one later"),
            Refused::Redacted => {
                (StatusCode::UNPROCESSABLE_ENTITY, "keep secrets out of steps, or narrow the rules in [redaction]")
            }
            Refused::Engine(error) => return engine(error),
        };
        Refusal::new(status, refused.code(), refused.to_string(), next)
    }
}

fn engine(error: &crate::engine::Error) -> Refusal {
    match error {
        crate::engine::Error::Store(error) => Refusal::store(error),
        error => {
            tracing::error!(code = error.code(), %error, "a worker's request could not be carried out");
            Refusal::internal("worker")
        }
    }
}
