//! `completions` and `man`: made from the command line's own types, so that they know every command and flag.

use clap::CommandFactory;

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::failure::{Exit, Failure};
use super::output::Output;

const NAME: &str = "durable-mcp";

/// Prints the completions of a shell.
pub fn print(args: &CompletionsArgs, out: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    out.write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// Writes one page per command into a folder, or prints the page of the program.
pub fn man(args: &ManArgs, out: &Output) -> Result<Exit, Failure> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
        rendered.map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
        out.write(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Ok);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written
        .map_err(|error| Failure::new(Exit::Failure, format!("{} can not be written: {error}", folder.display())))?;
    eprintln!("the pages are in {}", folder.display());
    Ok(Exit::Ok)
}
