"""What is changed of the pages for the site."""

import re

FENCE = re.compile(r"^( *```)(\w+) [^\n`]*$", re.MULTILINE)
"""The beginning of a block of code that says more than its language, such as "```sh no-test", for tests."""

NAMED = {
    'data-md-component="search" role="dialog"': 'data-md-component="search" role="dialog" aria-label="Search"',
    'type="checkbox" id="__drawer"': 'type="checkbox" id="__drawer" aria-label="Navigation"',
    'type="checkbox" id="__search"': 'type="checkbox" id="__search" aria-label="Search"',
    '<nav class="md-nav md-nav--secondary" aria-label="Table of contents">': '<nav class="md-nav md-nav--secondary" '
    'aria-label="Table of contents {number}">',
}
"""Names for parts of a page that the theme leaves without one: those who hear a page need them."""


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by mkdocs for the text of every page: its Markdown knows a block of code only by its language alone."""
    return FENCE.sub(r"\1\2", markdown)


def on_post_page(output: str, **_: object) -> str:
    """Called by mkdocs for every page as HTML."""
    for part, named in NAMED.items():
        pieces = output.split(part)
        output = pieces[0] + "".join(named.format(number=i) + piece for i, piece in enumerate(pieces[1:], 1))
    return output
