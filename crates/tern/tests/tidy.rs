//! The rules of the house that a machine can check (CONTRIBUTING.md, «Style»): sizes, unsafe,
//! layers, leftovers, links. A failure lists every place at once.

use std::path::{Path, PathBuf};

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 70;
const BRANCHES: usize = 15;

/// Functions with more branches than that: in an order that matters they go from one source of news, one state of a peer or one thing that may be
/// wrong with a message to the next.
const MANY_BRANCHES: &[(&str, &str)] = &[
    ("crates/rnic/src/driver/datagrams.rs", "look_at_datagrams"),
    ("crates/rnic/src/driver/link.rs", "receive"),
    ("crates/rnic/src/driver/mod.rs", "look"),
    ("crates/rnic/src/driver/post.rs", "post_this"),
    ("crates/rnic/src/driver/verbs.rs", "idle"),
    ("crates/rnic/src/stack/ud/mod.rs", "part_came"),
    ("crates/verbs-abi/src/adapter/mod.rs", "take_in"),
];

/// Which crates of the workspace a crate may use: the arrow abi → mpi → proto → fabric → wire,
/// the devices beside it, the commands on top.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("fabric", &["wire"]),
    ("proto", &["wire", "fabric"]),
    ("memcopy", &[]),
    ("disk", &["fabric", "memcopy"]),
    ("mpi", &["wire", "fabric", "proto", "disk", "memcopy"]),
    ("shm", &["fabric", "memcopy"]),
    ("rnic", &["wire", "fabric", "memcopy"]),
    ("sim", &["fabric", "proto", "mpi"]),
    ("launch", &["fabric"]),
    ("ibv", &["fabric", "memhook", "rnic", "verbs-layout"]),
    ("abi", &["fabric", "proto", "mpi", "shm", "launch", "rnic", "ibv", "disk", "memcopy"]),
    ("mpich", &["fabric", "proto", "mpi", "shm", "launch", "rnic", "ibv", "disk", "memcopy"]),
    ("openmpi", &["fabric", "proto", "mpi", "shm", "launch", "rnic", "ibv", "disk", "memcopy"]),
    ("verbs-layout", &[]),
    ("verbs-abi", &["wire", "fabric", "launch", "rnic", "verbs-layout", "memcopy"]),
    ("fortran", &["abi"]),
    ("memhook", &["fabric"]),
    ("tern", &["fabric", "proto", "mpi", "launch", "memhook", "shm", "rnic", "ibv", "sim"]),
];

/// Crates in which only these files may say `unsafe`; crates not listed may say it anywhere.
const UNSAFE_IN: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("fabric", &[]),
    ("proto", &[]),
    ("rnic", &["driver/memory.rs", "driver/options.rs"]),
    ("sim", &[]),
    ("ibv", &["cm.rs", "library.rs", "objects.rs"]),
    ("tern", &[]),
    ("mpi", &["mem.rs"]),
    ("disk", &["sys.rs"]),
    (
        "verbs-abi",
        &[
            "exports/mod.rs",
            "exports/cm/mod.rs",
            "exports/cm/addresses.rs",
            "exports/cm/calls.rs",
            "exports/cm/endpoints.rs",
            "exports/cm/events.rs",
            "exports/cm/missing.rs",
            "exports/contexts.rs",
            "exports/data.rs",
            "exports/events.rs",
            "exports/missing.rs",
            "exports/objects.rs",
            "exports/pairs.rs",
            "exports/regions.rs",
            "exports/words.rs",
        ],
    ),
    ("verbs-layout", &["address.rs", "layout.rs"]),
];

/// Which folders of `proto` a folder may use besides itself and `event.rs`: data runs one way.
const FOLDERS: &[(&str, &[&str])] = &[
    ("engine", &["rendezvous", "rendezvous/movers", "epoch", "message", "choice", "memory"]),
    ("epoch", &["choice", "memory"]),
    ("rendezvous", &["rendezvous/movers", "message", "choice", "memory"]),
    ("rendezvous/movers", &["message", "choice", "memory"]),
    ("message", &[]),
    ("choice", &[]),
    ("memory", &[]),
    ("channel", &["memory"]),
    ("reliable", &["memory"]),
];

struct Source {
    /// Relative to the root, with slashes.
    name: String,
    text: String,
}

impl Source {
    fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = Path::new(&self.name).extension().and_then(|e| e.to_str());
        extension.is_some_and(|e| extensions.contains(&e))
    }

    fn is_test(&self) -> bool {
        self.name.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// The lines before the unit tests.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| {
            let is_tests = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
            !is_tests
        })
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources() -> Vec<Source> {
    const LEFT_OUT: &[&str] = &["target", "build", "corpus", "artifacts"];
    let root = root();
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the tree is readable") {
            let entry = entry.expect("the tree is readable");
            let name = entry.file_name().into_string().expect("file names are UTF-8");
            let (kind, path) = (entry.file_type().expect("the tree is readable"), entry.path());
            let hidden = name.starts_with('.') && name != ".ci" && name != ".gitignore";
            if kind.is_dir() && !hidden && !LEFT_OUT.contains(&&*name) {
                folders.push(path);
            } else if kind.is_file()
                && !hidden
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                let relative = path.strip_prefix(&root).expect("below the root");
                found.push(Source { name: relative.display().to_string(), text });
            }
        }
    }
    assert!(found.len() > 100, "only {} files found below {}", found.len(), root.display());
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn report(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn files_are_short() {
    let code = |s: &Source| s.has_extension(&["rs", "c", "h", "py", "sh"]) && s.name != "include/mpi.h";
    let long = sources().into_iter().filter(|s| code(s) && !s.is_test()).filter_map(|s| {
        let lines = s.code().count();
        (lines > FILE_LINES).then(|| format!("{}: {lines} lines, at most {FILE_LINES}", s.name))
    });
    report(long.collect());
}

/// The name of the function whose head is in this line of formatted code, if one is.
fn function(line: &str, extension: &str) -> Option<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let (head, line) = (line.trim_start(), line.trim_end());
    match extension {
        "rs" => {
            let at = head.find("fn ")?;
            let modifiers =
                ["pub", "const", "unsafe", "extern", "async", "pub(crate)", "pub(super)", "\"C\""];
            let own = head[..at].split_whitespace().all(|w| modifiers.contains(&w));
            (own && !line.ends_with(';') && !line.ends_with('}')).then(|| word(&head[at + 3..]))
        }
        "py" => head.strip_prefix("def ").map(word),
        _ => {
            let is_head = line.ends_with(") {") && !line.starts_with([' ', '\t', '}']);
            let name = line.split('(').next().and_then(|l| l.rsplit([' ', '*']).next());
            name.filter(|_| is_head).map(word)
        }
    }
}

/// The functions of a file: the line of each, its name, and its lines from the head on.
fn functions<'a>(source: &Source, lines: &'a [&'a str]) -> Vec<(usize, String, &'a [&'a str])> {
    let extension = source.name.rsplit('.').next().expect("has one");
    let indent = |line: &str| line.len() - line.trim_start().len();
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = function(line, extension)?;
        let inside =
            |l: &&&str| l.trim().is_empty() || indent(l) > indent(line) || l.trim_start().starts_with(')');
        let length = 1 + lines[at + 1..].iter().take_while(inside).count();
        Some((at + 1, name, &lines[at..at + length]))
    });
    found.collect()
}

#[test]
fn functions_are_short() {
    let (mut complaints, mut seen) = (Vec::new(), 0);
    for source in sources().iter().filter(|s| s.has_extension(&["rs", "c", "h", "py"])) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, name, lines) in functions(source, &lines) {
            seen += 1;
            let length = lines.len();
            if length > FUNCTION_LINES {
                complaints.push(format!(
                    "{}:{at}: {name} has {length} lines, at most {FUNCTION_LINES}",
                    source.name
                ));
            }
        }
    }
    assert!(seen > 1000, "only {seen} functions recognised");
    report(complaints);
}

/// Rust without comments, and without what stands in strings.
fn without_text(code: &str) -> String {
    let (mut kept, mut is_text) = (String::new(), false);
    for line in code.replace("'\"'", "").lines() {
        let mut characters = line.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '\\' if is_text => _ = characters.next(),
                '"' => is_text = !is_text,
                '/' if !is_text && characters.peek() == Some(&'/') => break,
                _ if !is_text => kept.push(c),
                _ => {}
            }
        }
        kept.push('\n');
    }
    kept
}

/// The branches of a function: each `if`, of a guard too, `while`, `for`, `&&`, `||`, `else` of a `let`, and each arm that has a block. Arms of
/// one line and `?` are read down as a list is, and do not count.
fn branches(code: &str) -> usize {
    let code = without_text(code);
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.filter(|word| matches!(*word, "if" | "while" | "for")).count();
    let behind = |sign: &str, is_one: fn(&str) -> bool| {
        code.match_indices(sign).filter(|(at, _)| is_one(code[..*at].trim_end())).count()
    };
    // As rustfmt has it: no space behind the `&&` of a type, no operand before the `||` of a closure.
    let ors = behind("|| ", |before| {
        before.ends_with(|c: char| c.is_alphanumeric() || "_)]}?".contains(c)) && !before.ends_with("move")
    });
    let elses = behind("else {", |before| !before.ends_with('}'));
    let blocks = code.matches("=> {").count() - code.matches("=> {}").count();
    words + ors + elses + blocks + code.matches("&& ").count()
}

#[test]
fn branches_are_counted() {
    assert_eq!(branches("let text = \"if || && for\"; // if\nlet quote = ('\"', if x { 1 } else { 2 });"), 1);
    assert_eq!(
        branches("let Some(x) = y else { return };\nfor _ in 0..x? {\n    while a\n        && b {}\n}"),
        4
    );
    assert_eq!(branches("call(move || a || b, || 1, |x: &&str| x, \"\\\"if\")"), 1);
    assert_eq!(branches("match x {\n 1 => a,\n 2 if b => c,\n 3 => {\n d }\n _ => {}\n}"), 2);
}

#[test]
fn functions_have_few_branches() {
    let (mut complaints, mut unused) = (Vec::new(), MANY_BRANCHES.to_vec());
    for source in sources().iter().filter(|s| s.has_extension(&["rs"])) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, name, lines) in functions(source, &lines) {
            let count = branches(&lines.join("\n"));
            let known = unused.iter().position(|place| *place == (&source.name, &name));
            if count > BRANCHES && known.map(|known| unused.remove(known)).is_none() {
                complaints
                    .push(format!("{}:{at}: {name} has {count} branches, at most {BRANCHES}", source.name));
            }
        }
    }
    let unused = unused.iter().map(|(file, name)| format!("{file}: {name} is no exception any more"));
    complaints.extend(unused);
    report(complaints);
}

/// The part of a line before a comment; strings with slashes are cut too, which does no harm.
fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

fn says_unsafe(line: &str) -> bool {
    let code = without_comment(line);
    ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern", "#[unsafe"]
        .iter()
        .any(|word| code.contains(word))
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    const NEAR: usize = 12;
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|s| s.has_extension(&["rs"]) && !s.name.ends_with("tidy.rs")) {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = without_comment(line);
            let block = code.contains("unsafe {") || code.contains("unsafe impl");
            let reason = lines[at.saturating_sub(NEAR)..=at].iter().any(|l| l.contains("SAFETY:"));
            if block && !reason {
                complaints.push(format!("{}:{}: unsafe without SAFETY", source.name, at + 1));
            }
        }
    }
    report(complaints);
}

#[test]
fn unsafe_stays_where_it_belongs() {
    let (mut complaints, sources) = (Vec::new(), sources());
    for (name, allowed) in UNSAFE_IN {
        let folder = format!("crates/{name}/src/");
        for source in sources.iter().filter(|s| s.name.starts_with(&folder)) {
            let here = &source.name[folder.len()..];
            let at = source.text.lines().position(says_unsafe);
            if let Some(at) = at.filter(|_| !allowed.contains(&here)) {
                complaints.push(format!("{}:{}: no unsafe here", source.name, at + 1));
            }
            let is_root = matches!(here, "lib.rs" | "main.rs");
            if is_root && allowed.is_empty() && !source.text.contains("#![forbid(unsafe_code)]") {
                complaints.push(format!("{}: must forbid(unsafe_code)", source.name));
            }
        }
    }
    report(complaints);
}

/// Dependencies in a manifest, without those of tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let (mut inside, mut names) = (false, Vec::new());
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if let Some((name, _)) = line.split_once('=').filter(|_| inside) {
            names.push(name.trim().trim_end_matches(".workspace").to_string());
        }
    }
    names
}

#[test]
fn layers_have_one_direction_and_dependencies_a_reason() {
    let (mut complaints, sources) = (Vec::new(), sources());
    let reasons = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let is_manifest = |s: &&Source| s.name.starts_with("crates/") && s.name.ends_with("/Cargo.toml");
    for source in sources.iter().filter(is_manifest) {
        let name = source.name.split('/').nth(1).expect("crates/NAME/Cargo.toml");
        let Some((_, below)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            complaints.push(format!("{}: crate `{name}` has no place in LAYERS of tidy.rs", source.name));
            continue;
        };
        for dependency in dependencies(&source.text) {
            let ours = LAYERS.iter().any(|(layer, _)| *layer == dependency);
            if ours && !below.contains(&dependency.as_str()) {
                complaints.push(format!("{}: `{name}` must not use `{dependency}`", source.name));
            } else if !ours && !reasons.contains(&format!("`{dependency}`")) {
                complaints.push(format!("{}: ARCHITECTURE.md says nothing of `{dependency}`", source.name));
            }
        }
    }
    report(complaints);
}

/// The folder of `proto` that a module lies in, the innermost one of [`FOLDERS`].
fn folder_of(module: &[String]) -> String {
    let inner = module.iter().take(2).map(String::as_str).collect::<Vec<_>>().join("/");
    let known = FOLDERS.iter().any(|(folder, _)| *folder == inner);
    if known { inner } else { module.first().cloned().unwrap_or_default() }
}

/// The modules of `proto` that a line of this file names, from the root of the crate.
fn paths_in(line: &str, here: &[&str]) -> Vec<String> {
    let code = without_comment(line);
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        let mut rest = code;
        while let Some(at) = rest.find(start) {
            let before = rest[..at].chars().next_back();
            let is_start = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':' && c != '$');
            let mut path: Vec<&str> = rest[at..].split("::").collect();
            rest = &rest[at + start.len()..];
            let mut base = if start == "crate::" { Vec::new() } else { here.to_vec() };
            while path.first() == Some(&"super") && !base.is_empty() {
                base.pop();
                path.remove(0);
            }
            if path.first() == Some(&"crate") {
                path.remove(0);
            }
            let word = |text: &&str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let module: Vec<String> = base.iter().chain(&path).map(word).collect();
            if is_start {
                found.push(folder_of(&module));
            }
        }
    }
    found
}

#[test]
fn data_runs_one_way_in_proto() {
    let (mut complaints, sources) = (Vec::new(), sources());
    for source in &sources {
        let Some(name) = source.name.strip_prefix("crates/proto/src/") else { continue };
        let Some((outer, _)) = name.split_once('/') else { continue };
        let folder = if name.starts_with("rendezvous/movers/") { "rendezvous/movers" } else { outer };
        let Some((_, below)) = FOLDERS.iter().find(|(known, _)| *known == folder) else {
            complaints.push(format!("{}: `{folder}` has no place in FOLDERS of tidy.rs", source.name));
            continue;
        };
        let module = name.trim_end_matches(".rs").trim_end_matches("/mod");
        let here: Vec<&str> = module.split('/').collect();
        let mut inner = here.clone();
        for (at, line) in source.text.lines().enumerate() {
            if line.starts_with("mod tests {") {
                inner.push("tests");
            }
            if without_comment(line).contains(" Engine<") && line.starts_with("impl") && folder != "engine" {
                complaints.push(format!("{}:{}: methods of Engine are in engine/", source.name, at + 1));
            }
            for used in paths_in(line, &inner) {
                let is_fine = used == folder || used == "event" || below.contains(&used.as_str());
                if !is_fine {
                    complaints.push(format!("{}:{}: must not use `{used}`", source.name, at + 1));
                }
            }
        }
    }
    report(complaints);
}

/// The first sentence of the comment at the head of a file, in one line and without links.
fn purpose(source: &Source) -> Option<String> {
    let head = source.text.lines().skip_while(|line| !line.starts_with("//!"));
    let paragraph = head.map_while(|line| line.strip_prefix("//! ")).collect::<Vec<_>>().join(" ");
    let text = paragraph.replace("[`", "`").replace("`]", "`");
    let end = text.match_indices(". ").find(|(at, _)| text[at + 2..].starts_with(char::is_uppercase));
    let sentence = end.map_or(text.trim_end_matches('.'), |(at, _)| &text[..at]);
    (!sentence.is_empty()).then(|| sentence.to_string())
}

/// Every file of every crate with its purpose, as ARCHITECTURE.md lists them.
fn index(sources: &[Source], complaints: &mut Vec<String>) -> String {
    let mut text = String::new();
    for (name, _) in LAYERS {
        let prefix = format!("crates/{name}/src/");
        // `mpich` and `openmpi` have none: they are `abi` again.
        if !sources.iter().any(|source| source.name.starts_with(&prefix)) {
            continue;
        }
        text += &format!("\n### {name}\n\n");
        for source in sources.iter().filter(|s| s.has_extension(&["rs"]) && !s.is_test()) {
            let Some(file) = source.name.strip_prefix(&prefix) else { continue };
            match purpose(source) {
                Some(purpose) => text += &format!("- `{file}`: {purpose}\n"),
                None => complaints.push(format!("{}: the head does not say what it is for", source.name)),
            }
        }
    }
    text + "\n"
}

/// The index of files is written from their heads: `TERN_UPDATE_SNAPSHOTS=1` does that.
#[test]
fn the_index_names_every_file() {
    const HEADING: &str = "## Files\n";
    let (path, mut complaints) = (root().join("ARCHITECTURE.md"), Vec::new());
    let text = std::fs::read_to_string(&path).expect("ARCHITECTURE.md");
    let (before, rest) = text.split_once(HEADING).expect("ARCHITECTURE.md has an index of files");
    let behind = rest.find("\n## ").map_or("", |at| &rest[at + 1..]);
    let index = index(&sources(), &mut complaints);
    if std::env::var_os("TERN_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, format!("{before}{HEADING}{index}{behind}")).expect("ARCHITECTURE.md");
        return report(complaints);
    }
    let listed = &rest[..rest.len() - behind.len()];
    let lacks = index.lines().filter(|line| !listed.lines().any(|known| known == *line));
    complaints.extend(lacks.map(|line| format!("ARCHITECTURE.md lacks «{line}»")));
    let gone = listed.lines().filter(|line| !index.lines().any(|known| known == *line));
    complaints.extend(gone.map(|line| format!("ARCHITECTURE.md: no file says «{line}»")));
    if !complaints.is_empty() {
        complaints.push("TERN_UPDATE_SNAPSHOTS=1 cargo test -p tern --test tidy writes the index".into());
    }
    report(complaints);
}

#[test]
fn nothing_is_left_behind() {
    // Written in halves, so that this file passes.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    let places =
        [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|s| !s.name.starts_with("LICENSE")) {
        for (at, line) in source.text.lines().enumerate() {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let mark = words.find(|word| marks.contains(word));
            let place = places.iter().find(|place| {
                let before = line.find(**place).map(|p| line[..p].chars().next_back());
                before.is_some_and(|c| c.is_none_or(|c| !c.is_alphanumeric() && !"./>)}".contains(c)))
            });
            if let Some(what) = mark.or(place.copied()) {
                complaints.push(format!("{}:{}: {what}", source.name, at + 1));
            }
        }
    }
    report(complaints);
}

/// Headings as the anchors that GitHub makes of them.
fn anchors(markdown: &str) -> Vec<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut complaints = Vec::new();
    for source in sources().iter().filter(|s| s.has_extension(&["md"])) {
        let folder = root().join(Path::new(&source.name).parent().expect("a file"));
        for link in source.text.split("](").skip(1) {
            let Some((link, _)) = link.split_once(')') else { continue };
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let text = match path {
                "" => Some(source.text.clone()),
                path if folder.join(path).is_dir() => Some(String::new()),
                path => std::fs::read_to_string(folder.join(path)).ok(),
            };
            match text {
                None => complaints.push(format!("{}: {link} does not exist", source.name)),
                Some(text) if !anchor.is_empty() && !anchors(&text).iter().any(|a| a == anchor) => {
                    complaints.push(format!("{}: {link} has no such heading", source.name));
                }
                Some(_) => {}
            }
        }
    }
    report(complaints);
}

/// What the crates' tests run without a fuzzer is what the targets run with one, and no decoder lacks either.
#[test]
fn every_decoder_is_fuzzed_and_tested() {
    let (all, mut complaints) = (sources(), Vec::new());
    let text = |name: &str| all.iter().find(|s| s.name == name).map_or("", |s| &s.text[..]);
    let decoders = all.iter().filter_map(|s| s.name.strip_prefix("fuzz/decoders/"));
    let decoders: Vec<&str> = decoders.filter(|name| *name != "inputs.rs").collect();
    assert!(decoders.len() > 10, "{decoders:?}");
    for file in decoders {
        let path = format!("../../../fuzz/decoders/{file}\"");
        let is_tested = all.iter().any(|s| s.name.starts_with("crates/") && s.text.contains(&path));
        let is_target =
            text(&format!("fuzz/fuzz_targets/{file}")).contains(&format!("\"../decoders/{file}\""));
        let is_built = text("fuzz/Cargo.toml").contains(&format!("path = \"fuzz_targets/{file}\""));
        for (is_so, what) in
            [(is_tested, "test"), (is_target, "fuzz target"), (is_built, "entry in Cargo.toml")]
        {
            if !is_so {
                complaints.push(format!("fuzz/decoders/{file} has no {what}"));
            }
        }
    }
    report(complaints);
}
