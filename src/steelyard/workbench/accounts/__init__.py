"""People at the workbench: accounts, logins and tokens, and what each role may do."""
