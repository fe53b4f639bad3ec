//! Categories: `tern`, in it `settings` with all control variables and a category for each group of
//! performance variables and types of events. They are the same from the start to the end.

use fabric::settings;
use proto::event::{Group, types};

use super::{class, named, variables};
use crate::error::{Result, fail};

/// A category.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// What is in it.
    pub doc: &'static str,
    /// Indices of control variables.
    pub controls: Vec<i32>,
    /// Indices of performance variables.
    pub variables: Vec<i32>,
    /// Indices of types of events.
    pub events: Vec<i32>,
    /// Indices of categories.
    pub categories: Vec<i32>,
}

/// How many categories there are.
pub const COUNT: i32 = 2 + Group::ALL.len() as i32;

/// The category with this index.
pub fn category(index: i32) -> Result<Category> {
    let all = |count: usize| (0..count as i32).collect::<Vec<i32>>();
    let part = |name: &str, doc| Category {
        name: format!("tern_{name}"),
        doc,
        controls: Vec::new(),
        variables: Vec::new(),
        events: Vec::new(),
        categories: Vec::new(),
    };
    Ok(match index {
        0 => Category {
            name: "tern".into(),
            categories: (1..COUNT).collect(),
            ..part("", "all variables of Tern")
        },
        1 => Category {
            controls: all(settings::ALL.len()),
            ..part("settings", "settings in force, from the environment or their defaults")
        },
        2..COUNT => {
            let (group, name, doc) = Group::ALL[index as usize - 2];
            let mut members = all(variables().len());
            members.retain(|&index| variables()[index as usize].group == group);
            let mut events = all(types().len());
            events.retain(|&index| types()[index as usize].group == group);
            Category { variables: members, events, ..part(name, doc) }
        }
        _ => {
            return fail(
                class::INVALID_INDEX,
                format!("there is no category {index}, only 0 to {}", COUNT - 1),
            );
        }
    })
}

/// The index of the category with this name.
pub fn category_named(name: &[u8]) -> Result<i32> {
    named((0..COUNT).map_while(|index| category(index).ok()), name, |category| category.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_in_one_category() {
        let categories: Vec<Category> = (0..COUNT).map(|index| category(index).unwrap()).collect();
        let mut found: Vec<i32> = categories.iter().flat_map(|c| c.variables.clone()).collect();
        found.sort_unstable();
        assert_eq!(found, (0..variables().len() as i32).collect::<Vec<_>>());
        let mut found: Vec<i32> = categories.iter().flat_map(|c| c.events.clone()).collect();
        found.sort_unstable();
        assert_eq!(found, (0..types().len() as i32).collect::<Vec<_>>());
        for (index, category) in categories.iter().enumerate() {
            assert_eq!(category_named(category.name.as_bytes()), Ok(index as i32));
        }
        assert_eq!(category(COUNT).unwrap_err().class, class::INVALID_INDEX);
        assert_eq!(category(-1).unwrap_err().class, class::INVALID_INDEX);
        assert_eq!(category_named(b"tern_").unwrap_err().class, class::INVALID_NAME);
    }
}
