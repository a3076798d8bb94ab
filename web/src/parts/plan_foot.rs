//! The plan's foot: what it comes to, what is wrong with it, the way to start it, and the plan as command and file.

use leptos::{ev::Event, prelude::*};
use speedmatrix_shared::{
    format,
    id::Phase,
    plan::{
        FieldError, RunPlan,
        command::command,
        eta::{Eta, eta, least_prompt_tokens},
    },
    target::{Limits, TargetFacts},
};

use super::{
    copy::CopyButton,
    field::{Form, capitalised, input_id},
    icon::{Icon, icon},
    plan_file::PlanFiles,
    probe::Probe,
};
use crate::{browser, chart::line::roughly};

/// Where this browser keeps the price.
const PRICE_KEY: &str = "price-per-hour";
const JOULES_PER_KWH: f64 = 3_600_000.0;
const SECS_PER_HOUR: f64 = 3_600.0;

/// The sum of the plan, its problems, and the way to start it.
#[component]
pub fn Summary(
    /// The form.
    form: Form,
    /// What a look at the server brought.
    probe: RwSignal<Probe>,
    /// Start button and what goes with it.
    children: Children,
) -> impl IntoView {
    let price = RwSignal::new(browser::stored(PRICE_KEY).unwrap_or_default());
    let known = Memo::new(move |_| {
        probe.with(|probe| probe.facts().map(|facts| (facts.limits, most_watts(facts))).unwrap_or_default())
    });
    let sums = move || {
        let (limits, watts) = known.get();
        let spent = Spent { watts, price_per_hour: price.with(|price| price_of(price)) };
        form.plan.with(|plan| sums(plan.as_ref().ok(), limits, spent))
    };
    let row = |(label, text): (&'static str, String)| view! { <div><dt>{label}</dt><dd>{text}</dd></div> };
    let command = Memo::new(move |_| form.plan.with(|plan| plan.as_ref().ok().map(command)));
    view! {
        <aside class="panel summary" aria-labelledby="summary-title" data-testid="summary">
            <div class="inner">
                <h2 id="summary-title">"Plan"</h2>
                <dl>{move || sums().into_iter().map(row).collect_view()}</dl>
                <PriceField price/>
                <Problems form/>
                {children()}
                <div class="files">
                    <CopyButton label="Copy as command" text=command testid="copy-command"/>
                </div>
                <PlanFiles form/>
                {move || command.get().map(|line| view! {
                    <details class="line">
                        <summary>"Show the command"</summary>
                        <pre tabindex="0" data-testid="command">{line}</pre>
                    </details>
                })}
            </div>
        </aside>
    }
}

#[component]
fn PriceField(price: RwSignal<String>) -> impl IntoView {
    let typed = move |event: Event| {
        let text = event_target_value(&event);
        browser::store(PRICE_KEY, &text);
        price.set(text);
    };
    let wrong = move || price.with(|price| !price.trim().is_empty() && price_of(price).is_none());
    view! {
        <div class="field">
            <label for="field-price">"Price of the server per hour"</label>
            <input
                class="input"
                type="text"
                inputmode="decimal"
                id="field-price"
                data-testid="field-price"
                autocomplete="off"
                placeholder="unknown"
                prop:value=move || price.get()
                on:input=typed
                aria-invalid=move || wrong().then_some("true")
                aria-describedby="note-price"
            />
            <div id="note-price">
                {move || wrong().then(|| view! {
                    <p class="error">{icon(Icon::Warning)}<span>"Write a number, for example 2.50, or leave it empty."</span></p>
                })}
                <p class="hint">"In any currency; kept in this browser only."</p>
            </div>
        </div>
    }
}

/// What time costs, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spent {
    /// Most that the server's GPUs draw together.
    watts: Option<f64>,
    /// In any currency.
    price_per_hour: Option<f64>,
}

/// The power limits of the server's GPUs together; `None` if one does not tell its own.
fn most_watts(facts: &TargetFacts) -> Option<f64> {
    let limits: Option<Vec<f64>> = facts.hardware.gpus.iter().map(|gpu| gpu.power_limit_w).collect();
    limits.filter(|limits| !limits.is_empty()).map(|limits| limits.iter().sum())
}

fn price_of(text: &str) -> Option<f64> {
    let price: f64 = text.trim().replace(',', ".").parse().ok()?;
    (0.0..=1e9).contains(&price).then_some(price)
}

fn sums(plan: Option<&RunPlan>, limits: Limits, spent: Spent) -> Vec<(&'static str, String)> {
    let missing = || format::MISSING.to_owned();
    let time = plan.map(|plan| eta(plan, limits));
    let cells = plan.map(RunPlan::cells);
    let count = |phase| cells.as_ref().map(|cells| cells.iter().filter(|cell| cell.phase == phase).count() as u64);
    let mut sums = vec![
        ("Decode cells", format::count(count(Phase::Decode))),
        ("Prefill rows", format::count(count(Phase::Prefill))),
        (
            "Time per cell",
            plan.map_or_else(missing, |plan| format::duration_words(Some(plan.duration().as_secs_f64()))),
        ),
        ("Takes about", time.map_or_else(missing, |eta| range(roughly(eta.low_s), &roughly(eta.high_s)))),
        ("Prompts, at least", format::tokens(plan.map(least_prompt_tokens))),
    ];
    sums.extend(time.map(|time| costs(time, spent)).unwrap_or_default());
    sums
}

/// Energy and price, where they are known.
fn costs(eta: Eta, spent: Spent) -> Vec<(&'static str, String)> {
    let most_kwh = spent.watts.map(|watts| watts * eta.high_s / JOULES_PER_KWH);
    let energy = most_kwh.map(|kwh| ("Energy, at most", format!("{} kWh", format::decimal2(Some(kwh)))));
    let cost = spent.price_per_hour.map(|price| {
        let of = |secs: f64| format::decimal2(Some(price * secs / SECS_PER_HOUR));
        ("Cost, by your price", range(of(eta.low_s), &of(eta.high_s)))
    });
    energy.into_iter().chain(cost).collect()
}

fn range(low: String, high: &str) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

/// What is wrong, each a way to its field.
#[component]
fn Problems(form: Form) -> impl IntoView {
    let problem = |error: FieldError| {
        let go = move |_| browser::focus(&input_id(error.field));
        view! { <li><button type="button" on:click=go>{capitalised(&error.message)}</button></li> }
    };
    move || {
        let problems = form.shown_problems();
        (!problems.is_empty()).then(|| {
            view! {
                <div role="alert" data-testid="problems">
                    <h3>{icon(Icon::Warning)}" To put right"</h3>
                    <ul class="problems">{problems.into_iter().map(problem).collect_view()}</ul>
                </div>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::{gpu::GpuReading, plan::PlanDraft};

    use super::*;

    fn lines(spent: Spent) -> String {
        let draft = PlanDraft {
            target: "host".into(),
            contexts: "8K,16K".into(),
            concurrency: "1,2".into(),
            ..PlanDraft::default()
        };
        let plan = RunPlan::try_from(draft).unwrap();
        sums(Some(&plan), Limits::default(), spent)
            .into_iter()
            .map(|(label, text)| format!("{label}: {text}"))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        let plain = lines(Spent::default());
        assert!(plain.contains("Prompts, at least: 122,880 tokens"), "{plain}");
        assert!(!plain.contains("Energy") && !plain.contains("Cost"), "{plain}");
        let told = lines(Spent { watts: Some(1_400.0), price_per_hour: Some(36.0) });
        assert!(told.contains("Energy, at most: 0.0") && told.contains("Cost, by your price: 1."), "{told}");
        assert_eq!(sums(None, Limits::default(), Spent::default())[0].1, format::MISSING);
    }

    #[test]
    fn power_is_known_only_where_every_gpu_tells_it() {
        let check = |limits: &[Option<f64>], wanted: Option<f64>| {
            let mut facts = TargetFacts::default();
            facts.hardware.gpus =
                limits.iter().map(|&power_limit_w| GpuReading { power_limit_w, ..GpuReading::default() }).collect();
            assert_eq!(most_watts(&facts), wanted);
        };
        check(&[Some(700.0), Some(700.0)], Some(1_400.0));
        check(&[Some(700.0), None], None);
        check(&[], None);
    }

    #[test]
    fn prices_are_numbers() {
        assert_eq!(price_of(" 2,50 "), Some(2.5));
        assert_eq!((price_of("-1"), price_of("NaN"), price_of("free")), (None, None, None));
    }
}
