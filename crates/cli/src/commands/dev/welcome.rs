//! What `thorp dev` says once its village runs.

use super::{Options, Running, SITE};
use crate::commands::{context, say, say_json};
use crate::failure::Failure;
use crate::text::absolute;
use crate::text::pasted;
use std::path::Path;

/// A village that runs, and how commands get there.
pub(super) struct Welcome<'a> {
    pub(super) options: &'a Options,
    pub(super) dir: &'a Path,
    pub(super) running: &'a Running,
    /// Whether its context is the current one.
    pub(super) is_current: bool,
    /// Why its home lets in operators only.
    pub(super) closed: Option<String>,
}

impl Welcome<'_> {
    pub(super) fn tell(&self) -> Result<(), Failure> {
        if self.options.json {
            return say_json(&self.as_json());
        }
        let (name, running) = (&self.options.name, self.running);
        let goes = if self.options.temporary {
            ", which goes at the end"
        } else {
            ""
        };
        say(&format!("a village runs in {}{goes}", self.dir.display()))?;
        say(&format!("  home {name} at {}", running.home))?;
        say(&format!("  site {SITE} at {}", running.site))?;
        say(&format!("  authority at {}", running.authority))?;
        match &self.closed {
            Some(why) => self.say_closed(why)?,
            None => self.say_examples()?,
        }
        let of = ["home", "site"].into_iter().zip(&running.status);
        let status: Vec<String> = of.map(|(of, at)| format!("{at} ({of})")).collect();
        say(&format!("  for `thorp status`: {}", status.join(", ")))?;
        say(&format!("ready, http {}", running.status.join(" ")))
    }

    /// Nothing that the examples do would work.
    fn say_closed(&self, why: &str) -> Result<(), Failure> {
        say(&format!("  the home is closed: {why}"))?;
        say(&format!(
            "  end this with Ctrl-C, run `thorp confirm {}`, and start it again",
            with_slash(self.dir)
        ))
    }

    fn say_examples(&self) -> Result<(), Failure> {
        let name = &self.options.name;
        say(&format!("  {}", context::told(name, self.is_current)))?;
        let mut is_first = self.is_current;
        for variable in ["THORP_VIA", "THORP_IDENTITY", "THORP_CONTEXT"] {
            if std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
                is_first = false;
                say(&format!(
                    "  {variable} is set here, and goes before it: unset {variable}"
                ))?;
            }
        }
        // A flag goes before a variable, and before the current context.
        let flag = match is_first {
            true => String::new(),
            false => format!(" --context {name}"),
        };
        say("  in another terminal:")?;
        say(&format!(
            "    thorp put thorp://{name}/notes --text hello{flag}"
        ))?;
        say(&format!(
            "    thorp inspect thorp://{name}/notes --objects{flag}"
        ))?;
        say(&format!(
            "    thorp invite NAME{flag}    # a token for somebody else: `thorp join TOKEN`"
        ))
    }

    fn as_json(&self) -> serde_json::Value {
        let (name, running) = (&self.options.name, self.running);
        serde_json::json!({
            "name": name,
            "dir": absolute(self.dir).display().to_string(),
            "temporary": self.options.temporary,
            "home": running.home,
            "site": running.site,
            "authority": running.authority,
            "status": running.status,
            "context": name,
            "current": self.is_current,
            "closed": self.closed,
        })
    }
}

/// A directory as `thorp confirm` knows it from a home's name, for a shell.
fn with_slash(dir: &Path) -> String {
    let name = dir.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match name.chars().all(is_plain) {
        true => format!("./{name}"),
        false => pasted(dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_beside_has_a_slash() {
        assert_eq!(with_slash(Path::new("thorp-dev")), "./thorp-dev");
        assert_eq!(with_slash(Path::new("/srv/a")), "/srv/a");
        assert!(with_slash(Path::new("my village")).starts_with("'/"));
    }
}
