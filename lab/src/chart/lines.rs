//! Lines over one pair of axes.

use super::axis::Axis;
use super::svg::{BOTTOM, Canvas, HEIGHT, Stroke, TOP, across, color, up};

/// What something is called, and its points.
pub type Points = (String, Vec<(f64, f64)>);

/// Lines over one pair of axes, each from zero if it can.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// What goes to the right, with its unit.
    pub x: String,
    /// What goes up, with its unit.
    pub y: String,
    /// What was measured.
    pub lines: Vec<Points>,
    /// What was expected of it: dashed, the n-th in the colour of the n-th line.
    pub dashed: Vec<Points>,
    /// What others have told: crosses, the n-th in the colour of the n-th line.
    pub marks: Vec<Points>,
}

impl Chart {
    /// The file's text.
    pub fn svg(&self) -> String {
        let all = [&self.lines, &self.dashed, &self.marks];
        let points = || all.into_iter().flatten().flat_map(|(_, points)| points);
        let x = Axis::over(points().map(|point| point.0));
        let y = Axis::over(points().map(|point| point.1));
        let mut canvas = Canvas::new();
        canvas.titles(&self.title, &self.x, &self.y);
        for tick in x.ticks() {
            let at = across(&x, tick);
            canvas.grid((at, TOP), (at, HEIGHT - BOTTOM));
            canvas.words((at, HEIGHT - BOTTOM + 15.0), "middle", &x.label(tick));
        }
        canvas.heights(&y);
        let place = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            let there = points
                .iter()
                .filter(|point| point.0.is_finite() && point.1.is_finite());
            there
                .map(|point| (across(&x, point.0), up(&y, point.1)))
                .collect()
        };
        for (lines, stroke) in [(&self.lines, Stroke::Solid), (&self.dashed, Stroke::Dashed)] {
            for (number, (name, points)) in lines.iter().enumerate() {
                let (middle, row) = canvas.entry(name);
                canvas.line(
                    color(number),
                    stroke,
                    &[(middle - 9.0, row), (middle + 9.0, row)],
                );
                canvas.line(color(number), stroke, &place(points));
            }
        }
        for (number, (name, points)) in self.marks.iter().enumerate() {
            let sign = canvas.entry(name);
            for at in std::iter::once(sign).chain(place(points)) {
                canvas.mark(color(number), at);
            }
        }
        canvas.end()
    }
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
    use super::super::svg::{LEFT, RIGHT, WIDTH};
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
    fn a_distribution_rises_to_all() {
        assert_eq!(distribution(vec![3.0, 1.0]), [(1.0, 50.0), (3.0, 100.0)]);
        assert_eq!(distribution(vec![]), []);
    }
}
