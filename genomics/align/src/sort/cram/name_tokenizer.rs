//! Name tokeniser of CRAM 3.1 (CRAM codec specification, section 5). A name is divided into tokens: numbers, words and
//! other characters. Each token is compared with the token at the same position of the name before. The tokens of one
//! position and kind are encoded together. A name that equals an earlier name, such as that of the mate, is stored as
//! the number of names since that name.

use std::collections::HashMap;

use super::rans::ContextOrder;
use super::rans_nx16::{Nx16Encoder, Nx16Method, write_uint7};

/// Maximum number of tokens in a name. Decoders accept 128.
const MAX_TOKENS: usize = 120;
/// Maximum number of digits of a number token, so that its value fits into 32 bits.
const MAX_DIGITS: usize = 9;
/// rANS methods that are tried for streams of bytes; the smallest result is kept. [`NUMBER_METHODS`] are tried for
/// streams of 32-bit numbers.
const BYTE_METHODS: [Nx16Method; 2] = [Nx16Method::Plain(ContextOrder::Zero), Nx16Method::Plain(ContextOrder::One)];
const NUMBER_METHODS: [Nx16Method; 2] = [Nx16Method::Plain(ContextOrder::Zero), Nx16Method::Striped];

/// Kinds of tokens whose streams have 32-bit numbers.
const NUMBER_KINDS: [TokenKind; 4] =
    [TokenKind::PaddedNumber, TokenKind::SameName, TokenKind::OtherName, TokenKind::Number];

/// Kind of a token, and of the stream that has its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum TokenKind {
    /// The kinds of the tokens at a position.
    Kind = 0,
    /// A word, ended by a zero byte.
    Word = 1,
    Character = 2,
    /// A number that begins with a zero. Its number of digits is in the stream [`TokenKind::PaddedLength`].
    PaddedNumber = 3,
    PaddedLength = 4,
    /// Number of names since an equal name (`DUP` in the specification).
    SameName = 5,
    /// Number of names since the name with which the following tokens are compared (`DIFF` in the specification).
    OtherName = 6,
    Number = 7,
    /// The token equals that at the same position of the other name.
    Match = 10,
    End = 12,
}

/// Number of kinds of tokens, including those that this encoder does not use.
const NUM_KINDS: usize = 13;

/// Bit of the kind byte of a stream: the stream is the first of the next token position.
const NEXT_PLACE: u8 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    Character(u8),
    PaddedNumber(&'a [u8]),
    Number(&'a [u8]),
}

/// The first token of `text`, which must not be empty.
fn first_token(text: &[u8]) -> Token<'_> {
    let run = |is: fn(&u8) -> bool| text.iter().take_while(|byte| is(byte)).count();
    let digits = run(u8::is_ascii_digit).min(MAX_DIGITS);
    let letters = run(u8::is_ascii_alphabetic);
    match (digits, letters) {
        (1.., _) if text[0] == b'0' => Token::PaddedNumber(&text[..digits]),
        (1.., _) => Token::Number(&text[..digits]),
        (0, 2..) => Token::Word(&text[..letters]),
        (0, _) => Token::Character(text[0]),
    }
}

impl<'a> Token<'a> {
    fn len(self) -> usize {
        match self {
            Token::Character(_) => 1,
            Token::Word(text) | Token::PaddedNumber(text) | Token::Number(text) => text.len(),
        }
    }
}

fn tokens(name: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let token = if rest.is_empty() { None } else { Some(first_token(rest)) };
        rest = &rest[token.map_or(0, Token::len)..];
        token
    })
}

/// Value of a number, as four bytes in little-endian order.
fn value(digits: &[u8]) -> [u8; 4] {
    digits.iter().fold(0, |value, digit| 10 * value + u32::from(digit - b'0')).to_le_bytes()
}

/// Streams of token values: for each position in the name, one for each kind.
#[derive(Default)]
struct TokenStreams(Vec<[Vec<u8>; NUM_KINDS]>);

impl TokenStreams {
    fn push(&mut self, place: usize, kind: TokenKind, value: &[u8]) {
        self.stream(place, TokenKind::Kind).push(kind as u8);
        if !value.is_empty() {
            self.stream(place, kind).extend_from_slice(value);
        }
    }

    fn stream(&mut self, place: usize, kind: TokenKind) -> &mut Vec<u8> {
        if self.0.len() <= place {
            self.0.resize_with(place + 1, Default::default);
        }
        &mut self.0[place][kind as usize]
    }

    fn push_token(&mut self, place: usize, token: Token<'_>) {
        match token {
            Token::Word(text) => {
                self.push(place, TokenKind::Word, text);
                self.stream(place, TokenKind::Word).push(0);
            }
            Token::Character(letter) => self.push(place, TokenKind::Character, &[letter]),
            Token::PaddedNumber(digits) => {
                self.push(place, TokenKind::PaddedNumber, &value(digits));
                self.stream(place, TokenKind::PaddedLength).push(digits.len() as u8);
            }
            Token::Number(digits) => self.push(place, TokenKind::Number, &value(digits)),
        }
    }
}

/// Appends the encoded read names to `out`. `names` contains names that each end with a zero byte. Returns false and
/// appends nothing if a name has too many tokens or no zero byte.
pub(super) fn encode_read_names(names: &[u8], rans: &mut Nx16Encoder, out: &mut Vec<u8>) -> bool {
    let mut streams = TokenStreams::default();
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    let (mut before, mut count) = (Vec::new(), 0u32);
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Some((0, name)) = name.split_last() else { return false };
        let number = count;
        count += 1;
        let earlier = numbers.insert(name, number);
        let this: Vec<Token<'_>> = tokens(name).collect();
        if this.len() > MAX_TOKENS {
            return false;
        }
        match earlier {
            Some(earlier) => streams.push(0, TokenKind::SameName, &(number - earlier).to_le_bytes()),
            None => {
                streams.push(0, TokenKind::OtherName, &number.min(1).to_le_bytes());
                for (i, &token) in this.iter().enumerate() {
                    match before.get(i) == Some(&token) {
                        true => streams.push(i + 1, TokenKind::Match, &[]),
                        false => streams.push_token(i + 1, token),
                    }
                }
                streams.push(this.len() + 1, TokenKind::End, &[]);
            }
        }
        // A name that occurred before has its tokens as well.
        before = this;
    }
    let (size, uses_arithmetic_coder) = (names.len() as u32, 0);
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.push(uses_arithmetic_coder);
    let TokenStreams(streams) = streams;
    let mut is_next_place = false;
    let mut encoded = Vec::new();
    let all = streams.iter().flat_map(|place| (0u8..).zip(place)).filter(|(_, stream)| !stream.is_empty());
    for (kind, stream) in all {
        is_next_place |= kind == TokenKind::Kind as u8;
        // The decoder assumes that all other kinds are matches if there is no stream of kinds.
        let is_implied = kind == TokenKind::Kind as u8
            && stream[0] != TokenKind::End as u8
            && stream[1..].iter().all(|&kind| kind == TokenKind::Match as u8);
        if is_implied {
            continue;
        }
        out.push(kind | if is_next_place { NEXT_PLACE } else { 0 });
        is_next_place = false;
        let is_number = NUMBER_KINDS.iter().any(|&number| number as u8 == kind);
        encoded.clear();
        rans.append_smallest_encoding(stream, if is_number { &NUMBER_METHODS } else { &BYTE_METHODS }, &mut encoded);
        write_uint7(out, encoded.len() as u32);
        out.extend_from_slice(&encoded);
    }
    true
}
