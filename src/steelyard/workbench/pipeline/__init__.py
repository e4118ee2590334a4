"""The way of an item: imported, handed out, answered, through the gate, aligned, reviewed, finished, exported."""
