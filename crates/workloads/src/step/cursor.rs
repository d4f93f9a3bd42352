//! A place in the bytes of a STEP file, and the words that can be read from there.

use super::{EntityId, Reason, StepError, spelling};

/// Reads forward only, byte by byte, so reading is linear in the file's length.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, StepError>;

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        // Some editors put a byte order mark before everything; it means nothing in UTF-8.
        let at = if bytes.starts_with(b"\xef\xbb\xbf") {
            3
        } else {
            0
        };
        Self { bytes, at }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// The same bytes from another place.
    pub(super) fn moved_to(&self, at: usize) -> Self {
        Self {
            bytes: self.bytes,
            at,
        }
    }

    pub(super) fn error_at(&self, offset: usize, reason: Reason) -> StepError {
        StepError::at(self.bytes, offset, reason)
    }

    pub(super) fn error(&self, reason: Reason) -> StepError {
        self.error_at(self.at, reason)
    }

    /// The error that something else should stand here; at the end of the file, that it is cut short.
    pub(super) fn unexpected(&self, reason: Reason) -> StepError {
        match self.byte() {
            None => self.error(Reason::Truncated),
            Some(byte) if !(0x20..0x7f).contains(&byte) => self.error(Reason::GarbageByte(byte)),
            Some(_) => self.error(reason),
        }
    }

    /// Skips blanks and comments, and tells the byte after them.
    pub(super) fn next(&mut self) -> Read<Option<u8>> {
        loop {
            match self.rest() {
                [b'/', b'*', ..] => self.skip_comment()?,
                [byte, ..] if spelling::is_blank(*byte) => self.at += 1,
                rest => return Ok(rest.first().copied()),
            }
        }
    }

    /// Takes `wanted` if it comes next.
    pub(super) fn take(&mut self, wanted: u8) -> Read<bool> {
        let found = self.next()? == Some(wanted);
        self.at += usize::from(found);
        Ok(found)
    }

    /// Takes `wanted` or complains with `reason`.
    pub(super) fn expect(&mut self, wanted: u8, reason: Reason) -> Read<()> {
        if self.take(wanted)? {
            Ok(())
        } else {
            Err(self.unexpected(reason))
        }
    }

    /// Takes a word like `ENDSEC` if it comes next and is not part of a longer one.
    pub(super) fn take_word(&mut self, word: &str) -> Read<bool> {
        self.next()?;
        let rest = self.rest();
        let found = rest
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
            && !rest
                .get(word.len())
                .is_some_and(|&byte| spelling::is_name_byte(byte));
        self.at += if found { word.len() } else { 0 };
        Ok(found)
    }

    pub(super) fn keyword(&mut self) -> Read<&'a str> {
        self.next()?;
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'!'));
        self.skip_while(spelling::is_name_byte);
        let keyword = self.ascii_from(start);
        if spelling::is_keyword(keyword) {
            Ok(keyword)
        } else {
            self.at = start;
            Err(self.unexpected(Reason::Expected("a keyword")))
        }
    }

    /// `#12`
    pub(super) fn id(&mut self) -> Read<EntityId> {
        self.expect(b'#', Reason::Expected("an entity number"))?;
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        if start == self.at {
            return Err(self.unexpected(Reason::Expected("the digits of an entity number")));
        }
        match self.ascii_from(start).parse() {
            Ok(number @ 1..) => Ok(EntityId(number)),
            _ => Err(self.error_at(start - 1, Reason::BadId)),
        }
    }

    /// A string's content, between the apostrophes.
    pub(super) fn text(&mut self) -> Read<&'a [u8]> {
        let opening = self.at;
        self.at += 1;
        loop {
            match self.rest() {
                [] => return Err(self.error_at(opening, Reason::UnterminatedString)),
                [b'\'', b'\'', ..] => self.at += 2,
                [b'\'', ..] => break,
                [byte, ..] if spelling::is_text_byte(*byte) => self.at += 1,
                [byte, ..] => return Err(self.error(Reason::GarbageByte(*byte))),
            }
        }
        self.at += 1;
        Ok(&self.bytes[opening + 1..self.at - 1])
    }

    /// What stands between two `mark`s: the name of an enumeration or the digits of a binary value.
    pub(super) fn between(
        &mut self,
        mark: u8,
        unterminated: Reason,
        is_good: fn(&str) -> bool,
    ) -> Read<&'a str> {
        let opening = self.at;
        self.at += 1;
        self.skip_while(spelling::is_name_byte);
        let content = self.ascii_from(opening + 1);
        match self.byte() {
            Some(byte) if byte == mark && is_good(content) => {
                self.at += 1;
                Ok(content)
            }
            None => Err(self.error_at(opening, unterminated)),
            Some(_) => Err(self.unexpected(unterminated)),
        }
    }

    /// An integer or a real, unchecked.
    pub(super) fn number(&mut self) -> &'a str {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        self.ascii_from(start)
    }

    fn skip_comment(&mut self) -> Read<()> {
        let opening = self.at;
        self.at += 2;
        while !self.rest().starts_with(b"*/") {
            if self.byte().is_none() {
                return Err(self.error_at(opening, Reason::UnterminatedComment));
            }
            self.at += 1;
        }
        self.at += 2;
        Ok(())
    }

    fn skip_while(&mut self, is_part: impl Fn(u8) -> bool) {
        while self.byte().is_some_and(&is_part) {
            self.at += 1;
        }
    }

    /// The bytes from `start` to here, of which the caller has taken only ASCII.
    fn ascii_from(&self, start: usize) -> &'a str {
        std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }
}
