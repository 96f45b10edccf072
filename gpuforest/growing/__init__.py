"""Growing: edges, bags, the loop over levels, rounds of boosting, assembly, prediction, memory."""
