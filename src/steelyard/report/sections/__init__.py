"""The sections of each verb's runs, one file each: `steelyard.report.stage_section` finds them by their names."""
