from typing import Any

PublishedModel: Any = None
