import sys

if sys.platform == "win32":  # these tests fork, kill, and use files and permissions of POSIX
    collect_ignore = ["test_kills.py", "test_power_cuts.py", "test_store_errors.py"]
