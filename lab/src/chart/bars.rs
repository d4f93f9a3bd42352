//! Stacked bars in groups.

use super::axis::Axis;
use super::svg::{BOTTOM, Canvas, HEIGHT, LEFT, RIGHT, WIDTH, color, up};

/// A bar: the parts lie on each other, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Below it.
    pub name: String,
    /// As high as each part is.
    pub parts: Vec<f64>,
    /// Where a model would have its top.
    pub modelled: Option<f64>,
}

/// Bars in groups, side by side.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Above them.
    pub title: String,
    /// What goes up, with its unit.
    pub y: String,
    /// What the parts of each bar are.
    pub parts: Vec<String>,
    /// What a cross stands for.
    pub model: String,
    /// What the groups are, and the bars of each.
    pub groups: Vec<(String, Vec<Bar>)>,
}

impl Bars {
    /// The file's text.
    pub fn svg(&self) -> String {
        let bars = || self.groups.iter().flat_map(|(_, bars)| bars);
        let tops = bars().flat_map(|bar| {
            let top = bar.parts.iter().filter(|part| part.is_finite()).sum();
            [Some(top), bar.modelled].into_iter().flatten()
        });
        // From zero: parts of a bar that is cut off below could not be compared.
        let axis = Axis::over(tops.chain([0.0]));
        let mut canvas = Canvas::new();
        canvas.titles(&self.title, "", &self.y);
        canvas.heights(&axis);
        for (number, part) in self.parts.iter().enumerate() {
            let (x, y) = canvas.entry(part);
            canvas.bar(color(number), (x - 9.0, y - 5.0), (18.0, 10.0));
        }
        if bars().any(|bar| bar.modelled.is_some()) {
            let sign = canvas.entry(&self.model);
            canvas.mark("black", sign);
        }
        // One place of air between groups.
        let places = bars().count() + self.groups.len();
        let width = (WIDTH - LEFT - RIGHT) / places.max(1) as f64;
        let mut left = LEFT + width / 2.0;
        for (group, bars) in &self.groups {
            let middle = left + width * bars.len() as f64 / 2.0;
            canvas.words((middle, HEIGHT - BOTTOM + 32.0), "middle", group);
            for bar in bars {
                draw(&mut canvas, &axis, bar, (left, width));
                left += width;
            }
            left += width;
        }
        canvas.end()
    }
}

fn draw(canvas: &mut Canvas, axis: &Axis, bar: &Bar, (left, width): (f64, f64)) {
    let middle = left + width / 2.0;
    canvas.words((middle, HEIGHT - BOTTOM + 15.0), "middle", &bar.name);
    let mut below = 0.0;
    for (number, part) in bar
        .parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.is_finite())
    {
        let (bottom, top) = (up(axis, below), up(axis, below + part));
        canvas.bar(
            color(number),
            (left + width * 0.1, top),
            (width * 0.8, bottom - top),
        );
        below += part;
    }
    if let Some(modelled) = bar.modelled.filter(|value| value.is_finite()) {
        canvas.mark("black", (middle, up(axis, modelled)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_on_each_other_and_the_model_beside_them() {
        let bar = |parts, modelled| Bar {
            name: "base".to_owned(),
            parts,
            modelled,
        };
        let bars = vec![
            bar(vec![10.0, 30.0], Some(50.0)),
            bar(vec![f64::NAN, 20.0], None),
        ];
        let svg = Bars {
            parts: vec!["computing".to_owned(), "commit".to_owned()],
            model: "model".to_owned(),
            groups: vec![("3 members".to_owned(), bars)],
            ..Bars::default()
        }
        .svg();
        assert!(!svg.contains("NaN"), "{svg}");
        let of = |color: &str| -> Vec<(f64, f64)> {
            let drawn = svg
                .lines()
                .filter(|line| line.contains(color) && line.contains("<rect"));
            let value = |line: &str, key: &str| -> f64 {
                let rest = line.split(&format!(" {key}=\"")).nth(1).expect(key);
                rest.split('"')
                    .next()
                    .expect("a value")
                    .parse()
                    .expect("a number")
            };
            // The first is the legend's.
            drawn
                .skip(1)
                .map(|line| (value(line, "y"), value(line, "height")))
                .collect()
        };
        let (lower, upper) = (of(color(0)), of(color(1)));
        assert_eq!((lower.len(), upper.len()), (1, 2));
        assert!((upper[0].0 + upper[0].1 - lower[0].0).abs() < 0.2);
        assert!((upper[0].1 / lower[0].1 - 3.0).abs() < 0.05);
        // Its top is at 50: a quarter above the bar's.
        assert_eq!(svg.matches("stroke=\"black\"").count(), 2);
    }
}
