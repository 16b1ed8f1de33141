//! The token that a server without authentication writes for its own user: whoever can read the file may act. Grants
//! nothing over the network by itself; `auth.rs` says what it is good for.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;

use super::token::random_hex;

#[cfg(test)]
mod tests;

/// A token in a file that only its user can read.
pub struct LocalToken {
    path: PathBuf,
    text: String,
}

impl LocalToken {
    /// Writes a new token to `servers/<host>_<port>.token` in the data folder, in the place of one that a server which
    /// died there may have left. Errors: the folder or file can not be written.
    pub fn write(data_dir: &Path, listen: SocketAddr) -> io::Result<LocalToken> {
        let folder = data_dir.join("servers");
        make_private_folder(data_dir)?;
        make_private_folder(&folder)?;
        let path = folder.join(file_name(listen.ip(), listen.port()));
        let text = format!("dmcp_local_{}", random_hex(64));
        let draft = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&draft);
        let mut file = private_file(&draft)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        drop(file);
        fs::rename(&draft, &path)?;
        Ok(LocalToken { path, text })
    }

    /// Compares in constant time.
    pub fn matches(&self, presented: &str) -> bool {
        self.text.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// Removes the file at a graceful stop, unless it is another server's by now.
    pub fn remove(&self) {
        if read(&self.path).is_some_and(|text| self.matches(&text)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The token of the server of this user at a loopback address; `None` for any other address, since a token that leaves
/// the machine is no local token.
pub fn find(data_dir: &Path, host: &str, port: u16) -> Option<String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = host.parse().ok();
    if !host.eq_ignore_ascii_case("localhost") && !address.is_some_and(|ip| ip.to_canonical().is_loopback()) {
        return None;
    }
    let folder = data_dir.join("servers");
    if let Some(token) = address.and_then(|ip| read(&folder.join(file_name(ip, port)))) {
        return Some(token);
    }
    // A loopback name reaches any of the loopback addresses.
    let end = format!("_{port}.token");
    let mut names: Vec<PathBuf> = fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&end)));
    names.sort();
    names.iter().find_map(|path| read(path))
}

fn file_name(ip: IpAddr, port: u16) -> String {
    format!("{ip}_{port}.token")
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Makes a folder that only its user can enter. An existing one stays as it is.
fn make_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
