//! Reading parameters and records.

use super::cursor::Cursor;
use super::{
    Body, EntityId, NESTING_MAX, Param, RawText, Reason, Record, StepError, Typed, spelling,
};

type Read<T> = Result<T, StepError>;

impl Cursor<'_> {
    /// What stands behind the `=` of an entity.
    pub(super) fn body(&mut self) -> Read<Body> {
        if !self.take(b'(')? {
            return Ok(Body::Simple(self.record()?));
        }
        let mut records = Vec::new();
        while !self.take(b')')? {
            records.push(self.record()?);
        }
        if records.is_empty() {
            return Err(self.error(Reason::Expected("a type in the complex entity")));
        }
        Ok(Body::Complex(records))
    }

    /// `KEYWORD(parameters)`
    pub(super) fn record(&mut self) -> Read<Record> {
        let keyword = self.keyword()?;
        self.expect(b'(', Reason::Expected("an opening parenthesis"))?;
        let params = self.params(0)?;
        Ok(Record {
            keyword: keyword.into(),
            params,
        })
    }

    /// Parameters up to the closing parenthesis; the opening one is read.
    pub(super) fn params(&mut self, depth: usize) -> Read<Vec<Param>> {
        let mut params = Vec::new();
        if self.take(b')')? {
            return Ok(params);
        }
        loop {
            params.push(self.param(depth)?);
            if !self.take(b',')? {
                self.expect(b')', Reason::Expected("a comma or closing parenthesis"))?;
                params.shrink_to_fit();
                return Ok(params);
            }
        }
    }

    fn param(&mut self, depth: usize) -> Read<Param> {
        match self.next()? {
            Some(b'$') => self.take(b'$').map(|_| Param::Null),
            Some(b'*') => self.take(b'*').map(|_| Param::Derived),
            Some(b'#') => self.id().map(Param::<EntityId>::Reference),
            Some(b'\'') => self
                .text()
                .map(|raw| Param::Text(RawText::from_spelling(raw))),
            Some(b'(') => self.list(depth),
            Some(b'.') => self.enumeration(),
            Some(b'"') => self.binary(),
            Some(b'0'..=b'9' | b'+' | b'-') => self.integer_or_real(),
            Some(byte) if spelling::is_name_start(byte) || byte == b'!' => self.typed(depth),
            Some(b'@' | b'<') => Err(self.error(Reason::Unsupported(
                "a reference to a value or another file",
            ))),
            _ => Err(self.unexpected(Reason::Expected("a parameter"))),
        }
    }

    fn list(&mut self, depth: usize) -> Read<Param> {
        let inside = self.open(depth)?;
        self.params(inside).map(Param::List)
    }

    fn typed(&mut self, depth: usize) -> Read<Param> {
        let keyword = self.keyword()?.into();
        let inside = self.open(depth)?;
        let value = self.param(inside)?;
        self.expect(b')', Reason::Expected("a closing parenthesis"))?;
        Ok(Param::Typed(Box::new(Typed { keyword, value })))
    }

    fn open(&mut self, depth: usize) -> Read<usize> {
        if depth >= NESTING_MAX {
            return Err(self.error(Reason::NestingTooDeep));
        }
        self.expect(b'(', Reason::Expected("an opening parenthesis"))?;
        Ok(depth + 1)
    }

    fn enumeration(&mut self) -> Read<Param> {
        let name = self.between(
            b'.',
            Reason::Expected("an enumeration"),
            spelling::is_enumeration,
        )?;
        Ok(Param::Enum(name.into()))
    }

    fn binary(&mut self) -> Read<Param> {
        let digits = self.between(b'"', Reason::UnterminatedBinary, spelling::is_binary)?;
        Ok(Param::Binary(digits.into()))
    }

    fn integer_or_real(&mut self) -> Read<Param> {
        let start = self.offset();
        match self.number() {
            text if spelling::is_integer(text) => Ok(Param::Integer(text.into())),
            text if spelling::is_real(text) => Ok(Param::Real(text.into())),
            _ => Err(self.error_at(start, Reason::BadNumber)),
        }
    }
}
