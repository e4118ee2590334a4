"""Supervision rules, debiasing, splits and unions of cases."""
