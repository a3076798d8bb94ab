//! Runs against each other: what is said of ordinary pairs, of bad ones, and the laws of swapping.

use proptest::prelude::*;

use super::{
    CellSide, CellVerdict, Comparison, Ranked,
    export::{ComparisonFormat, render},
    gate::{Gate, IfInconclusive},
    repeats::RepeatPlan,
};
use crate::{
    event::{Envelope, Origin, RunEvent, RunOutcome},
    format,
    id::CellId,
    plan::{PlanDraft, RunPlan},
    sample,
    state::RunState,
    stats::{
        cell::{CellResult, CellStats, CellStatus},
        compare::MARGIN,
        summary::Summary,
    },
    target::{EngineFacts, TargetFacts},
    trace::TokenSource,
    units::Nanos,
};

/// A run with a name, and what came of its cells: name, and the total speed of each measurement.
pub(super) fn run(id: &str, cells: &[(&str, &[f64])]) -> RunState {
    run_with(id, cells, |_| {}, |_| {})
}

pub(super) fn run_with(
    id: &str,
    cells: &[(&str, &[f64])],
    plan: impl Fn(&mut PlanDraft),
    result: impl Fn(&mut CellResult),
) -> RunState {
    let ids: Vec<CellId> = cells.iter().map(|(cell, _)| cell.parse().unwrap()).collect();
    let list = |of: fn(&CellId) -> String| ids.iter().map(of).collect::<Vec<_>>().join(",");
    let most = cells.iter().map(|(_, values)| values.len()).max().unwrap_or(1).max(1);
    let mut draft = PlanDraft {
        target: "host".into(),
        name: format!("Run {id}"),
        contexts: list(|id| id.context.to_string()),
        concurrency: list(|id| id.concurrency.to_string()),
        prefill_contexts: "none".into(),
        repeats: most.to_string(),
        ..PlanDraft::default()
    };
    plan(&mut draft);
    let facts = TargetFacts {
        engine: EngineFacts { engine: Some("vllm".into()), version: Some("1".into()), ..EngineFacts::default() },
        launch_command: Some(format!("vllm serve m --name {id}")),
        ..TargetFacts::default()
    };
    let start = RunEvent::RunStarted {
        plan: RunPlan::try_from(draft).unwrap(),
        started_unix_ms: 1_796_160_600_000,
        tool: "speedmatrix 1".into(),
    };
    let mut events = vec![start, RunEvent::Probed { facts: Box::new(facts), origin: Origin::Measured }];
    for ((_, values), cell) in cells.iter().zip(&ids) {
        for value in *values {
            let mut measured = measured(*value);
            result(&mut measured);
            events.push(RunEvent::CellFinished { cell: *cell, result: Box::new(measured) });
        }
    }
    events.push(RunEvent::RunFinished { outcome: RunOutcome::Finished });
    let events: Vec<Envelope> =
        (0..).zip(events).map(|(seq, event)| Envelope { seq, at: Nanos::from_secs(seq), event }).collect();
    RunState::fold(id.parse().unwrap(), &events).unwrap().unwrap()
}

fn measured(total_tok_s: f64) -> CellResult {
    let stats = CellStats {
        total_tok_s: Some(total_tok_s),
        ttft_s: Some(Summary::point(10.0 / total_tok_s.max(1.0))),
        token_source: Some(TokenSource::ServerPerChunk),
        ..CellStats::default()
    };
    CellResult { status: CellStatus::Valid, stats, findings: Vec::new(), failures: Vec::new(), rules: Some(2) }
}

fn speed(a: &RunState, b: &RunState) -> Comparison {
    Comparison::of(a, b, Ranked::total_speed(), MARGIN)
}

fn mixed_pair() -> (RunState, RunState) {
    let a = run(
        "a",
        &[
            ("decode-8K-1", &[100.0, 101.0, 99.0]),
            ("decode-8K-2", &[200.0, 202.0, 198.0]),
            ("decode-16K-1", &[90.0, 90.2, 89.9]),
            ("decode-16K-2", &[150.0, 190.0, 170.0]),
        ],
    );
    let b = run_with(
        "b",
        &[
            ("decode-8K-1", &[110.0, 111.0, 109.0]),
            ("decode-8K-2", &[180.0, 182.0, 178.0]),
            ("decode-16K-1", &[90.1, 90.0, 90.0]),
            ("decode-16K-2", &[160.0, 200.0, 155.0]),
            ("decode-8K-4", &[300.0]),
        ],
        |draft| draft.leave_out = "16Kx4".into(),
        |_| {},
    );
    (a, b)
}

#[test]
fn one_sentence_says_what_came_out() {
    let (a, b) = mixed_pair();
    let check = |a: &RunState, b: &RunState, wanted: &str| assert_eq!(speed(a, b).sentence(), wanted);
    check(&a, &b, "B is faster in 1 cell, slower in 1, no difference in 1, inconclusive in 1, 1 only in B.");
    let alone = |id, value| run(id, &[("decode-8K-1", &[value])]);
    check(
        &alone("a", 100.0),
        &alone("b", 120.0),
        "B is in no cell faster or slower: inconclusive in 1 cell. Run-to-run variation unknown: no cell was repeated on \
         both sides.",
    );
    check(&alone("a", 100.0), &alone("b", 0.0), "No cell can be compared: not comparable in 1 cell.");
    let other = run("b", &[("decode-64K-1", &[1.0])]);
    check(&alone("a", 100.0), &other, "The runs have no cell in common: 1 only in A, 1 only in B.");
}

/// Every row of a table has as many cells as its head; a bar of a text is escaped.
#[track_caller]
fn check_tables(markdown: &str) {
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = markdown.lines().collect();
    let tables = lines.split(|line| !line.starts_with('|')).filter(|table| !table.is_empty());
    for table in tables {
        assert!(table.len() > 2 && table[1].starts_with("|---|"), "{table:?}");
        assert!(table.iter().all(|row| bars(row) == bars(table[0]) && row.ends_with('|')), "{table:?}");
    }
}

#[test]
fn the_pull_request_gets_a_table() {
    let (mut a, b) = mixed_pair();
    a.facts.as_mut().unwrap().engine.version = Some("0|9\n<b>".into());
    let markdown = render(&speed(&a, &b), ComparisonFormat::Markdown);
    check_tables(&markdown);
    for wanted in [
        "# Total speed: B against A",
        "**B is faster in 1 cell, slower in 1, no difference in 1, inconclusive in 1, 1 only in B.**",
        "- A: Run a (`a`, started 2026-12-01 21:30 UTC)",
        "| matters | Engine | Version | 0\\|9 &lt;b> | 1 |",
        "| --name | changed | a | b |",
        "| Sustained decode, 8K × 4 | — | 300.0 | — | — | B only in B |  |",
    ] {
        assert!(markdown.lines().any(|line| line == wanted), "{wanted}\n{markdown}");
    }
    let row = markdown.lines().find(|line| line.starts_with("| Sustained decode, 8K × 1 ")).unwrap();
    assert!(
        row.starts_with("| Sustained decode, 8K × 1 | 100.0 | 110.0 | +10.0 % | +7.") && row.contains("▲ faster"),
        "{row}"
    );
}

#[test]
fn a_build_gets_a_test_per_cell() {
    let (a, mut b) = mixed_pair();
    b.facts.as_mut().unwrap().served_model = Some("<&\">".into());
    let xml = render(&speed(&a, &b), ComparisonFormat::Junit);
    let suite =
        "<testsuite name=\"Total speed: Run b against Run a\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"2\">";
    assert!(xml.contains(suite), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 5);
    assert!(xml.contains("<failure message=\"slower\">A 200.0, B 180.0, change −10.0 %, interval −1"), "{xml}");
}

#[test]
fn programs_get_numbers() {
    let (a, b) = mixed_pair();
    let comparison = speed(&a, &b);
    let csv = render(&comparison, ComparisonFormat::Csv);
    let lines: Vec<&str> = csv.trim_end().split("\r\n").collect();
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line.split(',').count() == 20), "{csv}");
    assert!(lines[1].starts_with("Sustained decode,8192,1,total_tok_s,a,b,Valid,Valid,99.99"), "{csv}");
    let file: serde_json::Value = serde_json::from_str(&render(&comparison, ComparisonFormat::Json)).unwrap();
    assert_eq!(file["counts"]["faster"], 1);
    assert_eq!(file["cells"].as_array().unwrap().len(), 5);
    assert_eq!(file["cells"][0]["verdict"], "faster");
    assert!(file["cells"][2]["a"].is_null());
}

#[test]
fn reasons_name_both_sides() {
    let check = |a: &RunState, b: &RunState, metric: &str, wanted: &str| {
        let comparison = Comparison::of(a, b, metric.parse().unwrap(), MARGIN);
        let cell = &comparison.cells[0];
        assert_eq!((cell.verdict, cell.reasons.join(" | ").as_str()), (CellVerdict::NotComparable, wanted));
    };
    let cells: &[(&str, &[f64])] = &[("decode-8K-1", &[100.0])];
    let base = run("a", cells);
    let other = |plan: fn(&mut PlanDraft), result: fn(&mut CellResult)| run_with("b", cells, plan, result);
    let speed = "total_tok_s";
    check(
        &base,
        &other(|_| {}, |cell| cell.status = CellStatus::RequestsQueued),
        speed,
        "status: Valid and Requests queued",
    );
    check(&base, &other(|_| {}, |cell| cell.stats.total_tok_s = None), speed, "B has no value");
    check(
        &base,
        &other(|_| {}, |cell| cell.stats.total_tok_s = Some(0.0)),
        speed,
        "B is 0, of which there is no ratio",
    );
    check(&base, &other(|draft| draft.max_output = "16".into(), |_| {}), speed, "max output: 4,096 and 16");
    check(&base, &other(|draft| draft.load = "burst:9".into(), |_| {}), speed, "phase: sustained decode and burst:9");
    check(&base, &run("b", &[("decode-8K-1", &[])]), speed, "B was not measured (Not reached)");
    check(
        &run("a", &[("decode-8K-1", &[1e-300])]),
        &run("b", &[("decode-8K-1", &[1e300])]),
        speed,
        "the values are too far apart for a ratio",
    );
    let mut foreign = run("b", cells);
    (foreign.tool, foreign.origin) = ("llm-inference-bench 0.4".into(), Some(Origin::Imported));
    let apart = "definition of TTFT: speedmatrix and llm-inference-bench take it over other requests or moments";
    check(&base, &foreign, "ttft", apart);
    assert!(Comparison::of(&base, &foreign, Ranked::total_speed(), MARGIN).counts.compared() == 1);
}

#[test]
fn nearly_the_same_context_is_the_same_cell() {
    let check = |a: &str, b: &str, wanted: usize| {
        let (a, b) = (run("a", &[(a, &[100.0])]), run("b", &[(b, &[100.0])]));
        assert_eq!(speed(&a, &b).cells.len(), wanted, "{a:?}", a = a.cells[0].id);
    };
    check("decode-8K-1", "decode-8100-1", 1);
    check("decode-8K-1", "decode-8000-1", 2);
    check("decode-8K-1", "decode-8100-2", 2);
    let real = run_with("a", &[("decode-8K-1", &[1.0])], |_| {}, |cell| cell.stats.prompt_tokens = Some(8_004));
    assert_eq!(speed(&real, &run("b", &[("decode-8000-1", &[1.0])])).cells.len(), 1);
}

#[test]
fn a_run_against_itself_and_one_that_still_runs_say_so() {
    let reference = sample::reference();
    let itself = speed(&reference, &reference);
    assert_eq!((itself.counts.faster, itself.counts.slower, itself.cells.len()), (0, 0, 73));
    assert_eq!(itself.notes, ["A and B are the same run: nothing can have changed."]);
    assert!(itself.differences().is_empty());
    let running = RunState::fold("b".parse().unwrap(), sample::reference_events().iter().take(9)).unwrap().unwrap();
    let comparison = speed(&reference, &running);
    assert_eq!(comparison.notes.first().map(String::as_str), Some("B is still running: 7 of its 73 cells are done."));
    assert_eq!(Gate::of(&comparison, IfInconclusive::Pass), Gate::NotComparable);
}

#[test]
fn conditions_weigh() {
    let a = run("a", &[("decode-8K-1", &[100.0])]);
    let mut b = run_with("b", &[("decode-8K-1", &[100.0])], |draft| draft.temperature = "0".into(), |_| {});
    b.facts.as_mut().unwrap().engine.version = Some("2".into());
    b.facts.as_mut().unwrap().revision = Some("main".into());
    let comparison = speed(&a, &b);
    let said: Vec<String> = comparison
        .differences()
        .iter()
        .map(|it| format!("{}: {}, {:?} and {:?}", it.severity.unwrap().label(), it.label, it.a, it.b))
        .collect();
    let wanted = [
        "breaks comparability: Sampling, Some(\"temperature 1, to the output limit\") and Some(\"temperature 0, to the \
         output limit\")",
        "matters: Version, Some(\"1\") and Some(\"2\")",
        "noted: Revision, None and Some(\"main\")",
    ];
    assert_eq!(said, wanted);
    assert!(comparison.conditions.iter().any(|it| it.label == "Engine" && it.severity.is_none()));
}

#[test]
fn the_gate_lets_no_regression_through() {
    let check = |a: &[f64], b: &[f64], if_inconclusive, wanted| {
        let (a, b) = (run("a", &[("decode-8K-1", a)]), run("b", &[("decode-8K-1", b)]));
        assert_eq!(Gate::of(&speed(&a, &b), if_inconclusive), wanted);
    };
    let (tell, pass, fail) = (IfInconclusive::Tell, IfInconclusive::Pass, IfInconclusive::Fail);
    check(&[100.0, 101.0, 99.0], &[110.0, 111.0, 109.0], tell, Gate::Passed);
    check(&[100.0, 100.1, 99.9], &[100.0, 100.1, 99.9], tell, Gate::Passed);
    check(&[110.0, 111.0, 109.0], &[100.0, 101.0, 99.0], pass, Gate::Regressed);
    check(&[100.0, 120.0], &[105.0, 130.0], tell, Gate::Inconclusive);
    check(&[100.0, 120.0], &[105.0, 130.0], pass, Gate::Passed);
    check(&[100.0, 120.0], &[105.0, 130.0], fail, Gate::Regressed);
    check(&[100.0], &[50.0], tell, Gate::Inconclusive);
    check(&[100.0], &[0.0], pass, Gate::NotComparable);
    check(&[100.0], &[], pass, Gate::NotComparable);
}

#[test]
fn the_biggest_changes_come_first_and_proven_ones_before_others() {
    let (a, b) = mixed_pair();
    let comparison = speed(&a, &b);
    let names: Vec<String> = comparison.biggest(9).iter().map(|cell| cell.id.to_string()).collect();
    assert_eq!(names, ["decode-8K-2", "decode-8K-1", "decode-16K-2"]);
    assert_eq!(comparison.biggest(1).len(), 1);
}

#[test]
fn repeats_are_planned_from_earlier_ones() {
    let (a, b) = mixed_pair();
    let plan = |share| RepeatPlan::of(&[&a, &b], Ranked::total_speed(), share).unwrap().repeats.unwrap();
    assert!(plan(0.05) > plan(0.2) && plan(0.2) >= 2);
    let alone = run("c", &[("decode-8K-1", &[100.0])]);
    assert_eq!(RepeatPlan::of(&[&alone], Ranked::total_speed(), 0.05), None);
}

fn values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(
        prop_oneof![9 => 10.0..1_000.0_f64, 1 => Just(0.0), 2 => (-307..308_i32).prop_map(|power| 10.0_f64.powi(power))],
        0..4,
    )
}

fn runs(id: &'static str) -> impl Strategy<Value = RunState> {
    let cells = ["decode-8K-1", "decode-8100-1", "decode-8200-1", "decode-16K-1", "decode-16K-2"];
    let chosen = prop::sample::subsequence(cells.to_vec(), 1..=5);
    (chosen, prop::collection::vec(values(), 5)).prop_map(move |(cells, values)| {
        let cells: Vec<(&str, &[f64])> = cells.into_iter().zip(values.iter().map(Vec::as_slice)).collect();
        run(id, &cells)
    })
}

proptest! {
    #[test]
    fn swapping_the_runs_turns_everything_around(a in runs("a"), b in runs("b")) {
        for metric in ["total_tok_s", "ttft"] {
            let metric: Ranked = metric.parse().unwrap();
            let (there, back) = (Comparison::of(&a, &b, metric, MARGIN), Comparison::of(&b, &a, metric, MARGIN));
            prop_assert_eq!(there.cells.len(), back.cells.len());
            for cell in &there.cells {
                let turned = back.cells.iter().find(|other| match (&cell.a, &cell.b) {
                    (Some(one), _) => other.b.as_ref().is_some_and(|side| side.id == one.id),
                    (None, other_side) => other.a.as_ref().map(|side| side.id) == other_side.as_ref().map(|side| side.id),
                }).unwrap();
                prop_assert_eq!(cell.verdict.swapped(), turned.verdict);
                if let (Some(ratio), Some(inverse)) = (cell.ratio(), turned.ratio()) {
                    prop_assert!((ratio * inverse - 1.0).abs() < 1e-9);
                }
            }
            for format in ComparisonFormat::ALL {
                let text = render(&there, format);
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
            }
        }
    }

    #[test]
    fn a_run_against_itself_is_neither_faster_nor_slower(a in runs("a")) {
        for metric in Ranked::all() {
            let counts = Comparison::of(&a, &a, metric, MARGIN).counts;
            prop_assert_eq!((counts.faster, counts.slower, counts.only_a, counts.only_b), (0, 0, 0, 0));
        }
    }
}

/// A real pair of another tool, with and without speculation, where it lies beside the repository.
#[test]
fn a_real_pair_of_another_tool_is_likely_slower_without_speculation() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/samples");
    if !folder.is_dir() {
        println!("skipped: {} is not here", folder.display());
        return;
    }
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        crate::import::read(&bytes).unwrap().remove(0).run
    };
    let comparison = speed(&read("lib-nvfp4-mtp.json"), &read("lib-nvfp4-nomtp.json"));
    let cell = |id: &str| {
        let cell = comparison.cells.iter().find(|cell| cell.id.to_string() == id).unwrap();
        let value = |side: &Option<CellSide>| format::rate(side.as_ref().and_then(|side| side.value));
        let ratio = cell.ratio().map_or_else(String::new, |ratio| format!("{ratio:.4}"));
        let (a, b, label) = (value(&cell.a), value(&cell.b), cell.label(comparison.metric));
        format!("{id}: {a} and {b}, {ratio} {label} {:?}", cell.caveat())
    };
    let cells = ["decode-1-1", "decode-128K-64", "decode-128K-128", "prefill-8K-1"].map(cell);
    insta::assert_snapshot!(format!("{}\n{}", comparison.sentence(), cells.join("\n")), @r#"
B is likely slower in 36 cells, inconclusive in 5, not comparable in 4. Run-to-run variation unknown: no cell was repeated on both sides.
decode-1-1: 121.2 and 78.5, 0.6475 likely slower Some("run-to-run variation unknown")
decode-128K-64: 1,620.4 and 1,209.1, 0.7462 likely slower Some("run-to-run variation unknown")
decode-128K-128: 2,137.8 and 1,526.9,  not comparable None
prefill-8K-1: 17.4K and 17.8K, 1.0248 inconclusive Some("run-to-run variation unknown")
"#);
}
