"""Language models as judges: from comparisons to requests, replies and verdicts.

`planning` chooses comparisons and writes judgments, `panel` builds the judges, `asking` sends requests through the
ledger, `reply_parsing` reads replies, `verdicts` combines and counts them. The styles of asking are plug-ins.
"""
