"""What the workbench stores: tables and their migrations, transactions on SQLite and PostgreSQL, the audit log."""
