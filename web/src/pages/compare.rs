//! Two runs compared: what differs in how they were measured, and what differs in what came out. All of the view is in
//! the address.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::{
    base::at,
    browser,
    compare_view::CompareView,
    history,
    parts::{
        compare::{
            Compared,
            choose::Choose,
            conditions::ConditionsSection,
            curves::CurvesSection,
            head::Head,
            heat::MatrixSection,
            load::{self, Load, Runs},
            others::{Others, OthersLine},
            table::{Biggest, TableSection},
            verdict::VerdictSection,
        },
        notice::{Loading, Notice, Weight},
    },
    shell::Shell,
};

/// The page of a comparison, or the choice of two runs.
#[component]
pub fn ComparePage() -> impl IntoView {
    browser::set_title("Compare");
    let query = use_query_map();
    let addressed = Memo::new(move |_| query.with(|query| CompareView::read(|key| query.get(key))));
    let view = RwSignal::new(addressed.get_untracked());
    history::keep("/compare", view, addressed, CompareView::query);
    let runs = Runs::ask();
    let pair = Memo::new(move |_| view.with(CompareView::pair));
    let shell = Shell::of_app();
    on_cleanup(move || shell.watching.set(None));
    move || match pair.get() {
        Some(pair) => view! { <Opened pair view runs/> }.into_any(),
        None => view! { <ChoosePage view runs/> }.into_any(),
    }
}

#[component]
fn ChoosePage(view: RwSignal<CompareView>, runs: Runs) -> impl IntoView {
    browser::set_title("Compare");
    let (a, b) = view.with_untracked(|view| (view.a.clone(), view.b.clone()));
    view! {
        <div class="head">
            <div>
                <h1>"Compare two runs"</h1>
                <p class="sub">
                    "What differs in how they were measured, and cell by cell what differs in what came out: faster, slower, \
                     no difference, or not to be told."
                </p>
            </div>
        </div>
        <Choose runs a b/>
    }
}

/// Two runs that the address names.
#[component]
fn Opened(pair: [String; 2], view: RwSignal<CompareView>, runs: Runs) -> impl IntoView {
    let asked = RwSignal::new(0_u32);
    move || {
        asked.track();
        let loads = pair.clone().map(|id| load::open(&id));
        let first = pair[0].clone();
        move || match loads.map(|load| load.get()) {
            [Load::Here(one), Load::Here(other)] => {
                let compared = Compared::of([one, other], first.clone(), view, runs);
                view! { <Body compared runs/> }.into_any()
            }
            [Load::Failed(text), _] | [_, Load::Failed(text)] => {
                let again = move |_| asked.update(|asked| *asked += 1);
                view! {
                    <div class="blank">
                        <h1>"These runs can't be compared now"</h1>
                        <Notice weight=Weight::Bad text>
                            <button type="button" class="btn" on:click=again>"Try again"</button>
                            <a class="btn" href=at("/")>"See all runs"</a>
                        </Notice>
                    </div>
                }
                .into_any()
            }
            [one, other] if [&one, &other].iter().any(|load| matches!(load, Load::NotFound)) => {
                let gone = [one, other].map(|load| matches!(load, Load::NotFound));
                view! { <Gone pair=loads_of(&first, view) gone runs/> }.into_any()
            }
            _ => view! { <Loading what="both runs"/> }.into_any(),
        }
    }
}

/// The ids as they were opened, and whether they stand in the address the other way round.
fn loads_of(first: &str, view: RwSignal<CompareView>) -> ([String; 2], bool) {
    view.with_untracked(|view| ([view.a.clone(), view.b.clone()], view.a != first))
}

/// At least one of the runs is not here.
#[component]
fn Gone(pair: ([String; 2], bool), gone: [bool; 2], runs: Runs) -> impl IntoView {
    browser::set_title("No such run");
    let ([a, b], is_swapped) = pair;
    let [a_gone, b_gone] = if is_swapped { [gone[1], gone[0]] } else { gone };
    let missing = |id: &str, is_gone: bool| is_gone.then(|| format!("\"{id}\""));
    let named: Vec<String> = [missing(&a, a_gone), missing(&b, b_gone)].into_iter().flatten().collect();
    let text = format!(
        "This agent has no run {}. It may have been deleted, or the link belongs to another agent.",
        named.join(" and no run ")
    );
    let kept = |id: String, is_gone: bool| if is_gone { String::new() } else { id };
    view! {
        <div class="head" data-testid="run-not-found">
            <div>
                <h1>"There is no such run here"</h1>
                <p class="sub">{text}" Choose another one, or "<a href=at("/")>"see all runs"</a>"."</p>
            </div>
        </div>
        <Choose runs a=kept(a, a_gone) b=kept(b, b_gone)/>
    }
}

#[component]
fn Body(compared: Compared, runs: Runs) -> impl IntoView {
    let others = Others::of(compared);
    Effect::new(move |_| {
        let title = compared.comparison.with(|it| format!("{} against {}", it.b.title, it.a.title));
        browser::set_title(&title);
    });
    view! {
        <Head compared/>
        <OthersLine compared others runs/>
        <VerdictSection compared/>
        <ConditionsSection compared/>
        <MatrixSection compared/>
        <Biggest compared/>
        <CurvesSection compared others=others.here/>
        <TableSection compared others=others.here/>
    }
}
