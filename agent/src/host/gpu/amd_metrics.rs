//! The table of counters that AMD's driver keeps of a card (`gpu_metrics` in `/sys`; its layouts are those of the kernel's
//! `kgd_pp_interface.h`): energy, and bytes over the links between cards.

use speedmatrix_shared::gpu::Traffic;

/// Energy is counted in 2⁻¹⁶ joules (15.259 µJ).
const ENERGY_UNIT_J: f64 = 1.0 / 65_536.0;
/// Traffic is counted in kilobytes.
const TRAFFIC_UNIT_BYTES: u64 = 1_000;
/// Links of a card, in the tables that count them.
const LINKS: usize = 8;
/// Bytes of a 64-bit counter.
const WORD: usize = 8;

/// What the table tells.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counters {
    /// Energy since the driver was loaded, joules.
    pub(super) energy_j: Option<f64>,
    /// Bytes over the links between cards.
    pub(super) fabric: Option<Traffic>,
}

/// Reads a table: `size (2 bytes), format (1), content (1), …`, little-endian. Tables of other formats (those of chips with
/// a CPU in them) and of layouts that came later tell nothing.
pub(super) fn parse(table: &[u8]) -> Counters {
    let Some([_, _, format, content]) = table.first_chunk::<4>() else { return Counters::default() };
    let (energy_at, links_at) = match (format, content) {
        (1, 1..=3) => (24, None),
        (1, 4) => (24, Some(112)),
        (1, 5) => (88, Some(176)),
        (1, 6) => (16, Some(128)),
        (1, 7 | 8) => (24, Some(136)),
        _ => return Counters::default(),
    };
    let links = |at: usize| {
        let kilobytes = (0..LINKS).map(|link| counter(table, at + link * WORD)).collect::<Option<Vec<u64>>>()?;
        kilobytes.into_iter().try_fold(0_u64, u64::checked_add)?.checked_mul(TRAFFIC_UNIT_BYTES)
    };
    let traffic = |at: usize| Some(Traffic { received_bytes: links(at)?, sent_bytes: links(at + LINKS * WORD)? });
    Counters {
        energy_j: counter(table, energy_at).filter(|units| *units > 0).map(|units| units as f64 * ENERGY_UNIT_J),
        // A card on its own has links and no traffic.
        fabric: links_at.and_then(traffic).filter(|traffic| traffic.received_bytes + traffic.sent_bytes > 0),
    }
}

/// A counter; all bits set mean that this card does not have it.
fn counter(table: &[u8], at: usize) -> Option<u64> {
    let bytes = table.get(at..)?.first_chunk::<WORD>()?;
    Some(u64::from_le_bytes(*bytes)).filter(|value| *value != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of so many bytes with these counters.
    fn table(content: u8, length: usize, counters: &[(usize, u64)]) -> Vec<u8> {
        let mut table = vec![0; length];
        table[2..4].copy_from_slice(&[1, content]);
        for (at, value) in counters {
            table[*at..*at + WORD].copy_from_slice(&value.to_le_bytes());
        }
        table
    }

    #[test]
    fn counters_are_found_in_every_layout() {
        let check = |table: &[u8], energy_j: Option<f64>, fabric: Option<(u64, u64)>| {
            let fabric = fabric.map(|(received_bytes, sent_bytes)| Traffic { received_bytes, sent_bytes });
            assert_eq!(parse(table), Counters { energy_j, fabric }, "{table:?}");
        };
        check(&table(3, 120, &[(24, 65_536)]), Some(1.0), None);
        check(&table(4, 288, &[(24, 131_072), (112, 5), (120, 2), (176, 9)]), Some(2.0), Some((7_000, 9_000)));
        check(&table(5, 352, &[(88, 65_536), (176, 1), (240, 1)]), Some(1.0), Some((1_000, 1_000)));
        check(&table(6, 1_664, &[(16, 65_536), (128, 1), (192, 2)]), Some(1.0), Some((1_000, 2_000)));
        check(&table(7, 2_000, &[(24, 65_536), (136, 1), (200, 2)]), Some(1.0), Some((1_000, 2_000)));
        // What the card does not count, a table that ends too early, an unknown layout, no table.
        check(&table(4, 288, &[(24, u64::MAX), (112, u64::MAX)]), None, None);
        check(&table(4, 28, &[]), None, None);
        check(&table(9, 288, &[(24, 65_536)]), None, None);
        check(&[], None, None);
    }
}
