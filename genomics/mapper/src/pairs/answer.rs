//! What is said of a read in the end: which of its places is the primary one's, which others are reported, and how sure each is.

use super::Read;
use crate::mapper::{Draft, sure};
use crate::options::Options;
use crate::place::Place;
use crate::quality;

/// What becomes of a read.
#[derive(Debug, Default)]
pub struct Answer {
    /// All its places.
    pub places: Vec<Place>,
    /// Which are reported: the primary one first, then those of other parts of the read, then those on ALT contigs that are better.
    pub pieces: Vec<Piece>,
    /// Of each place the best one of the same bases, ALT contigs and all, which may be itself; empty if the read has no place on an ALT contig.
    pub leaders: Vec<usize>,
}

/// A reported place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Which place.
    pub place: usize,
    /// Its mapping quality.
    pub quality: u8,
    /// The best score of another place of the same bases, 0 if there is none.
    pub next: i32,
    /// The score of the place on an ALT contig that is the best one of the same bases, if it is better than this one; else 0.
    pub alt: i32,
}

/// Whether a read has places in the primary assembly for different parts of it.
pub(super) fn in_pieces(read: &Read, options: &Options) -> bool {
    let Some((best, others)) = read.places.split_first() else { return false };
    let piece = |place: &Place| !place.alt && place.score >= options.least;
    others.iter().any(|place| piece(place) && place.elsewhere(best, read.length))
}

/// The greatest quality of a place: less if nothing explains why other bases are not aligned there.
pub(super) fn most(read: &Read, which: usize, options: &Options) -> i32 {
    let place = &read.places[which];
    let most = quality::most(place, read.length);
    let explains = |other: &Place| other.score >= options.least && place.elsewhere(other, read.length);
    if most < quality::MOST && read.places.iter().any(explains) { quality::MOST } else { most }
}

/// The quality of a place by what is known of its read alone.
pub(super) fn alone(draft: &Draft, read: &Read, which: usize, options: &Options) -> i32 {
    let rivals = quality::rivals(&read.places, which, read.length, options);
    let place = &read.places[which];
    // Seeds elsewhere in the read say nothing of this piece.
    let (from, to) = place.sequenced(read.length);
    let sure = if to - from == read.length {
        read.about.sure
    } else {
        sure(draft.seeds_of(read.number), draft.waiting_of(read.number), from..to)
    };
    quality::alone(place, rivals, sure, read.waiting, read.length, options).min(most(read, which, options))
}

impl Answer {
    /// Sets the pieces: the primary place with its quality, the best place of each other part of the read, and what is better on ALT contigs.
    /// If the primary place is too bad to be reported, the best one on an ALT contig is it.
    pub(super) fn pieces(
        &mut self,
        draft: &Draft,
        read: &Read,
        primary: Option<(usize, i32)>,
        paired: bool,
        options: &Options,
    ) {
        self.pieces.clear();
        self.leaders.clear();
        let places = &self.places;
        let good = |which: usize| places.get(which).is_some_and(|place| place.score >= options.least);
        let assembled = places.partition_point(|place| !place.alt);
        let instead = || good(assembled).then(|| (assembled, alone(draft, read, assembled, options)));
        let primary = primary.filter(|&(which, _)| good(which)).or_else(instead);
        let Some((primary, quality)) = primary else { return };
        let next = |which| quality::rivals(places, which, read.length, options).best.unwrap_or(0);
        let piece = |place, quality: i32| Piece { place, quality: quality as u8, next: next(place), alt: 0 };
        self.pieces.push(piece(primary, quality));
        for (i, place) in places[..assembled].iter().enumerate() {
            let elsewhere = |piece: &Piece| place.elsewhere(&places[piece.place], read.length);
            if place.score >= options.least && self.pieces.iter().all(elsewhere) {
                self.pieces.push(piece(i, alone(draft, read, i, options).min(quality)));
            }
        }
        if assembled == places.len() {
            return;
        }
        self.leaders = leaders(places, read.length);
        for piece in &mut self.pieces {
            let leader = &places[self.leaders[piece.place]];
            piece.alt = if leader.alt && !places[piece.place].alt { leader.score } else { 0 };
        }
        // As bwa: of a pair that lies as mates do, only the best one.
        let most = if paired { assembled + 1 } else { places.len() };
        for (i, place) in places.iter().enumerate().take(most).skip(assembled) {
            if self.leaders[i] == i && i != primary && place.score >= options.least {
                // Its quality says how much better it is than anything else, the primary place included.
                self.pieces.push(piece(i, alone(draft, read, i, options)));
            }
        }
        // What its mate made primary takes the place of a better one.
        let leader = self.leaders[primary];
        if !places[leader].alt && leader != primary {
            for other in self.leaders.iter_mut().filter(|other| **other == leader) {
                *other = primary;
            }
        }
    }
}

/// Of each place the best one of the same bases: where scores are equal, one in the primary assembly.
fn leaders(places: &[Place], length: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|&i| (-places[i].score, places[i].alt));
    let (mut leaders, mut found) = (vec![0; places.len()], Vec::new());
    for i in order {
        let leader = found.iter().copied().find(|&leader| !places[i].elsewhere(&places[leader], length));
        leaders[i] = leader.unwrap_or(i);
        if leader.is_none() {
            found.push(i);
        }
    }
    leaders
}
