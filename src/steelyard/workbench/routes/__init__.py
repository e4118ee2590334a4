"""The routes of the workbench, one file for each queue, each with the permission that it needs."""
