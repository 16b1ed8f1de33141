//! An address or a network of addresses (`10.0.0.0/8`, RFC 4632), and whether an address lies in it. Resolves no names.

use std::net::IpAddr;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: u128,
    mask: u128,
    v4: bool,
}

impl Network {
    /// Reads `10.0.0.7`, `10.0.0.0/8`, `::1` or `fd00::/8`. Errors: a sentence.
    pub fn parse(text: &str) -> Result<Network, String> {
        let wrong = || format!("`{text}` is no address or network such as 10.0.0.7 or 10.0.0.0/8");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = if length.is_none() { address.to_canonical() } else { address };
        let (bits, width, v4) = bits_of(address);
        let length = length.unwrap_or(width);
        if length > width {
            return Err(wrong());
        }
        let mask = match length {
            0 => 0,
            length => u128::MAX << (width - length),
        };
        Ok(Network { first: bits & mask, mask, v4 })
    }

    /// True when the address lies in it; an IPv4 address in IPv6 form counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (bits, _, v4) = bits_of(address.to_canonical());
        v4 == self.v4 && bits & self.mask == self.first
    }
}

fn bits_of(address: IpAddr) -> (u128, u32, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32, true),
        IpAddr::V6(address) => (address.to_bits(), 128, false),
    }
}
