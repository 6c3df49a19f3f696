# SPDX-License-Identifier: LGPL-2.1-or-later
from sqlalchemy.testing.suite import *  # noqa: F403
