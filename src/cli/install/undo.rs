//! From an entry behind `wrap` back to what it was: its very text where nothing of it was changed since, else the same steps
//! backwards, so that what was changed since stays. Works on one entry's text.

use super::document::{Kind, Node};
use super::edit::{self, Edits, Hand};
use super::record::Change;
use crate::model::json::quoted;

/// The changes that take `wrap` away from an entry. Errors: why they can not be made.
pub fn unwrap(text: &str, node: &Node, change: Option<&Change>) -> Result<Edits, String> {
    let mut edits = Edits::default();
    let installed = change.and_then(|change| super::document::parse(&change.installed).ok().flatten());
    if let Some((change, installed)) = change.zip(installed)
        && installed == *node
    {
        edits.replace(node.span.clone(), change.original.clone());
        return Ok(edits);
    }
    let original = change.and_then(|change| super::document::parse(&change.original).ok().flatten());
    let original = original.as_ref().zip(change.map(|change| change.original.as_str()));
    let args = node.member("args").ok_or("its args are gone")?;
    let words: Vec<&str> = args.value.items().iter().filter_map(Node::text).collect();
    if words.first() != Some(&"wrap") || words.len() != args.value.items().len() {
        return Err("its args are not those of `wrap`".to_owned());
    }
    let end_of_flags = words.iter().position(|word| *word == "--");
    match end_of_flags {
        Some(at) if at + 1 < words.len() => stdio(&mut edits, text, (node, &words, at + 1), (original, change)),
        Some(_) => return Err("there is no command behind its `--`".to_owned()),
        None => http(&mut edits, text, (node, &words), original)?,
    }
    Ok(edits)
}

/// An entry as it was: its tree, and its text.
type Original<'a> = Option<(&'a Node, &'a str)>;

fn stdio(
    edits: &mut Edits,
    text: &str,
    (node, words, at): (&Node, &[&str], usize),
    (original, change): (Original<'_>, Option<&Change>),
) {
    let command = words[at];
    // The command was written in another way before, and is the same one still.
    let as_written = original.zip(change).filter(|(_, change)| change.command.as_deref() == Some(command));
    let written = as_written.and_then(|((node, text), _)| Some(text[node.get("command")?.span.clone()].to_owned()));
    if let Some(value) = node.get("command") {
        edits.replace(value.span.clone(), written.unwrap_or_else(|| quoted(command)));
    }
    let had_args = original.is_none_or(|(original, _)| original.get("args").is_some());
    match (node.member("args"), at + 1 < words.len() || had_args) {
        (Some(args), true) => edit::remove_first(edits, &args.value, at + 1),
        (Some(_), false) => edit::remove_member(edits, text, node, "args"),
        (None, _) => {}
    }
    let Some(env) = node.get("env") else { return };
    let before = original.and_then(|(original, _)| original.get("env"));
    let added = change.map_or(&[][..], |change| &change.variables);
    let ours: Vec<&str> = env
        .members()
        .iter()
        .filter(|member| before.is_none_or(|before| before.get(&member.name).is_none()))
        .filter(|member| added.iter().any(|(name, value)| *name == member.name && member.value.text() == Some(value)))
        .map(|member| member.name.as_str())
        .collect();
    match ours.len() == env.members().len() && before.is_none() && original.is_some() {
        true => edit::remove_member(edits, text, node, "env"),
        false => ours.iter().for_each(|name| edit::remove_member(edits, text, env, name)),
    }
}

fn http(edits: &mut Edits, text: &str, (node, words): (&Node, &[&str]), original: Original<'_>) -> Result<(), String> {
    let value = |flag: &str| {
        let at = words.iter().position(|word| *word == flag)?;
        words.get(at + 1).copied()
    };
    let env = node.get("env");
    let from_env = |name: &str| env.and_then(|env| env.get(name)).map(|node| text[node.span.clone()].to_owned());
    let url = match (value("--url"), value("--url-env")) {
        (Some(url), _) => quoted(url),
        (None, Some(variable)) => from_env(variable).ok_or("the variable with its url is gone")?,
        (None, None) => return Err("it names no command and no url".to_owned()),
    };
    let mut headers = edit::Pairs::new();
    for at in words.iter().enumerate().filter(|(_, word)| **word == "--header-env").map(|(at, _)| at) {
        let Some((header, variable)) = words.get(at + 1).and_then(|pair| pair.split_once('=')) else { continue };
        headers.push((header.to_owned(), from_env(variable).ok_or("the variable with one of its headers is gone")?));
    }
    let hand = Hand::of(text, node);
    let colon = hand.colon;
    let command = node.member("command").ok_or("its command is gone")?;
    edits.replace(command.key.start..command.value.span.end, format!("\"url\"{colon}{url}"));
    edit::remove_member(edits, text, node, "args");
    if let Some(env) = node.member("env") {
        match headers.is_empty() {
            true => edit::remove_member(edits, text, node, "env"),
            false => {
                let object = edit::object(&headers, &hand);
                edits.replace(env.key.start..env.value.span.end, format!("\"headers\"{colon}{object}"));
            }
        }
    }
    for name in ["type", "transport"] {
        let before = original.and_then(|(node, text)| Some(text[node.get(name)?.span.clone()].to_owned()));
        if let Some(kind) = node.get(name).filter(|kind| kind.kind == Kind::String("stdio".to_owned())) {
            edits.replace(kind.span.clone(), before.unwrap_or_else(|| "\"http\"".to_owned()));
        }
    }
    Ok(())
}
