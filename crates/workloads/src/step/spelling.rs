//! How the words of a STEP file are spelled. The reader scans with these, and values from a store are checked
//! against them, so that whatever is in memory can be written into a valid file.

/// A keyword: letters, digits and underscores; a leading `!` marks one that is not in the schema.
pub(super) fn is_keyword(text: &str) -> bool {
    let name = text.strip_prefix('!').unwrap_or(text).as_bytes();
    matches!(name.first(), Some(first) if is_name_start(*first))
        && name.iter().all(|&byte| is_name_byte(byte))
}

/// What stands between the full stops of an enumeration.
pub(super) fn is_enumeration(text: &str) -> bool {
    matches!(text.as_bytes().first(), Some(first) if is_name_start(*first))
        && text.bytes().all(is_name_byte)
}

/// What stands between the quotation marks of a binary value.
pub(super) fn is_binary(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `[+-]digits`
pub(super) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `[+-]digits.[digits][E[+-]digits]`. A small `e`, and an exponent without a full stop, are against the standard
/// but are written, and there is no doubt what they mean.
pub(super) fn is_real(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['E', 'e']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    is_integer(whole)
        && (fraction.is_some() || exponent.is_some())
        && fraction.is_none_or(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        && exponent.is_none_or(is_integer)
}

/// What stands between the apostrophes of a string: every apostrophe doubled, no control bytes but tabs and ends of
/// lines (the standard lets a line end anywhere).
pub(super) fn is_text(raw: &[u8]) -> bool {
    let mut bytes = raw.iter();
    while let Some(&byte) = bytes.next() {
        if !is_text_byte(byte) || (byte == b'\'' && bytes.next() != Some(&b'\'')) {
            return false;
        }
    }
    true
}

pub(super) fn is_text_byte(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f || is_blank(byte)
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for good in ["0", "+1", "-12", "007"] {
            assert!(is_integer(good) && !is_real(good), "{good}");
        }
        for good in ["0.", "-1.5", "1.E-5", "1.5E+10", "1e5", "2.e3"] {
            assert!(is_real(good) && !is_integer(good), "{good}");
        }
        for bad in ["", "+", ".5", "1.2.3", "1.E", "E5", "1.-2", "--1", "1.5x"] {
            assert!(!is_real(bad) && !is_integer(bad), "{bad}");
        }
    }

    #[test]
    fn words() {
        assert!(is_keyword("IFCWALL") && is_keyword("!MINE_2") && is_keyword("ifcWall"));
        assert!(
            !is_keyword("")
                && !is_keyword("!")
                && !is_keyword("2D")
                && !is_keyword("A B")
                && !is_keyword("A(")
        );
        assert!(is_enumeration("T") && !is_enumeration("") && !is_enumeration("A."));
        assert!(is_binary("0F3a") && !is_binary("") && !is_binary("G"));
        assert!(
            is_text(b"it''s")
                && !is_text(b"it's")
                && !is_text(b"\0")
                && is_text(b"\xe4")
                && !is_text(b"'''")
        );
    }
}
