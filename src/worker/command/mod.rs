//! The executor of commands: one program per tool, started for each attempt with the arguments as JSON on its stdin. Its
//! stdout is the answer (`answer`), its process tree ends with the attempt (`process`). No shell, no retries.

mod answer;
mod definition;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;

pub use definition::{Definition, DefinitionError};

use super::executor::{Executor, Job, Outcome, Report};
use super::upstream::{Secret, StdioSettings, guard};
use crate::model::json;
use crate::model::trace::TraceContext;
use process::{Output, Program, Unstartable};

/// A command as a tool. Everything that depends on where the configuration is has been resolved.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub program: OsString,
    /// Its arguments, as they are: there is no shell.
    pub args: Vec<OsString>,
    /// Added to (and winning over) what is inherited, see [`INHERITED`].
    pub env: BTreeMap<String, Secret>,
    /// Where it starts; absent: where this process started.
    pub cwd: Option<PathBuf>,
    /// True when its tool object has an `outputSchema`: a JSON object on stdout is structured content then.
    pub has_output_schema: bool,
    /// The argument that is filled with the effect key when the caller leaves it out.
    pub key_argument: Option<String>,
    /// The guard's command line up to the `--`. Empty: no guard, so that the tree outlives a kill -9 of this process.
    pub guard: Vec<OsString>,
    /// Bounds.
    pub limits: Limits,
}

/// Variables of our own environment that a command inherits, `LC_*` besides; all others stay with us.
pub const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR", "SHELL"];

/// Bounds on one run of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A command that writes more to stdout is stopped.
    pub stdout_bytes: usize,
    /// So much of the end of stderr is kept.
    pub stderr_bytes: usize,
    /// How long SIGTERM may take before SIGKILL follows.
    pub kill_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { stdout_bytes: 16 << 20, stderr_bytes: 8 << 10, kill_grace: Duration::from_secs(1) }
    }
}

impl CommandTool {
    /// A command under the guard of this program, with the default limits.
    pub fn new(program: impl Into<OsString>, args: Vec<OsString>) -> Self {
        // One guard for all that we start.
        let StdioSettings { program, args, guard, .. } = StdioSettings::new(program, args);
        Self {
            program,
            args,
            env: BTreeMap::new(),
            cwd: None,
            has_output_schema: false,
            key_argument: None,
            guard,
            limits: Limits::default(),
        }
    }

    /// What the tool learns about the attempt, besides its arguments.
    fn environment(&self, job: &Job) -> Vec<(OsString, OsString)> {
        let inherited = std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_")));
        let configured = self.env.iter().map(|(name, value)| (name.into(), value.expose().into()));
        let attempt = [
            ("DURABLE_MCP_IDEMPOTENCY_KEY", job.effect_key.to_string()),
            ("DURABLE_MCP_FENCING_TOKEN", job.fencing_token.to_string()),
            ("DURABLE_MCP_EXECUTION_ID", job.id.to_string()),
            ("DURABLE_MCP_ATTEMPT", job.attempt.to_string()),
        ];
        let attempt = attempt.into_iter().map(|(name, value)| (name.into(), value.into()));
        // The names by which tracing libraries look for a context in the environment.
        let trace = job.meta.as_deref().map(TraceContext::in_meta).unwrap_or_default();
        let trace = trace.parts().map(|(name, value)| (name.to_uppercase().into(), value.into())).collect::<Vec<_>>();
        inherited.chain(configured).chain(attempt).chain(trace).collect()
    }

    fn input(&self, job: &Job) -> String {
        match &self.key_argument {
            Some(name) => {
                let key = json::quoted(&job.effect_key.to_string());
                json::with_member(&job.arguments, name, &key).into_owned()
            }
            None => job.arguments.to_string(),
        }
    }
}

#[async_trait]
impl Executor for CommandTool {
    async fn run(&self, job: Job, _report: Report<'_>) -> Outcome {
        if job.cancel.is_cancelled() {
            return Outcome::not_started("cancelled", "the call was cancelled before the command was started");
        }
        let program = Program { tool: self, env: self.environment(&job) };
        let running = match program.start(self.input(&job), job.cancel.child_token()) {
            Ok(running) => running,
            Err(Unstartable { code, message }) => return Outcome::not_started(code, message),
        };
        match running.output().await {
            Some(output) => answer::outcome(self, &output),
            None => Outcome::lost("command_lost", "the command's end was not seen"),
        }
    }
}

impl Output {
    /// What it wrote to stderr last, for people.
    fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim_end().to_owned()
    }
}
