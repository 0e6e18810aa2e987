//! Who is answered: decided from the head of a request, before anything is done for it.
//!
//! A browser brings requests of every page that it shows, also to this machine. So a name that its
//! owner may point anywhere (DNS rebinding) is not answered to, a request that another page made is
//! not, and where the server can be reached from elsewhere only who knows the token is.

use std::net::IpAddr;

use axum::http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::token::Token;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What a server answers to.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// What whoever asks has to know; nothing where nobody else can ask.
    pub token: Option<Token>,
    /// Names of this machine besides `localhost` and addresses.
    pub names: Vec<String>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The page's program: the same for everybody, and it knows of no run.
    Program,
    /// Something of a run, to be read by people in a browser that has no program to read it for them.
    Bare,
    /// Something of a run.
    Data,
}

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing here can be changed.
    #[error("{0} is not answered, wanted GET")]
    Method(Method),
    /// None, several, or no name.
    #[error("the request does not say which host it is for")]
    NoHost,
    /// The name of another.
    #[error("this server is not called {0:?}")]
    Host(String),
    /// Another page made it.
    #[error("the request comes from another page: {0:?}")]
    Foreign(String),
    /// No token, or not this one.
    #[error("the token is missing or wrong")]
    Token,
}

impl Refused {
    /// The answer's status.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Host(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Foreign(_) => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }

    /// What to do about it.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Host(_) => Some("`plimsoll serve --host NAME` answers to that name, too"),
            Self::Token => Some("take the whole address that `plimsoll serve` printed"),
            _ => None,
        }
    }
}

impl Guard {
    /// Whether a request may be answered.
    pub fn judge(&self, method: &Method, head: &HeaderMap, asked: Asked) -> Result<(), Refused> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Refused::Method(method.clone()));
        }
        let host = self.host(head)?;
        own_page(head, &host, asked)?;
        match &self.token {
            Some(token) if asked != Asked::Program && !knows(head, token) => Err(Refused::Token),
            _ => Ok(()),
        }
    }

    /// The host that is asked, where that is this one. A page of another site can have its name lead
    /// here, but neither an address nor `localhost`; so their ports do not matter, and may be those
    /// of a tunnel.
    fn host(&self, head: &HeaderMap) -> Result<String, Refused> {
        let mut all = head.get_all(HOST).iter();
        let (Some(first), None) = (all.next(), all.next()) else { return Err(Refused::NoHost) };
        let text = first.to_str().map_err(|_| Refused::NoHost)?;
        let authority: Authority = text.parse().map_err(|_| Refused::NoHost)?;
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let is_name = |name: &str| bare.trim_end_matches('.').eq_ignore_ascii_case(name);
        let known = bare.parse::<IpAddr>().is_ok()
            || is_name("localhost")
            || self.names.iter().any(|name| is_name(name));
        match known && !text.contains('@') {
            true => Ok(text.to_owned()),
            false => Err(Refused::Host(text.chars().take(80).collect())),
        }
    }
}

/// Whether the request was made by a page of this server, by somebody who typed the address, or by a
/// program that is no browser.
fn own_page(head: &HeaderMap, host: &str, asked: Asked) -> Result<(), Refused> {
    let text = |name| match head.get(name) {
        None => Ok(None),
        Some(value) => {
            let text: Result<&str, _> = value.to_str();
            text.map(Some).map_err(|_| Refused::Foreign("?".to_owned()))
        }
    };
    if let Some(origin) = text(ORIGIN)? {
        let of = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !of.is_some_and(|of| of.eq_ignore_ascii_case(host)) {
            return Err(Refused::Foreign(origin.chars().take(80).collect()));
        }
    }
    match text(SEC_FETCH_SITE)? {
        None | Some("same-origin" | "none") => Ok(()),
        // A link in a mail or a wiki leads here; what it opens, the other page cannot read.
        Some(_) if asked != Asked::Data && text(SEC_FETCH_MODE)? == Some("navigate") => Ok(()),
        Some(site) => Err(Refused::Foreign(site.chars().take(80).collect())),
    }
}

/// Whether the token comes with a request: as the page and programs send it, or as a browser does
/// that asked its user for name and password.
fn knows(head: &HeaderMap, token: &Token) -> bool {
    let Some(said) = head.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let Some((scheme, rest)) = said.split_once(' ') else { return false };
    if scheme.eq_ignore_ascii_case("bearer") {
        return token.is(rest.trim());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return false;
    }
    let pair = STANDARD.decode(rest.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    pair.as_deref().and_then(|pair| pair.split_once(':')).is_some_and(|(_, word)| token.is(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdefghij";

    fn ask(guard: &Guard, head: &[(&str, &str)], asked: Asked) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in head {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        guard.judge(&Method::GET, &map, asked)
    }

    fn open() -> Guard {
        Guard { token: None, names: vec!["db1.example".into()] }
    }

    fn locked() -> Guard {
        Guard { token: Some(Token::given(SECRET).unwrap()), ..open() }
    }

    #[test]
    fn a_name_that_its_owner_may_point_here_is_refused() {
        for host in [
            "localhost",
            "localhost:7546",
            "LOCALHOST:1",
            "127.0.0.1:7546",
            "127.9.9.9",
            "[::1]:80",
            "192.168.1.7:7546",
            "db1.example:7546",
            "DB1.example.",
        ] {
            assert_eq!(ask(&open(), &[("host", host)], Asked::Data), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:7546",
            "127.0.0.1.evil.example",
            "db1.example.evil.example",
            "localhost@evil.example",
            "evil@localhost",
            "2130706433.x",
        ] {
            let refused = ask(&open(), &[("host", host)], Asked::Program).unwrap_err();
            assert_eq!(refused, Refused::Host(host.to_owned()));
        }
        assert_eq!(ask(&open(), &[], Asked::Data), Err(Refused::NoHost));
        assert_eq!(ask(&open(), &[("host", "")], Asked::Data), Err(Refused::NoHost));
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(ask(&open(), &twice, Asked::Data), Err(Refused::NoHost));
    }

    #[test]
    fn another_page_is_refused() {
        let from = |head: &[(&str, &str)], asked| {
            let mut all = vec![("host", "localhost:7546")];
            all.extend_from_slice(head);
            ask(&open(), &all, asked)
        };
        for own in [
            vec![],
            vec![("origin", "http://localhost:7546"), ("sec-fetch-site", "same-origin")],
            vec![("origin", "https://LOCALHOST:7546")],
            vec![("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        ] {
            assert_eq!(from(&own, Asked::Data), Ok(()), "{own:?}");
        }
        for other in [
            vec![("origin", "http://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "http://localhost:8000")],
            vec![("origin", "http://localhost:7546.evil.example")],
            vec![("origin", "localhost:7546")],
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "same-site")],
            vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        ] {
            assert!(matches!(from(&other, Asked::Data), Err(Refused::Foreign(_))), "{other:?}");
        }
        let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(from(&link, Asked::Program), Ok(()));
        assert!(from(&link[..1], Asked::Program).is_err(), "an image, a script, a frame's fetch");
    }

    #[test]
    fn who_asks_from_elsewhere_has_to_know_the_token() {
        let with = |said: Option<&str>, asked| {
            let mut head = vec![("host", "192.168.1.7:7546")];
            head.extend(said.map(|said| ("authorization", said)));
            ask(&locked(), &head, asked)
        };
        assert_eq!(with(None, Asked::Program), Ok(()));
        let bearer = format!("Bearer {SECRET}");
        let basic = format!("Basic {}", STANDARD.encode(format!("me:{SECRET}")));
        for right in [&bearer, &basic] {
            assert_eq!(with(Some(right), Asked::Data), Ok(()));
            assert_eq!(with(Some(right), Asked::Bare), Ok(()));
        }
        let nearly = format!("Bearer {}", &SECRET[1..]);
        let name = format!("Basic {}", STANDARD.encode(format!("{SECRET}:")));
        for wrong in [
            None,
            Some("Bearer "),
            Some("Bearer"),
            Some(""),
            Some(SECRET),
            Some(&nearly),
            Some(&name),
            Some("Basic !"),
            Some("Digest x"),
        ] {
            assert_eq!(with(wrong, Asked::Data), Err(Refused::Token), "{wrong:?}");
            assert_eq!(with(wrong, Asked::Bare), Err(Refused::Token), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_can_be_changed() {
        let mut head = HeaderMap::new();
        head.insert(HOST, "localhost".parse().unwrap());
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::CONNECT]
        {
            let refused = open().judge(&method, &head, Asked::Data).unwrap_err();
            assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
        }
        assert_eq!(open().judge(&Method::HEAD, &head, Asked::Data), Ok(()));
    }
}
