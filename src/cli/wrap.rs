//! `wrap`: from a command or address to the configuration of one server with a store of its own. Starts nothing.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::args::WrapArgs;
use super::failure::{Exit, Failure};
use super::stores;
use crate::config::settings::Config;
use crate::config::tools::Server;
use crate::config::{Loaded, Secret, Source, Text};
use crate::serve::{self, WrapOptions};

/// Words in the name of a variable that mark a secret: another account is another store.
const SECRET_WORDS: [&str; 9] =
    ["TOKEN", "KEY", "APIKEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "PAT"];

/// What the name of a store is made from.
pub struct Identity<'a> {
    /// A random text of this user.
    pub salt: &'a str,
    /// What is wrapped: the program and its arguments, or the address and its headers.
    pub words: Vec<String>,
    /// Where it runs.
    pub folder: String,
    /// The environment.
    pub env: Vec<(String, String)>,
}

/// The configuration with exactly the wrapped server, and the store of its name.
pub fn options(args: WrapArgs) -> Result<WrapOptions, Failure> {
    let args = with_variables(args, |name| std::env::var(name).ok())?;
    let mut loaded = args.configuration.load(|_| {})?;
    let (folder, env) = (here()?, own_environment());
    let words = words(&args)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => {
            let salt = salt(&loaded.data_dir).map_err(|error| unwritable(&loaded.data_dir, &error))?;
            let folder = folder.to_string_lossy().into_owned();
            store_name(&Identity { salt: &salt, words: words.clone(), folder, env: env.clone() })
        }
    };
    let server = server(&args, loaded.config.servers.get(&name), (&words, &folder, &env))?;
    only(&mut loaded.config, &name, server);
    use_own_store(&mut loaded, &name)?;
    Ok(WrapOptions { loaded })
}

/// Watches instead: passes everything through, and prints what DurableMCP would have done. Ends as the server ends.
pub async fn watch(args: WrapArgs) -> Result<Exit, Failure> {
    let mut loaded = args.configuration.load(|_| {})?;
    let (folder, env) = (here()?, own_environment());
    let words = words(&args)?;
    // Nothing is stored, so that the name only finds what the configuration says about the server.
    let name = args.name.clone().unwrap_or_else(|| readable(words.first().map_or("", String::as_str)));
    let server = server(&args, loaded.config.servers.get(&name), (&words, &folder, &env))?;
    only(&mut loaded.config, &name, server);
    let watched = serve::shadow(serve::ShadowOptions { loaded, report: args.shadow_report }).await?;
    eprint!("{}", watched.report.text());
    match watched.exit {
        0 => Ok(Exit::Ok),
        // Its own words are on stderr already.
        exit => Err(Failure { exit, error: String::new(), next: None }),
    }
}

fn here() -> Result<std::path::PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Failure, format!("the working directory is not there: {error}")))
}

/// What the client meant for the server.
fn own_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| !name.starts_with("DURABLE_MCP_"))
        .collect()
}

/// The address and headers that stand in variables, in their places. Errors: a variable is not set.
fn with_variables(mut args: WrapArgs, variable: impl Fn(&str) -> Option<String>) -> Result<WrapArgs, Failure> {
    let value = |name: &str| {
        let next = "set it in the environment that the client gives this server";
        variable(name).ok_or_else(|| Failure::usage(format!("the variable {name} is not set")).next(next))
    };
    if let Some(name) = args.url_env.take() {
        args.url = Some(value(&name)?);
    }
    for (header, name) in std::mem::take(&mut args.header_env) {
        args.header.push(format!("{header}: {}", value(&name)?));
    }
    Ok(args)
}

/// The program and its arguments, or the address and its headers, as text.
fn words(args: &WrapArgs) -> Result<Vec<String>, Failure> {
    if let Some(url) = &args.url {
        return Ok(std::iter::once(url).chain(&args.header).cloned().collect());
    }
    let text = |word: &std::ffi::OsString| word.to_str().map(str::to_owned);
    let words: Option<Vec<String>> = args.command.iter().map(text).collect();
    words.ok_or_else(|| Failure::usage("the command is not UTF-8 text"))
}

/// The server as it is to be run: what the configuration says about its name, and the command line's word on what it is.
fn server(
    args: &WrapArgs,
    configured: Option<&Server>,
    (words, folder, env): (&[String], &Path, &[(String, String)]),
) -> Result<Server, Failure> {
    let mut server = configured.cloned().unwrap_or_default();
    server.enabled = true;
    (server.command, server.url, server.args) = (None, None, Vec::new());
    if let Some(url) = &args.url {
        server.url = Some(Secret::from(url.clone()));
        for header in &args.header {
            let (name, value) = split_header(header)?;
            server.headers.insert(name, Secret::from(value));
        }
    } else {
        let (program, rest) = words.split_first().ok_or_else(|| Failure::usage("there is no command after --"))?;
        // A path is relative to where the user typed it.
        let program = match program.contains('/') {
            true => folder.join(program).to_string_lossy().into_owned(),
            false => program.clone(),
        };
        server.command = Some(Text::from(program));
        server.args = rest.iter().map(|word| Text::from(word.as_str())).collect();
        server.cwd = server.cwd.or_else(|| Some(Text::from(folder.to_string_lossy().into_owned())));
        // The client gave this process the environment that was meant for the server.
        for (name, value) in env {
            server.env.entry(name.clone()).or_insert_with(|| Secret::from(value.clone()));
        }
    }
    for (tool, argument) in &args.key_argument {
        server.tools.entry(tool.clone()).or_default().key_argument = Some(Text::from(argument.as_str()));
    }
    Ok(server)
}

fn split_header(text: &str) -> Result<(String, String), Failure> {
    let split = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    let good = |name: &str| axum::http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    match split.filter(|(name, value)| good(name) && axum::http::HeaderValue::from_str(value).is_ok()) {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        // The text may be a secret; it is not repeated.
        None => Err(Failure::usage("a --header is no header").next("write it as 'Name: value'")),
    }
}

fn only(config: &mut Config, name: &str, server: Server) {
    config.servers.clear();
    config.tools.clear();
    config.servers.insert(name.to_owned(), server);
}

/// A store that somebody chose stays; else the one of this name.
fn use_own_store(loaded: &mut Loaded, name: &str) -> Result<(), Failure> {
    if loaded.source(&["store", "url"]) != Source::Default {
        return Ok(());
    }
    let path = stores::wrap_path(&loaded.data_dir, name);
    let folder = path.parent().unwrap_or(&loaded.data_dir);
    stores::make_private_folder(folder).map_err(|error| unwritable(folder, &error))?;
    loaded.config.store.url = Some(Secret::from(format!("sqlite:{}", path.display())));
    Ok(())
}

fn unwritable(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Failure, format!("{}: can not be written: {error}", folder.display()))
        .next("set DURABLE_MCP_DATA_DIR to a folder that can be")
}

/// A readable start and a hash, so that the same server in the same place finds its store again and another account does
/// not. Salted, since arguments and variables may be secret and the name is not.
pub fn store_name(identity: &Identity<'_>) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    add(identity.salt);
    identity.words.iter().for_each(|word| add(word));
    add(&identity.folder);
    let mut secrets: Vec<_> = identity.env.iter().filter(|(name, value)| looks_secret(name, value)).collect();
    secrets.sort();
    for (name, value) in secrets {
        add(name);
        add(value);
    }
    let digest = hex::encode(&hash.finalize()[..6]);
    format!("{}-{digest}", readable(identity.words.first().map_or("", String::as_str)))
}

fn looks_secret(name: &str, value: &str) -> bool {
    let named = name.to_ascii_uppercase().split('_').any(|word| SECRET_WORDS.contains(&word));
    // An address with a password in it.
    named || value.split_once("://").is_some_and(|(_, rest)| rest.split('/').next().unwrap_or(rest).contains('@'))
}

/// The program's own name, or the host of an address.
fn readable(word: &str) -> String {
    let word = match word.split_once("://") {
        Some((_, rest)) => rest.split(['/', '?', '#']).next().unwrap_or(rest).rsplit('@').next().unwrap_or(rest),
        None => Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or(word),
    };
    let plain: String =
        word.chars().take(40).map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let plain = plain.trim_matches('-');
    if plain.is_empty() { "server".to_owned() } else { plain.to_owned() }
}

/// A random text of this user, made once.
fn salt(data_dir: &Path) -> io::Result<String> {
    use std::os::unix::fs::OpenOptionsExt;

    let path = data_dir.join("salt");
    if let Ok(text) = fs::read_to_string(&path)
        && !text.trim().is_empty()
    {
        return Ok(text.trim().to_owned());
    }
    stores::make_private_folder(data_dir)?;
    let draft = path.with_extension(std::process::id().to_string());
    let fresh = hex::encode([crate::engine::entropy(), crate::engine::entropy()].concat());
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(fresh.as_bytes())?;
    drop(file);
    // Two that start at once must agree: the first link stays.
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(fs::read_to_string(&path)?.trim().to_owned()),
    }
}
