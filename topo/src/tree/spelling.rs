//! Reading and writing [`TreeSpec`] as text; its page gives the grammar.

use std::fmt;
use std::str::FromStr;

use super::{Kind, Leaders, Level, Skew, TreeSpec};
use crate::Error;

/// Writes what differs from the default, in the order kind, skew, levels, leaders.
impl fmt::Display for TreeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Flat => f.write_str("flat")?,
            Kind::Kary => write!(f, "kary:{}", self.k)?,
            Kind::Knomial => write!(f, "knomial:{}", self.k)?,
        }
        if self.skew == Skew::Right {
            f.write_str(":right")?;
        }
        for level in &self.levels {
            write!(f, ":{level}")?;
        }
        if self.leaders == Leaders::Last {
            f.write_str(":leaders-last")?;
        }
        Ok(())
    }
}

impl FromStr for TreeSpec {
    type Err = Error;

    /// # Errors
    ///
    /// * [`Error::TreeSpec`] when the text does not follow the grammar.
    /// * [`Error::ZeroK`] when `k` is 0.
    /// * [`Error::RepeatedLevel`] when a level stands twice.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = |reason: String| Error::TreeSpec { text: text.to_owned(), reason };
        let mut words = text.split(':');
        let kind = words.next().unwrap_or_default();
        let mut spec = match kind {
            "flat" => TreeSpec::flat(),
            "kary" | "knomial" => {
                let k = words.next().ok_or_else(|| refused(format!("`{kind}` needs a number, as in `{kind}:4`")))?;
                let k = k.parse().map_err(|_| refused(format!("`{k}` is not a number that fits `{kind}`")))?;
                if kind == "kary" { TreeSpec::kary(k) } else { TreeSpec::knomial(k) }
            }
            "" => return Err(refused("it starts with no kind of tree".to_owned())),
            _ => {
                return Err(refused(format!("`{kind}` is not one of `flat`, `kary` and `knomial`")));
            }
        };
        let (mut skew, mut leaders) = (None, None);
        for word in words {
            let level = match word {
                "package" | "socket" => Some(Level::Package),
                "numa" => Some(Level::Numa),
                "l3" => Some(Level::L3),
                _ => None,
            };
            let repeated = match word {
                _ if level.is_some() => false,
                "left" => skew.replace(Skew::Left).is_some(),
                "right" => skew.replace(Skew::Right).is_some(),
                "leaders-first" => leaders.replace(Leaders::First).is_some(),
                "leaders-last" => leaders.replace(Leaders::Last).is_some(),
                _ if spec.kind == Kind::Flat && word.parse::<usize>().is_ok() => {
                    return Err(refused(format!("`flat` takes no number, and `{word}` stands there")));
                }
                _ => {
                    return Err(refused(format!(
                        "`{word}` is not one of `left`, `right`, `package`, `numa`, `l3`, `leaders-first` and \
                         `leaders-last`"
                    )));
                }
            };
            // A level that stands twice is left to `validate`.
            spec.levels.extend(level);
            if repeated {
                return Err(refused(format!("`{word}` comes after a word for the same thing")));
            }
        }
        spec.skew = skew.unwrap_or_default();
        spec.leaders = leaders.unwrap_or_default();
        spec.validate()?;
        Ok(spec)
    }
}

impl TreeSpec {
    /// Refuses `k` = 0 and repeated levels.
    pub(super) fn validate(&self) -> Result<(), Error> {
        if self.k == 0 && self.kind != Kind::Flat {
            return Err(Error::ZeroK);
        }
        match (1..self.levels.len()).find(|&i| self.levels[..i].contains(&self.levels[i])) {
            Some(i) => Err(Error::RepeatedLevel { level: self.levels[i] }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for kind in ["flat", "kary:1", "kary:3", "knomial:64"] {
            for skew in ["", ":right"] {
                for levels in ["", ":package", ":l3", ":package:numa", ":numa:l3:package"] {
                    for leaders in ["", ":leaders-last"] {
                        let text = format!("{kind}{skew}{levels}{leaders}");
                        assert_eq!(text.parse::<TreeSpec>().unwrap().to_string(), text);
                    }
                }
            }
        }
    }

    #[test]
    fn options_stand_in_any_order() {
        let spec: TreeSpec = "kary:2:leaders-last:socket:right:l3".parse().unwrap();
        assert_eq!(spec.to_string(), "kary:2:right:package:l3:leaders-last");
        let defaults: TreeSpec = "kary:2:left:leaders-first".parse().unwrap();
        assert_eq!(defaults, TreeSpec::kary(2));
    }

    #[test]
    fn errors_name_the_word() {
        for (text, why) in [
            ("", "no kind"),
            ("tree", "`tree`"),
            ("Flat", "`Flat`"),
            ("kary", "`kary:4`"),
            ("kary:", "``"),
            ("kary:two", "`two`"),
            ("kary:-1", "`-1`"),
            ("kary:99999999999999999999", "99999999999999999999"),
            ("knomial:0", "k is 0"),
            ("flat:3", "takes no number"),
            ("kary:2:3", "`3` is not one of"),
            ("kary:2:", "`` is not one of"),
            ("kary:2:left:right", "`right` comes after"),
            ("kary:2:leaders-last:leaders-last", "`leaders-last` comes after"),
            ("kary:2:package:numa:socket", "`package` stands twice"),
            ("kary:2 ", "`2 `"),
        ] {
            let error = text.parse::<TreeSpec>().unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
