//! The form in which bodies are stored: a flat list of tokens.
//!
//! A value from a store was written by somebody else. A recursive decoder would follow it to any depth; this one
//! counts levels, and takes no spelling that could not be written into a file again.

use serde::{Deserialize, Serialize};

use super::{Body, NESTING_MAX, Param, RawText, Record, Typed, spelling};

/// One step of a body. Parameters follow their record; members of a list stand between `Open` and `Close`.
#[derive(Debug, Serialize, Deserialize)]
pub enum Token<R> {
    /// `$`
    Null,
    /// `*`
    Derived,
    /// The end of a list or typed parameter.
    Close,
    /// The beginning of a list.
    Open,
    /// A reference.
    Reference(R),
    /// A real.
    Real(Box<str>),
    /// An integer.
    Integer(Box<str>),
    /// A string.
    Text(RawText),
    /// An enumeration.
    Enum(Box<str>),
    /// A binary value.
    Binary(Box<str>),
    /// The beginning of a typed parameter.
    Typed(Box<str>),
    /// The beginning of a record.
    Record(Box<str>),
    /// What follows are the records of a complex entity.
    Complex,
}

/// Why tokens are not a body.
type Fault = &'static str;

impl<R> From<Body<R>> for Vec<Token<R>> {
    fn from(body: Body<R>) -> Self {
        let mut tokens = Vec::new();
        match body {
            Body::Simple(record) => flatten_record(record, &mut tokens),
            Body::Complex(records) => {
                tokens.push(Token::Complex);
                records
                    .into_iter()
                    .for_each(|record| flatten_record(record, &mut tokens));
            }
        }
        tokens
    }
}

impl<R> From<Record<R>> for Vec<Token<R>> {
    fn from(record: Record<R>) -> Self {
        Body::Simple(record).into()
    }
}

impl<R> TryFrom<Vec<Token<R>>> for Body<R> {
    type Error = Fault;

    fn try_from(tokens: Vec<Token<R>>) -> Result<Self, Fault> {
        let complex = matches!(tokens.first(), Some(Token::Complex));
        let mut records = Vec::new();
        let mut nest = Nest::default();
        for token in tokens.into_iter().skip(usize::from(complex)) {
            if let Token::Record(keyword) = token {
                nest.finish_record()?;
                records.push(Record {
                    keyword: checked(keyword, spelling::is_keyword)?,
                    params: Vec::new(),
                });
            } else {
                let record = records.last_mut().ok_or("a stored entity has no type")?;
                nest.take(token, &mut record.params)?;
            }
        }
        nest.finish_record()?;
        match (complex, records.len()) {
            (false, 1) => records
                .pop()
                .map(Body::Simple)
                .ok_or("a stored entity has no type"),
            (true, 1..) => Ok(Body::Complex(records)),
            _ => Err("a stored entity has the wrong number of types"),
        }
    }
}

impl<R> TryFrom<Vec<Token<R>>> for Record<R> {
    type Error = Fault;

    fn try_from(tokens: Vec<Token<R>>) -> Result<Self, Fault> {
        match Body::try_from(tokens)? {
            Body::Simple(record) => Ok(record),
            Body::Complex(_) => Err("a stored record is a complex entity"),
        }
    }
}

fn flatten_record<R>(record: Record<R>, tokens: &mut Vec<Token<R>>) {
    tokens.push(Token::Record(record.keyword));
    record
        .params
        .into_iter()
        .for_each(|param| flatten(param, tokens));
}

fn flatten<R>(param: Param<R>, tokens: &mut Vec<Token<R>>) {
    let token = match param {
        Param::Null => Token::Null,
        Param::Derived => Token::Derived,
        Param::Integer(text) => Token::Integer(text),
        Param::Real(text) => Token::Real(text),
        Param::Text(text) => Token::Text(text),
        Param::Enum(text) => Token::Enum(text),
        Param::Binary(text) => Token::Binary(text),
        Param::Reference(reference) => Token::Reference(reference),
        Param::List(members) => {
            tokens.push(Token::Open);
            members
                .into_iter()
                .for_each(|member| flatten(member, tokens));
            Token::Close
        }
        Param::Typed(typed) => {
            tokens.push(Token::Typed(typed.keyword));
            flatten(typed.value, tokens);
            Token::Close
        }
    };
    tokens.push(token);
}

/// The lists and typed parameters that are open, the innermost last.
struct Nest<R>(Vec<Container<R>>);

/// A typed parameter if it has a keyword, else a list.
struct Container<R> {
    keyword: Option<Box<str>>,
    members: Vec<Param<R>>,
}

impl<R> Default for Nest<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> Nest<R> {
    fn take(&mut self, token: Token<R>, outermost: &mut Vec<Param<R>>) -> Result<(), Fault> {
        let param = match token {
            Token::Null => Param::Null,
            Token::Derived => Param::Derived,
            Token::Integer(text) => Param::Integer(checked(text, spelling::is_integer)?),
            Token::Real(text) => Param::Real(checked(text, spelling::is_real)?),
            Token::Text(text) => Param::Text(text),
            Token::Enum(text) => Param::Enum(checked(text, spelling::is_enumeration)?),
            Token::Binary(text) => Param::Binary(checked(text, spelling::is_binary)?),
            Token::Reference(reference) => Param::Reference(reference),
            Token::Open => return self.open(None),
            Token::Typed(keyword) => {
                return self.open(Some(checked(keyword, spelling::is_keyword)?));
            }
            Token::Close => self.close()?,
            Token::Record(_) | Token::Complex => {
                return Err("a stored entity begins inside another");
            }
        };
        self.0
            .last_mut()
            .map_or(outermost, |container| &mut container.members)
            .push(param);
        Ok(())
    }

    fn open(&mut self, keyword: Option<Box<str>>) -> Result<(), Fault> {
        if self.0.len() >= NESTING_MAX {
            return Err("a stored entity is nested too deep");
        }
        self.0.push(Container {
            keyword,
            members: Vec::new(),
        });
        Ok(())
    }

    fn close(&mut self) -> Result<Param<R>, Fault> {
        let Container {
            keyword,
            mut members,
        } = self
            .0
            .pop()
            .ok_or("a stored list ends that did not begin")?;
        let Some(keyword) = keyword else {
            return Ok(Param::List(members));
        };
        match (members.pop(), members.is_empty()) {
            (Some(value), true) => Ok(Param::Typed(Box::new(Typed { keyword, value }))),
            _ => Err("a stored typed parameter does not hold exactly one value"),
        }
    }

    fn finish_record(&self) -> Result<(), Fault> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err("a stored list does not end")
        }
    }
}

fn checked(text: Box<str>, is_good: fn(&str) -> bool) -> Result<Box<str>, Fault> {
    if is_good(&text) {
        Ok(text)
    } else {
        Err("a stored value is not spelled as STEP wants it")
    }
}
