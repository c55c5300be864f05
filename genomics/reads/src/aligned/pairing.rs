//! Pairs the reads of record buffers into templates: mates in the same buffer are matched directly, others through
//! [`WaitingMates`].

use std::path::Path;

use crate::error::{Error, RecordFault};
use crate::packed_read::{PackedReadRef, ReadPacker};
use crate::pair_batch::Mate;
use crate::umi::UmiOrMoleculeId;

use super::record_buffer::{ReadLocation, ReadNumber, RecordBuffer, check_no_equals_sign};
use super::waiting_mates::{self, MateSearchResult, RemainingReads, WaitingMates, WaitingRead};
use crate::record_counts::RecordCounts;

/// The reads of one template: one read or two mates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TemplateReads<'a> {
    pub(crate) name: &'a [u8],
    /// UMI from the tags of the first record of the template that has one.
    pub(crate) umi: UmiOrMoleculeId<'a>,
    /// The carried tags of read 1 and of read 2, encoded as in BAM, with values in the order of sequencing. Those of a
    /// missing read are left over from an earlier template and must not be used.
    pub(crate) tags: [&'a [u8]; 2],
    /// Read 1 and read 2, if they are present. An unpaired read (without the SAM flag 0x1), or each read if mates are
    /// not paired, is the first item.
    pub(crate) mates: [Option<Mate<'a>>; 2],
}

/// Where the bases of a read are.
#[derive(Debug, Clone, Copy)]
enum MateLocation {
    Missing,
    /// In the current record buffer: index of the read.
    InRecordBuffer(u32),
    /// Among the mates that had waited: range of bytes in the buffer of found mates.
    InFoundMates(u32, u32),
}

/// A template whose reads are complete with the current record buffer.
#[derive(Debug, Clone, Copy)]
struct CompleteTemplate {
    /// Index of the later read of the template in the record buffer.
    last_read: u32,
    mates: [MateLocation; 2],
}

/// A read whose mate is not in the same record buffer.
#[derive(Debug, Clone, Copy)]
struct UnmatchedRead {
    hash: u64,
    read_index: u32,
    /// Bytes of the packed read in `packed_unmatched`: `start..end`.
    start: u32,
    end: u32,
}

/// Matches reads with their mates. Its buffers belong to one thread and are reused for all record buffers.
#[derive(Debug, Default)]
pub(super) struct MateMatcher {
    /// Hash table by read name: index + 1 of each read whose mate has not been found yet; 0 is an empty slot.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    is_matched: Vec<bool>,
    complete: Vec<CompleteTemplate>,
    unmatched: Vec<UnmatchedRead>,
    packed_unmatched: Vec<u8>,
    found_mates: Vec<u8>,
    packer: ReadPacker,
    buffers: TemplateBuffers,
}

/// Bases, qualities and carried tags of both mates of a template.
#[derive(Debug, Default)]
struct TemplateBuffers {
    letters: [[Vec<u8>; 2]; 2],
    tags: [Vec<u8>; 2],
}

impl TemplateBuffers {
    /// Unpacks mate `i` (0 or 1) of a template from a read that had waited.
    fn unpack_waiting(&mut self, i: usize, read: &WaitingRead<'_>) {
        self.tags[i].clear();
        self.tags[i].extend_from_slice(read.tags);
        let [seq, qual] = &mut self.letters[i];
        // Valid by construction: this crate packed the bytes, and they are checksummed if they were on disk.
        let packed = PackedReadRef::from_packed_bytes(read.packed_read).expect("a read as it was packed");
        packed.unpack_bases(seq);
        packed.unpack_quals(qual);
        if read.lacks_qualities {
            qual.clear();
        }
    }

    fn mates(&self, there: [bool; 2]) -> [Option<Mate<'_>>; 2] {
        let mate = |i: usize| there[i].then(|| Mate { seq: &self.letters[i][0], qual: &self.letters[i][1] });
        [mate(0), mate(1)]
    }

    /// Tags of both mates. The tags of a missing mate are left over from an earlier template and must not be used.
    fn tags(&self) -> [&[u8]; 2] {
        [&self.tags[0], &self.tags[1]]
    }
}

impl MateMatcher {
    /// Delivers the templates that are complete with the reads of `buffer`, in the order of their last reads. If
    /// `mates` is `None`, each read is delivered as a template of its own.
    ///
    /// # Errors
    /// Two reads with the same name and read number that are in memory together; a base `=`; the spill file cannot be
    /// written; errors of `each`.
    pub(super) fn deliver_templates_of_buffer<E: From<Error>>(
        &mut self,
        buffer: &RecordBuffer,
        path: &Path,
        mates: Option<&WaitingMates>,
        mut each: impl FnMut(TemplateReads<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.complete.clear();
        self.unmatched.clear();
        match mates {
            Some(mates) => self.match_mates(buffer, path, mates)?,
            None => {
                let one = |i: u32| CompleteTemplate {
                    last_read: i,
                    mates: [MateLocation::InRecordBuffer(i), MateLocation::Missing],
                };
                self.complete.extend((0..buffer.reads.len() as u32).map(one));
            }
        }
        let MateMatcher { complete: done, found_mates: found, buffers, .. } = self;
        for CompleteTemplate { last_read: last, mates } in done.iter() {
            for (i, at) in mates.iter().enumerate() {
                match *at {
                    MateLocation::Missing => {}
                    MateLocation::InRecordBuffer(read) => {
                        let read = &buffer.reads[read as usize];
                        let [seq, qual] = &mut buffers.letters[i];
                        buffer.decode_read(read, seq, qual);
                        check_no_equals_sign(seq).map_err(|fault| buffer.error_in_read(read, path, fault))?;
                        buffers.tags[i].clear();
                        buffer.append_carried_tags(read, &mut buffers.tags[i]);
                    }
                    MateLocation::InFoundMates(from, to) => {
                        buffers.unpack_waiting(i, &WaitingRead::from_encoded_bytes(&found[from as usize..to as usize]));
                    }
                }
            }
            let there = mates.map(|at| !matches!(at, MateLocation::Missing));
            let name = buffer.name(&buffer.reads[*last as usize]);
            let umis = mates.iter().map(|at| match *at {
                MateLocation::Missing => UmiOrMoleculeId::Missing,
                MateLocation::InRecordBuffer(read) => buffer.umi(&buffer.reads[read as usize]),
                MateLocation::InFoundMates(from, to) => {
                    WaitingRead::from_encoded_bytes(&found[from as usize..to as usize]).umi
                }
            });
            let (tags, mates) = (buffers.tags(), buffers.mates(there));
            each(TemplateReads { name, umi: first_umi(umis), tags, mates })?;
        }
        Ok(())
    }

    fn match_mates(&mut self, buffer: &RecordBuffer, path: &Path, mates: &WaitingMates) -> Result<(), Error> {
        self.match_within_chunk(buffer, path)?;
        if self.unmatched.is_empty() {
            return Ok(());
        }
        self.match_with_waiting_reads(buffer, path, mates)?;
        // Templates within the buffer are in order; those with a waiting mate follow them.
        self.complete.sort_unstable_by_key(|done| done.last_read);
        Ok(mates.spill_if_over_memory_limit()?)
    }

    fn match_within_chunk(&mut self, buffer: &RecordBuffer, path: &Path) -> Result<(), Error> {
        let reads = &buffer.reads;
        let slots = (2 * reads.len()).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.hashes.clear();
        self.is_matched.clear();
        self.is_matched.resize(reads.len(), false);
        for (i, read) in reads.iter().enumerate() {
            if read.read_number == ReadNumber::Unpaired {
                self.hashes.push(0);
                self.is_matched[i] = true;
                self.complete.push(CompleteTemplate {
                    last_read: i as u32,
                    mates: [MateLocation::InRecordBuffer(i as u32), MateLocation::Missing],
                });
                continue;
            }
            let name = buffer.name(read);
            let hash = waiting_mates::hash_read_name(name);
            self.hashes.push(hash);
            let mut slot = hash as usize & (slots - 1);
            loop {
                let Some(there) = (self.slots[slot] as usize).checked_sub(1) else {
                    self.slots[slot] = i as u32 + 1;
                    break;
                };
                let other = &reads[there];
                if !self.is_matched[there] && self.hashes[there] == hash && buffer.name(other) == name {
                    if other.read_number == read.read_number {
                        return Err(duplicate_primary_error(buffer, read, path));
                    }
                    (self.is_matched[there], self.is_matched[i]) = (true, true);
                    let (one, two) = if read.read_number == ReadNumber::First { (i, there) } else { (there, i) };
                    let mates = [MateLocation::InRecordBuffer(one as u32), MateLocation::InRecordBuffer(two as u32)];
                    self.complete.push(CompleteTemplate { last_read: i as u32, mates });
                    break;
                }
                slot = (slot + 1) & (slots - 1);
            }
        }
        let MateMatcher { unmatched: left, hashes, is_matched: met, .. } = self;
        let alone = (0..reads.len() as u32).filter(|&i| !met[i as usize]);
        left.extend(alone.map(|read| UnmatchedRead {
            hash: hashes[read as usize],
            read_index: read,
            start: 0,
            end: 0,
        }));
        Ok(())
    }

    /// Searches the mates of the reads that are still unmatched among the waiting reads of earlier record buffers.
    /// Reads without a waiting mate are added to the waiting reads.
    fn match_with_waiting_reads(
        &mut self,
        buffer: &RecordBuffer,
        path: &Path,
        mates: &WaitingMates,
    ) -> Result<(), Error> {
        let MateMatcher {
            complete: done,
            unmatched: left,
            packed_unmatched: packed,
            found_mates: found,
            packer,
            buffers: TemplateBuffers { letters: [[seq, qual], _], tags: [tags, _] },
            ..
        } = self;
        packed.clear();
        found.clear();
        for left in left.iter_mut() {
            let read = &buffer.reads[left.read_index as usize];
            left.start = packed.len() as u32;
            let umi = buffer.umi(read);
            tags.clear();
            buffer.append_carried_tags(read, tags);
            let name = buffer.name(read);
            WaitingRead::write_all_but_packed_read(read.read_number, read.lacks_qualities, name, umi, tags, packed);
            buffer.decode_read(read, seq, qual);
            check_no_equals_sign(seq).map_err(|fault| buffer.error_in_read(read, path, fault))?;
            // As many qualities as bases, with any value: the packed read needs both.
            qual.resize(seq.len(), b'!');
            packer.pack(seq, qual, packed);
            left.end = packed.len() as u32;
        }
        // Sort by shard, so that each shard is locked once.
        left.sort_unstable_by_key(|left| (waiting_mates::memory_group_of_hash(left.hash), left.read_index));
        let mut same = None;
        for of_shard in left
            .chunk_by(|a, b| waiting_mates::memory_group_of_hash(a.hash) == waiting_mates::memory_group_of_hash(b.hash))
        {
            let reads = of_shard.iter().map(|left| (left.hash, &packed[left.start as usize..left.end as usize]));
            let group = waiting_mates::memory_group_of_hash(of_shard[0].hash);
            mates.match_or_store_reads(group, reads, found, |i, met| {
                let last = of_shard[i].read_index;
                match met {
                    MateSearchResult::Found(at) => {
                        let (here, there) = (
                            MateLocation::InRecordBuffer(last),
                            MateLocation::InFoundMates(at.start as u32, at.end as u32),
                        );
                        let first = buffer.reads[last as usize].read_number == ReadNumber::First;
                        done.push(CompleteTemplate {
                            last_read: last,
                            mates: if first { [here, there] } else { [there, here] },
                        });
                    }
                    MateSearchResult::Waiting => {}
                    MateSearchResult::Duplicate => same = Some(last),
                }
            });
        }
        same.map_or(Ok(()), |read| Err(duplicate_primary_error(buffer, &buffer.reads[read as usize], path)))
    }

    /// Delivers up to `max_templates` templates of the reads in `rest`, which still wait at the end of the file; false
    /// if none are left.
    ///
    /// # Errors
    /// Errors of `each`.
    pub(super) fn deliver_remaining_reads<E>(
        &mut self,
        rest: &mut RemainingReads,
        max_templates: usize,
        counts: &mut RecordCounts,
        mut each: impl FnMut(TemplateReads<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        for _ in 0..max_templates {
            let Some(both) = rest.next_remaining_template() else { return Ok(false) };
            for (i, read) in both.iter().enumerate() {
                if let Some(read) = read {
                    self.buffers.unpack_waiting(i, read);
                }
            }
            let name = both.iter().flatten().next().map_or(&b""[..], |read| read.name);
            if both.iter().any(Option::is_none) {
                counts.mate_missing.add_read(name);
            }
            let umi = first_umi(both.iter().flatten().map(|read| read.umi));
            let (tags, mates) = (self.buffers.tags(), self.buffers.mates(both.map(|read| read.is_some())));
            each(TemplateReads { name, umi, tags, mates })?;
        }
        Ok(true)
    }
}

/// The first UMI that is not [`UmiOrMoleculeId::Missing`].
fn first_umi<'a>(mut umis: impl Iterator<Item = UmiOrMoleculeId<'a>>) -> UmiOrMoleculeId<'a> {
    umis.find(|umi| *umi != UmiOrMoleculeId::Missing).unwrap_or_default()
}

fn duplicate_primary_error(buffer: &RecordBuffer, read: &ReadLocation, path: &Path) -> Error {
    let name = String::from_utf8_lossy(buffer.name(read)).into_owned();
    let number = if read.read_number == ReadNumber::First { '1' } else { '2' };
    buffer.error_in_read(read, path, RecordFault::DuplicatePrimary { name, number })
}
