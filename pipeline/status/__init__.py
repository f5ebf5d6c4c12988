"""What stands where: store, index, configuration and model service, collected and rendered."""
