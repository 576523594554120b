"""Files: whole or not at all, with strict keys, and TOML as people would write it."""

from confide.files.whole import OWNER_ONLY, check_new, sync_folder, write_beside, write_whole

__all__ = ["OWNER_ONLY", "check_new", "sync_folder", "write_beside", "write_whole"]
