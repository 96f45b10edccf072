"""What all stages share: nodes, criteria, bins, targets, rules, the records of growing, forests."""
