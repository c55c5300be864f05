//! Joins the two junctions of an inserted element to one insertion, and filters the differences between the element and
//! the copy from which it comes (docs/model/event.md, section "Inserted elements").

use genuma_reads::fasta::Reference;

use crate::change::{Change, change_sort_position, is_small_variant};
use crate::event::{Event, EventClass};
use crate::event_model::EVENT_MODEL_PARAMS;
use crate::genotype::Filter;
use crate::inserted_element::InsertedElement;
use crate::locus::VariantCall;

/// Makes one insertion of the two junctions of each inserted element, and filters the small changes inside the copy
/// from which it comes. Events stay sorted by the position of their first call.
pub(crate) fn join_element_junctions(events: &mut Vec<Event>, genome: &Reference) {
    for event in events.iter_mut() {
        if let [a, b] = &event.calls[..]
            && let Some(element) = InsertedElement::from_junctions(&a.change, &b.change, genome)
        {
            (event.class, event.inserted_element) = (EventClass::Ins, Some(element));
        }
    }
    join_single_junctions(events, genome);
    filter_differences_of_copies(events);
}

/// Joins events of one junction each to insertions. At least one junction must pass.
fn join_single_junctions(events: &mut Vec<Event>, genome: &Reference) {
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    for (e, event) in events.iter().enumerate() {
        if let [VariantCall { change: Change::Junction { ends: own, .. }, .. }] = &event.calls[..] {
            ends.extend(own.iter().map(|end| (end.chrom, end.pos, e)));
        }
    }
    ends.sort_unstable();
    let mut is_joined = vec![false; events.len()];
    let max_duplication_bp = *EVENT_MODEL_PARAMS.target_site_duplication_bp.end();
    for (i, &(chrom, pos, e)) in ends.iter().enumerate() {
        let near = ends[i + 1..].iter().take_while(|end| end.0 == chrom && end.1 <= pos + max_duplication_bp);
        let element_with = |other: usize| {
            let [a, b] = [e, other].map(|event| &events[event].calls[0]);
            let passes = [a, b].iter().any(|call| call.genotype.filters.is_empty());
            let element = passes.then(|| InsertedElement::from_junctions(&a.change, &b.change, genome)).flatten()?;
            Some((other, element))
        };
        let mut single = near.map(|end| end.2).filter(|&other| other != e && !is_joined[e] && !is_joined[other]);
        let partner = single.find_map(element_with);
        if let Some((other, element)) = partner {
            (is_joined[e], is_joined[other]) = (true, true);
            let call = events[other].calls.remove(0);
            let event = &mut events[e];
            event.calls.push(call);
            event.calls.sort_by_key(|call| (call.genotype.rank(), call.locus));
            (event.class, event.inserted_element) = (EventClass::Ins, Some(element));
        }
    }
    events.retain(|event| !event.calls.is_empty());
    events.sort_by_key(|event| change_sort_position(&event.calls[0].change));
}

/// Filters small changes inside the copies from which passing insertions come: reads of the inserted element are placed
/// there, with the bases in which it differs from the copy.
fn filter_differences_of_copies(events: &mut [Event]) {
    let passing = events.iter().filter(|event| event.calls[0].genotype.filters.is_empty());
    let mut sources: Vec<(usize, usize, usize)> = passing
        .filter_map(|event| event.inserted_element.as_ref()?.source.as_ref())
        .map(|copy| (copy.chrom, copy.range.start, copy.range.end))
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
    use crate::change::RetainedSide::{Left, Right};
    use crate::event::event_class_of_change;
    use crate::genotype::{ErrorFrequency, GenotypingResult};
    use crate::inserted_element::tests::{genome, junction};
    use crate::known_variants::PopulationFrequency;

    fn event(changes: &[Change]) -> Event {
        let call = |change: &Change| VariantCall {
            change: change.clone(),
            error_frequency: ErrorFrequency::Rare,
            genotype: GenotypingResult::default(),
            tumour_molecules: 0,
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
    fn junctions_are_joined_and_differences_of_the_copy_are_filtered() {
        let snv = |chrom, pos| Change::Allele { chrom, pos, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        let first = junction((0, 5014, Left), (1, 20_000, Right));
        let last = junction((0, 5000, Right), (1, 22_999, Left));
        let second = [junction((0, 7010, Left), (0, 10_000, Right)), junction((0, 7000, Right), (1, 22_999, Left))];
        let other = junction((0, 7005, Right), (1, 25_000, Left));
        let mut events: Vec<Event> = [second[0].clone(), second[1].clone(), other.clone()]
            .into_iter()
            .chain([snv(1, 19_999), snv(1, 20_000), snv(1, 22_999), snv(1, 23_000), snv(0, 20_500)])
            .map(|change| event(&[change]))
            .collect();
        events.push(event(&[first, last]));
        events.sort_by_key(|event| change_sort_position(&event.calls[0].change));
        join_element_junctions(&mut events, &genome());
        let insertions: Vec<usize> =
            events.iter().filter(|event| event.class == EventClass::Ins).map(|event| event.calls.len()).collect();
        assert_eq!(insertions, [2, 2]);
        assert!(events.iter().any(|event| event.class == EventClass::Bnd && event.calls[0].change == other));
        let is_filtered = |(chrom, pos)| {
            let of_event = |event: &&Event| event.calls[0].change == snv(chrom, pos);
            events.iter().find(of_event).unwrap().calls[0].genotype.filters.contains(&Filter::Divergent)
        };
        let places = [(1, 19_999), (1, 20_000), (1, 22_999), (1, 23_000), (0, 20_500)];
        assert_eq!(places.map(is_filtered), [false, true, true, false, false]);
    }
}
