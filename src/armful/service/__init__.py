"""The decision service: HTTP and a dashboard over a campaign; needs `pip install 'armful[serve]'`."""
