"""The routes of the workbench, one file for each queue, each with the permission that it needs.

A file declares what the application serves of it as ``ENDPOINTS``.
"""
