"""Write the index of the search as a script too: a page that is opened from disk may load scripts, but no JSON.

    python tools/search_from_disk.py site

The theme looks for search.js there; docs/javascripts/search-from-disk.js does the rest.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    site = Path(sys.argv[1])
    index = (site / "search.json").read_text(encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {index}\n", encoding="utf-8")
