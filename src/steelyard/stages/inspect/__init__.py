"""`inspect`: one item of a case file or a run with all that is known of it, or a page of items to choose from."""

from steelyard.report.case_sources import Rule, choose_rule
from steelyard.stages.inspect.finding import Wanted
from steelyard.stages.inspect.run import Beside, Settings, inspect_item, inspect_items

__all__ = ["Beside", "Rule", "Settings", "Wanted", "choose_rule", "inspect_item", "inspect_items"]
