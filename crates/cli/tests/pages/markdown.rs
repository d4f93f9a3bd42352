//! The fenced blocks of a page.

/// A fenced block: its language, its marks and its text.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Of its first line, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    marks: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Block {
    /// What a mark such as `terminal=1` says. A mark without a value says nothing, `""`.
    pub(crate) fn mark(&self, name: &str) -> Option<&str> {
        let found = self.marks.iter().find(|(mark, _)| mark == name)?;
        Some(&found.1)
    }

    /// Whether its commands are run.
    pub(crate) fn is_run(&self) -> bool {
        self.language == "sh" && self.mark("skip").is_none()
    }

    fn begin(line: usize, info: &str) -> Self {
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_default().to_owned();
        let marks = words.map(|word| {
            let (mark, value) = word.split_once('=').unwrap_or((word, ""));
            assert!(MARKS.contains(&mark), "line {line}: unknown mark {mark}");
            (mark.to_owned(), value.to_owned())
        });
        let marks = marks.collect();
        Block {
            line,
            language,
            marks,
            text: String::new(),
        }
    }
}

/// The blocks of a page, in order. A block in a list is indented: so is its text.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, usize)> = None;
    for (number, line) in (1..).zip(page.lines()) {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        open = match (open, bare.strip_prefix("```")) {
            (None, None) => None,
            (None, Some(info)) => Some((Block::begin(number, info), indent)),
            (Some((block, _)), Some(_)) => {
                blocks.push(block);
                None
            }
            (Some((mut block, outer)), None) => {
                block.text += &line[outer.min(indent)..];
                block.text.push('\n');
                Some((block, outer))
            }
        };
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

const MARKS: [&str; 7] = [
    "terminal", "stop", "exit", "skip", "example", "program", "file",
];

#[test]
fn blocks_have_a_language_marks_and_text_without_indent() {
    let page = "# x\n```sh\na\n\n  b\n```\n1. y\n\n   ```sh terminal=2 skip=far\n   c\n   ```\n```\nd\n```\n";
    let blocks = blocks(page);
    let texts: Vec<&str> = blocks.iter().map(|block| &*block.text).collect();
    assert_eq!(texts, ["a\n\n  b\n", "c\n", "d\n"]);
    assert_eq!(blocks[1].mark("terminal"), Some("2"));
    assert_eq!((blocks[1].line, blocks[2].mark("skip")), (9, None));
    let run: Vec<bool> = blocks.iter().map(Block::is_run).collect();
    assert_eq!(run, [true, false, false]);
}
