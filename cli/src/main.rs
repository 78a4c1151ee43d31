//! The `antiphon` binary: reads the command line, runs the command, and turns its end into an exit code.

mod args;
mod client;
mod commands;
mod demo;
mod failure;
mod filter;
mod import;
mod logging;
mod output;
mod queries;
mod roles;
mod settings;
mod telemetry;
mod version;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command, LoggingArgs, ServerArgs};
use failure::{EXIT_FAILED, EXIT_OK, Failure};
use settings::{LogFormat, Role};
use telemetry::Traces;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::note(&format!("antiphon: {failure}"));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn run(cli: Cli) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of("can't start", &error))?;
    let result = runtime.block_on(command(cli));
    // A thread that waits for standard input would keep us here.
    runtime.shutdown_background();
    result
}

async fn command(cli: Cli) -> Result<u8, Failure> {
    let role = match &cli.command {
        Command::Serve(args) => Some((Role::Serve, args)),
        Command::Node(args) => Some((Role::Node, args)),
        Command::Coordinator(args) => Some((Role::Coordinator, args)),
        _ => None,
    };
    if let Some((role, args)) = role {
        serve(role, args, &cli.logging).await?;
        return Ok(EXIT_OK);
    }
    let filter = cli.logging.filter.as_deref().unwrap_or("warn");
    logging::start(filter, cli.logging.format.unwrap_or(LogFormat::Text), None)?;
    match &cli.command {
        Command::Import(args) => return import::run(args).await,
        Command::Get(args) => return commands::get(args).await,
        Command::Collection(args) => commands::collection(args).await?,
        Command::Alias(args) => commands::alias(args).await?,
        Command::Search(args) => commands::search(args).await?,
        Command::Delete(args) => commands::delete(args).await?,
        Command::Count(args) => commands::count(args).await?,
        Command::Export(args) => commands::export(args).await?,
        Command::Backup(args) => commands::backup(args).await?,
        Command::Restore(args) => commands::restore(args).await?,
        Command::Status(args) => commands::status(args).await?,
        Command::Demo(args) => demo::run(args).await?,
        Command::Completions(args) => commands::completions(args)?,
        Command::Token(args) => commands::token(args)?,
        Command::Man(args) => commands::man(args)?,
        Command::Serve(_) | Command::Node(_) | Command::Coordinator(_) => {}
    }
    Ok(EXIT_OK)
}

async fn serve(role: Role, args: &ServerArgs, logging: &LoggingArgs) -> Result<(), Failure> {
    let settings = settings::load(role, args, logging)?;
    if args.print_config {
        return output::print(&settings::print(&settings));
    }
    let traces = Traces::start(&settings, role)?;
    logging::start(&settings.logging.filter, settings.logging.format, traces.as_ref())?;
    let outcome = match role {
        Role::Serve => roles::serve(settings).await,
        Role::Node => roles::node(settings).await,
        Role::Coordinator => roles::coordinator(settings).await,
    };
    if let Some(traces) = traces {
        traces.stop().await;
    }
    outcome
}
