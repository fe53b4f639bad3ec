//! A slow datatype that is obviously what the standard defines: a list of (type, displacement).

use std::sync::Arc;

use proptest::prelude::*;

use crate::datatype::basic::{Basic, PREDEFINED};
use crate::datatype::{Datatype, Distribution, Form, Order};

/// A typemap with its markers.
#[derive(Clone, Debug, Default)]
pub struct Map {
    pub entries: Vec<(Basic, i64)>,
    pub lb_marks: Vec<i64>,
    pub ub_marks: Vec<i64>,
    /// Where the parts without markers end, with what each was rounded by.
    pub ends: Vec<i64>,
}

impl Map {
    pub fn named(kind: usize) -> Map {
        let basic = PREDEFINED[kind].basic;
        let entries = match (basic.pair(), basic.index_offset()) {
            (Some((value, index)), Some(at)) => vec![(value, 0), (index, i64::from(at))],
            _ => vec![(basic, 0)],
        };
        Map { entries, ..Map::default() }
    }

    fn append(&mut self, other: &Map, at: i64) {
        if other.ub_marks.is_empty() && !other.entries.is_empty() {
            self.ends.push(other.ub() + at);
        }
        self.entries.extend(other.entries.iter().map(|&(basic, disp)| (basic, disp + at)));
        self.lb_marks.extend(other.lb_marks.iter().map(|mark| mark + at));
        self.ub_marks.extend(other.ub_marks.iter().map(|mark| mark + at));
    }

    /// `n` copies, an extent apart, the first at `at`.
    fn append_block(&mut self, other: &Map, n: i64, at: i64) {
        for i in 0..n {
            self.append(other, at + i * other.extent());
        }
    }

    pub fn size(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.0.size())).sum()
    }

    pub fn true_lb(&self) -> i64 {
        self.entries.iter().map(|entry| entry.1).min().unwrap_or(0)
    }

    pub fn true_ub(&self) -> i64 {
        self.entries.iter().map(|entry| entry.1 + i64::from(entry.0.size())).max().unwrap_or(0)
    }

    pub fn lb(&self) -> i64 {
        self.lb_marks.iter().copied().min().unwrap_or_else(|| self.true_lb())
    }

    pub fn ub(&self) -> i64 {
        if let Some(mark) = self.ub_marks.iter().max() {
            return *mark;
        }
        let align = self.entries.iter().map(|entry| i64::from(entry.0.align())).max().unwrap_or(1);
        let mut ub = self.ends.iter().copied().max().map_or(self.true_ub(), |end| end.max(self.true_ub()));
        while (ub - self.lb()) % align != 0 {
            ub += 1;
        }
        ub
    }

    pub fn extent(&self) -> i64 {
        self.ub() - self.lb()
    }

    /// The addresses of all bytes of `count` items, in the order of the packed stream, relative
    /// to the buffer.
    pub fn bytes(&self, count: u64) -> Vec<i64> {
        let mut all = Vec::new();
        for i in 0..count as i64 {
            for &(basic, disp) in &self.entries {
                let start = i * self.extent() + disp;
                all.extend(start..start + i64::from(basic.size()));
            }
        }
        all
    }
}

/// How to construct a datatype: a tree of constructor calls.
#[derive(Clone, Debug)]
pub enum Recipe {
    Named(usize),
    Dup(Box<Recipe>),
    Contiguous(i64, Box<Recipe>),
    Vector(i64, i64, i64, Box<Recipe>),
    Hvector(i64, i64, i64, Box<Recipe>),
    Indexed(Vec<(i64, i64)>, Box<Recipe>),
    Hindexed(Vec<(i64, i64)>, Box<Recipe>),
    IndexedBlock(i64, Vec<i64>, Box<Recipe>),
    HindexedBlock(i64, Vec<i64>, Box<Recipe>),
    Struct(Vec<(i64, i64, Recipe)>),
    Subarray(Vec<(i64, i64, i64)>, Order, Box<Recipe>),
    Darray(i32, Vec<Dim>, Order, Box<Recipe>),
    Resized(i64, i64, Box<Recipe>),
}

/// One dimension of a darray; `darg` is `None` for the default.
#[derive(Clone, Debug)]
pub struct Dim {
    pub gsize: i64,
    pub psize: i32,
    pub distribution: Distribution,
    pub darg: Option<i32>,
}

impl Recipe {
    pub fn build(&self, form: Form) -> Arc<Datatype> {
        let made = match self {
            Recipe::Named(kind) => Ok(Datatype::of(PREDEFINED[*kind].handle).unwrap().clone()),
            Recipe::Dup(old) => Datatype::dup(&old.build(form)),
            Recipe::Contiguous(n, old) => Datatype::contiguous(*n, &old.build(form), form),
            Recipe::Vector(n, b, s, old) => Datatype::vector(*n, *b, *s, &old.build(form), form),
            Recipe::Hvector(n, b, s, old) => Datatype::hvector(*n, *b, *s, &old.build(form), form),
            Recipe::Indexed(blocks, old) => {
                let (lengths, disps): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::indexed(&lengths, &disps, &old.build(form), form)
            }
            Recipe::Hindexed(blocks, old) => {
                let (lengths, disps): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::hindexed(&lengths, &disps, &old.build(form), form)
            }
            Recipe::IndexedBlock(b, disps, old) => Datatype::indexed_block(*b, disps, &old.build(form), form),
            Recipe::HindexedBlock(b, disps, old) => {
                Datatype::hindexed_block(*b, disps, &old.build(form), form)
            }
            Recipe::Struct(parts) => {
                let lengths: Vec<i64> = parts.iter().map(|part| part.0).collect();
                let disps: Vec<i64> = parts.iter().map(|part| part.1).collect();
                let types: Vec<_> = parts.iter().map(|part| part.2.build(form)).collect();
                Datatype::structure(&lengths, &disps, &types, form)
            }
            Recipe::Subarray(dims, order, old) => {
                let sizes: Vec<i64> = dims.iter().map(|dim| dim.0).collect();
                let subsizes: Vec<i64> = dims.iter().map(|dim| dim.1).collect();
                let starts: Vec<i64> = dims.iter().map(|dim| dim.2).collect();
                Datatype::subarray(&sizes, &subsizes, &starts, *order, &old.build(form), form)
            }
            Recipe::Darray(rank, dims, order, old) => {
                let gsizes: Vec<i64> = dims.iter().map(|dim| dim.gsize).collect();
                let distribs: Vec<Distribution> = dims.iter().map(|dim| dim.distribution).collect();
                let dargs: Vec<i32> = dims.iter().map(|dim| dim.darg.unwrap_or(19)).collect();
                let psizes: Vec<i32> = dims.iter().map(|dim| dim.psize).collect();
                let size = psizes.iter().product();
                let old = old.build(form);
                Datatype::darray(size, *rank, &gsizes, &distribs, &dargs, &psizes, *order, &old, form)
            }
            Recipe::Resized(lb, extent, old) => Datatype::resized(&old.build(form), *lb, *extent, form),
        };
        made.unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }

    pub fn map(&self) -> Map {
        self.map_by(&Map::named)
    }

    /// Where predefined datatypes, by their position in the table, have these typemaps.
    pub fn map_by(&self, named: &impl Fn(usize) -> Map) -> Map {
        let mut map = Map::default();
        match self {
            Recipe::Named(kind) => map = named(*kind),
            Recipe::Dup(old) => map = old.map_by(named),
            Recipe::Contiguous(n, old) => map.append_block(&old.map_by(named), *n, 0),
            Recipe::Vector(n, b, s, old) => {
                let old = old.map_by(named);
                (0..*n).for_each(|i| map.append_block(&old, *b, i * s * old.extent()));
            }
            Recipe::Hvector(n, b, s, old) => {
                let old = old.map_by(named);
                (0..*n).for_each(|i| map.append_block(&old, *b, i * s));
            }
            Recipe::Indexed(blocks, old) => {
                let old = old.map_by(named);
                blocks.iter().for_each(|&(b, at)| map.append_block(&old, b, at * old.extent()));
            }
            Recipe::Hindexed(blocks, old) => {
                let old = old.map_by(named);
                blocks.iter().for_each(|&(b, at)| map.append_block(&old, b, at));
            }
            Recipe::IndexedBlock(b, disps, old) => {
                let old = old.map_by(named);
                disps.iter().for_each(|at| map.append_block(&old, *b, at * old.extent()));
            }
            Recipe::HindexedBlock(b, disps, old) => {
                let old = old.map_by(named);
                disps.iter().for_each(|&at| map.append_block(&old, *b, at));
            }
            Recipe::Struct(parts) => {
                parts.iter().for_each(|(b, at, old)| map.append_block(&old.map_by(named), *b, *at));
            }
            Recipe::Subarray(dims, order, old) => {
                let sizes: Vec<i64> = dims.iter().map(|dim| dim.0).collect();
                map = of_cells(&sizes, *order, &old.map_by(named), |index| {
                    index.iter().zip(dims).all(|(&i, dim)| i >= dim.2 && i < dim.2 + dim.1)
                });
            }
            Recipe::Darray(rank, dims, order, old) => {
                let gsizes: Vec<i64> = dims.iter().map(|dim| dim.gsize).collect();
                map = of_cells(&gsizes, *order, &old.map_by(named), |index| owner(index, dims) == *rank);
            }
            Recipe::Resized(lb, extent, old) => {
                map = old.map_by(named);
                map.lb_marks = vec![*lb];
                map.ub_marks = vec![lb + extent];
            }
        }
        map
    }
}

/// The cells of an array for which `mine` holds, in the order of memory.
fn of_cells(sizes: &[i64], order: Order, old: &Map, mine: impl Fn(&[i64]) -> bool) -> Map {
    let total: i64 = sizes.iter().product();
    let mut map = Map::default();
    for cell in 0..total {
        let mut index = vec![0; sizes.len()];
        let mut left = cell;
        for step in 0..sizes.len() {
            let dim = if order == Order::C { sizes.len() - 1 - step } else { step };
            index[dim] = left % sizes[dim];
            left /= sizes[dim];
        }
        if mine(&index) {
            map.append(old, cell * old.extent());
        }
    }
    (map.lb_marks, map.ub_marks) = (vec![0], vec![total * old.extent()]);
    map
}

/// The rank that owns a cell (MPI 5.0 section 5.1.4).
fn owner(index: &[i64], dims: &[Dim]) -> i32 {
    let mut rank = 0;
    for (&i, dim) in index.iter().zip(dims) {
        let p = i64::from(dim.psize);
        let place = match dim.distribution {
            Distribution::None => 0,
            Distribution::Block => i / dim.darg.map_or((dim.gsize + p - 1) / p, i64::from),
            Distribution::Cyclic => i / dim.darg.map_or(1, i64::from) % p,
        };
        rank = rank * dim.psize + place as i32;
    }
    rank
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

fn dim() -> impl Strategy<Value = Dim> {
    (1..7i64, 1..4i32, 0..3, prop::option::of(1..4i32)).prop_map(|(gsize, psize, which, darg)| match which {
        0 => Dim { gsize, psize: 1, distribution: Distribution::None, darg },
        1 => {
            let least = (gsize as i32 + psize - 1) / psize;
            Dim { gsize, psize, distribution: Distribution::Block, darg: darg.map(|extra| least + extra - 1) }
        }
        _ => Dim { gsize, psize, distribution: Distribution::Cyclic, darg },
    })
}

fn darray(old: BoxedStrategy<Recipe>) -> impl Strategy<Value = Recipe> {
    (prop::collection::vec(dim(), 1..4), order(), old, any::<u32>()).prop_map(|(dims, order, old, pick)| {
        let size: i32 = dims.iter().map(|dim| dim.psize).product();
        Recipe::Darray((pick % size as u32) as i32, dims, order, Box::new(old))
    })
}

fn subarray(old: BoxedStrategy<Recipe>) -> impl Strategy<Value = Recipe> {
    let dim = (1..6i64)
        .prop_flat_map(|size| (Just(size), 1..=size))
        .prop_flat_map(|(size, sub)| (Just(size), Just(sub), 0..=size - sub));
    (prop::collection::vec(dim, 1..4), order(), old)
        .prop_map(|(dims, order, old)| Recipe::Subarray(dims, order, Box::new(old)))
}

/// Random recipes, small enough that the oracle stays quick.
pub fn recipe() -> impl Strategy<Value = Recipe> {
    let leaf = (0..PREDEFINED.len()).prop_map(Recipe::Named);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let inner = inner.boxed();
        let old = inner.clone().prop_map(Box::new).boxed();
        let indexed = prop::collection::vec((0..4i64, -6..12i64), 0..5).boxed();
        let hindexed = prop::collection::vec((0..4i64, -60..120i64), 0..5).boxed();
        prop_oneof![
            old.clone().prop_map(Recipe::Dup),
            (0..5i64, old.clone()).prop_map(|(n, old)| Recipe::Contiguous(n, old)),
            (0..5i64, 0..4i64, -4..6i64, old.clone()).prop_map(|(n, b, s, old)| Recipe::Vector(n, b, s, old)),
            (0..5i64, 0..4i64, -40..60i64, old.clone())
                .prop_map(|(n, b, s, old)| Recipe::Hvector(n, b, s, old)),
            (indexed, old.clone()).prop_map(|(blocks, old)| Recipe::Indexed(blocks, old)),
            (hindexed, old.clone()).prop_map(|(blocks, old)| Recipe::Hindexed(blocks, old)),
            (0..4i64, prop::collection::vec(-6..12i64, 0..5), old.clone())
                .prop_map(|(b, disps, old)| Recipe::IndexedBlock(b, disps, old)),
            (0..4i64, prop::collection::vec(-60..120i64, 0..5), old.clone())
                .prop_map(|(b, disps, old)| Recipe::HindexedBlock(b, disps, old)),
            prop::collection::vec((0..3i64, -60..120i64, inner.clone()), 0..4).prop_map(Recipe::Struct),
            (-20..20i64, -40..200i64, old).prop_map(|(lb, extent, old)| Recipe::Resized(lb, extent, old)),
            subarray(inner.clone()),
            darray(inner),
        ]
    })
}
