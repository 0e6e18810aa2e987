//! Fields of a line of comma-separated values.

/// More fields than any tool prints: Orion has one for each load, IOMeter some eighty.
const FIELDS_MAX: usize = 4096;

/// The fields of a line, of too many the first; quotes around a field as in RFC 4180, within one line.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted && all.len() > FIELDS_MAX => return all,
            ',' if !quoted => all.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    all.push(field.trim().to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn quotes_hold_commas() {
        assert_eq!(fields("a, b,\"c,\"\"d\""), ["a", "b", "c,\"d"]);
        assert_eq!(fields(""), [""]);
    }
}
