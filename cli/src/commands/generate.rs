//! What is made of the command line's own description: completions of shells and man pages.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output;

/// `antiphon completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "antiphon", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// `antiphon man`.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    // The page's head has one line for the version.
    let command = Cli::command().long_version(None);
    match &args.dir {
        Some(dir) => {
            let failed = |error| Failure::of(format!("can't write man pages to {}", dir.display()), &error);
            std::fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(command, dir).map_err(failed)
        }
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(command).render(&mut page);
            rendered.map_err(|error| Failure::of("can't write the man page", &error))?;
            output::print(&String::from_utf8_lossy(&page))
        }
    }
}
