"""The annotation web application: people judge triples, a gate and three layers of review stand behind them."""
