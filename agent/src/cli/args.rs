//! What can be typed. The texts here are the manual: `speedmatrix --help`, `speedmatrix run --help` and so on.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use speedmatrix_shared::plan::PlanDraft;

use super::args_of_db::{DB_STATUS, DbArgs, KeepArgs};
use super::args_of_door::{TlsArgs, TrustArgs};
use super::args_of_runs::{
    AbArgs, CompareArgs, ExportArgs, GATE_STATUS, GateArgs, LinkArgs, PlanRepeatsArgs, ReanalyseArgs, ResumeArgs,
    RunsArgs,
};
use crate::{logging::LogFormat, server::BasePath};

const EXAMPLES: &str = "\
Examples:
  speedmatrix                                     serve the page on http://127.0.0.1:7878
  speedmatrix serve --demo --open                 try it out: the page with a simulated server and a first run
  speedmatrix run --target http://127.0.0.1:8000 --contexts 8K,16K --concurrency 1,2,4
  speedmatrix export ID --format md               a run as a Markdown table

Exit status:
  0   done; every cell was measured
  1   some cells failed
  2   stopped before the end; what was measured is stored
  64  the arguments can't be followed
  69  the target can't be reached
  74  the store, a file or a port can't be had";

/// Measures how fast a served language model is, over context length and requests at once.
///
/// Without a command it serves the page: set up runs there, watch them live, look at finished ones.
#[derive(Debug, Parser)]
#[command(name = "speedmatrix", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Lines of the log on standard error: human, or json for programs; SPEEDMATRIX_LOG says what is logged
    #[arg(long, value_name = "FORMAT", global = true, default_value = "human", hide_possible_values = true)]
    log_format: LogFormat,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Arguments {
    pub(super) const fn log_format(&self) -> LogFormat {
        self.log_format
    }

    pub(super) fn command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the page and its interface (the default)
    ///
    /// The first line of its output is the page's address. Ctrl-C stops; a run that is being measured is ended first.
    Serve(ServeArgs),
    /// Measure once, in this terminal
    ///
    /// A row appears as each cell ends. Ctrl-C stops and keeps what was measured; a second one leaves at once.
    ///
    /// The run goes into the same store that an agent may be serving, whose page shows it live.
    Run(Box<RunArgs>),
    /// Go on with a run that ended too early
    ///
    /// Cells that are measured stay; the missing ones follow, if the server is still the same: model, engine, version,
    /// hardware and launch command as far as they are known.
    Resume(ResumeArgs),
    /// Measure two servers in turns, and compare them
    ///
    /// One plan: each cell is measured on one server and then on the other, never on both at once, in an order that is
    /// drawn by the seed. What drifts meanwhile falls on both alike. Both runs are stored, with a tag in
    /// common. Each cell is measured 5 times on each side unless --repeats says otherwise.
    Ab(Box<AbArgs>),
    /// Start a simulated model server to try things on
    ///
    /// It speaks OpenAI's interface as vLLM does and counts what it sends. The first line of its output is its address.
    Sim(SimArgs),
    /// Watch a run of another agent in this terminal
    ///
    /// The address is the agent's, for the run that it measures now, or that of a run's page.
    Watch(WatchArgs),
    /// List the stored runs, newest first
    ///
    /// One line each: id, start, state, cells, name. It works beside an agent and changes nothing.
    Runs(RunsArgs),
    /// Write a run as a file
    ///
    /// It works beside an agent and changes nothing.
    Export(ExportArgs),
    /// Compute a run's numbers again, under the rules of this version
    ///
    /// Every finished cell keeps its raw arrivals. The table shows the cells whose results differ; without --save
    /// nothing is written.
    Reanalyse(ReanalyseArgs),
    /// Let somebody in: makes a link that opens the page of an agent that asks for tokens
    ///
    /// The link is the only line of its output and is shown once. It works beside an agent, and at once.
    Link(LinkArgs),
    /// Look after the store's file: check it, shrink it, copy it
    #[command(after_help = DB_STATUS)]
    Db(DbArgs),
    /// Compare two runs, cell by cell
    ///
    /// Every ratio is B ÷ A. It works beside an agent and changes nothing.
    Compare(CompareArgs),
    /// Let a run pass unless it is slower than a baseline
    ///
    /// For builds: the answer is the exit status. Only differences between repeats prove anything, so measure both runs
    /// with --repeats 3 or more.
    #[command(after_help = GATE_STATUS)]
    Gate(GateArgs),
    /// How many repeats see a change of a given size
    ///
    /// From how much the repeats of stored runs scatter.
    PlanRepeats(PlanRepeatsArgs),
    /// Look at a server without measuring it
    ///
    /// Says what answers there: engine, version, model and limits.
    Probe(ProbeArgs),
}

#[derive(Debug, Clone, Args)]
pub(super) struct StoreArgs {
    /// File that keeps the runs [default: runs.sqlite3 in the user's data folder]
    #[arg(long, value_name = "PATH")]
    pub(super) store: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Where to listen; port 0 takes a free one. At any but this machine's own address (127.0.0.1) links are asked for
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7878")]
    pub(super) listen: SocketAddr,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Open the page in the browser
    #[arg(long)]
    pub(super) open: bool,
    /// Another name under which the page may be opened, for example behind a proxy; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(super) allow_host: Vec<String>,
    /// Ask for links also on this machine's own address, as behind a proxy that lets strangers in
    #[arg(long)]
    pub(super) require_token: bool,
    /// Path below which the page stands behind a proxy, for example /speedmatrix
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub(super) base_path: BasePath,
    #[command(flatten)]
    pub(super) tls: TlsArgs,
    #[command(flatten)]
    pub(super) trust: TrustArgs,
    #[command(flatten)]
    pub(super) keep: KeepArgs,
    /// Measure the simulated server once if the store holds no run yet
    #[arg(long)]
    pub(super) demo: bool,
    /// Simulated seconds per real second of the built-in simulated server
    #[arg(long, value_name = "X", default_value_t = super::serve::DEMO_CLOCK_FACTOR)]
    pub(super) demo_clock_factor: f64,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Address of the server, with or without /v1
    #[arg(long, value_name = "URL")]
    pub(super) target: Option<String>,
    #[command(flatten)]
    pub(super) plan: PlanArgs,
    /// Print every event as one line of JSON instead of the table
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

// What is to be measured, and how. No doc comment: it would take the place of the command's.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// Model to ask for [default: the first one the server offers]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Environment variable that holds the server's API key
    #[arg(long, value_name = "VAR")]
    pub(super) api_key_env: Option<String>,
    /// Context lengths in tokens, for example 8K,16K
    #[arg(long, value_name = "LIST")]
    contexts: Option<String>,
    /// Requests at once, for example 1,2,4
    #[arg(long, value_name = "LIST")]
    concurrency: Option<String>,
    /// Cells that are not measured, for example 64Kx128,128Kx64
    #[arg(long, value_name = "LIST")]
    leave_out: Option<String>,
    /// How long each cell is measured [default: 30s]
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Most output tokens per request [default: 4096]
    #[arg(long, value_name = "TOKENS")]
    max_output: Option<String>,
    /// Contexts of separate prefill cells, or none [default: from each context's first request]
    #[arg(long, value_name = "LIST")]
    prefill_contexts: Option<String>,
    /// shared (one document, cached), unique (one per request at once, cached), mixed:40% (that part of each document
    /// shared and cached, the rest fresh) or cold [default: shared]
    #[arg(long, value_name = "MODE")]
    prompts: Option<String>,
    /// sustained, burst:100 (so many requests, all completed), mixed:1K (cold prompts of each context arrive while requests
    /// of 1K decode), or open:constant, open:poisson, open:ramp: requests come by the clock, and --concurrency gives them
    /// per minute [default: sustained]
    #[arg(long, value_name = "KIND")]
    load: Option<String>,
    /// Bounds of a good request, for goodput: ttft:500ms,tpot:50ms,e2e:10s [default: none]
    #[arg(long, value_name = "BOUNDS")]
    slo: Option<String>,
    /// Text file in the folder corpora beside the store, for the prompts [default: seeded text]
    #[arg(long, value_name = "NAME")]
    corpus: Option<String>,
    /// varied, or identical: all requests ask the same, which flatters caches and speculation [default: varied]
    #[arg(long, value_name = "KIND")]
    questions: Option<String>,
    /// Sampling temperature, or server for its own [default: 1]
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<String>,
    /// Share of the probability that is drawn from, 0.95 for example [default: the server's own]
    #[arg(long, value_name = "SHARE")]
    top_p: Option<String>,
    /// ignore (every answer runs to its limit), or stop: the model ends its answers [default: ignore]
    #[arg(long, value_name = "KIND")]
    end_of_text: Option<String>,
    /// Fewest output tokens per request [default: none]
    #[arg(long, value_name = "TOKENS")]
    min_output: Option<String>,
    /// rows, shuffled (by the seed), or interleaved (every cell once, then every cell again) [default: rows]
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// How often each cell is measured: 3, or until its speed is known to 3%, or both: 10,3% [default: 1]
    #[arg(long, value_name = "NUMBER")]
    repeats: Option<String>,
    /// run, or skip: whether this client is first checked against the built-in simulator [default: run]
    #[arg(long, value_name = "KIND")]
    client_check: Option<String>,
    /// Seed of prompts and sampling [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Name of the run [default: model and hardware]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Plan as a JSON file, its keys named as these options (max_output, …); options beside it win
    #[arg(long = "plan", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

impl PlanArgs {
    /// The plan file's content, or an empty plan, with the options put over it; the server is the file's.
    pub(super) fn over(&mut self, file: PlanDraft) -> PlanDraft {
        let put = |option: &mut Option<String>, from_file: String| option.take().unwrap_or(from_file);
        PlanDraft {
            target: file.target,
            model: put(&mut self.model, file.model),
            name: put(&mut self.name, file.name),
            contexts: put(&mut self.contexts, file.contexts),
            concurrency: put(&mut self.concurrency, file.concurrency),
            leave_out: put(&mut self.leave_out, file.leave_out),
            prefill_contexts: put(&mut self.prefill_contexts, file.prefill_contexts),
            duration: put(&mut self.duration, file.duration),
            max_output: put(&mut self.max_output, file.max_output),
            prompts: put(&mut self.prompts, file.prompts),
            load: put(&mut self.load, file.load),
            slo: put(&mut self.slo, file.slo),
            corpus: put(&mut self.corpus, file.corpus),
            questions: put(&mut self.questions, file.questions),
            temperature: put(&mut self.temperature, file.temperature),
            top_p: put(&mut self.top_p, file.top_p),
            end_of_text: put(&mut self.end_of_text, file.end_of_text),
            min_output: put(&mut self.min_output, file.min_output),
            order: put(&mut self.order, file.order),
            repeats: put(&mut self.repeats, file.repeats),
            client_check: put(&mut self.client_check, file.client_check),
            seed: put(&mut self.seed, file.seed),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct SimArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    pub(super) listen: SocketAddr,
    /// What is simulated: a name that is none lists them
    #[arg(long, value_name = "NAME", default_value = "reference")]
    pub(super) preset: String,
    /// Seed of its randomness [default: the preset's]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Simulated seconds per real second
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(super) clock_factor: f64,
    /// Misbehaviour on purpose, for example stall-after:5,nth:3
    #[arg(long, value_name = "RULES", default_value = "")]
    pub(super) script: String,
}

#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Address of the agent, or of one of its runs; also the link that its operator gave you
    #[arg(value_name = "URL")]
    pub(super) url: String,
    /// Environment variable that holds the token of a link
    #[arg(long, value_name = "VAR")]
    pub(super) token_env: Option<String>,
    /// Certificate to trust beside the system's own, a PEM file: that of an agent with --tls-self-made
    #[arg(long, value_name = "FILE")]
    pub(super) tls_ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Address of the server, with or without /v1
    #[arg(value_name = "URL")]
    pub(super) url: String,
    /// Model to ask for [default: the first one the server offers]
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Environment variable that holds the server's API key
    #[arg(long, value_name = "VAR")]
    pub(super) api_key_env: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use speedmatrix_shared::plan::{RunPlan, command::command};

    use super::*;

    /// The plan that the program makes of a line of a shell.
    fn from_shell(line: &str) -> RunPlan {
        let words = shlex::split(line).expect("the line is one of a shell");
        let Command::Run(mut args) = Arguments::try_parse_from(words).unwrap().command() else {
            panic!("the line is no `run`: {line}");
        };
        let target = args.target.take().unwrap_or_default();
        args.plan.over(PlanDraft { target, ..PlanDraft::default() }).try_into().unwrap()
    }

    #[test]
    fn a_copied_command_gives_the_same_plan() {
        let check = |change: fn(&mut PlanDraft)| {
            let mut draft = PlanDraft {
                target: "http://127.0.0.1:8000".into(),
                contexts: "8K-64K".into(),
                concurrency: "1,2,…,32".into(),
                ..PlanDraft::default()
            };
            change(&mut draft);
            let plan = RunPlan::try_from(draft).unwrap();
            assert_eq!(from_shell(&command(&plan)), plan, "{}", command(&plan));
        };
        check(|_| {});
        check(|draft| draft.name = "it's \"new\" $HOME `x`\\\n --name".into());
        check(|draft| draft.model = "-dash".into());
        check(|draft| draft.leave_out = "64Kx32,32Kx16".into());
        check(|draft| draft.prefill_contexts = "none".into());
        check(|draft| {
            draft.prompts = "mixed:40%".into();
            draft.load = "burst:7".into();
            draft.slo = "ttft:500ms,tpot:50ms".into();
            draft.repeats = "10,3%".into();
            draft.order = "interleaved".into();
            draft.corpus = "my notes.txt".into();
            draft.temperature = "server".into();
        });
    }
}
