//! Figures: curves over axes.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_answer_at_the_nearest_point() {
        let curve = Curve::new("a", [(1.0, 10.0), (2.0, 30.0)]);
        assert_eq!((curve.at(1.2), curve.at(9.0), curve.max(), curve.min()), (10.0, 30.0, 30.0, 10.0));
        assert_eq!(curve.percent_of(&Curve::new("b", [(1.0, 20.0), (2.0, 20.0)])).at(2.0), 150.0);
    }
}
