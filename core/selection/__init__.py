"""Selection fields: soft selections drawn on the screen as formulas, with exact spatial gradients."""
