//! Settings: text of the environment is read or refused with the name of its variable.

use fabric::settings::{ALL, Settings};

/// The first byte chooses the setting, the rest is its text, and the name of another.
pub fn decode(input: &[u8]) {
    let Some((which, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text).into_owned();
    let setting = &ALL[*which as usize % ALL.len()];
    let lookup = |name: &str| (name == setting.name).then(|| text.clone());
    match Settings::read(lookup, std::iter::empty()) {
        Ok(settings) => assert!(text.is_empty() || settings.value(setting.name).text == text),
        Err(why) => assert!(why.contains(setting.name), "{why}"),
    }
    let name = format!("TERN_{text}");
    let _ = Settings::read(|_| None, [name.as_str()].into_iter());
}
