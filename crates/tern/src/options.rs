//! Command lines of Tern's commands: tables of options, and what each of them sets.

use std::ffi::OsString;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use lexopt::{Arg, Parser};

/// An option without a value, with its dashes, and what it turns on.
pub type Flag<T> = (&'static str, fn(&mut T) -> &mut bool);
/// An option with a value, and what that sets.
pub type Setter<T> = (&'static str, fn(&mut T, Value) -> Result<(), String>);

/// The options of a command, as they are read into a `T`.
pub struct Known<T: 'static> {
    /// Those without a value; `-h` and `--help` need not be among them.
    pub flags: &'static [Flag<T>],
    /// Those with one.
    pub setters: &'static [Setter<T>],
    /// Where the one word goes that is no option, if the command takes one.
    pub word: Option<fn(&mut T) -> &mut Option<String>>,
    /// What is said behind an error of a word that is not known.
    pub help: &'static str,
}

impl<T> Known<T> {
    /// Reads a command line into `options`; false if help was asked for.
    pub fn read(&self, arguments: Vec<OsString>, options: &mut T) -> Result<bool, String> {
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(text)? {
            let option = match argument {
                Arg::Short('h') | Arg::Long("help") => return Ok(false),
                Arg::Short(letter) => format!("-{letter}"),
                Arg::Long(name) => format!("--{name}"),
                Arg::Value(word) => {
                    self.take(word, options)?;
                    continue;
                }
            };
            if let Some((_, flag)) = self.flags.iter().find(|(name, _)| *name == option) {
                *flag(options) = true;
            } else if let Some((_, set)) = self.setters.iter().find(|(name, _)| *name == option) {
                let word = parser.value().map_err(text)?;
                set(options, Value { option, word })?;
            } else {
                return Err(format!("unknown option {option}\n{}", self.help));
            }
        }
        Ok(true)
    }

    fn take(&self, word: OsString, options: &mut T) -> Result<(), String> {
        let room = self.word.map(|word| word(options)).filter(|word| word.is_none());
        let Some(room) = room else {
            return Err(format!("unexpected argument {word:?}\n{}", self.help));
        };
        *room = Some(word.into_string().map_err(|word| format!("argument {word:?}: must be text"))?);
        Ok(())
    }
}

/// Sets something to a value that may be wrong.
pub fn set<V>(it: &mut V, value: Result<V, String>) -> Result<(), String> {
    value.map(|value| *it = value)
}

fn text(error: lexopt::Error) -> String {
    error.to_string()
}

/// The value of an option.
pub struct Value {
    option: String,
    word: OsString,
}

impl Value {
    /// As the name of a file or directory, of any bytes.
    pub fn path(self) -> PathBuf {
        self.word.into()
    }

    /// As text.
    pub fn text(&self) -> Result<String, String> {
        self.word.to_str().map(str::to_owned).ok_or_else(|| self.wrong("text"))
    }

    /// As a list with commas between.
    pub fn words(&self) -> Result<Vec<String>, String> {
        Ok(self.text()?.split(',').map(str::to_owned).collect())
    }

    /// As what `read` makes of the text; if nothing, it `must` be something else.
    pub fn read<V>(&self, must: &str, read: impl FnOnce(&str) -> Option<V>) -> Result<V, String> {
        read(&self.text()?).ok_or_else(|| self.wrong(must))
    }

    /// As a number of this range.
    pub fn number<N>(&self, range: RangeInclusive<N>) -> Result<N, String>
    where
        N: FromStr + PartialOrd + Display,
    {
        let must = format!("a number from {} to {}", range.start(), range.end());
        self.read(&must, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    fn wrong(&self, must: &str) -> String {
        format!("{} {}: must be {must}", self.option, self.word.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Options {
        loud: bool,
        count: u32,
        file: PathBuf,
        program: Option<String>,
    }

    const KNOWN: Known<Options> = Known {
        flags: &[("--loud", |options| &mut options.loud)],
        setters: &[
            ("-n", |options, value| set(&mut options.count, value.number(1..=9))),
            ("--file", |options, value| set(&mut options.file, Ok(value.path()))),
        ],
        word: Some(|options| &mut options.program),
        help: "usage: none",
    };

    fn read(line: &str) -> Result<Option<Options>, String> {
        let mut options = Options::default();
        let arguments = line.split_whitespace().map(OsString::from).collect();
        Ok(KNOWN.read(arguments, &mut options)?.then_some(options))
    }

    #[test]
    fn options_and_the_word_may_stand_anywhere() {
        for line in ["-n 3 --loud run --file=f", "run -n3 --file f --loud"] {
            let options = read(line).unwrap().unwrap();
            assert!(options.loud, "{line}");
            assert_eq!((options.count, options.program.as_deref()), (3, Some("run")), "{line}");
            assert_eq!(options.file, PathBuf::from("f"), "{line}");
        }
        assert!(read("-n 3 -h --no-such").unwrap().is_none());
    }

    #[test]
    fn errors_name_the_option_and_what_it_takes() {
        let error = |line: &str| read(line).err().expect("wrong");
        assert_eq!(error("--lod"), "unknown option --lod\nusage: none");
        assert_eq!(error("-x"), "unknown option -x\nusage: none");
        assert_eq!(error("one two"), "unexpected argument \"two\"\nusage: none");
        for number in ["0", "10", "x", "-1"] {
            assert_eq!(error(&format!("-n={number}")), format!("-n {number}: must be a number from 1 to 9"));
        }
        assert!(error("--file").contains("--file"));
        assert!(error("--loud=yes").contains("--loud"));
    }
}
