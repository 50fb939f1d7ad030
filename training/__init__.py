"""Offline recipes that train the shipped judge and the shipped sentence encoder."""
