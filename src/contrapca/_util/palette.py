"""Colours of all pictures."""

# Okabe and Ito's palette, distinguishable with any colour vision, with violet in place of its yellow, which is faint on
# white (contrast 1.2); its grey is kept for the background.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B2BE2")
BACKGROUND_COLOUR = "#9A9A9A"
