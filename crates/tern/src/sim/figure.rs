//! What a study shows: claims of a paper beside what the simulation gives, and figures.

pub use crate::chart::{Curve, Figure, Scale};

/// What a paper says of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paper {
    /// This value.
    Is(f64),
    /// At most this value.
    AtMost(f64),
    /// At least this value.
    AtLeast(f64),
    /// Between these values.
    Between(f64, f64),
    /// Nothing: a figure of interest beside the paper.
    Silent,
}

/// What a row is: how Tern's figure stands to what was put into the cluster file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// It follows from the protocols and the parameters.
    Prediction,
    /// A parameter was chosen so that it comes out.
    Fitted,
    /// A parameter was worked out from it; it comes back as far as the model is the paper's.
    Derived,
    /// Both sides come from the same formula: it shows that the code does what it computes, and nothing of the
    /// paper.
    Identity,
    /// As a prediction, but what stands beside it is a goal of this project.
    Goal,
}

impl Basis {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Prediction => "prediction",
            Basis::Fitted => "fitted",
            Basis::Derived => "derived",
            Basis::Identity => "identity",
            Basis::Goal => "goal",
        }
    }
}

/// How many points a percentage may be off if nothing else is said: the papers round to whole ones and speak of
/// «around» and «up to».
const POINTS: f64 = 5.0;
/// How many per cent other figures may be off: what `TARGETS.md` allows those of paper 001.
const PER_CENT: f64 = 15.0;

/// A row that is further off than its tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exception {
    /// The difference may be up to this, in its direction.
    pub until: f64,
    /// Why.
    pub reason: &'static str,
}

/// One quantity.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Figure, table or section of the paper.
    pub place: &'static str,
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// What the paper says.
    pub paper: Paper,
    /// What the simulation gives.
    pub tern: f64,
    /// What the row is.
    pub kind: Basis,
    /// Least and greatest difference that is allowed.
    pub tolerance: (f64, f64),
    /// A named exception from it.
    pub exception: Option<Exception>,
    /// What has to be known to read the row.
    pub note: Option<&'static str>,
}

impl Claim {
    /// A prediction. Bounds of a paper hold to the letter; its values within [`POINTS`] or [`PER_CENT`].
    pub fn new(
        place: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        paper: Paper,
        tern: f64,
    ) -> Claim {
        let most = match paper {
            Paper::Is(_) if unit == "%" => POINTS,
            Paper::Is(_) => PER_CENT,
            _ => 0.0,
        };
        let what = what.into();
        let kind = Basis::Prediction;
        Claim { place, what, unit, paper, tern, kind, tolerance: (-most, most), exception: None, note: None }
    }

    /// The same, but of another kind.
    pub fn is(self, kind: Basis) -> Claim {
        Claim { kind, ..self }
    }

    /// With another tolerance, the same in both directions.
    pub fn within(self, most: f64) -> Claim {
        Claim { tolerance: (-most, most), ..self }
    }

    /// Within a factor in both directions.
    pub fn within_factor(self, factor: f64) -> Claim {
        Claim { tolerance: ((1.0 / factor - 1.0) * 100.0, (factor - 1.0) * 100.0), ..self }
    }

    /// Further off than the tolerance, for a reason; `until` tells direction and bound.
    pub fn except(self, until: f64, reason: &'static str) -> Claim {
        Claim { exception: Some(Exception { until, reason }), ..self }
    }

    /// With a note.
    pub fn note(self, note: &'static str) -> Claim {
        Claim { note: Some(note), ..self }
    }

    /// The distance to what the paper says: in points for percentages, else in per cent of the paper's
    /// value; nothing if the paper gives a bound that holds, or says nothing.
    pub fn difference(&self) -> Option<f64> {
        let distance = |from: f64| match self.unit {
            "%" => self.tern - from,
            _ if from == 0.0 => self.tern * 100.0,
            _ => (self.tern / from - 1.0) * 100.0,
        };
        match self.paper {
            Paper::Is(value) => Some(distance(value)),
            Paper::AtMost(most) | Paper::Between(_, most) if self.tern > most => Some(distance(most)),
            Paper::AtLeast(least) | Paper::Between(least, _) if self.tern < least => Some(distance(least)),
            _ => None,
        }
    }

    /// The least and the greatest difference allowed, with the exception.
    pub fn allowed(&self) -> (f64, f64) {
        let (low, high) = self.tolerance;
        match self.exception {
            Some(Exception { until, .. }) => (low.min(until), high.max(until)),
            None => (low, high),
        }
    }

    /// What is wrong with the row: it is further off than allowed, or has an exception that it does not need.
    pub fn fault(&self) -> Option<String> {
        if self.tern.is_nan() {
            return Some(format!("{}, {}: not a number", self.place, self.what));
        }
        let (difference, (low, high)) = (self.difference().unwrap_or(0.0), self.allowed());
        if !(low..=high).contains(&difference) {
            let text =
                format!("{}, {}: {difference:+.3}, allowed {low:+} to {high:+}", self.place, self.what);
            return Some(text);
        }
        let (low, high) = self.tolerance;
        (self.exception.is_some() && (low..=high).contains(&difference))
            .then(|| format!("{}, {}: {difference:+.3} needs no exception; remove it", self.place, self.what))
    }
}

/// Everything shown for one paper or question.
#[derive(Clone, Debug)]
pub struct Study {
    /// Number of the paper, or a word.
    pub name: &'static str,
    /// What it is about, and on which cluster.
    pub title: &'static str,
    /// Its quantities.
    pub claims: Vec<Claim>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

impl Study {
    /// What is wrong with its rows.
    pub fn faults(&self) -> Vec<String> {
        self.claims.iter().filter_map(Claim::fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_points_for_percentages_and_per_cent_for_others() {
        let claim = |unit, paper, tern| Claim::new("", "", unit, paper, tern).difference();
        assert_eq!(claim("%", Paper::Is(40.0), 33.0), Some(-7.0));
        assert_eq!(claim("MB/s", Paper::Is(200.0), 220.0).map(f64::round), Some(10.0));
        assert_eq!(claim("%", Paper::AtMost(5.0), 4.0), None);
        assert_eq!(claim("%", Paper::AtMost(5.0), 6.0), Some(1.0));
        assert_eq!(claim("%", Paper::AtLeast(5.0), 4.0), Some(-1.0));
        assert_eq!(claim("", Paper::Between(40.0, 50.0), 45.0), None);
        assert_eq!(claim("", Paper::Between(40.0, 50.0), 20.0), Some(-50.0));
        assert_eq!(claim("", Paper::Silent, 1.0), None);
    }

    #[test]
    fn a_row_that_is_further_off_than_allowed_is_a_fault() {
        let claim = |tern| Claim::new("fig. 1", "a", "%", Paper::Is(40.0), tern);
        assert_eq!(claim(44.0).fault(), None);
        assert!(claim(45.5).fault().unwrap().contains("+5.500, allowed -5 to +5"));
        assert!(claim(41.0).within(0.5).fault().is_some());
        assert!(Claim::new("", "", "", Paper::AtMost(5.0), 5.01).fault().is_some());
        let n = |tern| Claim::new("", "", "", Paper::Is(100.0), tern).within_factor(2.0).fault().is_some();
        assert_eq!([49.0, 51.0, 199.0, 201.0].map(n), [true, false, false, true]);
        assert!(claim(f64::NAN).fault().is_some());
    }

    #[test]
    fn an_exception_has_a_bound_and_a_direction_and_must_be_needed() {
        let claim = |tern| Claim::new("", "", "%", Paper::Is(40.0), tern).except(-8.0, "because");
        assert_eq!(claim(33.0).fault(), None);
        assert!(claim(31.9).fault().is_some() && claim(47.0).fault().is_some());
        assert!(claim(38.0).fault().unwrap().contains("needs no exception"));
        let never = Claim::new("", "", "", Paper::Is(40.0), f64::INFINITY);
        assert_eq!(never.except(f64::INFINITY, "never").fault(), None);
    }
}
