//! Messages of PostgreSQL's `pgoutput`, version 1: which rows a transaction has changed.

use bytes::{Buf, Bytes};

/// A value of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    Null,
    /// It has not changed, and is too large to be sent (TOAST).
    Unchanged,
    Text(Bytes),
}

/// A row, or those of its columns that identify it. The others are null then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// All columns are there.
    pub(super) is_whole: bool,
}

/// The type `character(n)`. Its values have spaces at their end in the stream, and none in the text of an address.
const PADDED: u32 = 1042;

/// A column, as the stream describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// It belongs to the identity of a row.
    pub(super) is_key: bool,
    /// Spaces at the end of a value do not count.
    pub(super) is_padded: bool,
}

/// A table, as the stream describes it before its first change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Relation {
    pub(super) id: u32,
    /// `schema.name`.
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
}

impl Relation {
    /// Whether a column belongs to the identity of a row.
    pub(super) fn identifies(&self, name: &str) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.name == name && column.is_key)
    }
}

/// One message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Relation(Relation),
    Insert(u32, Row),
    /// The table, the old row as far as it is known, and the new one.
    Update(u32, Option<Row>, Row),
    Delete(u32, Row),
    Truncate(Vec<u32>),
    /// It changes no row: an origin, or a type.
    Nothing,
}

/// Reads one message. None: it is not as it should be, or of a kind that nobody knows.
pub(super) fn read(mut bytes: Bytes) -> Option<Change> {
    let from = &mut bytes;
    match from.try_get_u8().ok()? {
        b'R' => relation(from).map(Change::Relation),
        b'I' => {
            let id = from.try_get_u32().ok()?;
            match from.try_get_u8().ok()? {
                b'N' => Some(Change::Insert(id, row(from, true)?)),
                _ => None,
            }
        }
        b'U' => update(from),
        b'D' => {
            let id = from.try_get_u32().ok()?;
            let is_whole = is_whole(from.try_get_u8().ok()?)?;
            Some(Change::Delete(id, row(from, is_whole)?))
        }
        b'T' => {
            let count = from.try_get_u32().ok()?;
            from.try_get_u8().ok()?;
            let ids = (0..count).map(|_| from.try_get_u32().ok());
            ids.collect::<Option<_>>().map(Change::Truncate)
        }
        b'O' | b'Y' => Some(Change::Nothing),
        _ => None,
    }
}

fn update(from: &mut Bytes) -> Option<Change> {
    let id = from.try_get_u32().ok()?;
    let kind = from.try_get_u8().ok()?;
    if kind == b'N' {
        return Some(Change::Update(id, None, row(from, true)?));
    }
    let old = row(from, is_whole(kind)?)?;
    match from.try_get_u8().ok()? {
        b'N' => Some(Change::Update(id, Some(old), row(from, true)?)),
        _ => None,
    }
}

/// An old row is whole, or a key.
fn is_whole(kind: u8) -> Option<bool> {
    match kind {
        b'O' => Some(true),
        b'K' => Some(false),
        _ => None,
    }
}

fn relation(from: &mut Bytes) -> Option<Relation> {
    let id = from.try_get_u32().ok()?;
    let schema = text(from)?;
    let name = text(from)?;
    let identity = from.try_get_u8().ok()?;
    let count = from.try_get_u16().ok()?;
    let columns = (0..count).map(|_| {
        let flags = from.try_get_u8().ok()?;
        let name = text(from)?;
        let is_padded = from.try_get_u32().ok()? == PADDED;
        // How long a value may be.
        from.try_get_u32().ok()?;
        Some(Column {
            name,
            is_key: flags & 1 == 1 || identity == b'f',
            is_padded,
        })
    });
    // The catalogue's schema is empty here.
    let schema = match schema.is_empty() {
        true => "pg_catalog",
        false => &schema,
    };
    Some(Relation {
        id,
        name: format!("{schema}.{name}"),
        columns: columns.collect::<Option<_>>()?,
    })
}

fn row(from: &mut Bytes, is_whole: bool) -> Option<Row> {
    let count = from.try_get_u16().ok()?;
    let cells = (0..count).map(|_| match from.try_get_u8().ok()? {
        b'n' => Some(Cell::Null),
        b'u' => Some(Cell::Unchanged),
        b't' => {
            let length = from.try_get_u32().ok()? as usize;
            (from.remaining() >= length).then(|| Cell::Text(from.split_to(length)))
        }
        _ => None,
    });
    let cells = cells.collect::<Option<_>>()?;
    Some(Row { cells, is_whole })
}

/// A text that ends with a zero.
fn text(from: &mut Bytes) -> Option<String> {
    let end = from.iter().position(|byte| *byte == 0)?;
    let text = from.split_to(end);
    from.advance(1);
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> Vec<u8> {
        let length = (text.len() as u32).to_be_bytes();
        [b"t".as_slice(), &length, text.as_bytes()].concat()
    }

    #[test]
    fn an_update_has_an_old_and_a_new_row() {
        let one = 1u16.to_be_bytes();
        let message = [
            b"U\0\0\0\x07O".as_slice(),
            &one,
            &cell("a"),
            b"N",
            &2u16.to_be_bytes(),
            b"n",
            b"u",
        ];
        let old = Row {
            cells: vec![Cell::Text(Bytes::from_static(b"a"))],
            is_whole: true,
        };
        let new = Row {
            cells: vec![Cell::Null, Cell::Unchanged],
            is_whole: true,
        };
        let read = read(Bytes::from(message.concat()));
        assert_eq!(read, Some(Change::Update(7, Some(old), new)));
    }

    #[test]
    fn a_table_says_what_identifies_its_rows() {
        let mut message = b"R\0\0\0\x07shop\0item\0d\0\x02".to_vec();
        message.extend(b"\x01id\0\0\0\0\x17\0\0\0\0");
        message.extend(b"\0name\0\0\0\x04\x12\0\0\0\0");
        let column = |name: &str, is_key| Column {
            name: name.to_owned(),
            is_key,
            is_padded: !is_key,
        };
        let columns = vec![column("id", true), column("name", false)];
        let relation = Relation {
            id: 7,
            name: String::from("shop.item"),
            columns,
        };
        assert_eq!(
            read(Bytes::from(message.clone())),
            Some(Change::Relation(relation))
        );
        for length in 0..message.len() {
            assert_eq!(read(Bytes::copy_from_slice(&message[..length])), None);
        }
    }

    #[test]
    fn a_length_that_lies_is_no_row() {
        let message = b"I\0\0\0\x07N\0\x01t\xff\xff\xff\xffabc";
        assert_eq!(read(Bytes::from_static(message)), None);
        assert_eq!(read(Bytes::from_static(b"?")), None);
    }
}
