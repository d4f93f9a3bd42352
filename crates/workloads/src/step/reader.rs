//! Reading a file: its sections, and the entities one after the other.

use std::collections::HashSet;

use super::cursor::Cursor;
use super::{Entity, EntityId, Param, Reason, Record, StepError, StepFile};

/// Reads a whole STEP file.
///
/// # Errors
/// The first thing that is wrong with the file, with its place.
pub fn parse(bytes: &[u8]) -> Result<StepFile, StepError> {
    let mut reader = Reader::new(bytes)?;
    let mut entities = Vec::new();
    let mut starts = Vec::new();
    while let Some(entity) = reader.next_entity()? {
        starts.push(reader.start);
        entities.push(entity);
    }
    for (entity, start) in entities.iter().zip(starts) {
        reader.check_references(entity, start)?;
    }
    Ok(StepFile {
        header: reader.header,
        data: reader.data,
        entities,
    })
}

/// Reads a STEP file entity by entity, so that a large one need not be held as entities all at once.
///
/// References are not checked, since an entity may refer to a later one; [`Reader::is_defined`] tells at the end.
#[derive(Debug)]
pub struct Reader<'a> {
    cursor: Cursor<'a>,
    header: Vec<Record>,
    data: Vec<Param>,
    ids: HashSet<EntityId>,
    /// Where the last entity began.
    start: usize,
    finished: bool,
}

impl<'a> Reader<'a> {
    /// Reads the header, up to the first entity.
    ///
    /// # Errors
    /// The first thing that is wrong with the file up to there.
    pub fn new(bytes: &'a [u8]) -> Result<Self, StepError> {
        let mut cursor = Cursor::new(bytes);
        if cursor.next()?.is_none() {
            return Err(cursor.error(Reason::EmptyFile));
        }
        if !cursor.take_word("ISO-10303-21")? {
            return Err(cursor.error(Reason::NotStep));
        }
        cursor.expect(b';', Reason::MissingSemicolon)?;
        let header = read_header(&mut cursor)?;
        if !cursor.take_word("DATA")? {
            return Err(missing_data(&mut cursor)?);
        }
        let data = read_data_start(&mut cursor)?;
        Ok(Self {
            cursor,
            header,
            data,
            ids: HashSet::new(),
            start: 0,
            finished: false,
        })
    }

    /// The header's statements.
    #[must_use]
    pub fn header(&self) -> &[Record] {
        &self.header
    }

    /// The parameters of the DATA section; empty for the usual plain `DATA;`.
    #[must_use]
    pub fn data(&self) -> &[Param] {
        &self.data
    }

    /// Whether an entity of that number has been read.
    #[must_use]
    pub fn is_defined(&self, id: EntityId) -> bool {
        self.ids.contains(&id)
    }

    /// Reads the next entity; `None` at the end of a well-formed file.
    ///
    /// # Errors
    /// The first thing that is wrong with the file from here on. Nothing can be read after an error.
    pub fn next_entity(&mut self) -> Result<Option<Entity>, StepError> {
        if self.finished {
            return Ok(None);
        }
        loop {
            match self.cursor.next()? {
                Some(b'#') => return self.entity().map(Some),
                None => return Err(self.cursor.error(Reason::Truncated)),
                Some(_) => {
                    if !self.section_goes_on()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    fn entity(&mut self) -> Result<Entity, StepError> {
        self.start = self.cursor.offset();
        let id = self.cursor.id()?;
        if !self.ids.insert(id) {
            return Err(self.cursor.error_at(self.start, Reason::DuplicateId(id)));
        }
        self.cursor
            .expect(b'=', Reason::Expected("an equals sign"))?;
        let body = self.cursor.body()?;
        self.cursor.expect(b';', Reason::MissingSemicolon)?;
        Ok(Entity { id, body })
    }

    /// Reads `ENDSEC;` and what follows it. Further plain DATA sections continue the first: they differ in nothing.
    fn section_goes_on(&mut self) -> Result<bool, StepError> {
        end_section(&mut self.cursor)?;
        if self.cursor.take_word("DATA")? {
            let parameters = read_data_start(&mut self.cursor)?;
            if !self.data.is_empty() || !parameters.is_empty() {
                return Err(self
                    .cursor
                    .error(Reason::Unsupported("several DATA sections with parameters")));
            }
            return Ok(true);
        }
        read_end(&mut self.cursor)?;
        self.finished = true;
        Ok(false)
    }

    /// Finds the place of a dangling reference by reading the entity again: keeping the places of all references
    /// for the one file in a thousand that is broken would cost more memory than the references.
    fn check_references(&self, entity: &Entity, start: usize) -> Result<(), StepError> {
        let Some(&dangling) = entity
            .body
            .references()
            .into_iter()
            .find(|id| !self.ids.contains(id))
        else {
            return Ok(());
        };
        let mut cursor = self.cursor.moved_to(start);
        let offset = place_of_reference(&mut cursor, dangling).unwrap_or(start);
        Err(self
            .cursor
            .error_at(offset, Reason::DanglingReference(dangling)))
    }
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<Vec<Record>, StepError> {
    if !cursor.take_word("HEADER")? {
        return Err(cursor.unexpected(Reason::MissingHeader));
    }
    cursor.expect(b';', Reason::MissingSemicolon)?;
    let mut header = Vec::new();
    while !cursor.take_word("ENDSEC")? {
        let start = cursor.offset();
        if cursor.next()? == Some(b'#') || cursor.take_word("DATA")? {
            return Err(cursor.error_at(start, Reason::MissingEndsec));
        }
        let record = cursor.record()?;
        if record.params.iter().any(holds_reference) {
            return Err(cursor.error_at(start, Reason::Unsupported("a reference in the header")));
        }
        cursor.expect(b';', Reason::MissingSemicolon)?;
        header.push(record);
    }
    cursor.expect(b';', Reason::MissingSemicolon)?;
    Ok(header)
}

fn holds_reference(param: &Param) -> bool {
    let mut found = false;
    param.for_each_ref(&mut |_| found = true);
    found
}

/// What is wrong where `DATA` should stand: sections of the standard's third edition, or something else.
fn missing_data(cursor: &mut Cursor<'_>) -> Result<StepError, StepError> {
    let start = cursor.offset();
    for section in ["ANCHOR", "REFERENCE"] {
        if cursor.take_word(section)? {
            return Ok(
                cursor.error_at(start, Reason::Unsupported("an ANCHOR or REFERENCE section"))
            );
        }
    }
    Ok(cursor.unexpected(Reason::MissingData))
}

/// `;` or `('name',('SCHEMA'));` after `DATA`.
fn read_data_start(cursor: &mut Cursor<'_>) -> Result<Vec<Param>, StepError> {
    let start = cursor.offset();
    let parameters = if cursor.take(b'(')? {
        cursor.params(0)?
    } else {
        Vec::new()
    };
    if parameters.iter().any(holds_reference) {
        return Err(cursor.error_at(
            start,
            Reason::Unsupported("a reference in the DATA section's parameters"),
        ));
    }
    cursor.expect(b';', Reason::MissingSemicolon)?;
    Ok(parameters)
}

fn end_section(cursor: &mut Cursor<'_>) -> Result<(), StepError> {
    if cursor.take_word("ENDSEC")? {
        return cursor.expect(b';', Reason::MissingSemicolon);
    }
    let start = cursor.offset();
    if cursor.take_word("END-ISO-10303-21")? || cursor.take_word("DATA")? {
        return Err(cursor.error_at(start, Reason::MissingEndsec));
    }
    Err(cursor.unexpected(Reason::Expected("an entity or ENDSEC")))
}

fn read_end(cursor: &mut Cursor<'_>) -> Result<(), StepError> {
    if !cursor.take_word("END-ISO-10303-21")? {
        return Err(match cursor.next()? {
            None => cursor.error(Reason::Truncated),
            Some(_) => cursor.unexpected(Reason::MissingEndMarker),
        });
    }
    cursor.expect(b';', Reason::MissingSemicolon)?;
    match cursor.next()? {
        None => Ok(()),
        Some(_) => Err(cursor.error(Reason::TrailingData)),
    }
}

/// The place of the first `#id` after an entity's own number. The entity has been read before, so strings and
/// comments end and nothing here can fail but by a bug.
fn place_of_reference(cursor: &mut Cursor<'_>, id: EntityId) -> Option<usize> {
    cursor.id().ok()?;
    loop {
        let at = cursor.next_reference_or_end().ok()??;
        if cursor.id().ok()? == id {
            return Some(at);
        }
    }
}

impl Cursor<'_> {
    /// Moves to the next `#` outside of strings and comments, or past the `;`.
    fn next_reference_or_end(&mut self) -> Result<Option<usize>, StepError> {
        loop {
            match self.next()? {
                Some(b'#') => return Ok(Some(self.offset())),
                Some(b'\'') => {
                    self.text()?;
                }
                Some(b';') | None => return Ok(None),
                Some(other) => {
                    self.take(other)?;
                }
            }
        }
    }
}
