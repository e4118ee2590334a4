"""Storage of the workbench: tables and their migrations, transactions on SQLite and PostgreSQL, the audit log."""
