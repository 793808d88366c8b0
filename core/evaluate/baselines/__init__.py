"""What the product is measured against. Each module fits to training frames alone."""
