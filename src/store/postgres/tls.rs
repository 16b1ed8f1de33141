//! From the URL of a store to a way to connect: the parts of the URL that are ours, and TLS as its `sslmode` asks for.
//! Opens no connection.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::{Error, Result};

/// Where a database is and how to speak to it. Shows no password.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// Host, port and database, for people.
    pub(super) place: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.place)
    }
}

/// What the URL says about TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encryption {
    Disable,
    /// Encrypted where the server can; nobody is checked.
    Prefer,
    /// Encrypted; nobody is checked unless certificates are named.
    Require,
    /// Encrypted, by the server the URL names.
    VerifyFull,
}

impl Target {
    /// Reads a `postgres://` URL.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or with the certificates it names, without its password.
    pub(super) fn of(url: &str, root_certificates: Option<&Path>) -> Result<Target> {
        let (rest, ours) = take_ours(url)?;
        let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| {
            // The cause may quote the URL, password and all.
            let _ = error;
            Error::Unavailable(
                "the URL of the store is no PostgreSQL URL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE".into(),
            )
        })?;
        if config.get_hosts().is_empty() {
            return Err(Error::Unavailable(
                "the URL of the store names no host; write postgres://USER@HOST:PORT/DATABASE".into(),
            ));
        }
        let roots = ours.roots.or_else(|| root_certificates.map(Path::to_owned));
        let encryption = ours.encryption.unwrap_or(Encryption::Prefer);
        config.ssl_mode(match encryption {
            Encryption::Disable => SslMode::Disable,
            Encryption::Prefer => SslMode::Prefer,
            Encryption::Require | Encryption::VerifyFull => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("durable-mcp");
        }
        let place = place(&config);
        Ok(Target { config, tls: MakeRustlsConnect::new(client_config(encryption, roots.as_deref())?), place })
    }
}

struct Ours {
    encryption: Option<Encryption>,
    roots: Option<PathBuf>,
}

/// The URL without `sslmode` and `sslrootcert`, which the driver below does not know in full.
fn take_ours(url: &str) -> Result<(String, Ours)> {
    let mut ours = Ours { encryption: None, roots: None };
    let Some((base, query)) = url.split_once('?') else { return Ok((url.into(), ours)) };
    let mut rest = form_urlencoded::Serializer::new(String::new());
    let mut kept = 0;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "sslmode" => {
                ours.encryption = Some(match &*value {
                    "disable" => Encryption::Disable,
                    "allow" | "prefer" => Encryption::Prefer,
                    "require" => Encryption::Require,
                    "verify-full" => Encryption::VerifyFull,
                    other => {
                        return Err(Error::Unavailable(format!(
                            "the URL of the store has the sslmode {other:?}; write disable, prefer, require or \
                             verify-full"
                        )));
                    }
                });
            }
            "sslrootcert" => ours.roots = Some(PathBuf::from(&*value)),
            _ => {
                rest.append_pair(&name, &value);
                kept += 1;
            }
        }
    }
    // The driver below reads %20, not +.
    let rest = rest.finish().replace('+', "%20");
    Ok((if kept == 0 { base.into() } else { format!("{base}?{rest}") }, ours))
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

fn client_config(encryption: Encryption, roots: Option<&Path>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let broken = |error: rustls::Error| Error::Unavailable(format!("TLS to the database can not be set up: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(broken)?;
    let checks = encryption == Encryption::VerifyFull || (encryption == Encryption::Require && roots.is_some());
    let config = match (checks, roots) {
        (true, Some(path)) => builder.with_root_certificates(read_roots(path)?).with_no_client_auth(),
        (true, None) => {
            let verifier = Verifier::new(provider).map_err(|error| {
                Error::Unavailable(format!(
                    "the system has no certificates to check the database by ({error}); name a file in sslrootcert"
                ))
            })?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        }
        (false, _) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))).with_no_client_auth()
        }
    };
    Ok(config)
}

fn read_roots(path: &Path) -> Result<RootCertStore> {
    let fault = |what: String| Error::Unavailable(format!("the certificates in {}: {what}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))? {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fault("there are none; the file has to be PEM".into()));
    }
    Ok(roots)
}

/// What `prefer` and `require` mean to every client of PostgreSQL: encrypted, whoever it is.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parts_of_the_url_are_read_and_taken_out() {
        let (rest, ours) =
            take_ours("postgres://u:p@h/d?sslmode=verify-full&sslrootcert=%2Fa%2Fb.pem&options=-c%20x%3Dy").unwrap();
        assert_eq!(rest, "postgres://u:p@h/d?options=-c%20x%3Dy");
        assert_eq!(ours.encryption, Some(Encryption::VerifyFull));
        assert_eq!(ours.roots, Some(PathBuf::from("/a/b.pem")));
        assert_eq!(take_ours("postgres://h/d?sslmode=require").unwrap().0, "postgres://h/d");
    }

    #[test]
    fn nothing_that_is_shown_holds_the_password() {
        for url in ["postgres://u:s3cret@", "postgres://u:s3cret@h:x/d", "postgres://u:s3cret@h/d?sslmode=maybe"] {
            let told = Target::of(url, None).unwrap_err().to_string();
            assert!(!told.contains("s3cret"), "{told}");
        }
        let target = Target::of("postgres://u:s3cret@h:7/d?sslmode=disable", None).unwrap();
        assert_eq!(target.place, "h:7/d");
        assert!(!format!("{target:?}").contains("s3cret"));
        assert_eq!(target.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn certificates_that_are_missing_are_named() {
        let told = Target::of("postgres://h/d?sslmode=verify-full&sslrootcert=/no/such.pem", None).unwrap_err();
        assert!(told.to_string().contains("/no/such.pem"), "{told}");
    }
}
