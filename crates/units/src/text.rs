/// Whether a character is obeyed or hidden instead of shown: control characters, those that turn the
/// direction of text or end a line, and all that have no width, such as joiners, variation selectors
/// and tags. Two names that differ in these alone look the same, and what is read is not what is meant.
///
/// Method: Unicode 16.0, general category Cc, and the properties `Bidi_Control` and
/// `Default_Ignorable_Code_Point`; the line and paragraph separator, and what parts annotations.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_told_from_what_is_not() {
        let unseen = "\0\n\x1b\x7f\u{9b}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{202e}\
                      \u{2066}\u{fe0f}\u{feff}\u{e0001}\u{e0041}\u{e007f}\u{e01ef}";
        assert_eq!(unseen.chars().filter(|&c| !is_unseen(c)).collect::<String>(), "");
        let shown = "a Z~\u{a0}é\u{301}ßλж中אع\u{3000}€→▲😀\u{10ffff}";
        assert_eq!(shown.chars().filter(|&c| is_unseen(c)).collect::<String>(), "");
    }
}
