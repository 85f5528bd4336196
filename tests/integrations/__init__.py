"""Every framework's integration stands the same cases."""

import pytest

pytest.register_assert_rewrite("tests.integrations.cases")
