"""Rows in memory as cases, and cases as rows of a table."""

import steelyard as sy


def read(rows, **settings):
    converted = sy.convert(rows, **settings)
    return list(converted.cases), converted.counts


def back(cases, **settings):
    return sy.convert(sy.Cases(cases), **{"to_kind": "columns", **settings}).rows


def texts(case):
    return {response.id: response.text for response in case.responses}
