//! The whole screen, drawn again each second.

use super::view::{HEADINGS, NO_ANSWER, View};
use crate::commands::node_status::{FULL, NO_STREAM, NOT_WELL};
use crate::text::Side;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

/// Draws a node; the keys in place of its children, if these are wanted.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View, has_keys: bool) {
    let head = view.head();
    let lines = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let parts = [
        Constraint::Length(lines),
        Constraint::Length(GRAPH_LINES),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [top, graph, middle, foot] = Layout::vertical(parts).areas(frame.area());
    let head: Vec<Line<'_>> = head.into_iter().enumerate().map(styled).collect();
    frame.render_widget(Paragraph::new(Text::from(head)), top);
    frame.render_widget(commits(view, graph.width), graph);
    match has_keys {
        true => frame.render_widget(Paragraph::new(KEYS).block(Block::bordered()), middle),
        false => frame.render_widget(children(view), middle),
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new(FOOT).style(dim), foot);
}

fn styled((number, line): (usize, String)) -> Line<'static> {
    let is_bad = [NOT_WELL, NO_ANSWER, FULL, NO_STREAM]
        .iter()
        .any(|word| line.contains(word));
    let style = match (number, is_bad) {
        (_, true) => Style::new().add_modifier(Modifier::REVERSED),
        (0, false) => Style::new().add_modifier(Modifier::BOLD),
        _ => Style::new(),
    };
    Line::styled(line, style)
}

/// As many seconds as there is room for.
fn commits(view: &View, width: u16) -> Sparkline<'_> {
    let shown = usize::from(width);
    let skipped = view.commits.len().saturating_sub(shown);
    let most = view.commits.iter().skip(skipped).max().unwrap_or(&0);
    let title = format!("commits a second, {most} at most");
    Sparkline::default()
        .data(view.commits.iter().skip(skipped))
        .block(Block::new().title(title))
}

fn children(view: &View) -> Table<'static> {
    let rows = view.children();
    let mut widths = HEADINGS.map(|(name, _)| name.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let set = |at: usize, cell: &str| match HEADINGS[at].1 {
        Side::Left => cell.to_owned(),
        // A width that is given to `format!` has a limit, and others give the names.
        Side::Right => " ".repeat(widths[at].saturating_sub(cell.chars().count())) + cell,
    };
    let heading = HEADINGS.iter().enumerate();
    let heading = Row::new(heading.map(|(at, (name, _))| set(at, name)));
    let rows = rows.iter().map(|row| {
        let cells = row.iter().enumerate();
        Row::new(cells.map(|(at, cell)| set(at, cell)).collect::<Vec<_>>())
    });
    let rows: Vec<Row<'static>> = rows.collect();
    let widths = widths.map(|width| Constraint::Length(u16::try_from(width).unwrap_or(u16::MAX)));
    Table::new(rows, widths)
        .column_spacing(2)
        .header(heading.style(Style::new().add_modifier(Modifier::UNDERLINED)))
}

const GRAPH_LINES: u16 = 4;
const FOOT: &str = "q ends, ? shows the keys";
const KEYS: &str = "\
q, Esc, Ctrl-C   end
?                show or hide this

lag: positions that the child is behind this node
traffic: bytes to and from the child since it has connected";

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::snapshot;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::{Duration, Instant};

    fn drawn(view: &View, has_keys: bool, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view, has_keys)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_has_the_node_its_children_and_the_keys() {
        let begin = Instant::now();
        let mut view = View::of("127.0.0.1:7430");
        for second in 0..200 {
            view.add(snapshot(
                begin + Duration::from_secs(second),
                10 * second,
                0,
            ));
        }
        let screen = drawn(&view, false, (80, 24));
        for words in ["home alps: well", "an?na", "10 at most", "q ends"] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        let screen = drawn(&view, true, (80, 24));
        assert!(
            screen.contains("Ctrl-C") && !screen.contains("an?na"),
            "{screen}"
        );
        // However small a screen is.
        for size in [(1, 1), (10, 3), (3, 40)] {
            drawn(&view, false, size);
        }
    }
}
