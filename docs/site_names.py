"""Names for parts of the site's pages that the theme leaves without one: those who hear a page need them."""

NAMED = {
    'data-md-component="search" role="dialog"': 'data-md-component="search" role="dialog" aria-label="Search"',
    'type="checkbox" id="__drawer"': 'type="checkbox" id="__drawer" aria-label="Navigation"',
    'type="checkbox" id="__search"': 'type="checkbox" id="__search" aria-label="Search"',
    '<nav class="md-nav md-nav--secondary" aria-label="Table of contents">': '<nav class="md-nav md-nav--secondary" '
    'aria-label="Table of contents {number}">',
}


def on_post_page(output: str, **_: object) -> str:
    """Called by mkdocs for every page."""
    for part, named in NAMED.items():
        pieces = output.split(part)
        output = pieces[0] + "".join(named.format(number=i) + piece for i, piece in enumerate(pieces[1:], 1))
    return output
