"""Floor 3, lower half: the disk. Reading lines, rows and case files; writing atomically; result folders."""
