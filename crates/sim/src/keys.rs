//! Reading a TOML table key by key, so that every error names the file and the key, and keys that
//! nobody has asked for are found.

use fabric::settings::distance;
use toml::{Table, Value};

/// A table of a file and the keys that were asked for.
pub struct Keys {
    file: String,
    /// What stands before its keys: `rails[0].`.
    prefix: String,
    table: Table,
    asked: Vec<String>,
}

impl Keys {
    /// The top of a file.
    pub fn new(file: &str, table: Table) -> Keys {
        Keys { file: file.to_string(), prefix: String::new(), table, asked: Vec::new() }
    }

    /// An error about a key.
    pub fn wrong(&self, key: &str, text: &str) -> String {
        format!("{}: `{}{key}` {text}", self.file, self.prefix)
    }

    /// What `read` makes of a key, if it is there.
    pub fn optional<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Keys, &str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        self.asked.push(key.to_string());
        if self.table.contains_key(key) { read(self, key).map(Some) } else { Ok(None) }
    }

    /// A string.
    pub fn text(&mut self, key: &str) -> Result<String, String> {
        match self.value(key)? {
            Value::String(text) => Ok(text),
            other => Err(self.wrong(key, &format!("is {other:?}, must be a string"))),
        }
    }

    /// A whole number.
    pub fn count(&mut self, key: &str, least: usize) -> Result<usize, String> {
        let value = self.value(key)?;
        let count = value.as_integer().and_then(|value| usize::try_from(value).ok());
        count.filter(|count| *count >= least).ok_or_else(|| {
            let text = show(&value);
            self.wrong(key, &format!("is {text}, must be a whole number of at least {least}"))
        })
    }

    /// A time, which may be 0.
    pub fn time(&mut self, key: &str) -> Result<f64, String> {
        self.number(key, |value| value >= 0.0, "must be a time of at least 0")
    }

    /// A number above 0.
    pub fn positive(&mut self, key: &str) -> Result<f64, String> {
        self.number(key, |value| value > 0.0, "must be above 0")
    }

    /// A probability.
    pub fn probability(&mut self, key: &str) -> Result<f64, String> {
        let is_one = |value| (0.0..=1.0).contains(&value);
        self.number(key, is_one, "must be a probability between 0 and 1")
    }

    /// What `read` makes of a table below this one.
    pub fn section<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&mut Keys) -> Result<T, String>,
    ) -> Result<T, String> {
        match self.value(key)? {
            Value::Table(table) => self.below(format!("{key}."), table).whole(read),
            other => Err(self.wrong(key, &format!("is {}, must be a table", show(&other)))),
        }
    }

    /// What `read` makes of each table of a list, which is not empty.
    pub fn list<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&mut Keys) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let value = self.value(key)?;
        let tables = value.as_array().filter(|list| !list.is_empty());
        let tables = tables.and_then(|list| list.iter().map(|value| value.as_table().cloned()).collect());
        let tables: Vec<Table> =
            tables.ok_or_else(|| self.wrong(key, "must be a list of at least one table"))?;
        let below = |(at, table)| self.below(format!("{key}[{at}]."), table).whole(&mut read);
        tables.into_iter().enumerate().map(below).collect()
    }

    /// What `read` makes of this table, whose keys it must all ask for: others are unknown.
    pub fn whole<T>(mut self, read: impl FnOnce(&mut Keys) -> Result<T, String>) -> Result<T, String> {
        let made = read(&mut self)?;
        let unknown = self.table.keys().find(|key| !self.asked.contains(key));
        let Some(unknown) = unknown else { return Ok(made) };
        let near = nearest(unknown, self.asked.iter().map(String::as_str));
        Err(self.wrong(unknown, &format!("is unknown; the nearest known key is `{near}`")))
    }

    fn below(&self, name: String, table: Table) -> Keys {
        Keys { file: self.file.clone(), prefix: format!("{}{name}", self.prefix), table, asked: Vec::new() }
    }

    fn value(&mut self, key: &str) -> Result<Value, String> {
        self.asked.push(key.to_string());
        self.table.get(key).cloned().ok_or_else(|| self.wrong(key, "is missing"))
    }

    fn number(&mut self, key: &str, is_right: fn(f64) -> bool, text: &str) -> Result<f64, String> {
        let value = self.value(key)?;
        let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
        let Some(number) = number else {
            return Err(self.wrong(key, &format!("is {}, must be a number", show(&value))));
        };
        if !number.is_finite() || !is_right(number) {
            return Err(self.wrong(key, &format!("is {}, {text}", show(&value))));
        }
        Ok(number)
    }
}

/// The known name that looks most like `name`.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    known.min_by_key(|known| distance(name, known)).unwrap_or("none")
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Integer(whole) => whole.to_string(),
        Value::Float(number) if number.is_nan() => "nan".to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(date) => date.to_string(),
        Value::Array(_) => "a list".to_string(),
        Value::Table(_) => "a table".to_string(),
    }
}
