//! Every SQL statement of the driver, read from its sources: constants, with the macros they are made of written out, and
//! the texts that code puts together or sends as they are. Reads Rust as far as statements need it; judges nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A statement, or a text that becomes part of one.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// The file's name.
    pub(super) file: String,
    /// The constant's name; of other texts nothing.
    pub(super) name: String,
    pub(super) sql: String,
}

impl Statement {
    pub(super) fn of(file: &str, name: &str, sql: &str) -> Statement {
        Statement { file: file.into(), name: name.into(), sql: sql.into() }
    }

    /// A whole statement, not a part.
    pub(super) fn is_whole(&self) -> bool {
        !self.name.is_empty()
    }
}

/// What is read of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Word(String),
    Sign(char),
}

/// A file of the driver without its tests.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    tokens: Vec<Token>,
}

impl Source {
    pub(super) fn parse(name: &str, text: &str) -> Source {
        Source { name: name.into(), tokens: without_tests(&tokens(text)) }
    }

    /// True when code, not a text, names `word`.
    pub(super) fn names(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| matches!(token, Token::Word(it) if it == word))
    }

    /// The texts in it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| match token {
            Token::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }
}

/// Every source of the driver.
pub(super) fn sources() -> Vec<Source> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let mut sources: Vec<Source> = fs::read_dir(root.join("src/store/postgres"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|it| it == "rs") && path.file_stem().is_some_and(|it| it != "tests")
        })
        .map(|path| Source::parse(path.file_name().unwrap().to_str().unwrap(), &fs::read_to_string(&path).unwrap()))
        .collect();
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    sources
}

/// Every statement in `sources`; panics at a constant that looks like one and can not be read.
pub(super) fn statements(sources: &[Source]) -> Vec<Statement> {
    let macros: BTreeMap<String, Macro> = sources.iter().flat_map(|source| macros(&source.tokens)).collect();
    let mut statements = Vec::new();
    for source in sources {
        let mut rest = &source.tokens[..];
        while let Some(token) = rest.first() {
            if let Some((name, value, after)) = constant(rest) {
                match value.first() {
                    Some(Token::Sign('[')) => {
                        for (number, part) in parts(&value[1..value.len() - 1]).into_iter().enumerate() {
                            if let Some(sql) = evaluate(part, &macros).filter(|sql| is_sql(sql)) {
                                statements.push(Statement::of(&source.name, &format!("{name}[{number}]"), &sql));
                            }
                        }
                    }
                    _ => match evaluate(value, &macros) {
                        Some(sql) if is_sql(&sql) => statements.push(Statement::of(&source.name, name, &sql)),
                        Some(_) => {}
                        None => assert!(
                            !value.iter().any(|token| matches!(token, Token::Text(text) if is_sql(text))),
                            "{}: the statement {name} can not be read",
                            source.name
                        ),
                    },
                }
                rest = after;
                continue;
            }
            if let Token::Text(text) = token
                && looks_like_sql(text)
            {
                statements.push(Statement::of(&source.name, "", text));
            }
            rest = &rest[1..];
        }
    }
    statements
}

const VERBS: [&str; 12] = [
    "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "BEGIN", "COMMIT", "ROLLBACK", "SET ", "LISTEN", "NOTIFY",
    "LOCK ",
];

fn is_sql(text: &str) -> bool {
    VERBS.iter().any(|verb| text.starts_with(verb))
}

/// A statement, or a part with words that only SQL has.
fn looks_like_sql(text: &str) -> bool {
    is_sql(text) || [" WHERE ", " AND ", " FROM ", "ON CONFLICT", "ORDER BY"].iter().any(|part| text.contains(part))
}

/// `const NAME: … = VALUE;` with its value and what follows.
fn constant(tokens: &[Token]) -> Option<(&str, &[Token], &[Token])> {
    let [Token::Word(word), Token::Word(name), Token::Sign(':'), ..] = tokens else { return None };
    if word != "const" {
        return None;
    }
    let equals = tokens.iter().position(|token| *token == Token::Sign('='))?;
    let texts = tokens[3..equals].iter().any(|token| matches!(token, Token::Word(word) if word == "str"));
    let end = equals + depth(&tokens[equals..], |token| *token == Token::Sign(';'))?;
    texts.then(|| (name.as_str(), &tokens[equals + 1..end], &tokens[end..]))
}

struct Macro {
    parameters: Vec<String>,
    body: Vec<Token>,
}

/// Macros with one arm, whose parameters are plain.
fn macros(tokens: &[Token]) -> Vec<(String, Macro)> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let [Token::Word(word), Token::Sign('!'), Token::Word(name), Token::Sign('{'), rest @ ..] = &tokens[at..]
        else {
            continue;
        };
        let Some(close) = (word == "macro_rules").then(|| matching(rest)).flatten() else { continue };
        let pattern: Vec<String> = rest[..close]
            .windows(3)
            .filter_map(|three| match three {
                [Token::Sign('$'), Token::Word(name), Token::Sign(':')] => Some(name.clone()),
                _ => None,
            })
            .collect();
        let arrow = rest.windows(2).position(|two| two == [Token::Sign('='), Token::Sign('>')]);
        let Some(body) = arrow.filter(|at| rest.get(at + 2) == Some(&Token::Sign('{'))).map(|at| at + 3) else {
            continue;
        };
        let Some(end) = matching(&rest[body..]) else { continue };
        let parameters = pattern;
        found.push((name.clone(), Macro { parameters, body: rest[body..body + end].to_vec() }));
    }
    found
}

/// The text that an expression of literals, `concat!` and our macros stands for.
fn evaluate(expression: &[Token], macros: &BTreeMap<String, Macro>) -> Option<String> {
    match expression {
        [Token::Text(text)] => Some(text.clone()),
        [Token::Word(_), Token::Sign(':'), Token::Sign(':'), rest @ ..] => evaluate(rest, macros),
        [Token::Word(name), Token::Sign('!'), Token::Sign('('), inner @ .., Token::Sign(')')] if name == "concat" => {
            parts(inner).into_iter().map(|part| evaluate(part, macros)).collect()
        }
        [Token::Word(name), Token::Sign('!'), Token::Sign('('), inner @ .., Token::Sign(')')] => {
            let called = macros.get(name)?;
            let arguments = parts(inner);
            let mut body = Vec::new();
            let mut rest = &called.body[..];
            while let Some(token) = rest.first() {
                let parameter = match rest {
                    [Token::Sign('$'), Token::Word(name), ..] => called.parameters.iter().position(|it| it == name),
                    _ => None,
                };
                match parameter {
                    Some(at) => body.extend_from_slice(arguments.get(at)?),
                    None => body.push(token.clone()),
                }
                rest = &rest[if parameter.is_some() { 2 } else { 1 }..];
            }
            evaluate(&body, macros)
        }
        _ => None,
    }
}

/// Splits at the commas that are in no bracket.
fn parts(tokens: &[Token]) -> Vec<&[Token]> {
    let mut rest = tokens;
    let mut parts = Vec::new();
    while let Some(at) = depth(rest, |token| *token == Token::Sign(',')) {
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    parts.push(rest);
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// The place of the first such token that is in no bracket.
fn depth(tokens: &[Token], wanted: impl Fn(&Token) -> bool) -> Option<usize> {
    let mut open = 0;
    for (at, token) in tokens.iter().enumerate() {
        if open == 0 && wanted(token) {
            return Some(at);
        }
        match token {
            Token::Sign('(' | '[' | '{') => open += 1,
            Token::Sign(')' | ']' | '}') => open -= 1,
            _ => {}
        }
    }
    None
}

/// The place of the bracket that closes one opened before `tokens`.
fn matching(tokens: &[Token]) -> Option<usize> {
    depth(tokens, |token| matches!(token, Token::Sign(')' | ']' | '}')))
}

/// Leaves out what is compiled for tests only.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let sign = Token::Sign;
    let word = |word: &str| Token::Word(word.into());
    let marker = [sign('#'), sign('['), word("cfg"), sign('('), word("test"), sign(')'), sign(']')];
    let (mut kept, mut rest) = (Vec::new(), tokens);
    while let Some(token) = rest.first() {
        if rest.starts_with(&marker) {
            let item = &rest[marker.len()..];
            let body = depth(item, |token| matches!(token, Token::Sign(';' | '{')));
            let end = match body {
                Some(at) if item[at] == sign('{') => matching(&item[at + 1..]).map(|close| at + 1 + close),
                at => at,
            };
            rest = end.map_or(&[][..], |end| &item[end + 1..]);
            continue;
        }
        kept.push(token.clone());
        rest = &rest[1..];
    }
    kept
}

fn tokens(source: &str) -> Vec<Token> {
    let text: Vec<char> = source.chars().collect();
    let (mut tokens, mut at) = (Vec::new(), 0);
    let word = |c: char| c.is_alphanumeric() || c == '_';
    while at < text.len() {
        match text[at] {
            '/' if text.get(at + 1) == Some(&'/') => {
                while at < text.len() && text[at] != '\n' {
                    at += 1;
                }
            }
            '"' => {
                let mut content = String::new();
                at += 1;
                while text[at] != '"' {
                    if text[at] != '\\' {
                        content.push(text[at]);
                        at += 1;
                        continue;
                    }
                    match text[at + 1] {
                        // The line goes on at its next word.
                        '\n' => {
                            at += 2;
                            while text[at].is_whitespace() {
                                at += 1;
                            }
                        }
                        escaped => {
                            content.push(if escaped == 'n' { '\n' } else { escaped });
                            at += 2;
                        }
                    }
                }
                at += 1;
                tokens.push(Token::Text(content));
            }
            // A character; a lifetime has no second quote.
            '\'' if text.get(at + 1) == Some(&'\\') => {
                at += 3;
                while text[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if text.get(at + 2) == Some(&'\'') => at += 3,
            c if word(c) => {
                let begin = at;
                while at < text.len() && word(text[at]) {
                    at += 1;
                }
                tokens.push(Token::Word(text[begin..at].iter().collect()));
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(Token::Sign(c));
                }
                at += 1;
            }
        }
    }
    tokens
}

#[test]
fn statements_are_read_with_their_macros_and_without_tests() {
    let source = Source::parse(
        "a.rs",
        r#"
        macro_rules! of { ($table:literal) => { concat!("FROM ", $table, gone!()) }; }
        macro_rules! gone { () => { " WHERE t.gone" }; }
        /// A 'text" in a comment.
        const READ: &str = concat!("SELECT \"a\" \
            ", super::of!("t"));
        const TWO: [&str; 2] = ["DELETE FROM a", of!("b")];
        const NUMBER: i64 = 1;
        fn f<'a>(x: &'a str) { let c = '"'; run("LISTEN x"); run("a sentence"); }
        #[cfg(test)]
        mod tests { const HIDDEN: &str = "SELECT hidden"; }
        #[cfg(test)]
        const ALSO: &str = "SELECT also";
        const LAST: &str = "SELECT last";
        "#,
    );
    let read: Vec<(String, String)> =
        statements(&[source]).into_iter().map(|statement| (statement.name, statement.sql)).collect();
    let expected = [
        ("READ", "SELECT \"a\" FROM t WHERE t.gone"),
        ("TWO[0]", "DELETE FROM a"),
        ("", "LISTEN x"),
        ("LAST", "SELECT last"),
    ];
    let texts: Vec<(&str, &str)> = read.iter().map(|(name, sql)| (name.as_str(), sql.as_str())).collect();
    // What the macros are made of comes first, as parts.
    let texts: Vec<_> = texts.into_iter().filter(|(_, sql)| *sql != " WHERE t.gone").collect();
    assert_eq!(texts, expected);
}

#[test]
fn the_driver_has_the_statements_that_its_modules_name() {
    let read = statements(&sources());
    let whole = read.iter().filter(|statement| statement.is_whole()).count();
    assert!(whole > 100, "{whole}");
    for (sql, _) in super::statements() {
        assert!(read.iter().any(|statement| statement.sql == sql), "not read from the sources: {sql}");
    }
}
