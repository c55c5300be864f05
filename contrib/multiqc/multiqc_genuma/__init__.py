"""genuma in MultiQC: which files are looked for."""

from multiqc import config


def config_loaded():
    """Adds the summary of `genuma call` to what MultiQC looks for."""
    if "genuma/call" not in config.sp:
        config.update_dict(config.sp, {"genuma/call": {"fn": "summary.json", "contents": "genuma call "}})
