//! From a file, the environment and flags to one checked configuration. Precedence: flag, `DURABLE_MCP_*`, file, default.
//! Reads files and nothing else; what the process environment is, the caller says.

use super::check::check;
use super::environment::{overlay, text};
use super::error::{Error, ErrorKind, Message, Problems};
use super::interpolate::{Sources, cause};
use super::node::{Node, Place, Value};
use super::settings::Config;
use super::{json_file, rules, schema, toml_file};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest configuration file.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// A configuration that passed every check, with where its values come from.
pub struct Loaded {
    pub config: Config,
    /// The file, if there was one.
    pub file: Option<PathBuf>,
    /// What relative paths are relative to: the folder of the file, else the working directory.
    pub base_dir: PathBuf,
    /// Where the program keeps what it writes by itself.
    pub data_dir: PathBuf,
    /// One line each; for stderr.
    pub warnings: Vec<String>,
    pub(super) tree: Node,
}

/// Where the effective value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Flag(String),
    Variable(String),
    File { line: usize },
    Default,
}

/// What the command line sets.
#[derive(Clone, Debug, Default)]
pub struct Overrides(Vec<Override>);

#[derive(Clone)]
struct Override {
    flag: String,
    path: String,
    value: String,
}

impl Overrides {
    /// Adds a flag, by the name that messages give it (`--listen`), the path of its setting and its text. An absent flag
    /// adds nothing.
    pub fn set(&mut self, flag: &str, path: &str, value: Option<impl Into<String>>) -> &mut Self {
        if let Some(value) = value {
            self.0.push(Override { flag: flag.to_owned(), path: path.to_owned(), value: value.into() });
        }
        self
    }
}

impl std::fmt::Debug for Override {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} → {}", self.flag, self.path)
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("file", &self.file).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Returns where the setting at this path (`server.listen`) comes from.
    pub fn source(&self, path: &[&str]) -> Source {
        self.tree.get(path).map_or(Source::Default, |node| Source::of(&node.place))
    }
}

impl Source {
    pub(super) fn of(place: &Place) -> Self {
        match place {
            Place::File { line, .. } => Self::File { line: *line },
            Place::Variable(name) => Self::Variable(name.clone()),
            Place::Flag(name) => Self::Flag(name.clone()),
            Place::Default => Self::Default,
        }
    }
}

/// Reads and checks a configuration.
///
/// `path` is a TOML file or another client's JSON file; without one everything is at its default. `env` is the process
/// environment. Errors: everything that is wrong, one line each, in the order of the file.
pub fn load(path: Option<&Path>, overrides: &Overrides, env: &BTreeMap<String, String>) -> Result<Loaded, Vec<Error>> {
    let name = path.map_or("configuration".to_owned(), |path| path.display().to_string());
    let mut problems = Problems::new(&name);
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let file = path.map(|path| here.join(path));
    let base_dir = file.as_deref().and_then(Path::parent).map_or_else(|| here.clone(), Path::to_path_buf);

    let mut root = match path.map(|path| read(path, &mut problems)) {
        Some(Some(root)) => root,
        None => Node::table(Place::Default),
        Some(None) => return Err(problems.into_errors()),
    };
    Sources { env, base_dir: &base_dir }.fill(&mut root, "", &mut problems);
    overlay(&mut root, env, &mut problems);
    for Override { flag, path, value } in &overrides.0 {
        root.set(&path.split('.').collect::<Vec<_>>(), text(value, Place::Flag(flag.clone())));
    }
    check(&mut root, schema::tree(), "", &mut problems);

    let places = rules::Places { base_dir: &base_dir, here: &here, env };
    let data_dir = rules::resolve(&mut root, &places, &mut problems);
    rules::check(&root, &mut problems);
    let config = if problems.has_errors() { None } else { decode(&root, &mut problems) };
    let Some(mut config) = config else { return Err(problems.into_errors()) };
    rules::read_schemas(&mut config, &root, &mut problems);
    if problems.has_errors() {
        return Err(problems.into_errors());
    }
    Ok(Loaded { config, file, base_dir, data_dir, warnings: problems.warnings, tree: root })
}

fn read(path: &Path, problems: &mut Problems) -> Option<Node> {
    let whole = Place::File { line: 0, column: 0 };
    let mut failed = |reason: String, next: &str| {
        problems.error(ErrorKind::File, &whole, Message::new(reason, next));
        None
    };
    match std::fs::metadata(path) {
        Err(error) => {
            return failed(format!("cannot be read ({})", cause(&error)), "check the path given with --config");
        }
        Ok(metadata) if metadata.is_dir() => return failed("is a folder".to_owned(), "name the file in it"),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return failed(format!("is larger than {FILE_BYTES_MAX} bytes"), "name a configuration file");
        }
        Ok(_) => {}
    }
    let content = match std::fs::read(path) {
        Ok(content) => content,
        Err(error) => return failed(format!("cannot be read ({})", cause(&error)), "check its permissions"),
    };
    let Ok(content) = String::from_utf8(content) else {
        return failed("is not UTF-8 text".to_owned(), "save it as UTF-8");
    };
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    let named_json = path.extension().is_some_and(|end| end == "json" || end == "jsonc");
    let root = if named_json || json_file::is_json(content) {
        json_file::read(content, &server_keys(), problems)
    } else {
        toml_file::read(content, problems)
    };
    // After a syntax error the rest of the tree says nothing true.
    (!problems.has(ErrorKind::Syntax)).then_some(root)
}

fn server_keys() -> Vec<String> {
    let server = schema::tree().pointer("/properties/servers/additionalProperties");
    server.map(|server| schema::properties(server).map(|(key, _)| key.clone()).collect()).unwrap_or_default()
}

fn decode(root: &Node, problems: &mut Problems) -> Option<Config> {
    match Config::deserialize(root) {
        Ok(config) => Some(config),
        Err(_) => {
            // The checks and the structs are made from each other, so this is a fault of ours. The text of the error may
            // quote a secret and is not repeated.
            let whole = Place::File { line: 0, column: 0 };
            let message = Message::new("passed the checks but cannot be used", "please report this as a fault");
            problems.error(ErrorKind::Value, &whole, message);
            None
        }
    }
}

/// The text of a value at a path, if it is one.
pub(super) fn text_at<'n>(root: &'n Node, path: &[&str]) -> Option<&'n str> {
    root.get(path).and_then(Node::text)
}

/// A default that depends on the machine, so that `config show` shows it.
pub(super) fn set_default(root: &mut Node, path: &[&str], value: String) {
    root.set(path, Node::new(Value::String(value), Place::Default));
}
