//! A chart as a picture that every browser shows.

use super::{Axis, Chart, Series, Style};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

/// The chart as SVG. Points that cannot be shown on its axes are left out; so is what cannot be drawn at all.
pub fn svg(chart: &Chart) -> String {
    let mut picture = String::new();
    // Writing to a string does not fail; whatever else would leaves the picture as far as it came.
    let _ = draw(chart, &mut picture);
    picture
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(chart: &Chart, picture: &mut String) -> Drawn {
    let area = SVGBackend::with_string(picture, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let shown: Vec<Series> = chart.series.iter().map(|s| shown(chart, s)).collect();
    let (x, y) = (
        range(&chart.x, shown.iter().flat_map(|s| &s.points).map(|p| p.0)),
        range(&chart.y, shown.iter().flat_map(|s| &s.points).map(|p| p.1)),
    );
    match (chart.x.is_log, chart.y.is_log) {
        (false, false) => curves(&area, chart, &shown, x, y),
        (true, false) => curves(&area, chart, &shown, x.log_scale(), y),
        (false, true) => curves(&area, chart, &shown, x, y.log_scale()),
        (true, true) => curves(&area, chart, &shown, x.log_scale(), y.log_scale()),
    }?;
    area.present()?;
    Ok(())
}

/// A curve without what its axes cannot show.
fn shown(chart: &Chart, series: &Series) -> Series {
    let fits = |axis: &Axis, value: f64| value.is_finite() && (!axis.is_log || value > 0.0);
    let mut series = series.clone();
    series
        .points
        .retain(|&(x, y)| fits(&chart.x, x) && fits(&chart.y, y));
    series
}

/// From the least to the greatest value, with some room; from 0 where steps add and nothing is below.
fn range(axis: &Axis, values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = within(values);
    match (least <= most, axis.is_log) {
        (false, _) => 1.0..10.0,
        (true, true) if least < most => least..most,
        (true, true) => least / 2.0..most * 2.0,
        (true, false) => {
            let least = least.min(0.0);
            least..if most > least {
                most + (most - least) * 0.05
            } else {
                least + 1.0
            }
        }
    }
}

fn curves<X, Y>(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    chart: &Chart,
    shown: &[Series],
    x: X,
    y: Y,
) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut drawing = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)?;
    drawing
        .configure_mesh()
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|value| numeral(*value))
        .y_label_formatter(&|value| numeral(*value))
        .draw()?;
    for (number, series) in shown.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let width = if series.style == Style::Line { 2 } else { 1 };
        let mark = if series.style == Style::Thin { 0 } else { 3 };
        let line = colour.stroke_width(width);
        let handle = if series.style == Style::Points {
            let points = series.points.iter();
            drawing.draw_series(points.map(|&at| Circle::new(at, mark + 1, colour.filled())))?
        } else {
            let lines = LineSeries::new(series.points.iter().copied(), line).point_size(mark);
            drawing.draw_series(lines)?
        };
        if series.style == Style::Points {
            handle
                .label(&series.name)
                .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
        } else {
            handle
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], line));
        }
    }
    drawing
        .configure_series_labels()
        .position(emptiest_corner(chart, shown))
        .background_style(WHITE.mix(0.8))
        .border_style(RGBColor(200, 200, 200))
        .draw()?;
    Ok(())
}

/// Where a legend hides the fewest points.
fn emptiest_corner(chart: &Chart, shown: &[Series]) -> SeriesLabelPosition {
    let points = || shown.iter().flat_map(|s| &s.points);
    let xs = || points().map(|point| place(&chart.x, point.0));
    let ys = || points().map(|point| place(&chart.y, point.1));
    let (x, y) = (within(xs()), within(ys()));
    let is_near = |at: f64, (least, most): (f64, f64), end: bool| {
        let part = (at - least) / (most - least).max(f64::MIN_POSITIVE);
        if end { part > 0.6 } else { part < 0.4 }
    };
    let hidden = |right: bool, upper: bool| {
        let near = |(at_x, at_y): &(f64, f64)| is_near(*at_x, x, right) && is_near(*at_y, y, upper);
        xs().zip(ys()).filter(near).count()
    };
    let corners = [
        (SeriesLabelPosition::UpperLeft, false, true),
        (SeriesLabelPosition::LowerRight, true, false),
        (SeriesLabelPosition::UpperRight, true, true),
        (SeriesLabelPosition::LowerLeft, false, false),
    ];
    let emptiest = corners
        .into_iter()
        .min_by_key(|&(_, right, upper)| hidden(right, upper));
    emptiest.map_or(SeriesLabelPosition::UpperLeft, |(corner, ..)| corner)
}

/// Where on its axis, in any unit.
fn place(axis: &Axis, value: f64) -> f64 {
    if axis.is_log { value.ln() } else { value }
}

fn within(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), value| (least.min(value), most.max(value)),
    )
}

/// A number at an axis: short, with as many digits as it needs.
fn numeral(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if (1e5..1e15).contains(&size) => {
            let (by, letter) = match size {
                _ if size < 1e6 => (1e3, "k"),
                _ if size < 1e9 => (1e6, "M"),
                _ if size < 1e12 => (1e9, "G"),
                _ => (1e12, "T"),
            };
            format!("{}{letter}", rounded(value / by))
        }
        _ if (1e-4..1e5).contains(&size) => rounded(value),
        _ => format!("{value:.0e}"),
    }
}

/// Four digits, without zeros at the end.
fn rounded(value: f64) -> String {
    let whole = value.abs().max(1.0).log10().floor() as usize;
    let places = if value.abs() < 1.0 {
        4
    } else {
        3usize.saturating_sub(whole)
    };
    let text = format!("{value:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

const WIDTH: u32 = 760;
const HEIGHT: u32 = 440;

/// Told apart also by who does not see all colours.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_names_and_axes_are_there() {
        let picture = svg(&super::super::example().sections[0].charts[0]);
        for text in [
            "<svg",
            "Saved, by members",
            "model",
            "paper",
            "saved, %",
            "</svg>",
        ] {
            assert!(picture.contains(text), "{text} in {picture}");
        }
        assert!(!picture.contains("NaN"));
    }

    #[test]
    fn a_chart_of_nothing_is_drawn() {
        for is_log in [false, true] {
            let axis = Axis {
                label: "nothing".into(),
                is_log,
            };
            let chart = Chart {
                name: "none".into(),
                title: "None".into(),
                x: axis.clone(),
                y: axis,
                series: vec![Series::line("empty", vec![(0.0, f64::NAN)])],
            };
            assert!(svg(&chart).ends_with("</svg>\n"));
        }
    }

    #[test]
    fn numerals_are_short() {
        let numerals = [0.0, 0.25, 3.0, 1234.5, 250_000.0, 3.2e9, -2.5e6, 1e-7].map(numeral);
        assert_eq!(
            numerals,
            ["0", "0.25", "3", "1234", "250k", "3.2G", "-2.5M", "1e-7"]
        );
    }
}
