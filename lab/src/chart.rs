//! Charts as files that every browser shows (SVG).

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 45.0;
/// Told apart also by who does not see all colours.
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];
/// Lines on an axis, about.
const TICKS: f64 = 6.0;

/// Lines over one pair of axes, each from zero if it can.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// What goes to the right, with its unit.
    pub x: String,
    /// What goes up, with its unit.
    pub y: String,
    /// What they are called, and their points.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// From where to where an axis goes.
#[derive(Clone, Copy)]
struct Axis {
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::MAX, 0.0), |(low, high), value| {
                (value.min(low), value.max(high))
            });
        // What varies little far from zero would be a flat line.
        let near = low <= high && low > high * 0.75;
        let from = if near { low } else { 0.0 };
        let rough = ((high - from) / TICKS).max(1e-9);
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|nice| nice * power)
            .into_iter()
            .find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let from = (from / step).floor() * step;
        Axis {
            from,
            to: ((high / step).ceil() * step).max(from + step),
            step,
        }
    }

    /// From 0 at its beginning to 1 at its end.
    fn at(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        let count = ((self.to - self.from) / self.step).round() as u32;
        (0..=count).map(move |n| self.from + self.step * f64::from(n))
    }

    fn label(&self, value: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{value:.digits$}")
    }
}

impl Chart {
    /// The file's text.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let x = Axis::over(points().map(|point| point.0));
        let y = Axis::over(points().map(|point| point.1));
        let across = |value| LEFT + x.at(value) * (WIDTH - LEFT - RIGHT);
        let up = |value| HEIGHT - BOTTOM - y.at(value) * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let text = |at: (f64, f64), anchor, text: &str| {
            let (x, y) = at;
            let text = text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
            format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
        };
        svg += &text((LEFT, TOP - 12.0), "start", &self.title);
        svg += &text(
            ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0),
            "middle",
            &self.x,
        );
        svg += &text(
            (WIDTH - RIGHT + 10.0, HEIGHT - BOTTOM),
            "start",
            &format!("up: {}", self.y),
        );
        for tick in x.ticks() {
            svg += &grid((across(tick), TOP), (across(tick), HEIGHT - BOTTOM));
            svg += &text(
                (across(tick), HEIGHT - BOTTOM + 15.0),
                "middle",
                &x.label(tick),
            );
        }
        for tick in y.ticks() {
            svg += &grid((LEFT, up(tick)), (WIDTH - RIGHT, up(tick)));
            svg += &text((LEFT - 6.0, up(tick) + 4.0), "end", &y.label(tick));
        }
        for (at, (name, points)) in self.lines.iter().enumerate() {
            let color = COLORS[at % COLORS.len()];
            let row = TOP + 10.0 + 16.0 * at as f64;
            let begin = WIDTH - RIGHT + 10.0;
            svg += &line(
                color,
                &format!("{begin:.1},{row:.1} {:.1},{row:.1}", begin + 18.0),
            );
            svg += &text((begin + 24.0, row + 4.0), "start", name);
            let drawn = points
                .iter()
                .filter(|point| point.0.is_finite() && point.1.is_finite());
            svg += &line(
                color,
                &drawn.fold(String::new(), |mut all, point| {
                    // Writing into a string cannot fail.
                    let _ = write!(all, "{:.1},{:.1} ", across(point.0), up(point.1));
                    all
                }),
            );
        }
        svg + "</svg>\n"
    }
}

fn line(color: &str, points: &str) -> String {
    format!(
        "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
        points.trim_end()
    )
}

fn grid(from: (f64, f64), to: (f64, f64)) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!("<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"#ddd\"/>\n")
}

/// What share of the values is not above each of them.
pub fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    values
        .into_iter()
        .enumerate()
        .map(|(at, value)| (value, (at + 1) as f64 * 100.0 / count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lies_inside_and_names_are_shown_as_they_are() {
        let lines = vec![(
            "a -> b".to_owned(),
            vec![(40.2, 1.0), (41.0, 100.0), (f64::NAN, 1.0)],
        )];
        let svg = Chart {
            title: "a & b".to_owned(),
            lines,
            ..Chart::default()
        }
        .svg();
        assert!(svg.contains("a -&gt; b") && svg.contains("a &amp; b"));
        let drawn = svg
            .lines()
            .rfind(|line| line.contains("polyline"))
            .expect("a line");
        let points = drawn
            .split("points=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("points");
        let points: Vec<(f64, f64)> = points
            .split(' ')
            .map(|point| point.split_once(',').expect("a point"))
            .map(|(x, y)| (x.parse().expect("a number"), y.parse().expect("a number")))
            .collect();
        assert_eq!(points.len(), 2);
        for (x, y) in points {
            assert!(
                (LEFT..=WIDTH - RIGHT).contains(&x) && (TOP..=HEIGHT - BOTTOM).contains(&y),
                "{x},{y}"
            );
        }
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let axis = Axis::over([3.0, 97.0].into_iter());
        assert_eq!((axis.from, axis.to, axis.step), (0.0, 100.0, 20.0));
        let near = Axis::over([40.2, 41.0].into_iter());
        assert!(near.from > 39.0 && near.from <= 40.2 && near.to >= 41.0);
        assert!(Axis::over([].into_iter()).ticks().count() < 10);
        assert!(Axis::over([0.0, 0.0].into_iter()).ticks().count() < 10);
    }

    #[test]
    fn a_distribution_rises_to_all() {
        assert_eq!(distribution(vec![3.0, 1.0]), [(1.0, 50.0), (3.0, 100.0)]);
        assert_eq!(distribution(vec![]), []);
    }
}
