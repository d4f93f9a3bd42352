//! The words of a text, each with its line.

/// A word with all that stands at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// The words of a text, without the marks of comments: a citation may go on in the next line.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let lines = text.lines().enumerate();
    let words = lines.flat_map(|(index, line)| {
        let words = line.split_whitespace();
        words.map(move |text| Word {
            text,
            line: index + 1,
        })
    });
    let is_mark = |word: &Word<'_>| word.text.chars().all(|letter| "/!#*()".contains(letter));
    words.filter(|word| !is_mark(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_comments_are_no_words() {
        let words = words("/// a (b\n//! c\n(* d *)\n# e | f");
        let texts = words.iter().map(|word| word.text);
        assert!(texts.eq(["a", "(b", "c", "d", "e", "|", "f"]));
        let lines = words.iter().map(|word| word.line);
        assert!(lines.eq([1, 1, 2, 3, 4, 4, 4]));
    }
}
