"""What a device can run, one package a device."""
