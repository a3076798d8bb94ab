//! The decode matrix as a table whose cells have the colours of the app.

use super::{concat, escape};
use crate::{
    format,
    id::{CellId, Phase},
    metric::{self, Better, Metric},
    scale::{Range, step},
    state::{Cell, RunState},
};

/// The table; nothing for a run without decode cells.
pub(super) fn render(state: &RunState) -> String {
    let (Some(total), Some(ttft)) = (metric::by_key("total_tok_s"), metric::by_key("ttft")) else {
        return String::new();
    };
    if state.cells_of(Phase::Decode).next().is_none() {
        return String::new();
    }
    let range = Range::of(state.cells_of(Phase::Decode).filter_map(|cell| number(cell, total)));
    let levels = state.plan.concurrency();
    let heads = concat(levels.iter().map(|level| format!("<th scope=\"col\">{level}</th>")));
    let mut rows = String::new();
    for &context in state.plan.contexts() {
        rows += "<tr><th scope=\"row\">";
        rows += &context.to_string();
        rows += "</th>";
        for &concurrency in levels {
            let cell = state.cell(CellId { phase: Phase::Decode, context, concurrency });
            rows.push_str(
                &cell.map_or_else(|| "<td class=\"none\"></td>".to_owned(), |cell| square(cell, [total, ttft], range)),
            );
        }
        rows.push_str("</tr>\n");
    }
    let level = escape(state.plan.load().level_words());
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"The matrix\"><table class=\"matrix\">\n\
         <caption>Rows are context length, columns are {level}</caption>\n\
         <thead><tr><th scope=\"col\">Context</th>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn number(cell: &Cell, metric: &Metric) -> Option<f64> {
    cell.result().filter(|result| !result.status.is_failed()).and_then(metric.get)
}

fn square(cell: &Cell, [total, ttft]: [&Metric; 2], range: Option<Range>) -> String {
    let value = number(cell, total);
    let class = match (value, range) {
        (Some(value), Some(range)) => format!("q{}", step(value, range, Better::Higher)),
        _ => "none".to_owned(),
    };
    let second = match (value, number(cell, ttft)) {
        (None, _) => escape(&cell.status_label()),
        (_, None) => String::new(),
        (_, Some(secs)) => format!("{} TTFT", format::ttft(Some(secs))),
    };
    let status =
        cell.result().filter(|result| value.is_some() && result.status != crate::stats::cell::CellStatus::Valid);
    let flag = status.map(|result| format!("<small class=\"flag\">{}</small>", escape(&result.status.label())));
    format!(
        "<td class=\"{class}\"><b>{}</b>{}<small>{second}</small></td>",
        (total.show)(value),
        flag.unwrap_or_default()
    )
}
