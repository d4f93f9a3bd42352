//! Writing a file.

use std::io::{self, Write};

use super::{Body, EntityId, Param, Record, StepFile};

/// Writes the file: one statement on each line, every parameter in the spelling it has, nothing that depends on the
/// time or the machine. What is read back from it equals `file`.
///
/// # Errors
/// Those of `out`.
pub fn write(file: &StepFile, out: impl Write) -> io::Result<()> {
    // A file is written in millions of small pieces.
    let mut out = io::BufWriter::new(out);
    out.write_all(b"ISO-10303-21;\nHEADER;\n")?;
    for record in &file.header {
        write_record(record, &mut out)?;
        out.write_all(b";\n")?;
    }
    out.write_all(b"ENDSEC;\nDATA")?;
    if !file.data.is_empty() {
        write_params(&file.data, &mut out)?;
    }
    out.write_all(b";\n")?;
    for entity in &file.entities {
        write!(out, "{}=", entity.id)?;
        write_body(&entity.body, &mut out)?;
        out.write_all(b";\n")?;
    }
    out.write_all(b"ENDSEC;\nEND-ISO-10303-21;\n")?;
    out.flush()
}

fn write_body(body: &Body, out: &mut impl Write) -> io::Result<()> {
    match body {
        Body::Simple(record) => write_record(record, out),
        Body::Complex(records) => {
            out.write_all(b"(")?;
            records
                .iter()
                .try_for_each(|record| write_record(record, out))?;
            out.write_all(b")")
        }
    }
}

fn write_record(record: &Record, out: &mut impl Write) -> io::Result<()> {
    out.write_all(record.keyword.as_bytes())?;
    write_params(&record.params, out)
}

fn write_params(params: &[Param], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"(")?;
    for (place, param) in params.iter().enumerate() {
        if place > 0 {
            out.write_all(b",")?;
        }
        write_param(param, out)?;
    }
    out.write_all(b")")
}

fn write_param(param: &Param, out: &mut impl Write) -> io::Result<()> {
    match param {
        Param::Null => out.write_all(b"$"),
        Param::Derived => out.write_all(b"*"),
        Param::Integer(spelling) | Param::Real(spelling) => out.write_all(spelling.as_bytes()),
        Param::Text(text) => write_between(b"'", text.as_bytes(), out),
        Param::Enum(name) => write_between(b".", name.as_bytes(), out),
        Param::Binary(digits) => write_between(b"\"", digits.as_bytes(), out),
        Param::Reference(EntityId(number)) => write!(out, "#{number}"),
        Param::List(members) => write_params(members, out),
        Param::Typed(typed) => {
            out.write_all(typed.keyword.as_bytes())?;
            write_params(std::slice::from_ref(&typed.value), out)
        }
    }
}

fn write_between(mark: &[u8], content: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(mark)?;
    out.write_all(content)?;
    out.write_all(mark)
}
