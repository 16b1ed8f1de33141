//! `demo_ask`: a tool that asks its client for input, held or parked. Shows what a user sees of a question and of a
//! restart while it is open. Keeps nothing.

use serde::Deserialize;
use serde_json::json;

use super::{Job, Outcome, answer, quoted, refused};
use crate::engine::asking::{AskError, Question, Told};
use crate::store::Payload;

/// Questions in a row at most.
const TIMES_MAX: u32 = 20;

#[derive(Deserialize)]
struct Arguments {
    question: String,
    #[serde(default)]
    parked: bool,
    #[serde(default = "once")]
    times: u32,
}

fn once() -> u32 {
    1
}

/// What an earlier round left behind.
#[derive(Default, Deserialize, serde::Serialize)]
struct Earlier {
    answers: Vec<String>,
}

/// Asks, and answers what it was told.
pub(super) async fn ask(job: &Job) -> Outcome {
    let arguments: Arguments = match serde_json::from_str(&job.arguments) {
        Ok(arguments) => arguments,
        Err(_) => return refused("demo_ask needs a text `question`."),
    };
    if !(1..=TIMES_MAX).contains(&arguments.times) {
        return refused("demo_ask asks 1 to 20 times.");
    }
    if arguments.parked { parked(job, &arguments) } else { held(job, &arguments).await }
}

/// Waits for each answer where it is.
async fn held(job: &Job, arguments: &Arguments) -> Outcome {
    let mut answers = Vec::new();
    for number in 1..=arguments.times {
        match job.asks.ask(question(arguments, number)).await {
            Ok(Told::Result(told)) => answers.push(said(&told)),
            Ok(Told::Error(error)) => answers.push(format!("an error: {error}")),
            Err(error @ AskError::NotCapable(_)) => return refused(&format!("demo_ask cannot ask: {error}.")),
            Err(error) => return Outcome::lost("cancelled", error.to_string()),
        }
    }
    done(job, &answers)
}

/// Ends with each question, and goes on with its answer.
fn parked(job: &Job, arguments: &Arguments) -> Outcome {
    let mut earlier = Earlier::default();
    if let Some(continuation) = &job.continuation {
        let state = continuation.state.as_deref().unwrap_or("null");
        earlier = serde_json::from_str(state).unwrap_or_default();
        earlier.answers.extend(continuation.responses.iter().map(|(_, response)| said(response)));
    }
    let number = earlier.answers.len() as u32 + 1;
    if number > arguments.times {
        return done(job, &earlier.answers);
    }
    let state: Payload = json!(earlier).to_string().into();
    Outcome::InputRequired { questions: vec![question(arguments, number)], state: Some(state) }
}

fn question(arguments: &Arguments, number: u32) -> Question {
    let text = match arguments.times {
        1 => arguments.question.clone(),
        times => format!("{} ({number} of {times})", arguments.question),
    };
    let text = quoted(&text);
    let params = format!(
        r#"{{"message":{text},"requestedSchema":{{"type":"object","properties":{{"answer":{{"type":"string","title":"Answer"}}}},"required":["answer"]}}}}"#
    );
    Question { key: "answer".into(), method: "elicitation/create".into(), params: params.into() }
}

fn said(result: &str) -> String {
    #[derive(Deserialize)]
    struct Said {
        action: String,
        content: Option<serde_json::Value>,
    }
    match serde_json::from_str::<Said>(result) {
        Ok(Said { action, content: Some(content) }) if action == "accept" => match content.get("answer") {
            Some(serde_json::Value::String(text)) => text.clone(),
            _ => content.to_string(),
        },
        Ok(Said { action, .. }) => format!("({action})"),
        Err(_) => "(no answer)".to_owned(),
    }
}

fn done(job: &Job, answers: &[String]) -> Outcome {
    answer(&format!("The answer is: {}. Attempt {}.", answers.join(", "), job.attempt))
}
