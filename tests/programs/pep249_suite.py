# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the tests for drivers of PEP 249 (the package dbapi-compliance).

usage: pep249_suite.py MODULE DATABASE
"""

import importlib
import sys
import unittest

import dbapi20
import outcomes

MODULE, DATABASE = sys.argv[1:]


class Pep249(dbapi20.DatabaseAPI20Test):
    driver = importlib.import_module(MODULE)
    connect_args = (DATABASE,)

    def test_nextset(self):
        self.skipTest("optional, and left to the driver's author")

    test_setoutputsize = test_nextset


Pep249.__module__ = "dbapi20"
unittest.defaultTestLoader.loadTestsFromTestCase(Pep249).run(outcomes.Outcomes())
