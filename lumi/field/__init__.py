"""Fields over named axes: index maps, accesses, terms and regions."""
