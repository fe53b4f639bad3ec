"""What a test needs of the machine and does not find: it is skipped, and fails where TERN_TEST_REQUIRE names it (as in require.rs)."""

import os


def is_required(what):
    """Whether the machine must have it: words with commas between."""
    return what in os.environ.get("TERN_TEST_REQUIRE", "").replace(",", " ").split()
