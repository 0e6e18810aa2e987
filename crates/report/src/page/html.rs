//! The page's data put into the page's program.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Page;

/// Where a template takes the data: what the element holds until then.
const PLACE: &str = "<script type=\"application/json\" id=\"plimsoll-page\">null</script>";

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

/// Gzip, without a time in its head so that the same data gives the same bytes, as base64.
fn compressed(data: &[u8]) -> Result<String, io::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// A page without figures: titles, each with its tables as they are printed.
pub fn tables_only(tables: &[(String, String)]) -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Plimsoll</title>\n\
         <p>Tables only: the program that wrote this was built without the page's figures. \
         <code>make build</code> builds it with them where Node.js 20 and npm are installed.</p>\n",
    );
    for (title, table) in tables {
        out += &format!("<h1>{}</h1>\n<pre>\n{}</pre>\n", escaped(title), escaped(table));
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
