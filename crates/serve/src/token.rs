//! The secret that whoever asks from elsewhere has to know.

use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::{GetRandomFlags, getrandom};
use subtle::ConstantTimeEq;

/// Random bytes of a token that is made here.
const BYTES: usize = 24;
/// Letters of a token that somebody gives.
const LETTERS: std::ops::RangeInclusive<usize> = 16..=256;

/// Why a text is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Easily guessed, or no line of text.
    #[error("a token of {0} letters, wanted {min} to {max}", min = LETTERS.start(), max = LETTERS.end())]
    Length(usize),
    /// It would be read as something else in an address.
    #[error("a token with {0:?} in it, wanted letters, digits, `-`, `.`, `_` and `~` only")]
    Letter(char),
}

/// A secret. It is shown by nothing but [`Token::reveal`].
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A new one that nobody can guess: 192 bits from the kernel.
    pub fn made() -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += getrandom(rest, GetRandomFlags::empty())?;
        }
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// One that somebody chose.
    pub fn given(text: &str) -> Result<Self, TokenError> {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "-._~".contains(*c);
        match text.chars().find(|c| !plain(c)) {
            Some(other) => Err(TokenError::Letter(other)),
            None if !LETTERS.contains(&text.len()) => Err(TokenError::Length(text.len())),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Whether a text is this token, in a time that does not tell how much of it is right.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// For the one who may know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_know_themselves() {
        let (one, other) = (Token::made().unwrap(), Token::made().unwrap());
        assert_eq!(one.reveal().len(), 32);
        assert!(one.is(one.reveal()) && !one.is(other.reveal()));
        assert!(!one.is("") && !one.is(&one.reveal()[1..]));
        assert!(!format!("{one:?}").contains(one.reveal()));
        assert!(Token::given(one.reveal()).is_ok(), "a token made can be given");
    }

    #[test]
    fn what_can_be_guessed_or_misread_is_refused() {
        assert_eq!(Token::given("short").unwrap_err(), TokenError::Length(5));
        assert_eq!(Token::given("").unwrap_err(), TokenError::Length(0));
        assert_eq!(Token::given(&"x".repeat(257)).unwrap_err(), TokenError::Length(257));
        assert_eq!(Token::given("0123456789abcdef#").unwrap_err(), TokenError::Letter('#'));
    }
}
