//! The clients that are known: where each keeps its configuration, under which key, and what it starts a server with. Facts
//! of their documentation as of late 2026, as data; opens no configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Client {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
}

/// An operating system, as far as clients differ on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux and what is like it.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// Whose configuration a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// This user's, in every project.
    User,
    /// That of the project of the working folder; often shared with others through version control.
    Project,
}

/// What decides where a client keeps things.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The system.
    pub system: System,
    /// The user's folder.
    pub home: PathBuf,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The working folder.
    pub folder: PathBuf,
}

/// Where a configuration is, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Whose it is.
    pub scope: Scope,
}

impl System {
    /// The one that this program was built for.
    pub fn here() -> System {
        match std::env::consts::OS {
            "macos" => System::MacOs,
            "windows" => System::Windows,
            _ => System::Linux,
        }
    }
}

impl Surroundings {
    fn var(&self, name: &str) -> Option<PathBuf> {
        self.env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// Where desktop programs keep their settings.
    fn settings(&self) -> PathBuf {
        match self.system {
            System::Linux => self.var("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config")),
            System::MacOs => self.home.join("Library/Application Support"),
            System::Windows => self.var("APPDATA").unwrap_or_else(|| self.home.join("AppData/Roaming")),
        }
    }

    /// The nearest file of this name from the working folder upwards, else where it would be in the working folder. What is
    /// the user's own is no project's, even from within the user's folder.
    fn in_project(&self, file: &str, user: &[Place]) -> Option<Place> {
        let path = |folder: &Path| folder.join(file);
        let is_own = |path: &Path| user.iter().any(|place| place.path == path);
        let found = self.folder.ancestors().map(path).find(|path| path.is_file() && !is_own(path));
        let path = found.unwrap_or_else(|| path(&self.folder));
        (!is_own(&path)).then_some(Place { path, scope: Scope::Project })
    }
}

impl Client {
    /// As people write it.
    pub fn title(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "Claude Desktop",
            Client::ClaudeCode => "Claude Code",
            Client::Cursor => "Cursor",
            Client::Vscode => "VS Code",
        }
    }

    /// As the command line and the records write it.
    pub fn name(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "claude-desktop",
            Client::ClaudeCode => "claude-code",
            Client::Cursor => "cursor",
            Client::Vscode => "vscode",
        }
    }

    /// The member that holds the servers.
    pub fn key(self) -> &'static str {
        if self == Client::Vscode { "servers" } else { "mcpServers" }
    }

    /// Whether it replaces `${…}` in what it starts.
    pub fn expands(self) -> bool {
        self != Client::ClaudeDesktop
    }

    /// What `PATH` a server gets when the client was started from a menu and not from a shell.
    pub fn least_path(system: System) -> &'static str {
        match system {
            System::Linux => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            System::MacOs => "/usr/bin:/bin:/usr/sbin:/sbin",
            System::Windows => r"C:\Windows\system32;C:\Windows",
        }
    }

    /// How the change takes effect.
    pub fn restart(self) -> &'static str {
        match self {
            Client::ClaudeDesktop => "quit Claude Desktop entirely and start it again",
            Client::ClaudeCode => "start a new session of Claude Code, or reconnect under /mcp",
            Client::Cursor => "restart the server in Cursor's settings under MCP, or Cursor itself",
            Client::Vscode => "restart the server with `MCP: List Servers` in VS Code",
        }
    }

    /// Where its configuration may be, the likeliest first.
    pub fn places(self, around: &Surroundings) -> Vec<Place> {
        let settings = around.settings();
        let (user, project) = match self {
            Client::ClaudeDesktop => (vec![settings.join("Claude/claude_desktop_config.json")], None),
            Client::ClaudeCode => {
                let home = around.var("CLAUDE_CONFIG_DIR").unwrap_or_else(|| around.home.clone());
                (vec![home.join(".claude.json")], Some(".mcp.json"))
            }
            Client::Cursor => (vec![around.home.join(".cursor/mcp.json")], Some(".cursor/mcp.json")),
            Client::Vscode => {
                let mut paths = Vec::new();
                for product in ["Code", "Code - Insiders", "VSCodium"] {
                    let folder = settings.join(product).join("User");
                    paths.push(folder.join("mcp.json"));
                    paths.extend(profiles(&folder.join("profiles")));
                }
                (paths, Some(".vscode/mcp.json"))
            }
        };
        let mut places: Vec<Place> = user.into_iter().map(|path| Place { path, scope: Scope::User }).collect();
        let project = project.and_then(|file| around.in_project(file, &places));
        places.extend(project);
        places
    }
}

/// The profiles of VS Code that have servers of their own.
fn profiles(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path().join("mcp.json"))).filter(|path| path.is_file()).collect();
    found.sort();
    found
}
