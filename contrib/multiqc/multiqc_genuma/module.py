"""Results of `genuma call`, from its summary.json."""

import json
import os

from multiqc.base_module import BaseMultiqcModule, ModuleNoSamplesFound
from multiqc.plots import bargraph, table

RELATIONS = {
    "same": "same person",
    "relatives": "relatives",
    "unrelated": "different people",
    "different": "different people, possibly relatives",
    "same_or_relatives": "same person or relatives",
    "unknown": "unknown",
}


def deep(value, *keys):
    """The value at a path of keys; None if a key is missing."""
    for key in keys:
        if value is None or (isinstance(value, dict) and key not in value):
            return None
        value = value[key]
    return value


def percent(share):
    return None if share is None else 100 * share


class MultiqcModule(BaseMultiqcModule):
    def __init__(self):
        super().__init__(
            name="genuma",
            anchor="genuma",
            info="Finds somatic mutations without aligning the reads.",
        )
        calls, pairs, general = {}, {}, {}
        for file in self.find_log_files("genuma/call"):
            summary = json.loads(file["f"])
            folder = os.path.basename(os.path.abspath(file["root"]))
            tumour = summary["samples"][1]
            sample = f"{folder} {tumour}" if tumour.startswith("TUMOR") else tumour
            sample = self.clean_s_name(sample, file)
            self.add_data_source(file, sample)
            self.add_software_version(summary["version"], sample)
            facts, told = deep(summary, "sample_summary", "pair"), deep(summary, "sample_summary", "pair", "tumour")
            calls[sample] = summary["passed"]
            pairs[sample] = {
                "relation": RELATIONS.get(deep(facts, "identity", "relation")),
                "purity": percent(deep(told, "purity", "value")),
                "ploidy": deep(told, "ploidy", "value"),
                "loh": percent(deep(told, "loh_fraction")),
                "contamination_tumor": percent(deep(facts, "contamination", 1, "share", "value")),
                "contamination_normal": percent(deep(facts, "contamination", 0, "share", "value")),
                "tumour_in_normal": percent(deep(summary, "sample_summary", "tumour_in_normal", "value")),
                "unstable_repeats": percent(deep(summary, "sample_summary", "repeats", "share", "value")),
                "burden": deep(summary, "sample_summary", "burden", "value"),
            }
            general[sample] = {"calls": sum(summary["passed"].values()), "purity": pairs[sample]["purity"]}
        calls = self.ignore_samples(calls)
        if not calls:
            raise ModuleNoSamplesFound
        share = lambda title, most: {"title": title, "suffix": "%", "min": 0, "max": most, "format": "{:,.1f}"}
        self.general_stats_addcols(
            general, {"calls": {"title": "Calls", "format": "{:,.0f}"}, "purity": share("Purity", 100)}
        )
        self.add_section(
            name="Somatic calls",
            anchor="genuma-calls",
            description="Calls that passed, by class.",
            plot=bargraph.plot(calls, None, {"id": "genuma_calls", "title": "genuma: somatic calls", "ylab": "Calls"}),
        )
        self.add_section(
            name="Tumour and normal",
            anchor="genuma-pair",
            description="Properties of the samples, estimated from the reads.",
            plot=table.plot(
                pairs,
                {
                    "relation": {"title": "Identity", "scale": False},
                    "purity": share("Purity", 100),
                    "ploidy": {"title": "Ploidy", "format": "{:,.2f}"},
                    "loh": share("LOH", 100),
                    "contamination_tumor": share("Contamination, tumour", 10),
                    "contamination_normal": share("Contamination, normal", 10),
                    "tumour_in_normal": share("Tumour in normal", 10),
                    "unstable_repeats": share("Unstable repeats", 30),
                    "burden": {"title": "Burden", "suffix": " /Mbp", "format": "{:,.1f}"},
                },
                {"id": "genuma_pair", "title": "genuma: tumour and normal"},
            ),
        )
        self.write_data_file(pairs, "multiqc_genuma")
