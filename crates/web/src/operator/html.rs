//! HTML of which only this file's callers write the tags: all other text is escaped.

/// A page that grows.
///
/// Invariant: what [`Html::text`] adds has no tag and no end of a value in it.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Tags. They are in the program, so nobody else chooses them.
    pub(super) fn tags(&mut self, tags: &'static str) -> &mut Self {
        self.0.push_str(tags);
        self
    }

    /// Text of anybody.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // A browser would change these, or show text behind them elsewhere.
                letter if letter.is_control() => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// A cell of a table. Text that is written from right to left stays in it.
    pub(super) fn cell(&mut self, text: &str) -> &mut Self {
        self.tags("<td><bdi>").text(text).tags("</bdi></td>")
    }

    /// A cell with a number.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.tags("<td class=\"number\">")
            .text(&number.to_string())
            .tags("</td>")
    }

    /// The page.
    pub(super) fn done(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut page = Html::default();
        page.tags("<p title=\"")
            .text("\"'<script>&\u{7}")
            .tags("\">");
        let page = page.done();
        assert_eq!(page, "<p title=\"&quot;&#39;&lt;script&gt;&amp;\u{fffd}\">");
    }
}
