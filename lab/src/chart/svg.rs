//! The pieces that charts are drawn of.

use super::axis::Axis;

pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 360.0;
pub(super) const LEFT: f64 = 60.0;
pub(super) const RIGHT: f64 = 190.0;
pub(super) const TOP: f64 = 30.0;
pub(super) const BOTTOM: f64 = 45.0;
/// Where the legend begins.
const LEGEND: f64 = WIDTH - RIGHT + 10.0;
/// Told apart also by who does not see all colours.
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

pub(super) fn color(number: usize) -> &'static str {
    COLORS[number % COLORS.len()]
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Stroke {
    Solid,
    Dashed,
}

/// A picture that grows.
pub(super) struct Canvas {
    text: String,
    legend: usize,
}

impl Canvas {
    pub(super) fn new() -> Self {
        Canvas {
            text: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
                 <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
            ),
            legend: 0,
        }
    }

    pub(super) fn end(self) -> String {
        self.text + "</svg>\n"
    }

    /// What it is about, and what goes to the right and up.
    pub(super) fn titles(&mut self, title: &str, x: &str, y: &str) {
        self.words((LEFT, TOP - 12.0), "start", title);
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        self.words((middle, HEIGHT - 8.0), "middle", x);
        self.words((LEGEND, HEIGHT - BOTTOM), "start", &format!("up: {y}"));
    }

    pub(super) fn words(&mut self, at: (f64, f64), anchor: &str, text: &str) {
        let (x, y) = at;
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        self.text +=
            &format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n");
    }

    pub(super) fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.text += &format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#ddd\"/>\n");
    }

    /// The lines across, with what they stand for.
    pub(super) fn heights(&mut self, axis: &Axis) {
        for tick in axis.ticks() {
            let y = up(axis, tick);
            self.grid((LEFT, y), (WIDTH - RIGHT, y));
            self.words((LEFT - 6.0, y + 4.0), "end", &axis.label(tick));
        }
    }

    pub(super) fn line(&mut self, color: &str, stroke: Stroke, points: &[(f64, f64)]) {
        let dashes = match stroke {
            Stroke::Solid => "",
            Stroke::Dashed => " stroke-dasharray=\"5 4\"",
        };
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        self.text += &format!(
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"{dashes} points=\"{}\"/>\n",
            points.join(" ")
        );
    }

    pub(super) fn bar(&mut self, color: &str, corner: (f64, f64), size: (f64, f64)) {
        let ((x, y), (width, height)) = (corner, size);
        self.text += &format!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>\n"
        );
    }

    /// A cross.
    pub(super) fn mark(&mut self, color: &str, at: (f64, f64)) {
        let (x, y) = at;
        self.text += &format!(
            "<path d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\" stroke=\"{color}\" stroke-width=\"2\"/>\n",
            x - 4.0,
            y - 4.0
        );
    }

    /// The next line of the legend; tells the middle of where its sign goes.
    pub(super) fn entry(&mut self, name: &str) -> (f64, f64) {
        let y = TOP + 10.0 + 16.0 * self.legend as f64;
        self.legend += 1;
        self.words((LEGEND + 24.0, y + 4.0), "start", name);
        (LEGEND + 9.0, y)
    }
}

/// Where a value is on the axis that goes up.
pub(super) fn up(axis: &Axis, value: f64) -> f64 {
    HEIGHT - BOTTOM - axis.at(value) * (HEIGHT - TOP - BOTTOM)
}

/// Where a value is on the axis that goes to the right.
pub(super) fn across(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.at(value) * (WIDTH - LEFT - RIGHT)
}
