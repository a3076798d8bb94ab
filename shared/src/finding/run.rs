//! The rules that make findings about a whole run.

use std::collections::BTreeMap;

use super::{Finding, rules::FEW_REQUESTS};
use crate::{
    format,
    id::{CellId, Phase},
    plan::PromptMode,
    state::{Cell, RunState},
    stats::cell::{CellResult, CellStatus},
    units::{Concurrency, Context},
};

/// A cell breaks the expected order when it is faster than its shorter neighbour, or slower than its less crowded
/// one, by more than this share: less is what one short window scatters anyway.
const ORDER_TOLERANCE: f64 = 0.1;

type Rule = fn(&RunState) -> Option<Finding>;

/// Every rule about a run, in the order in which findings are shown.
const RULES: &[Rule] = &[out_of_order_cells, failed_cells, few_requests, requests_queued, client_limited, warm_cache];

/// What a reader should know about a whole run.
pub fn run_findings(run: &RunState) -> Vec<Finding> {
    RULES.iter().filter_map(|rule| rule(run)).collect()
}

/// Finished decode cells with numbers, by context and concurrency.
fn decode_cells(run: &RunState) -> Vec<(CellId, &CellResult)> {
    let finished = run.cells_of(Phase::Decode).filter_map(|cell| Some((cell.id, cell.result()?)));
    let mut cells: Vec<_> = finished.filter(|(_, result)| !result.status.is_failed()).collect();
    cells.sort_by_key(|(id, _)| *id);
    cells
}

fn place(id: CellId) -> String {
    format!("{} × {}", id.context, id.concurrency)
}

fn cells(count: usize) -> String {
    if count == 1 { "1 cell".to_owned() } else { format!("{} cells", format::count(Some(count as u64))) }
}

/// A cell that breaks the expected order, and the neighbour that shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutOfOrder {
    /// The cell.
    pub cell: CellId,
    /// The next shorter context or the next lower concurrency.
    pub neighbour: CellId,
    /// The cell's total tok/s ÷ the neighbour's.
    pub ratio: f64,
}

/// Decode cells whose total speed is over 10 % above that of the next shorter context, or over 10 % below that of the
/// next lower concurrency.
pub fn out_of_order(run: &RunState) -> Vec<OutOfOrder> {
    let total = |cell: &Cell| Some((cell.id, cell.result()?.stats.total_tok_s?));
    let totals: BTreeMap<CellId, f64> = run.cells.iter().filter_map(total).collect();
    let ratio = |cell, neighbour| Some(totals.get(&cell)? / totals.get(&neighbour)?).filter(|r: &f64| r.is_finite());
    let check = |cell: CellId| {
        let shorter = before(run.plan.contexts(), cell.context).map(|context: Context| CellId { context, ..cell });
        let emptier = before(run.plan.concurrency(), cell.concurrency);
        let emptier = emptier.map(|concurrency: Concurrency| CellId { concurrency, ..cell });
        let faster = shorter.and_then(|id| Some((id, ratio(cell, id)?))).filter(|(_, r)| *r > 1.0 + ORDER_TOLERANCE);
        let slower = emptier.and_then(|id| Some((id, ratio(cell, id)?))).filter(|(_, r)| *r < 1.0 - ORDER_TOLERANCE);
        faster.or(slower).map(|(neighbour, ratio)| OutOfOrder { cell, neighbour, ratio })
    };
    decode_cells(run).into_iter().filter_map(|(id, _)| check(id)).collect()
}

fn before<T: PartialEq + Copy>(items: &[T], item: T) -> Option<T> {
    let index = items.iter().position(|other| *other == item)?;
    items.get(index.checked_sub(1)?).copied()
}

fn out_of_order_cells(run: &RunState) -> Option<Finding> {
    let odd = out_of_order(run);
    let first = odd.first()?;
    let verb = if odd.len() == 1 { "breaks" } else { "break" };
    let (word, by) = if first.ratio > 1.0 { ("faster", first.ratio - 1.0) } else { ("slower", 1.0 - first.ratio) };
    let text = format!(
        "{} {verb} the expected order. {} is {} % {word} than {}. One {} window per cell cannot tell an effect from \
         chance.",
        cells(odd.len()),
        place(first.cell),
        format::whole(Some(by * 100.0)),
        place(first.neighbour),
        format::duration_words(Some(run.plan.duration().as_secs_f64())),
    );
    Some(Finding::warning("out_of_order", text))
}

fn failed_cells(run: &RunState) -> Option<Finding> {
    let failed: Vec<&Cell> =
        run.cells.iter().filter(|cell| cell.result().is_some_and(|result| result.status.is_failed())).collect();
    let first = failed.first()?;
    let text = format!("{} failed. {}: {}.", cells(failed.len()), first.id, first.status_label());
    Some(Finding::warning("failed_cells", text))
}

fn few_requests(run: &RunState) -> Option<Finding> {
    let all = decode_cells(run);
    let completed = || all.iter().filter_map(|(_, result)| result.stats.requests).map(|counts| counts.completed);
    let few = completed().filter(|n| *n < FEW_REQUESTS).count();
    let none = completed().filter(|n| *n == 0).count();
    if few == 0 {
        return None;
    }
    let none = if none == 0 { String::new() } else { format!(", {none} finished none") };
    let text = format!(
        "{few} of {} finished fewer than {FEW_REQUESTS} requests{none}. Their latencies come from requests that were \
         still running.",
        cells(all.len()),
    );
    Some(Finding::warning("few_requests", text))
}

fn requests_queued(run: &RunState) -> Option<Finding> {
    let mut queued = decode_cells(run);
    queued.retain(|(_, result)| result.status == CellStatus::RequestsQueued);
    // The most crowded cell first: it is the one that shows the limit.
    queued.sort_by_key(|(id, _)| std::cmp::Reverse((id.concurrency, id.context)));
    let average = |(id, result): &(CellId, &CellResult)| {
        let active = result.stats.decoding_requests.or(result.stats.active_requests);
        (place(*id), format::decimal1(active), id.concurrency)
    };
    let (at, active, wanted) = average(queued.first()?);
    let second = queued.get(1).map(average);
    let second =
        second.map(|(at, active, wanted)| format!("; at {at} it was {active} of {wanted}")).unwrap_or_default();
    let count = cells(queued.len());
    let text = format!("{count} had requests queued. At {at} only {active} of {wanted} ran on average{second}.");
    Some(Finding::info("requests_queued", text))
}

fn client_limited(run: &RunState) -> Option<Finding> {
    let limited = decode_cells(run).iter().filter(|(_, result)| result.status == CellStatus::ClientLimited).count();
    let text = || format!("In {} this client could not keep up: the server may be faster.", cells(limited));
    (limited > 0).then(|| Finding::warning("client_limited", text()))
}

fn warm_cache(run: &RunState) -> Option<Finding> {
    if run.plan.prompts() == PromptMode::Cold {
        return None;
    }
    let ttft = |cell: &Cell| cell.result().and_then(|result| result.stats.ttft_s).map(|ttft| ttft.p50);
    let lowest = run.plan.concurrency().first().copied()?;
    let cold = run.cells_of(Phase::Prefill).filter_map(|cell| Some((cell.id.context, ttft(cell)?)));
    let both = cold.filter_map(|(context, cold)| {
        let warm = run.cell(CellId { phase: Phase::Decode, context, concurrency: lowest }).and_then(ttft)?;
        Some((context, cold, warm))
    });
    let (context, cold, warm) = both.max_by_key(|(context, ..)| *context)?;
    let text = format!(
        "TTFT in the matrix is measured with a warm prompt cache. Read cold prompts in Prefill: {context} takes {} there \
         and {} here.",
        format::ttft(Some(cold)),
        format::ttft(Some(warm)),
    );
    Some(Finding::info("warm_cache", text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_reference_run_has_four_findings() {
        let lines: Vec<String> = run_findings(&sample::reference()).into_iter().map(|finding| finding.text).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        9 cells break the expected order. 16K × 1 is 71 % faster than 8K × 1. One 30 s window per cell cannot tell an effect from chance.
        31 of 64 cells finished fewer than 3 requests, 10 finished none. Their latencies come from requests that were still running.
        2 cells had requests queued. At 1019K × 128 only 73.4 of 128 ran on average; at 1019K × 2 it was 1.8 of 2.
        TTFT in the matrix is measured with a warm prompt cache. Read cold prompts in Prefill: 1019K takes 163,008 ms there and 2,670 ms here.
        ");
    }
}
