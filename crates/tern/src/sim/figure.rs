//! What a study shows: claims of a paper beside what the simulation gives, and figures.

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

/// How a claim stands to the parameters of the cluster file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A parameter was fitted to it, or derived from it.
    Fitted,
    /// It follows from the protocols and the other parameters.
    Predicted,
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
    /// Whether it is a prediction.
    pub kind: Kind,
}

impl Claim {
    /// A prediction.
    pub fn new(
        place: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        paper: Paper,
        tern: f64,
    ) -> Claim {
        Claim { place, what: what.into(), unit, paper, tern, kind: Kind::Predicted }
    }

    /// The same, but a parameter depends on it.
    pub fn fitted(self) -> Claim {
        Claim { kind: Kind::Fitted, ..self }
    }

    /// The distance to what the paper says: in points for percentages, else in per cent of the paper's
    /// value; nothing if the paper gives a bound that holds, or says nothing.
    pub fn difference(&self) -> Option<f64> {
        let distance = |from: f64| match self.unit {
            "%" => self.tern - from,
            _ => (self.tern / from - 1.0) * 100.0,
        };
        match self.paper {
            Paper::Is(value) => Some(distance(value)),
            Paper::AtMost(most) | Paper::Between(_, most) if self.tern > most => Some(distance(most)),
            Paper::AtLeast(least) | Paper::Between(least, _) if self.tern < least => Some(distance(least)),
            _ => None,
        }
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By powers of two, labelled as sizes.
    Sizes,
    /// By powers of ten.
    Log,
}

/// An axis of a figure.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows.
    pub label: &'static str,
    /// How.
    pub scale: Scale,
}

/// A curve of a figure.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
        Curve { name: name.into(), points: points.into_iter().collect() }
    }

    /// Its value at the point nearest to `x`.
    pub fn at(&self, x: f64) -> f64 {
        let nearest = |a: &&(f64, f64), b: &&(f64, f64)| (a.0 - x).abs().total_cmp(&(b.0 - x).abs());
        self.points.iter().min_by(nearest).map_or(f64::NAN, |(_, y)| *y)
    }

    /// Every value divided by that of another curve at the same place, in per cent.
    pub fn percent_of(&self, other: &Curve) -> Curve {
        Curve::new(self.name.clone(), self.points.iter().map(|(x, y)| (*x, 100.0 * y / other.at(*x))))
    }

    /// The greatest value.
    pub fn max(&self) -> f64 {
        self.points.iter().map(|(_, y)| *y).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The least value.
    pub fn min(&self) -> f64 {
        self.points.iter().map(|(_, y)| *y).fold(f64::INFINITY, f64::min)
    }
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its file, without folder and extension.
    pub name: String,
    /// Its title.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What it shows.
    pub curves: Vec<Curve>,
    /// Values the paper states in its text, drawn as points.
    pub stated: Vec<(f64, f64)>,
}

impl Figure {
    /// A figure over sizes.
    pub fn by_size(name: &str, title: impl Into<String>, y: &'static str, curves: Vec<Curve>) -> Figure {
        Figure {
            name: name.into(),
            title: title.into(),
            x: Axis { label: "bytes", scale: Scale::Sizes },
            y: Axis { label: y, scale: Scale::Linear },
            curves,
            stated: Vec::new(),
        }
    }

    /// With another horizontal axis.
    pub fn over(mut self, label: &'static str, scale: Scale) -> Figure {
        self.x = Axis { label, scale };
        self
    }

    /// With a logarithmic vertical axis.
    pub fn logarithmic(mut self) -> Figure {
        self.y.scale = Scale::Log;
        self
    }

    /// With points the paper states.
    pub fn stated(mut self, points: impl IntoIterator<Item = (f64, f64)>) -> Figure {
        self.stated.extend(points);
        self
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
    fn curves_answer_at_the_nearest_point() {
        let curve = Curve::new("a", [(1.0, 10.0), (2.0, 30.0)]);
        assert_eq!((curve.at(1.2), curve.at(9.0), curve.max(), curve.min()), (10.0, 30.0, 30.0, 10.0));
        assert_eq!(curve.percent_of(&Curve::new("b", [(1.0, 20.0), (2.0, 20.0)])).at(2.0), 150.0);
    }
}
