//! Filters the differences between an inserted element and the copy from which it comes (docs/model/event.md, section
//! "Inserted elements").

use crate::change::{change_sort_position, is_small_variant};
use crate::event::Event;
use crate::event_model::EVENT_MODEL_PARAMS;
use crate::genotype::Filter;

/// Adds the filter `divergent` to small changes inside the copies from which passing insertions come: reads of the
/// inserted element are placed there, with the bases in which it differs from the copy.
pub(crate) fn filter_changes_in_element_copies(events: &mut [Event]) {
    let passing = events.iter().filter(|event| event.calls[0].genotype.filters.is_empty());
    let mut sources: Vec<(usize, usize, usize)> = passing
        .flat_map(|event| event.inserted_element.iter().flat_map(|element| &element.copies))
        .map(|(chrom, range)| (*chrom, range.start, range.end))
        .collect();
    sources.sort_unstable();
    let max_element_bp = *EVENT_MODEL_PARAMS.element_bp.end();
    for call in events.iter_mut().flat_map(|event| &mut event.calls).filter(|call| is_small_variant(&call.change)) {
        let (chrom, pos) = change_sort_position(&call.change);
        let from = sources.partition_point(|copy| (copy.0, copy.1 + max_element_bp) < (chrom, pos));
        let mut near = sources[from..].iter().take_while(|copy| (copy.0, copy.1) <= (chrom, pos));
        if near.any(|copy| pos < copy.2) {
            call.genotype.filters.insert(Filter::Divergent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::change::RetainedSide::{Left, Right};
    use crate::element_from_junctions::InsertedElement;
    use crate::element_from_junctions::tests::{genome, junction};
    use crate::event::{EventClass, event_class_of_change};
    use crate::genotype::{ErrorFrequency, GenotypingResult};
    use crate::known_variants::PopulationFrequency;
    use crate::locus::VariantCall;

    fn event(changes: &[Change]) -> Event {
        let call = |change: &Change| VariantCall {
            change: change.clone(),
            error_frequency: ErrorFrequency::Rare,
            genotype: GenotypingResult::default(),
            population_frequency: PopulationFrequency::NoKnownVariants,
            panel_normals: None,
            is_fold_back: false,
            locus: 0,
            change_index: 0,
            supporting_pairs: Vec::new(),
            phased_changes: Vec::new(),
        };
        let class = event_class_of_change(&changes[0]);
        Event { class, calls: changes.iter().map(call).collect(), inserted_element: None, phase_set: None }
    }

    #[test]
    fn differences_of_the_copy_are_filtered() {
        let snv = |chrom, pos| Change::Allele { chrom, pos, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        let first = junction((0, 5014, Left), (1, 20_000, Right));
        let last = junction((0, 5000, Right), (1, 22_999, Left));
        let inserted_element = InsertedElement::from_junctions(&first, &last, &genome());
        let insertion = Event { class: EventClass::Ins, inserted_element, ..event(&[first, last]) };
        let places = [(1, 19_999), (1, 20_000), (1, 22_999), (1, 23_000), (0, 20_500)];
        let mut events = vec![insertion];
        events.extend(places.map(|(chrom, pos)| event(&[snv(chrom, pos)])));
        filter_changes_in_element_copies(&mut events);
        let is_filtered: Vec<bool> =
            events.iter().map(|event| event.calls[0].genotype.filters.contains(&Filter::Divergent)).collect();
        assert_eq!(is_filtered, [false, false, true, true, false, false]);
    }
}
