//! The page's data put into the page's program.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Page;

/// Where a template takes the data: what the element holds until then.
const PLACE: &str = "<script type=\"application/json\" id=\"plimsoll-page\">null</script>";

/// The same place in a page that asks its server for the data.
const ASKS: &str =
    "<script type=\"application/json\" id=\"plimsoll-page\" data-from=\"serve\">null</script>";

/// Where a template says what its page may load and run.
const POLICY: [&str; 2] = ["<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">"];

/// Bytes of data from which on it is compressed. What is not can be read by browsers of before
/// 2023, and by whoever opens the file in an editor.
const PLAIN_MAX: usize = 1 << 20;

/// Why no page came out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// The template is none of ours, or of another version.
    #[error("the page's program has {0} places for data, wanted one")]
    NoPlace(usize),
    /// The template is none of ours: it says nothing of what may run in it.
    #[error("the page's program has no policy")]
    NoPolicy,
    /// A bug of ours: everything in a page can be written as JSON.
    #[error("the page's data cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// A bug of ours: it is compressed in memory.
    #[error("the page's data cannot be compressed")]
    Compress(#[from] io::Error),
}

/// One file that draws the page, from the program that draws.
///
/// * `template`: the bundle that is built in `web/`.
///
/// The data is text within an element of type JSON. Such an element ends at `</script`, and
/// comments change how it is read, so no `<` is left in it: JSON has another way to write one.
/// Much of it is compressed, and then in letters that mean nothing to HTML.
pub fn html(template: &str, page: &Page) -> Result<String, HtmlError> {
    let found = template.matches(PLACE).count();
    let Some((before, after)) = template.split_once(PLACE).filter(|_| found == 1) else {
        return Err(HtmlError::NoPlace(found));
    };
    let data = serde_json::to_string(page)?.replace('<', "\\u003c");
    let place = match data.len() > PLAIN_MAX {
        false => PLACE.replace("null", &data),
        true => PLACE
            .replace(" id=", " data-coding=\"gzip\" id=")
            .replace("null", &compressed(data.as_bytes())?),
    };
    Ok([before, &place, after].concat())
}

/// The program that draws, as a server hands it out: it asks where it came from for what it draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The page, the same for all runs.
    pub html: String,
    /// What it may load and run, for the head of the answer: as in a file, and its own server.
    pub policy: String,
}

/// A template made ready to be served.
///
/// * `template`: as in [`html`].
///
/// The policy moves from the page to the head of the answer: two policies hold both, and that of a
/// file allows no server.
pub fn served(template: &str) -> Result<Served, HtmlError> {
    let found = template.matches(PLACE).count();
    if found != 1 {
        return Err(HtmlError::NoPlace(found));
    }
    let [start, end] = POLICY;
    let (before, rest) = template.split_once(start).ok_or(HtmlError::NoPolicy)?;
    let (policy, after) = rest.split_once(end).ok_or(HtmlError::NoPolicy)?;
    Ok(Served {
        html: [before, after].concat().replace(PLACE, ASKS),
        policy: format!("{policy}; connect-src 'self'; frame-ancestors 'none'"),
    })
}

/// Gzip, without a time in its head so that the same data gives the same bytes, as base64.
fn compressed(data: &[u8]) -> Result<String, io::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// Head of a page without figures.
const BARE: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n\
    <title>Plimsoll</title>\n\
    <p>Tables only: the program that wrote this was built without the page's figures. \
    <code>make build</code> builds it with them where Node.js 20 and npm are installed.</p>\n";

/// A list of runs without figures: links, each with what is said of it.
///
/// * `links`: address, name and what is said. Addresses are ours, and taken as they are.
pub fn links_only(links: &[(String, String, String)]) -> String {
    let mut out = format!("{BARE}<h1>Runs</h1>\n<ul>\n");
    for (address, name, said) in links {
        out += &format!("<li><a href=\"{address}\">{}</a> {}</li>\n", escaped(name), escaped(said));
    }
    out + "</ul>\n"
}

/// A page without figures: titles, each with its tables as they are printed.
pub fn tables_only(tables: &[(String, String)]) -> String {
    let mut out = String::from(BARE);
    for (title, table) in tables {
        out += &format!("<h1>{}</h1>\n<pre>\n{}</pre>\n", escaped(title), escaped(table));
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served_may_ask_its_server_and_nobody_else() {
        let template = format!("<head>{}default-src 'none'{}</head>{PLACE}", POLICY[0], POLICY[1]);
        let served = served(&template).unwrap();
        assert_eq!(served.policy, "default-src 'none'; connect-src 'self'; frame-ancestors 'none'");
        assert_eq!(served.html, format!("<head></head>{ASKS}"));
        assert!(matches!(super::served(PLACE), Err(HtmlError::NoPolicy)));
        assert!(matches!(super::served("<html>"), Err(HtmlError::NoPlace(0))));
    }

    #[test]
    fn names_in_a_list_are_text() {
        let page = links_only(&[("/runs/r1".into(), "<b>".into(), "a & b".into())]);
        assert!(page.contains("<a href=\"/runs/r1\">&lt;b&gt;</a> a &amp; b"), "{page}");
    }
}
