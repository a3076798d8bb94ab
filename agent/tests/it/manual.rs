//! The manual that the program prints.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_speedmatrix")).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_manual_reads_like_one() {
    let manual = ["", "serve", "run", "sim", "export"].map(|command| {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        printed(&arguments)
    });
    let manual = manual.join("\n----\n");
    // clap leaves spaces on empty lines.
    let manual = manual.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(manual, @r#"
    Measures how fast a served language model is, over context length and requests at once.

    Without a command it serves the page: set up runs there, watch them live, look at finished ones.

    Usage: speedmatrix [OPTIONS]
           speedmatrix <COMMAND>

    Commands:
      serve   Serve the page and its interface (the default)
      run     Measure once, in this terminal
      sim     Start a simulated model server to try things on
      watch   Watch a run of another agent in this terminal
      runs    List the stored runs, newest first
      export  Write a run as a file
      probe   Look at a server without measuring it
      help    Print this message or the help of the given subcommand(s)

    Options:
          --listen <ADDR:PORT>
              Where to listen; port 0 takes a free one. Whoever reaches this address can start runs

              [default: 127.0.0.1:7878]

          --store <PATH>
              File that keeps the runs [default: runs.sqlite3 in the user's data folder]

          --open
              Open the page in the browser

          --allow-host <NAME>
              Another name under which the page may be opened, for example behind a proxy; may be repeated

          --demo
              Measure the simulated server once if the store holds no run yet

          --demo-clock-factor <X>
              Simulated seconds per real second of the built-in simulated server

              [default: 40]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

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
      74  the store, a file or a port can't be had

    ----
    Serve the page and its interface (the default)

    The first line of its output is the page's address. Ctrl-C stops; a run that is being measured is ended first.

    Usage: speedmatrix serve [OPTIONS]

    Options:
          --listen <ADDR:PORT>
              Where to listen; port 0 takes a free one. Whoever reaches this address can start runs

              [default: 127.0.0.1:7878]

          --store <PATH>
              File that keeps the runs [default: runs.sqlite3 in the user's data folder]

          --open
              Open the page in the browser

          --allow-host <NAME>
              Another name under which the page may be opened, for example behind a proxy; may be repeated

          --demo
              Measure the simulated server once if the store holds no run yet

          --demo-clock-factor <X>
              Simulated seconds per real second of the built-in simulated server

              [default: 40]

      -h, --help
              Print help (see a summary with '-h')

    ----
    Measure once, in this terminal

    A row appears as each cell ends. Ctrl-C stops and keeps what was measured; a second one leaves at once.

    The run goes into the same store that an agent may be serving, whose page shows it live.

    Usage: speedmatrix run [OPTIONS]

    Options:
          --target <URL>
              Address of the server, with or without /v1

          --model <NAME>
              Model to ask for [default: the first one the server offers]

          --api-key-env <VAR>
              Environment variable that holds the server's API key

          --contexts <LIST>
              Context lengths in tokens, for example 8K,16K

          --concurrency <LIST>
              Requests at once, for example 1,2,4

          --duration <TIME>
              How long each cell is measured [default: 30s]

          --max-output <TOKENS>
              Most output tokens per request [default: 4096]

          --prefill-contexts <LIST>
              Contexts of separate prefill cells, or none [default: from each context's first request]

          --prompts <MODE>
              shared (one document, cached), unique (one per request at once, cached) or cold [default: shared]

          --seed <N>
              Seed of prompts and sampling [default: 0]

          --name <TEXT>
              Name of the run [default: model and hardware]

          --plan <FILE>
              Plan as a JSON file, its keys named as these options (max_output, …); options beside it win

          --json
              Print every event as one line of JSON instead of the table

          --store <PATH>
              File that keeps the runs [default: runs.sqlite3 in the user's data folder]

      -h, --help
              Print help (see a summary with '-h')

    ----
    Start a simulated model server to try things on

    It speaks OpenAI's interface as vLLM does and counts what it sends. The first line of its output is its address.

    Usage: speedmatrix sim [OPTIONS]

    Options:
          --listen <ADDR:PORT>
              Where to listen; port 0 takes a free one

              [default: 127.0.0.1:0]

          --preset <NAME>
              What is simulated: a name that is none lists them

              [default: reference]

          --seed <N>
              Seed of its randomness [default: the preset's]

          --clock-factor <X>
              Simulated seconds per real second

              [default: 1]

          --script <RULES>
              Misbehaviour on purpose, for example stall-after:5,nth:3

              [default: ""]

      -h, --help
              Print help (see a summary with '-h')

    ----
    Write a run as a file

    It works beside an agent and changes nothing.

    Usage: speedmatrix export [OPTIONS] <RUN>

    Arguments:
      <RUN>
              The run's id, as `runs` lists it; reference is the sample run

    Options:
          --format <FORMAT>
              md (Markdown), csv or json

              [default: md]

          --output <FILE>
              File to write; one that exists is not overwritten [default: the terminal]

          --store <PATH>
              File that keeps the runs [default: runs.sqlite3 in the user's data folder]

      -h, --help
              Print help (see a summary with '-h')
    "#);
    assert_eq!(printed(&["--version"]), concat!("speedmatrix ", env!("CARGO_PKG_VERSION"), "\n"));
}
