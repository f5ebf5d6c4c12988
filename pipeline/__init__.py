"""What the program does, feature by feature, over the stages; knows no terminal, no protocol."""
