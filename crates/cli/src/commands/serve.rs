//! `plimsoll serve`

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use record::Run;
use report::page::{Served, Terms, Trouble};
use schemars::JsonSchema;
use serde::Serialize;
use serve::{Guard, Makers, ServeError, Server, Setup, Token};
use store::Store;

use crate::args::Common;
use crate::commands::report::{MARGIN, TEMPLATE, tell_tables_only, terms};
use crate::commands::table;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::input;
use crate::order;
use crate::output::{Output, json};
use crate::signals;

/// The port that nobody else asks for: the same tomorrow, so that an address can be kept.
const PORT: u16 = 7546;
/// The contract of `--json`.
const SCHEMA: &str = "plimsoll.serve/1";
/// A token has one line; more than this is another file.
const TOKEN_BYTES_MAX: u64 = 4096;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll serve                               # then open the address that it prints
  plimsoll serve --listen 127.0.0.1:0          # on any port that is free
  plimsoll --store lab.db serve
  plimsoll serve --listen 0.0.0.0:7546         # for other machines: prints a token with the address
  plimsoll serve --listen 0.0.0.0:7546 --host db1.example --token-file token.txt";

/// Show the runs of the store in a browser, live while one goes on
///
/// The page is that of `plimsoll report`, for every run in the store and for several side by side.
/// While a run goes on, started anywhere, its figures fill in after every visit. The store is only
/// read, and what is read is paced, so that a run that is being measured is not disturbed.
///
/// Only this machine can connect, unless `--listen` names another address. Clients then need a
/// token, which is part of the printed address. Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Where to listen: an address of this machine and a port; port 0 takes one that is free
    #[arg(long, value_name = "ADDR:PORT", default_value_t = Listen::default())]
    listen: Listen,
    /// A name that browsers call this machine by, besides its own; may be repeated
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Vec<String>,
    /// A file with the token that clients need; without it, a token is generated for other machines
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print address, token and store as one JSON document (plimsoll.serve/1)
    #[arg(long)]
    json: bool,
}

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(SocketAddr);

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT))
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The one name that everywhere means the same.
        let numbers = text.replacen("localhost:", "127.0.0.1:", 1);
        numbers.parse().map(Self).map_err(|_| {
            "wanted an address and a port, such as 127.0.0.1:7546, [::1]:7546 or 0.0.0.0:7546"
                .to_owned()
        })
    }
}

fn host(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    match !text.is_empty() && text.len() <= 253 && text.chars().all(plain) {
        true => Ok(text.trim_end_matches('.').to_owned()),
        false => Err("wanted a name without port, such as db1.example".to_owned()),
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.serve/1")]
struct Document {
    /// Always `plimsoll.serve/1`.
    #[schemars(extend("const" = SCHEMA))]
    schema: &'static str,
    /// Where the page is, with the token where one is needed.
    url: String,
    /// What programs send as `Authorization: Bearer TOKEN`; null where none is needed.
    token: Option<String>,
    /// The file that the runs are in.
    store: String,
    /// Whether there are figures, or tables only.
    figures: bool,
}

pub fn serve(args: &ServeArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let path = order::store_path(common)?;
    // Before the first run there is no store, and that is no error. A name given is meant.
    if common.store.is_some() || path.exists() {
        readable(common)?;
    }
    let token = token(args)?;
    let page = program(output)?;
    let server = Server::bind(args.listen.0).map_err(failed)?;
    let address = server.address();
    let mut names = args.host.clone();
    names.extend(own_name());
    let document = Document {
        schema: SCHEMA,
        url: url(address, args.host.first().or(names.first()), token.as_ref()),
        token: token.as_ref().map(|token| token.reveal().to_owned()),
        store: path.display().to_string(),
        figures: page.is_some(),
    };
    // From here on a signal is waited for, and none is lost.
    let mut signals = signals::Ends::watch()?;
    let running = server
        .start(Setup { guard: Guard { token, names }, page, store: path, makers: makers(*output) })
        .map_err(failed)?;
    tell(args, &document, address, output)?;
    let code = signals.wait();
    running.stop();
    output.note("stopped; the store was only read");
    Ok(code)
}

/// Whether there is a store. One that is being made just now will be.
fn readable(common: &Common) -> Result<(), Failure> {
    match order::store_to_read(common) {
        Err(failure) if failure.is_of_empty_store() => Ok(()),
        opened => opened.map(drop),
    }
}

fn failed(error: ServeError) -> Failure {
    let hint = error.hint();
    let failure = match &error {
        ServeError::Start(_) => Failure::from_error(ExitCode::Unexpected, error),
        _ => Failure::from_error(ExitCode::Usage, error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What whoever asks has to know: what the file says, or where others can ask something new.
fn token(args: &ServeArgs) -> Result<Option<Token>, Failure> {
    if let Some(path) = &args.token_file {
        return read_token(path).map(Some);
    }
    if args.listen.0.ip().to_canonical().is_loopback() {
        return Ok(None);
    }
    let made = Token::made();
    made.map(Some).map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot make a token", e))
}

fn read_token(path: &Path) -> Result<Token, Failure> {
    let text = input::read_text(path, TOKEN_BYTES_MAX).map_err(|error| {
        let message = format!("cannot read the token in {}", path.display());
        Failure::caused(ExitCode::Usage, message, error)
    })?;
    Token::given(text.trim()).map_err(|error| {
        let hint = "`openssl rand -hex 24` makes a good one; without `--token-file` one is made up";
        Failure::caused(ExitCode::Usage, format!("{} has no token", path.display()), error)
            .hint(hint)
    })
}

/// The page's program, where it was built.
fn program(output: &Output) -> Result<Option<Served>, Failure> {
    let Some(template) = TEMPLATE else {
        tell_tables_only(output);
        return Ok(None);
    };
    report::page::served(template)
        .map(Some)
        .map_err(|error| Failure::caused(ExitCode::Unexpected, "cannot serve the page", error))
}

/// What this machine calls itself.
fn own_name() -> Option<String> {
    let uname = rustix::system::uname();
    uname.nodename().to_str().ok().and_then(|name| host(name).ok())
}

/// * `name`: what others may call this machine by.
fn url(address: SocketAddr, name: Option<&String>, token: Option<&Token>) -> String {
    let port = address.port();
    let place = match (address.ip(), name) {
        // Every address of the machine, and none that could be printed.
        (ip, Some(name)) if ip.is_unspecified() => format!("{name}:{port}"),
        (ip, None) if ip.is_unspecified() => {
            SocketAddr::new(IpAddr::from(Ipv4Addr::LOCALHOST), port).to_string()
        }
        _ => address.to_string(),
    };
    let secret = token.map(|token| format!("#token={}", token.reveal())).unwrap_or_default();
    format!("http://{place}/{secret}")
}

fn tell(
    args: &ServeArgs,
    document: &Document,
    address: SocketAddr,
    output: &Output,
) -> Result<(), Failure> {
    if args.json {
        return output.print(&json(document)?);
    }
    output.print_bytes(format!("{}\n", document.url).as_bytes())?;
    output.note(&format!("serving {}; Ctrl-C ends it", document.store));
    if !address.ip().to_canonical().is_loopback() {
        output.warning("whoever is on the way can read along: HTTP is not encrypted");
        output.hint(&format!(
            "serve on this machine only and come through `ssh -L {PORT}:127.0.0.1:{PORT}`"
        ));
    }
    Ok(())
}

fn makers(output: Output) -> Makers {
    let judged = move |store: &Store, runs: &[Run]| -> Result<Terms, Trouble> {
        terms(store, runs, MARGIN, &output).map_err(|failure| {
            let (error, hint) = failure.words();
            Trouble { error, hint }
        })
    };
    Makers { terms: Box::new(judged), tables: Box::new(table::both) }
}

/// The JSON schema of what `--json` prints, draft 2020-12.
#[cfg(test)]
fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Document>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_current_one() {
        crate::commands::assert_committed("plimsoll.serve-1.schema.json", &schema());
    }

    #[test]
    fn addresses_have_a_port() {
        let listen = |text: &str| text.parse::<Listen>().map(|listen| listen.to_string());
        assert_eq!(listen("localhost:80").unwrap(), "127.0.0.1:80");
        assert_eq!(listen("[::1]:0").unwrap(), "[::1]:0");
        assert_eq!(Listen::default().to_string(), "127.0.0.1:7546");
        for bad in ["", "7546", "127.0.0.1", ":80", "db1.example:80", "127.0.0.1:65536"] {
            assert!(listen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_address_printed_is_one_that_can_be_opened() {
        let token = Token::given("0123456789abcdef").unwrap();
        let name = "db1".to_owned();
        let at = |text: &str| text.parse().unwrap();
        assert_eq!(url(at("127.0.0.1:5"), Some(&name), None), "http://127.0.0.1:5/");
        assert_eq!(
            url(at("0.0.0.0:5"), Some(&name), Some(&token)),
            "http://db1:5/#token=0123456789abcdef"
        );
        assert_eq!(url(at("[::]:5"), None, None), "http://127.0.0.1:5/");
        assert_eq!(url(at("[::1]:5"), None, None), "http://[::1]:5/");
    }

    #[test]
    fn a_name_is_no_address() {
        for bad in ["", "a b", "db1:80", "http://db1", "<b>"] {
            assert!(host(bad).is_err(), "{bad}");
        }
        assert_eq!(host("db1.example.").unwrap(), "db1.example");
    }
}
