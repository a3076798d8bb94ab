//! `link`: lets somebody in, tells who is, and takes it back.

use std::net::SocketAddr;

use speedmatrix_shared::{
    api::{NewPass, Pass, Role, enter_link},
    format,
    id::RunId,
};

use super::{CliError, Exit, args_of_runs::LinkArgs};
use crate::{
    runs::unix_ms,
    server::{Door, new_pass},
    store::{Access, Store},
    terminal::{Terminal, printable},
};

pub(super) async fn link(args: LinkArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let store = Store::open(&args.store.path()?, Access::Measure).await?;
    if args.list {
        return list(&store, terminal).await;
    }
    if let Some(number) = args.revoke {
        if !store.revoke_pass(number).await? {
            return Err(CliError::Usage(format!("there is no link {number}: `speedmatrix link --list` shows all")));
        }
        terminal.hint(&format!("link {number} opens nothing any more"));
        return Ok(Exit::Done);
    }
    let run: Option<RunId> =
        args.run.map(|run| run.parse()).transpose().map_err(|e| CliError::Usage(format!("{e}")))?;
    if let Some(run) = &run
        && run.as_str() != RunId::REFERENCE
    {
        store.load(run).await?;
    }
    if args.operator && run.is_some() {
        let text = "an operator may do everything: leave out --run, or leave out --operator";
        return Err(CliError::Usage(text.into()));
    }
    let role = if args.operator { Role::Operator } else { Role::Viewer };
    let place = run.as_ref().map_or_else(|| "/".to_owned(), |run| format!("/runs/{run}"));
    let asked = NewPass { role, run, name: args.name, hours: args.hours };
    let (token, pass) = new_pass(&store, asked).await?;
    let page = format!("{}{place}", args.page.trim_end_matches('/'));
    terminal.line(&enter_link(&page, token.expose()))?;
    terminal.hint(&format!("{}; this link is shown once, whoever has it is let in", words(&pass)));
    Ok(Exit::Done)
}

async fn list(store: &Store, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let now = unix_ms();
    let passes = store.passes().await?;
    let valid: Vec<&Pass> = passes.iter().map(|kept| &kept.pass).filter(|pass| pass.is_valid(now)).collect();
    if valid.is_empty() {
        terminal.hint("nobody has a link: `speedmatrix link` makes one");
    }
    for pass in valid {
        terminal.line(&words(pass))?;
    }
    Ok(Exit::Done)
}

fn words(pass: &Pass) -> String {
    let run = pass.run.as_ref().map_or_else(|| "all runs".to_owned(), |run| format!("run {run}"));
    let until = pass.until_unix_ms.map_or_else(|| "taken back".to_owned(), format::wall_time);
    let name = if pass.name.is_empty() { String::new() } else { format!(" ({})", printable(&pass.name)) };
    format!("link {}: {}, {run}, until {until}{name}", pass.number, pass.role.label().to_lowercase())
}

/// Who is let in at an address: on this machine alone, whoever reaches it.
pub(super) fn door(address: SocketAddr, asked: Asked) -> Door {
    if address.ip().is_loopback() && asked == Asked::Nothing { Door::Open } else { Door::Guarded }
}

/// What `--require-token` and `--trust-header` say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Neither was given.
    Nothing,
    /// Who asks must be known everywhere.
    Tokens,
}

/// How long the first operator's link lets in, hours: who has it makes a lasting one.
const FIRST_LINK_HOURS: u32 = 24;

/// The first operator's link, told once and to a person only, as a log keeps what it gets: `speedmatrix link` makes more.
pub(super) async fn first(store: &Store, page: &str, terminal: &mut Terminal) -> Result<(), CliError> {
    let now = unix_ms();
    let passes = store.passes().await?;
    let has_operator = passes.iter().any(|kept| kept.pass.role == Role::Operator && kept.pass.is_valid(now));
    if has_operator {
        terminal.hint("open it with a link that you were given; `speedmatrix link --operator` makes another");
        return Ok(());
    }
    if !terminal.is_heard_by_a_person() {
        terminal.hint("nobody has an operator's link yet: `speedmatrix link --operator` makes one; a log gets none");
        return Ok(());
    }
    let hours = Some(FIRST_LINK_HOURS);
    let asked = NewPass { role: Role::Operator, run: None, name: "First operator".into(), hours };
    let (token, _) = new_pass(store, asked).await?;
    let link = enter_link(&format!("{page}/"), token.expose());
    terminal.hint(&format!(
        "operator's link, shown this once, open for {FIRST_LINK_HOURS} hours; `speedmatrix link --operator` makes \
         another: {link}"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use speedmatrix_shared::api::ENTER_MARK;

    use super::*;
    use crate::{secret::Token, terminal::tests::Page};

    #[tokio::test]
    async fn the_first_link_is_for_a_person_and_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Measure).await.unwrap();
        let log = Page::default();
        first(&store, "http://h:7878", &mut log.piped()).await.unwrap();
        assert!(log.text().contains("speedmatrix link --operator") && !log.text().contains(ENTER_MARK));
        assert!(store.passes().await.unwrap().is_empty());
        let page = Page::default();
        first(&store, "http://h:7878", &mut page.watched()).await.unwrap();
        assert!(page.text().contains("open for 24 hours; `speedmatrix link --operator`"), "{}", page.text());
        let passes = store.passes().await.unwrap();
        let text = page.text();
        let (_, token) = text.trim().split_once(ENTER_MARK).unwrap();
        assert_eq!(Token::sent(token).unwrap().digest(), passes[0].digest);
        let pass = &passes[0].pass;
        assert_eq!(pass.until_unix_ms.unwrap() - pass.created_unix_ms, 24 * 3_600_000);
        // Who has come in needs no second one.
        let again = Page::default();
        first(&store, "http://h:7878", &mut again.watched()).await.unwrap();
        assert!(!again.text().contains(ENTER_MARK), "{}", again.text());
    }
}
