//! Control variables: the settings. All are read when MPI is initialised, so none can be written
//! through the interface.

use fabric::settings::{self, Setting, Type};

use super::{CHAR, INT, Tools, UNSIGNED_LONG_LONG, at, class, insert, named, no_handle};
use crate::error::{Result, fail};
use crate::handle::Handle;

/// A handle of a control variable.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    setting: &'static Setting,
    /// Elements the program was told the value has.
    count: usize,
}

/// The form of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueForm {
    /// Characters with a terminating zero, as many as the handle says.
    Text(Vec<u8>),
    /// One of an enumeration.
    Choice(i32),
    /// A number.
    Number(u64),
}

/// The names that the values of a control variable have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enumeration {
    /// Its own name.
    pub name: &'static str,
    /// The name of each value, from 0 on.
    pub items: &'static [&'static str],
}

const FLAG: Enumeration = Enumeration { name: "tern_flag", items: &["off", "on"] };

/// The control variable with this name.
pub fn control_named(name: &[u8]) -> Result<i32> {
    named(settings::ALL, name, |setting| setting.name.to_string())
}

/// The enumeration of a setting, with its number.
pub fn enumeration_of(setting: &Setting) -> Option<u32> {
    match setting.kind {
        Type::Flag => Some(0),
        Type::Word(_) => words().position(|e| e.name == setting.name).map(|at| at as u32 + 1),
        Type::Text | Type::Bytes | Type::Number => None,
    }
}

/// The enumeration with this number.
pub fn enumeration(number: usize) -> Result<Enumeration> {
    match number {
        0 => Ok(FLAG),
        _ => words().nth(number - 1).map_or_else(no_handle, Ok),
    }
}

fn words() -> impl Iterator<Item = Enumeration> {
    settings::ALL.iter().filter_map(|setting| match setting.kind {
        Type::Word(items) => Some(Enumeration { name: setting.name, items }),
        _ => None,
    })
}

impl Control {
    /// The type of the values of a setting.
    pub fn datatype(setting: &Setting) -> Handle {
        match setting.kind {
            Type::Text => CHAR,
            Type::Flag | Type::Word(_) => INT,
            Type::Bytes | Type::Number => UNSIGNED_LONG_LONG,
        }
    }
}

impl Enumeration {
    /// The name of the item with this number.
    pub fn item(&self, index: i32) -> Result<&'static str> {
        at(self.items, index).copied()
    }
}

impl Tools {
    /// The control variable with this index.
    pub fn setting(&self, index: i32) -> Result<&'static Setting> {
        at(settings::ALL, index)
    }

    /// `MPI_T_cvar_handle_alloc`: a handle, and how many elements the value has.
    pub fn control(&mut self, index: i32) -> Result<(Handle, i32)> {
        let setting = self.setting(index)?;
        let count = match self.value(setting) {
            ValueForm::Text(text) => text.len() + 1,
            ValueForm::Choice(_) | ValueForm::Number(_) => 1,
        };
        let handle = insert(&mut self.controls, Control { setting, count }, class::OUT_OF_HANDLES)?;
        Ok((handle, count as i32))
    }

    /// `MPI_T_cvar_handle_free`.
    pub fn free_control(&mut self, handle: Handle) -> Result {
        self.controls.remove(handle).map_or_else(no_handle, |_| Ok(()))
    }

    /// `MPI_T_cvar_read`. A text that has become longer than the program was told is cut.
    pub fn read_control(&self, handle: Handle) -> Result<ValueForm> {
        let Some(control) = self.controls.get(handle) else { return no_handle() };
        Ok(match self.value(control.setting) {
            ValueForm::Text(mut text) => {
                text.resize(control.count, 0);
                text[control.count - 1] = 0;
                ValueForm::Text(text)
            }
            other => other,
        })
    }

    /// `MPI_T_cvar_write`.
    pub fn write_control(&self, handle: Handle) -> Result {
        let Some(control) = self.controls.get(handle) else { return no_handle() };
        let name = control.setting.name;
        fail(class::CVAR_SET_NEVER, format!("{name} is read when MPI is initialised, from the environment"))
    }

    fn value(&self, setting: &Setting) -> ValueForm {
        let settings = self.settings.as_ref().expect("read when the interface was initialised");
        let text = settings.text(setting.name);
        match setting.kind {
            Type::Text => ValueForm::Text(text.into()),
            Type::Flag => ValueForm::Choice(settings.flag(setting.name).into()),
            Type::Bytes | Type::Number => ValueForm::Number(settings.number(setting.name)),
            Type::Word(words) => {
                let index = words.iter().position(|word| *word == text);
                ValueForm::Choice(index.expect("checked when read") as i32)
            }
        }
    }
}
