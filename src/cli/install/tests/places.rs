//! Where configurations are looked for, and how a file is replaced.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::client::{Client, Scope, Surroundings, System};
use super::super::document::Document;
use super::super::file::Original;
use super::super::program;
use super::target;

fn at(system: System, env: &[(&str, &str)]) -> Surroundings {
    Surroundings {
        system,
        home: PathBuf::from("/h"),
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>(),
        folder: PathBuf::from("/nowhere/project"),
    }
}

#[track_caller]
fn first(client: Client, around: &Surroundings, path: &str) {
    assert_eq!(client.places(around)[0].path, Path::new(path));
}

#[test]
fn each_client_is_looked_for_where_its_documentation_says() {
    let (linux, mac, windows) =
        (at(System::Linux, &[]), at(System::MacOs, &[]), at(System::Windows, &[("APPDATA", "/h/AppData/Roaming")]));
    first(Client::ClaudeDesktop, &linux, "/h/.config/Claude/claude_desktop_config.json");
    first(Client::ClaudeDesktop, &mac, "/h/Library/Application Support/Claude/claude_desktop_config.json");
    first(Client::ClaudeDesktop, &windows, "/h/AppData/Roaming/Claude/claude_desktop_config.json");
    first(
        Client::ClaudeDesktop,
        &at(System::Linux, &[("XDG_CONFIG_HOME", "/x")]),
        "/x/Claude/claude_desktop_config.json",
    );
    first(Client::ClaudeCode, &mac, "/h/.claude.json");
    first(Client::ClaudeCode, &at(System::Linux, &[("CLAUDE_CONFIG_DIR", "/c")]), "/c/.claude.json");
    first(Client::Cursor, &windows, "/h/.cursor/mcp.json");
    first(Client::Vscode, &linux, "/h/.config/Code/User/mcp.json");
    first(Client::Vscode, &mac, "/h/Library/Application Support/Code/User/mcp.json");
    first(Client::Vscode, &windows, "/h/AppData/Roaming/Code/User/mcp.json");
    for (client, file) in
        [(Client::ClaudeCode, ".mcp.json"), (Client::Cursor, ".cursor/mcp.json"), (Client::Vscode, ".vscode/mcp.json")]
    {
        let places = client.places(&linux);
        let project = places.last().unwrap();
        assert_eq!((project.path.clone(), project.scope), (Path::new("/nowhere/project").join(file), Scope::Project));
    }
}

#[test]
fn a_projects_file_is_found_from_below_and_profiles_beside_the_users_own() {
    let home = tempfile::tempdir().unwrap();
    let below = home.path().join("p/src/deep");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(home.path().join("p/.mcp.json"), "{}").unwrap();
    let profile = home.path().join(".config/Code/User/profiles/one");
    std::fs::create_dir_all(&profile).unwrap();
    std::fs::write(profile.join("mcp.json"), "{}").unwrap();
    let around = Surroundings { folder: below, home: home.path().into(), ..at(System::Linux, &[]) };
    assert_eq!(Client::ClaudeCode.places(&around).last().unwrap().path, home.path().join("p/.mcp.json"));
    assert!(Client::Vscode.places(&around).iter().any(|place| place.path == profile.join("mcp.json")));
}

#[test]
fn a_file_is_replaced_whole_with_its_mode_through_links_and_not_over_somebody_elses_change() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let original = Original::read(&link).unwrap();
    let copy = original.back_up().unwrap().unwrap();
    let second = original.back_up().unwrap().unwrap();
    assert_eq!(copy.file_name().unwrap(), "real.json.durable-mcp-backup-1");
    assert_eq!(second.file_name().unwrap(), "real.json.durable-mcp-backup-2");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&copy), 0o600);
    original.replace(b"{ }").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"{ }");
    assert_eq!(mode(&file), 0o640);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    // It is not what was read any more.
    let failure = original.replace(b"{  }").unwrap_err();
    assert!(failure.error.contains("changed by somebody else"), "{failure}");
    assert_eq!(std::fs::read(&file).unwrap(), b"{ }");
    let failure = original.remove().unwrap_err();
    assert!(failure.error.contains("changed by somebody else") && file.exists(), "{failure}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no draft is left behind");
    assert!(Original::read(folder.path()).unwrap_err().error.contains("no file"));
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, place) in
        [("{\n  \"a\": }", "line 2, column 8"), ("{'a': 1}", "line 1"), ("{a: 1}", "line 1"), ("{} {}", "line 1")]
    {
        let why = Document::read(text.as_bytes()).unwrap_err();
        assert!(why.contains("not JSON") && why.contains(place), "{text}: {why}");
    }
    assert!(Document::read(b"\xff\xfe{").unwrap_err().contains("UTF-8"));
    assert!(Document::read(b"// only a comment\n").unwrap().root.is_none());
    for text in [
        "[]",
        r#"{"mcpServers": []}"#,
        r#"{"mcpServers": {}, "mcpServers": {}}"#,
        r#"{"mcpServers": {"a": 1, "a": 2}}"#,
    ] {
        assert!(target(text).entries(Client::Cursor).is_err(), "{text}");
    }
}

#[test]
fn a_path_is_kept_without_what_does_not_last() {
    assert_eq!(program::lasting("/a:/b:relative::/a:~/c"), "/a:/b");
    let folder = tempfile::tempdir().unwrap();
    let (real, shell) = (folder.path().join("node-v22"), folder.path().join("fnm_multishells"));
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&shell).unwrap();
    std::os::unix::fs::symlink(&real, shell.join("1_2")).unwrap();
    let real = std::fs::canonicalize(&real).unwrap();
    assert_eq!(program::lasting(shell.join("1_2").to_str().unwrap()), real.to_str().unwrap());
}

#[test]
fn a_program_gets_the_path_that_it_needs_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (bin, least) = (folder.path().join("bin"), folder.path().join("least"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::create_dir(&least).unwrap();
    let make = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let npx = make(bin.join("npx"), "#!/usr/bin/env -S node\n");
    make(bin.join("node"), "");
    let sh = make(least.join("sh"), "");
    let (bin, least) = (bin.to_str().unwrap(), least.to_str().unwrap());
    let both = format!("{bin}:{least}");
    let path_for = |command: &Path, args: &[&str], path: &str| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        program::path_for(command, &args, (path, least))
    };
    assert_eq!(path_for(&npx, &[], &both), Some(both.clone()));
    assert_eq!(path_for(&sh, &["-c", "exec npx -y x"], &both), Some(both.clone()));
    assert_eq!(path_for(&sh, &["-c", "echo"], &both), None);
    assert_eq!(path_for(Path::new("/no/such/program"), &[], &both), None);
    // The shell that installs knows no node, but there is one beside the script.
    assert_eq!(path_for(&npx, &[], least), Some(both.clone()));
    assert_eq!(program::find("npx", &both), Some(npx));
    assert_eq!(program::find("npx", "relative"), None);
}
