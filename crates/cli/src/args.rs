//! The command line.

#[cfg(feature = "planner")]
use crate::commands::plan;
use crate::commands::{
    audit, bench, ca, check, completions, confirm, consistency, context, cp, dev, doctor, doubt,
    dump, get, group, home, ifc, inspect, invite, join, load, lock, ls, mv, put, rights, rm, root,
    salvage, shell, site, status, top, updates, watch, web,
};
use crate::demo;
use clap::{Parser, Subcommand};

/// Objects kept far away and used close by: homes keep them, sites share them, members use them.
#[derive(Parser, Debug)]
#[command(name = "thorp", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a village on this machine, to try Thorp and to develop with it
    Dev(dev::Options),
    /// Show and choose contexts: where commands join, and as whom
    #[command(subcommand)]
    Context(context::Command),
    /// Run a home: the durable server that owns segments
    Home(home::Options),
    /// Run a site: the redirector that its members share
    Site(site::Options),
    /// Let another node into the village: makes a directory with its certificate, or a token for `thorp join`
    Invite(invite::Options),
    /// Join a village with a token: makes a key and gets a certificate for it
    Join(join::Options),
    /// The authority, whose key lets nodes into the village
    #[command(subcommand)]
    Ca(ca::Command),
    /// Read everything in a home's directory and tell what is damaged
    Check(check::Options),
    /// Copy all that can be read of a damaged home into a new directory
    Salvage(salvage::Options),
    /// Open a home that started closed: it goes on from an older state, and an operator says so
    Confirm(confirm::Options),
    /// List segments
    Ls(ls::Options),
    /// Look into a segment, or at one object
    Inspect(inspect::Options),
    /// Remove segments with all their objects, or single objects
    Rm(rm::Options),
    /// Show or change who may do what in a segment
    Rights(rights::Options),
    /// Show or change a group of names, which rights lists name as @GROUP
    Group(group::Options),
    /// Show what a home has recorded about rights
    Audit(audit::Options),
    /// Show transactions that a home is in doubt about, or end one whose other home is gone for ever
    Doubt(doubt::Options),
    /// Store bytes as an object
    Put(put::Options),
    /// Print an object's bytes
    Get(get::Options),
    /// List and explain what a session may choose: how fresh it reads, and when its updates are seen
    Consistency(consistency::Options),
    /// Show what a log keeps until its homes have it, and what they have refused
    Updates(updates::Options),
    /// Run a command while nobody else writes in a segment
    Lock(lock::Options),
    /// Copy an object, also to another home
    Cp(cp::Options),
    /// Move an object, also to another home
    Mv(mv::Options),
    /// Show and change the named roots of a segment
    Root(root::Options),
    /// Write a segment into a file
    Dump(dump::Options),
    /// Make a segment of a file that `thorp dump` has written
    Load(load::Options),
    /// Print changes in a segment as they are committed
    Watch(watch::Options),
    /// Show how a home or a site is doing
    Status(status::Options),
    /// Watch how a home or a site is doing, on the whole screen
    Top(top::Options),
    /// Look for what is wrong between this machine and its village, and say what to do
    Doctor(doctor::Options),
    /// Serve an application's answers from a cache that is never stale
    Web(web::Options),
    /// Building models: import and export IFC files
    Ifc(ifc::Options),
    /// Measure how fast a village reads and commits
    Bench(bench::Options),
    /// Tell what sites, neighbours and memory servers would save, before there are any
    #[cfg(feature = "planner")]
    Plan(plan::Options),
    /// Run a village on this machine, show what it is for, and check it
    Demo(demo::Options),
    /// Run commands in a village, one a line
    Shell(shell::Options),
    /// Print what a shell needs to complete commands and flags
    Completions(completions::Options),
    /// Write manual pages
    Man(completions::ManOptions),
    /// A member of the demo, told by lines on standard input what to do
    #[command(hide = true)]
    DemoMember(demo::member::Options),
    /// A line of `thorp shell`
    #[command(hide = true)]
    ShellLine(shell::Line),
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  it could not be done
  2  wrong usage, also a malformed name
  3  a check found something wrong (check, doctor, demo, damaged data)
  4  a home or a site was not reached
  5  what was named is not there
  6  refused after all retries: others were busy there
  7  the outcome is unknown: it may have been done
  8  no right to do it
  9  a home has gone back in time

Environment:
  THORP_CONTEXT   the context to use, for --context
  THORP_VIA       the site or home to join, for --via; several with commas between
  THORP_IDENTITY  the directory of a certificate and its key, for --identity
  THORP_HTTP      the --http address of a home or a site, for status
  THORP_CONFIG    the directory of contexts [default: ~/.config/thorp]

A flag goes before a variable, and a variable goes before the current context.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
