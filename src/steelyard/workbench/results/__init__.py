"""Results that leave the workbench for good: releases, and the methods of a paper."""
