//! What a test needs of the machine and does not find. Such a test is skipped, and said to be, where
//! `tests/all.py` counts; and it fails where it was demanded that the machine has it.

/// The test needs `what`, which is not there. Fails if `TERN_TEST_REQUIRE` names it (words with commas between).
pub fn missing(what: &str, why: &dyn std::fmt::Display) {
    let required = std::env::var("TERN_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word.trim() == what), "{what} is required and missing: {why}");
    // Past the harness, which keeps what passing tests print.
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "\nskipped for want of {what}: {why}");
}
