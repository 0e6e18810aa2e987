//! Rust text without what is not code, for checks that look for words.

/// The text with comments and the insides of literals blanked out; lines stay where they are.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => block_comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' | b'b' | b'c' if !is_word_before(bytes, at) => match raw_string_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            b'\'' => match char_end(bytes, at) {
                Some(end) => end,
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Whole characters were blanked byte by byte, so this stays UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

/// [`code_only`], and items under `#[cfg(test)]` blanked out too.
pub fn shipped_code(text: &str) -> String {
    let mut code = code_only(text).into_bytes();
    let marker = b"#[cfg(test)]";
    let mut from = 0;
    while let Some(found) = find(&code[from..], marker) {
        let start = from + found;
        let end = item_end(&code, start + marker.len());
        for byte in &mut code[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        from = end;
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// Lines (from 1) in which `needle` stands as a whole: no letter, digit or underscore touches
/// an end of it that is one itself.
pub fn lines_with(code: &str, needle: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut lines: Vec<usize> = code
        .match_indices(needle)
        .filter(|(at, _)| {
            let before = code[..*at].chars().next_back();
            let after = code[at + needle.len()..].chars().next();
            let joined_left = needle.starts_with(is_word) && before.is_some_and(is_word);
            let joined_right = needle.ends_with(is_word) && after.is_some_and(is_word);
            !joined_left && !joined_right
        })
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
        .collect();
    lines.dedup();
    lines
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

fn is_word_before(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => {
                depth += 1;
                at += 2;
            }
            b"*/" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of `r"..."`, `br#"..."#` and the like starting here, if one starts here.
fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    if matches!(bytes[at], b'b' | b'c') {
        at += 1;
    }
    if bytes.get(at) != Some(&b'r') {
        return None;
    }
    at += 1;
    let hashes = bytes[at..].iter().take_while(|&&b| b == b'#').count();
    at += hashes;
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    Some(find(&bytes[at + 1..], &close).map_or(bytes.len(), |n| at + 1 + n + close.len()))
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(bytes: &[u8], quote: usize) -> Option<usize> {
    if bytes.get(quote + 1) == Some(&b'\\') {
        let close = bytes[quote + 3..].iter().position(|&b| b == b'\'')?;
        return Some(quote + 3 + close + 1);
    }
    // One character of at most four bytes, then the closing quote.
    (quote + 2..bytes.len().min(quote + 6))
        .find(|&at| bytes[at] == b'\'')
        .filter(|&at| {
            std::str::from_utf8(&bytes[quote + 1..at]).is_ok_and(|s| s.chars().count() == 1)
        })
        .map(|at| at + 1)
}

/// Where the item that follows an attribute ends: at its closing brace, or at a semicolon before
/// any brace.
fn item_end(code: &[u8], from: usize) -> usize {
    let mut depth = 0usize;
    for (n, byte) in code[from..].iter().enumerate() {
        match byte {
            b';' if depth == 0 => return from + n + 1,
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return from + n + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let text =
            "a(\"unsafe\\\" b\"); // unsafe\n/* unsafe /* x */ */ c r#\"unsafe\"# '\"' 'a: &'a str";
        let code = code_only(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert!(code.contains("a(") && code.contains(" c ") && code.contains("&'a str"), "{code}");
        assert_eq!(code.matches('\n').count(), 1);
    }

    #[test]
    fn code_after_a_literal_is_kept() {
        assert!(code_only("let q = '\"'; unsafe {}").contains("unsafe"));
        assert!(code_only(r"let q = '\''; unsafe {}").contains("unsafe"));
        assert!(code_only("let q = 'é'; unsafe {}").contains("unsafe"));
        assert!(code_only("for r in b { unsafe {} }").contains("unsafe"));
    }

    #[test]
    fn tests_are_not_shipped() {
        let text = "fn a() { x() }\n#[cfg(test)]\nmod tests { fn b() { y() } }\nfn c() { z() }\n#[cfg(test)]\nuse w;\nfn d() {}";
        let code = shipped_code(text);
        assert!(code.contains("x()") && code.contains("z()") && code.contains("fn d"), "{code}");
        assert!(!code.contains("y()") && !code.contains("use w"), "{code}");
    }

    #[test]
    fn words_are_found_whole() {
        let code = "#![deny(unsafe_code)]\nunsafe { }\nstd::fs::read()\nmy_std::fs::x";
        assert_eq!(lines_with(code, "unsafe"), [2]);
        assert_eq!(lines_with(code, "std::fs"), [3]);
    }
}
