use bytemuck::Zeroable;

use super::*;

fn example() -> (Vec<u64>, Vec<[u8; 4]>, Page) {
    let keys: Vec<u64> = (0..500).map(|i| (i << 30) + i * i * i % 1009).collect();
    let counts: Vec<[u8; 4]> =
        (0..500_u32).map(|i| if i % 97 == 0 { u32::MAX - i } else { i % 40 / 20 * i % 90 }.to_le_bytes()).collect();
    let common = SampleCountEncoding { common: Some(0), base: 1, width: 6 };
    let code = CompactPageEncoding { key_widths: [5, 10, 20, 31, 33, 40, 50, 64], count_encodings: vec![common] };
    let mut page = Page::zeroed();
    encode_page(&code, &keys, &counts, &mut page);
    (keys, counts, page)
}

#[test]
fn every_instruction_set_decodes_the_same() {
    let (keys, counts, page) = example();
    let compact = CompactPage::parse_header(&page, 1).unwrap();
    for level in SimdLevel::available_simd_levels() {
        let mut decoded = vec![0; keys.len()];
        let (_, rises) = level.run_at_level(
            #[inline(always)]
            || compact.decode_keys_inline(&mut decoded),
        );
        assert!(rises && decoded == keys, "{level:?}");
        let found = level.run_at_level(
            #[inline(always)]
            || compact.find_entry_inline(keys[77]),
        );
        assert_eq!(found, Some(77), "{level:?}");
        let streams = compact.count_streams(0, compact.counts_at).unwrap();
        let mut decoded = vec![[0; 4]; counts.len()];
        let full = level.run_at_level(
            #[inline(always)]
            || compact.decode_stream::<true, true>(&streams, &mut decoded, 0),
        );
        assert!(full == streams.num_full && decoded == counts, "{level:?}");
    }
}

/// The checksum is valid, as a faulty writer would leave it.
#[test]
fn any_bytes_are_decoded_or_refused() {
    let (keys, _, whole) = example();
    let mut refused = 0;
    for byte in 0..PAGE_BYTES {
        for change in [0x01, 0x80, 0xff] {
            let mut page = whole;
            page.0[byte] ^= change;
            let Some(compact) = CompactPage::parse_header(&page, 1) else {
                refused += 1;
                continue;
            };
            let (mut decoded, mut counts) = (vec![0; compact.num_entries()], vec![[0; 4]; compact.num_entries()]);
            let done = compact.decode_keys(&mut decoded).and_then(|()| compact.decode_counts(&mut counts));
            refused += usize::from(done.is_none());
            assert!(done.is_none() || decoded.is_sorted_by(|a, b| a < b), "byte {byte}");
            compact.find_entry(keys[400]);
            let _ = compact.decode_counts_of_entry(compact.num_entries() - 1, &mut counts[..1]);
        }
    }
    assert!(refused > 100, "{refused}");
    for samples in [2, 3, MAX_COUNTS_PER_ENTRY] {
        if let Some(compact) = CompactPage::parse_header(&whole, samples) {
            let mut decoded = vec![0; compact.num_entries()];
            let mut counts = vec![[0; 4]; samples * compact.num_entries()];
            let done = compact.decode_keys(&mut decoded).and_then(|()| compact.decode_counts(&mut counts));
            assert!(done.is_none(), "{samples} samples");
        }
    }
}
