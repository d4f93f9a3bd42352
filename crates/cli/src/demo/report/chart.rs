//! Stacked bars as SVG.

use crate::failure::Failure;
use plotters::prelude::*;

/// A bar: its name, and the parts that lie on each other.
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) parts: Vec<f64>,
}

/// What the parts of all bars of a chart mean.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) colour: RGBColor,
}

/// A chart of bars. `unit` stands at the axis.
pub(super) fn stacked(unit: &str, parts: &[Part], bars: &[Bar]) -> Result<String, Failure> {
    let mut svg = String::new();
    draw(&mut svg, unit, parts, bars)
        .map_err(|error| Failure::new(format!("a chart cannot be drawn: {error}"), ""))?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    unit: &str,
    parts: &[Part],
    bars: &[Bar],
) -> Result<(), Box<dyn std::error::Error>> {
    let highest = bars
        .iter()
        .map(|bar| bar.parts.iter().sum::<f64>())
        .fold(0., f64::max);
    // A chart of nothing still has an axis.
    let top = if highest > 0. { highest * 1.12 } else { 1. };
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    // The last segment belongs to a segmented range.
    let count = i32::try_from(bars.len()).unwrap_or(i32::MAX);
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .margin_top(14)
        .x_label_area_size(26)
        .y_label_area_size(58)
        .build_cartesian_2d((0..(count - 1).max(0)).into_segmented(), 0f64..top)?;
    let name_of = |place: &SegmentValue<i32>| match place {
        SegmentValue::CenterOf(at) => usize::try_from(*at).ok().and_then(|at| bars.get(at)),
        _ => None,
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(bars.len())
        .x_label_formatter(&|place| {
            name_of(place)
                .map(|bar| bar.name.clone())
                .unwrap_or_default()
        })
        .y_label_formatter(&|value| number(*value))
        .y_desc(unit)
        .label_style(("sans-serif", 12))
        .draw()?;
    for (index, part) in parts.iter().enumerate() {
        let style = part.colour.filled();
        let boxes = (0i32..).zip(bars).map(|(at, bar)| {
            let below: f64 = bar.parts.iter().take(index).sum();
            let own = bar.parts.get(index).copied().unwrap_or(0.);
            let (from, to) = (SegmentValue::Exact(at), SegmentValue::Exact(at + 1));
            let mut shape = Rectangle::new([(from, below), (to, below + own)], style);
            shape.set_margin(0, 0, BAR_MARGIN, BAR_MARGIN);
            shape
        });
        chart.draw_series(boxes)?;
    }
    let style = ("sans-serif", 12).into_text_style(&root).pos(ABOVE);
    let sums = (0i32..).zip(bars).map(|(at, bar)| {
        let sum: f64 = bar.parts.iter().sum();
        Text::new(
            number(sum),
            (SegmentValue::CenterOf(at), sum + top * 0.012),
            style.clone(),
        )
    });
    chart.draw_series(sums)?;
    root.present()?;
    Ok(())
}

/// As few digits as tell the bars apart.
fn number(value: f64) -> String {
    match value {
        v if v >= 100. => format!("{v:.0}"),
        v if v >= 10. => format!("{v:.1}"),
        v if v >= 0.1 => format!("{v:.2}"),
        v if v > 0. => format!("{v:.4}"),
        _ => "0".to_owned(),
    }
}

const SIZE: (u32, u32) = (560, 280);
const BAR_MARGIN: u32 = 14;
const ABOVE: plotters::style::text_anchor::Pos = plotters::style::text_anchor::Pos {
    h_pos: plotters::style::text_anchor::HPos::Center,
    v_pos: plotters::style::text_anchor::VPos::Bottom,
};
