"""What is written of a forest: model files, text, rules, source code and models of others."""
