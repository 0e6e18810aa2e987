//! Lines with their numbers, and the words and numbers on them.

use std::borrow::Cow;

/// What is seen behind the last line.
pub(crate) const END: &str = "the end of the text";
/// Longest piece of foreign text in a message.
pub(crate) const SEEN: usize = 60;
/// No tool counts or measures more: beyond, rates made of it would leave what a float holds.
pub(crate) const NUMBER_MAX: f64 = 1e18;
/// Longest tag of a page.
const TAG_MAX: usize = 4096;
/// Most lines of an output: what is kept of each takes more room than an empty one has.
pub(crate) const LINES_MAX: usize = 1 << 20;
/// Longest line: a page of the web may be all on one. Its words are looked at together.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// Why a text is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Not what the tool prints.
    Unfit { line: Option<usize>, seen: String, wanted: String },
    /// More than any tool prints: reading on would only take room.
    TooMuch { line: Option<usize>, what: String },
    /// The same tool's in another form, and of another run than what is read.
    OtherRun { line: usize },
}

pub(crate) type Found<T> = Result<T, Fault>;

/// A text, line by line; pages of the web as their reader sees them.
#[derive(Clone)]
pub(crate) struct Text<'a> {
    /// Of the file it is from.
    pub name: &'a str,
    pub lines: Vec<Line<'a>>,
}

/// A line and its number in the file, from 1. The text is the file's where nothing had to be
/// changed: an output may have a million lines.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub number: usize,
    pub text: Cow<'a, str>,
}

/// Whether a text is a page of the web, or of its source.
pub(crate) fn is_page(raw: &str) -> bool {
    ["<br", "<pre", "<td", "<p>", "<code", "&nbsp;", "&#124;", "&#160;", "&lt;"]
        .iter()
        .any(|mark| raw.contains(mark))
}

impl<'a> Text<'a> {
    pub(crate) fn new(name: &'a str, raw: &'a str) -> Found<Self> {
        let is_page = is_page(raw);
        let mut text = Self { name, lines: Vec::new() };
        for (number, line) in (1..).zip(raw.lines()) {
            if line.len() > LINE_BYTES_MAX {
                let what = format!("a line of more than {} MiB", LINE_BYTES_MAX >> 20);
                return Err(Fault::TooMuch { line: Some(number), what });
            }
            let line = line.trim_end_matches('\r');
            if is_page {
                for line in from_page(line).split('\n') {
                    text.push(number, Cow::Owned(line.to_owned()))?;
                }
            } else if line.contains('\u{a0}') {
                // A blank that does not break stands where text was pasted from a page.
                text.push(number, Cow::Owned(line.replace('\u{a0}', " ")))?;
            } else {
                text.push(number, Cow::Borrowed(line))?;
            }
        }
        Ok(text)
    }

    fn push(&mut self, number: usize, text: Cow<'a, str>) -> Found<()> {
        if self.lines.len() == LINES_MAX {
            let what = format!("more than {LINES_MAX} lines");
            return Err(Fault::TooMuch { line: Some(number), what });
        }
        self.lines.push(Line { number, text });
        Ok(())
    }

    /// A reader at the first line.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { lines: &self.lines, at: 0 }
    }

    /// What is missing behind the last line.
    pub(crate) fn ended(&self, wanted: impl Into<String>) -> Fault {
        let line = self.lines.last().map(|line| line.number);
        Fault::ended(line, wanted)
    }
}

impl Fault {
    /// That something is missing behind the last line.
    pub(crate) fn ended(line: Option<usize>, wanted: impl Into<String>) -> Self {
        Self::Unfit { line, seen: END.to_owned(), wanted: wanted.into() }
    }
}

/// Tags away, line breaks kept, entities decoded.
fn from_page(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let tag = &rest[start..];
        // `<<<` and `a < b` are text.
        let is_tag = tag[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        let end = tag.bytes().take(TAG_MAX).position(|byte| byte == b'>');
        match end.filter(|_| is_tag) {
            Some(end) => {
                let name = tag[1..end].trim_start_matches('/').to_ascii_lowercase();
                if ["br", "p", "tr", "div", "pre", "li"].iter().any(|t| name.starts_with(t)) {
                    out.push('\n');
                }
                rest = &tag[end + 1..];
            }
            None => {
                out.push('<');
                rest = &tag[1..];
            }
        }
    }
    out.push_str(rest);
    entities(&out).replace('\u{a0}', " ")
}

fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        let tail = &rest[start..];
        let end = tail.bytes().take(10).position(|byte| byte == b';');
        let found = end.and_then(|end| {
            let c = match &tail[1..end] {
                "nbsp" => ' ',
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                "vert" | "verbar" => '|',
                "plus" => '+',
                code => numbered(code.strip_prefix('#')?)?,
            };
            Some((c, end))
        });
        match found {
            Some((c, end)) => {
                out.push(c);
                rest = &tail[end + 1..];
            }
            None => {
                out.push('&');
                rest = &tail[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn numbered(code: &str) -> Option<char> {
    let number = match code.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => code.parse().ok()?,
    };
    char::from_u32(number)
}

/// The first line with something on it, as it stands in messages.
pub(crate) fn first_line(text: &str) -> String {
    quote(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default())
}

/// The end of the last line, as it stands in messages.
pub(crate) fn last_words(text: &str) -> String {
    let line = text.lines().next_back().unwrap_or_default().trim_end();
    let start = line.char_indices().rev().nth(SEEN / 2).map_or(0, |(at, _)| at);
    quote(line.get(start..).unwrap_or_default())
}

/// Foreign text in a message: quoted, cut, and harmless to a terminal.
pub(crate) fn quote(text: &str) -> String {
    let text = text.trim();
    let mut cut = String::new();
    for c in text.chars().take(SEEN) {
        if units::is_unseen(c) { cut.extend(c.escape_default()) } else { cut.push(c) }
    }
    let more = if text.chars().nth(SEEN).is_some() { "..." } else { "" };
    if text.is_empty() { "an empty line".to_owned() } else { format!("`{cut}{more}`") }
}

impl Line<'_> {
    /// That the line is not what it should be.
    pub(crate) fn unfit(&self, wanted: impl Into<String>) -> Fault {
        Fault::Unfit { line: Some(self.number), seen: quote(&self.text), wanted: wanted.into() }
    }

    /// That a word on it is not what it should be.
    pub(crate) fn unfit_word(&self, word: &str, wanted: impl Into<String>) -> Fault {
        let seen = if word.is_empty() { "nothing".to_owned() } else { quote(word) };
        let place = quote(&self.text);
        let wanted = wanted.into();
        Fault::Unfit { line: Some(self.number), seen: format!("{seen} in {place}"), wanted }
    }

    /// A number that is one: finite and not negative.
    pub(crate) fn number(&self, word: &str, what: &str) -> Found<f64> {
        number(word).ok_or_else(|| self.unfit_word(word, format!("{what}, a number")))
    }

    /// A whole number.
    pub(crate) fn whole(&self, word: &str, what: &str) -> Found<u64> {
        let digits = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        let found = if digits { word.parse().ok() } else { None };
        found.ok_or_else(|| self.unfit_word(word, format!("{what}, a whole number")))
    }

    /// What stands behind `label`, blanks before both aside.
    pub(crate) fn after(&self, label: &str) -> Option<&str> {
        self.text.trim().strip_prefix(label).map(str::trim)
    }
}

/// A number as tools print it: digits and at most one point; no sign, no exponent but fio's.
pub(crate) fn number(word: &str) -> Option<f64> {
    let fits = word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let value: f64 = if fits { word.parse().ok()? } else { return None };
    (value <= NUMBER_MAX).then_some(value)
}

/// A number and the unit right behind it: `12.98ms`.
pub(crate) fn split_unit(word: &str) -> Option<(f64, &str)> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    let (digits, unit) = word.split_at(end);
    Some((number(digits)?, unit.trim()))
}

/// How many bytes a unit is; `K`, `kB` and `KiB` alike are 1024 where a tool says so.
pub(crate) fn binary(unit: &str) -> Option<u64> {
    Some(match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1 << 50,
        _ => return None,
    })
}

/// Bytes of `16KiB`, `16Kb`, `1.5Gb`, `62G`, by powers of two.
pub(crate) fn bytes(word: &str) -> Option<u64> {
    let (value, unit) = split_unit(word.trim())?;
    let bytes = value * binary(unit)? as f64;
    (bytes < 9.0e18).then_some(bytes as u64)
}

/// How many ns a unit is.
pub(crate) fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" | "nsec" => 1.0,
        "us" | "usec" | "usecs" | "µs" => 1e3,
        "ms" | "msec" => 1e6,
        "s" | "sec" => 1e9,
        "m" | "min" => 60e9,
        "h" | "hour" => 3_600e9,
        "d" | "day" => 86_400e9,
        _ => return None,
    })
}

/// Whole ns; `None` past 292 years.
pub(crate) fn ns(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..9.2e18).contains(&value)).then(|| value.round() as u64)
}

/// Walks over lines.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    lines: &'a [Line<'a>],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next line, without going on to it.
    pub(crate) fn peek(&self) -> Option<&'a Line<'a>> {
        self.lines.get(self.at)
    }

    /// The next line with something on it.
    pub(crate) fn next(&mut self) -> Option<&'a Line<'a>> {
        while let Some(line) = self.lines.get(self.at) {
            self.at += 1;
            if !line.text.trim().is_empty() {
                return Some(line);
            }
        }
        None
    }

    /// The next line that begins with `label`; all before it is passed over.
    pub(crate) fn find(&mut self, label: &str) -> Found<&'a Line<'a>> {
        let found = self.rest().iter().position(|line| line.text.trim().starts_with(label));
        let Some(position) = found else { return Err(self.ended(&format!("`{label}`"))) };
        self.at += position + 1;
        self.lines.get(self.at - 1).ok_or_else(|| self.ended(&format!("`{label}`")))
    }

    /// As [`Self::find`], if there is one.
    pub(crate) fn seek(&mut self, label: &str) -> Option<&'a Line<'a>> {
        self.find(label).ok()
    }

    /// The next line with something on it, which is to begin with `label`: what is behind it.
    pub(crate) fn want(&mut self, label: &str) -> Found<(&'a Line<'a>, &'a str)> {
        let wanted = format!("`{label}`");
        let Some(line) = self.next() else { return Err(self.ended(&wanted)) };
        match line.after(label) {
            Some(rest) => Ok((line, rest)),
            None => Err(line.unfit(wanted)),
        }
    }

    /// What has not been read yet.
    pub(crate) fn rest(&self) -> &'a [Line<'a>] {
        self.lines.get(self.at..).unwrap_or_default()
    }

    /// That lines are missing.
    pub(crate) fn ended(&self, wanted: &str) -> Fault {
        let line = self.lines.last().map(|line| line.number);
        Fault::ended(line, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_text() {
        let page = "<pre>512B&nbsp;&#124; 24&#160;12.2K<br>1K &lt;<b>x</b></pre>";
        let text = Text::new("-", page).unwrap();
        let lines: Vec<_> = text.lines.iter().map(|l| l.text.as_ref()).collect();
        assert_eq!(lines, ["", "512B | 24 12.2K", "1K <x", ""]);
        assert!(text.lines.iter().all(|line| line.number == 1));
        let text = Text::new("-", "4 KiB <<< . &x; &").unwrap();
        assert_eq!(text.lines[0].text, "4 KiB <<< . &x; &");
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(number("12.50"), Some(12.5));
        for odd in ["", "-1", "inf", "NaN", "+1", ".5", "1.2.3", "1e999", "1e19", "0x1"] {
            assert_eq!(number(odd), None, "{odd}");
        }
        assert_eq!(bytes("1.5Gb"), Some(3 << 29));
        assert_eq!(bytes("16KiB"), Some(16 << 10));
        assert_eq!(bytes("99999999999999999999P"), None);
        assert_eq!(split_unit("12.98ms"), Some((12.98, "ms")));
    }
}
