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

    /// The nearest folder from the working one upwards that has this file, else the working one.
    fn in_project(&self, file: &str) -> PathBuf {
        let holds = |folder: &&Path| folder.join(file).is_file();
        self.folder.ancestors().find(holds).unwrap_or(&self.folder).join(file)
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
        let user = |path: PathBuf| Place { path, scope: Scope::User };
        let project = |file: &str| Place { path: around.in_project(file), scope: Scope::Project };
        match self {
            Client::ClaudeDesktop => vec![user(settings.join("Claude/claude_desktop_config.json"))],
            Client::ClaudeCode => {
                let home = around.var("CLAUDE_CONFIG_DIR").unwrap_or_else(|| around.home.clone());
                vec![user(home.join(".claude.json")), project(".mcp.json")]
            }
            Client::Cursor => vec![user(around.home.join(".cursor/mcp.json")), project(".cursor/mcp.json")],
            Client::Vscode => {
                let mut places = Vec::new();
                for product in ["Code", "Code - Insiders", "VSCodium"] {
                    let folder = settings.join(product).join("User");
                    places.push(user(folder.join("mcp.json")));
                    places.extend(profiles(&folder.join("profiles")).into_iter().map(user));
                }
                places.push(project(".vscode/mcp.json"));
                places
            }
        }
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
