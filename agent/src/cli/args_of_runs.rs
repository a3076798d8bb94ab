//! What can be typed about stored runs: list, write, compare, gate, and who may look at them.

use std::path::PathBuf;

use clap::Args;
use speedmatrix_shared::{
    compare::{Ranked, export::ComparisonFormat, gate::IfInconclusive},
    export::ExportFormat,
};

use super::args::{PlanArgs, StoreArgs};
use crate::server::MAX_HOURS;

/// How the gate ends.
pub(super) const GATE_STATUS: &str = "\
Exit status:
  0   no cell is slower
  1   at least one cell is slower, proven over repeats
  2   the data can't tell
  3   a cell of the baseline can't be compared, or a file is no run
  64  the arguments can't be followed
  74  the store or a file can't be had";

#[derive(Debug, Args)]
pub(super) struct LinkArgs {
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Allow everything, not only to look
    #[arg(long)]
    pub(super) operator: bool,
    /// Only this run may be looked at [default: all]
    #[arg(long, value_name = "ID")]
    pub(super) run: Option<String>,
    /// Hours after which it runs out [default: never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HOURS)))]
    pub(super) hours: Option<u32>,
    /// What to call it in the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(super) name: String,
    /// Address under which whoever gets it reaches the page
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7878")]
    pub(super) page: String,
    /// Show who is let in, and make none
    #[arg(long, conflicts_with_all = ["operator", "run", "hours", "name", "revoke"])]
    pub(super) list: bool,
    /// Take a link back, by its number in the list
    #[arg(long, value_name = "N", conflicts_with_all = ["operator", "run", "hours", "name"])]
    pub(super) revoke: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct RunsArgs {
    /// Print each run as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The run's id, as `runs` lists it; reference is the sample run
    #[arg(value_name = "RUN")]
    pub(super) run: String,
    /// md (Markdown), html (one page that opens from disk), csv or json
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(super) format: ExportFormat,
    /// File or folder to write to; a file that exists is not overwritten [default: the terminal]
    #[arg(long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    /// The run's id, as `runs` lists it
    #[arg(value_name = "RUN")]
    pub(super) run: String,
    /// The other run of a pair that `ab` measured: both go on, in turns again
    #[arg(value_name = "OTHER")]
    pub(super) other: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Environment variable that holds the server's API key
    #[arg(long, value_name = "VAR")]
    pub(super) api_key_env: Option<String>,
    /// Environment variable that holds the API key of the other run's server
    #[arg(long, value_name = "VAR", requires = "other")]
    pub(super) api_key_env_b: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ReanalyseArgs {
    /// The run's id, as `runs` lists it
    #[arg(value_name = "RUN")]
    pub(super) run: String,
    /// Store the new results as a new run; the old one stays as it is
    #[arg(long)]
    pub(super) save: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

// What is compared, and when it differs. No doc comment: it would take the place of the command's.
#[derive(Debug, Args)]
pub(super) struct MeasureArgs {
    /// Number to compare, as docs/METRICS.md has its key
    #[arg(long, value_name = "KEY", default_value = "total_tok_s")]
    pub(super) metric: Ranked,
    /// A change within this is no difference, percent
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = share)]
    pub(super) margin: f64,
}

#[derive(Debug, Args)]
pub(super) struct AbArgs {
    /// Address of the server that is the base, with or without /v1
    #[arg(value_name = "A")]
    pub(super) a: String,
    /// Address of the server that is judged
    #[arg(value_name = "B", required_unless_present = "null")]
    pub(super) b: Option<String>,
    /// Measure A against itself: whatever differs then is the machine's doing
    #[arg(long, conflicts_with_all = ["b", "model_b", "api_key_env_b"])]
    pub(super) null: bool,
    /// Model to ask B for [default: as --model]
    #[arg(long, value_name = "NAME")]
    pub(super) model_b: Option<String>,
    /// Environment variable that holds B's API key; A's is never sent to B
    #[arg(long, value_name = "VAR")]
    pub(super) api_key_env_b: Option<String>,
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    #[command(flatten)]
    pub(super) measure: MeasureArgs,
    /// Address under which the page is reached that shows the comparison
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7878")]
    pub(super) page: String,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// The base: a run's id, or the path of a run's file
    #[arg(value_name = "A")]
    pub(super) a: String,
    /// What is judged: a run's id, or the path of a run's file
    #[arg(value_name = "B")]
    pub(super) b: String,
    #[command(flatten)]
    pub(super) measure: MeasureArgs,
    /// md (Markdown), csv, json or junit
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(super) format: ComparisonFormat,
    /// File to write; one that exists is replaced [default: the terminal]
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct GateArgs {
    /// What the run is held against: a run's id, or the path of a run's file
    #[arg(long, value_name = "A")]
    pub(super) baseline: String,
    /// What is judged: a run's id, or the path of a run's file
    #[arg(long, value_name = "B")]
    pub(super) run: String,
    #[command(flatten)]
    pub(super) measure: MeasureArgs,
    /// What counts where the data can't tell: tell (status 2), pass (0) or fail (1)
    #[arg(long, value_name = "ANSWER", default_value = "tell")]
    pub(super) inconclusive: IfInconclusive,
    /// File for JUnit results, one test per cell; one that exists is replaced
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// File for the comparison as Markdown; one that exists is replaced
    #[arg(long, value_name = "FILE")]
    pub(super) markdown: Option<PathBuf>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(super) struct PlanRepeatsArgs {
    /// Runs with repeated cells: their ids, or the paths of their files
    #[arg(value_name = "RUN", required = true)]
    pub(super) runs: Vec<String>,
    /// The change to see, percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = share)]
    pub(super) see: f64,
    /// Number to compare, as docs/METRICS.md has its key
    #[arg(long, value_name = "KEY", default_value = "total_tok_s")]
    pub(super) metric: Ranked,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

/// Reads a percentage as a share.
fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.1..=50.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "between 0.1 and 50 percent".to_owned())
}
