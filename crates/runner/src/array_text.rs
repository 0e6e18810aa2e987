//! The text of an array, from a file or from the program, with those of parts beside it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use array::{ArrayDesign, TextError, builtin};

/// They are pages of text: what goes on for longer is a device or something else by mistake.
const TEXT_MAX: u64 = 4 << 20;

/// A name as like one that is known as this was meant for it.
const LIKE: f64 = 0.85;

/// An array as `plimsoll predict` and targets `array:` name it.
#[derive(Clone, Debug)]
pub struct ArrayText {
    /// Its name, less folder and ending.
    pub name: String,
    /// For messages.
    pub file: String,
    /// What it says.
    pub text: String,
    parts: BTreeMap<String, String>,
}

impl ArrayText {
    /// What the program has, or a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of(named: &Path) -> io::Result<Self> {
        let file = named.display().to_string();
        if let Some((name, text)) = builtin::arrays().iter().find(|(name, _)| *name == file) {
            let (name, text) = ((*name).to_owned(), (*text).to_owned());
            let file = format!("arrays/{name}.toml");
            return Ok(Self { file, name, text, parts: BTreeMap::new() });
        }
        let text = text_file(named)?;
        let name = named.file_stem().unwrap_or(named.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, file, text, parts: parts_beside(named) })
    }

    /// The text of a part.
    pub fn part(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str).or_else(|| builtin::part(name))
    }

    /// What it describes.
    ///
    /// # Errors
    ///
    /// What is wrong with it or with a part.
    pub fn design(&self) -> Result<ArrayDesign, TextError> {
        ArrayDesign::parse(&self.file, &self.text, |name| self.part(name))
    }
}

/// What to do about the name of an array that nothing has.
pub fn array_hint(name: &str) -> String {
    if let Some(array) = name.strip_prefix("array:") {
        return format!("only targets have `array:` before the name: `plimsoll predict {array}`");
    }
    if builtin::part(name).is_some() {
        return format!(
            "`{name}` is a part: name it in the file of an array, such as that of `plimsoll predict --list nvme-alone`"
        );
    }
    let like = |own: &str| strsim::jaro_winkler(name, own);
    let names = builtin::arrays().iter().chain(builtin::parts()).map(|(own, _)| *own);
    let near = names.max_by(|a, b| like(a).total_cmp(&like(b)));
    match near.filter(|own| like(own) >= LIKE) {
        Some(near) => format!("did you mean `{near}`? `plimsoll predict --list` has them all"),
        None => "`plimsoll predict --list` has the arrays of the program: `docs/predict.md` says how to write one".to_owned(),
    }
}

/// The text of a model, an array or a part.
pub(crate) fn text_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    stack::open_regular(path)?.take(TEXT_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > TEXT_MAX {
        true => Err(io::Error::other(format!("it is longer than {TEXT_MAX} bytes"))),
        false => Ok(text),
    }
}

/// Texts in the folder of an array's file and in `parts` beside that folder, the nearer first.
fn parts_beside(path: &Path) -> BTreeMap<String, String> {
    let folder = path.parent().unwrap_or(Path::new("")).join(".");
    let mut all = BTreeMap::new();
    for folder in [folder.join("../parts"), folder] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "toml")
                && let (Some(name), Ok(text)) = (path.file_stem(), text_file(&path))
            {
                all.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    all
}
