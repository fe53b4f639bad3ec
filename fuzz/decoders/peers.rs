//! What ranks say to each other above messages: what rank 0 lets all go by, records to the target of a window, and datatypes that are told.

use std::sync::LazyLock;

use fabric::settings::Settings;
use mpi::coll::{agreed, agreement};
use mpi::datatype::Datatype;
use mpi::win::active::Refused;
use mpi::win::message::{Record, TypeName, push, split};

static SETTINGS: LazyLock<Settings> =
    LazyLock::new(|| Settings::read(|_| None, std::iter::empty()).expect("all have defaults"));

/// The input as each of them.
pub fn decode(input: &[u8]) {
    read_agreement(&String::from_utf8_lossy(input));
    read_records(input);
    let words: Vec<u64> = input.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    read_type(&words);
    // Small numbers, one in each byte.
    read_type(&input.iter().map(|byte| u64::from(*byte)).collect::<Vec<_>>());
    if let Some(bytes) = input.first_chunk()
        && let Some(refused) = Refused::decode(bytes)
    {
        assert_eq!(Refused::decode(&Refused::encode(Some(refused))), Some(refused));
    }
}

fn read_agreement(text: &str) {
    if let Ok(all) = agreed(text, &SETTINGS, 1) {
        assert_eq!(agreed(&agreement(&SETTINGS, &all), &SETTINGS, 1), Ok(all));
    }
}

fn read_records(input: &[u8]) {
    let mut rest = input;
    while let Ok((record, further)) = split(rest) {
        assert!(further.len() < rest.len());
        if let Record::Operate(told) = &record
            && let TypeName::New(_, ty) = told.ty
        {
            read_type(&ty.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect::<Vec<_>>());
        }
        let mut again = Vec::new();
        push(&mut again, &record);
        assert!(matches!(split(&again), Ok((same, [])) if same == record));
        rest = further;
    }
}

fn read_type(words: &[u64]) {
    let Ok(ty) = Datatype::described(words) else { return };
    let again = Datatype::described(&ty.describe()).expect("it was made by this library");
    assert_eq!((again.size(), again.extent(), again.lb()), (ty.size(), ty.extent(), ty.lb()));
    assert_eq!((again.true_lb(), again.true_extent()), (ty.true_lb(), ty.true_extent()));
    assert_eq!(again.basic(), ty.basic());
}
