//! The datatypes of one rank by handle: what belongs to the handle rather than to the type.

use std::sync::Arc;

use super::basic::{self, DATATYPE_NULL};
use super::{Combiner, Datatype};
use crate::attr::AttrMap;
use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};

/// What a datatype handle stands for.
#[derive(Debug)]
pub struct TypeSlot {
    /// The type; operations under way keep a share of it when the handle is freed.
    pub ty: Arc<Datatype>,
    committed: bool,
    /// The name the program gave.
    name: Option<Box<[u8]>>,
    /// Cached attributes.
    pub attrs: AttrMap,
}

impl TypeSlot {
    fn new(ty: Arc<Datatype>, committed: bool) -> TypeSlot {
        TypeSlot { ty, committed, name: None, attrs: AttrMap::default() }
    }

    /// Whether it may be used in communication.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.committed
    }

    /// The type, for use in communication: fails with `MPI_ERR_TYPE` when it is not committed.
    #[inline]
    pub fn committed(&self) -> Result<&Arc<Datatype>> {
        if self.committed { Ok(&self.ty) } else { fail(Class::TYPE, "is a datatype that is not committed") }
    }

    /// `MPI_Type_get_name`: the name given to it, that of a predefined type, or none.
    pub fn name(&self) -> &[u8] {
        match &self.name {
            Some(name) => name,
            None => self.ty.predefined().map_or(&[], |row| row.name.as_bytes()),
        }
    }

    /// `MPI_Type_set_name`.
    pub fn set_name(&mut self, name: &[u8]) {
        self.name = Some(name.into());
    }
}

/// All datatypes of one rank.
#[derive(Debug)]
pub struct Types {
    derived: Slab<TypeSlot>,
    /// In the order of the table of predefined datatypes: they have names and attributes too.
    predefined: Vec<TypeSlot>,
    /// Predefined without a name: equal arguments give the same handle (MPI 5.0 section 19.1.9).
    unnamed: Vec<Handle>,
}

impl Default for Types {
    fn default() -> Self {
        let slot = |row: &basic::Predefined| {
            TypeSlot::new(Datatype::of(row.handle).expect("it is in the table").clone(), true)
        };
        let predefined = basic::PREDEFINED.iter().map(slot).collect();
        Types { derived: Slab::default(), predefined, unnamed: Vec::new() }
    }
}

impl Types {
    /// The datatype of a handle.
    #[inline]
    pub fn get(&self, handle: Handle) -> Result<&TypeSlot> {
        let found = match basic::index_of(handle) {
            Some(index) => self.predefined.get(index),
            None => self.derived.get(handle),
        };
        found.map_or_else(|| unusable(handle), Ok)
    }

    /// The datatype of a handle, to change what belongs to the handle.
    pub fn get_mut(&mut self, handle: Handle) -> Result<&mut TypeSlot> {
        let found = match basic::index_of(handle) {
            Some(index) => self.predefined.get_mut(index),
            None => self.derived.get_mut(handle),
        };
        found.map_or_else(|| unusable(handle), Ok)
    }

    /// A handle for a new derived datatype, not committed.
    pub fn add(&mut self, ty: Arc<Datatype>) -> Result<Handle> {
        self.derived.insert(TypeSlot::new(ty, false))
    }

    /// `MPI_Type_dup`: a handle that is committed if the old one is; the caller copies the
    /// attributes.
    pub fn dup(&mut self, handle: Handle) -> Result<Handle> {
        let old = self.get(handle)?;
        let slot = TypeSlot::new(Datatype::dup(&old.ty)?, old.committed);
        self.derived.insert(slot)
    }

    /// `MPI_Type_commit`; a second time changes nothing.
    pub fn commit(&mut self, handle: Handle) -> Result {
        self.get_mut(handle)?.committed = true;
        Ok(())
    }

    /// Whether the handle may be freed: predefined datatypes may not.
    pub fn check_free(&self, handle: Handle) -> Result {
        let slot = self.get(handle)?;
        if handle.is_predefined() || slot.ty.is_unnamed_predefined() {
            return fail(Class::TYPE, "is a predefined datatype, which cannot be freed");
        }
        Ok(())
    }

    /// `MPI_Type_free`: operations under way keep the type. The caller has emptied the attributes.
    pub fn free(&mut self, handle: Handle) -> Result {
        self.check_free(handle)?;
        self.derived.remove(handle);
        Ok(())
    }

    /// The handle of a datatype that is predefined without a name, which exists once.
    pub fn unnamed(&mut self, ty: Arc<Datatype>) -> Result<Handle> {
        let wanted = ty.contents();
        let same = |&&handle: &&Handle| {
            let known = self.derived.get(handle).expect("never freed").ty.contents();
            known.combiner == wanted.combiner && known.integers == wanted.integers
        };
        if let Some(&handle) = self.unnamed.iter().find(same) {
            return Ok(handle);
        }
        let handle = self.derived.insert(TypeSlot::new(ty, true))?;
        self.unnamed.push(handle);
        Ok(handle)
    }

    /// A handle for a type found in the contents of another: a predefined one as it is, a derived
    /// one as a new handle that the program frees (MPI 5.0 section 5.1.13).
    pub fn reveal(&mut self, ty: &Arc<Datatype>) -> Result<Handle> {
        match ty.predefined() {
            Some(row) => Ok(row.handle),
            None if ty.is_unnamed_predefined() => self.unnamed(ty.clone()),
            None => self.add(ty.clone()),
        }
    }

    /// How many derived datatypes the program has not freed, for the report at the end.
    pub fn live(&self) -> usize {
        self.derived.len() - self.unnamed.len()
    }
}

#[cold]
fn unusable<T>(handle: Handle) -> Result<T> {
    fail(Class::TYPE, crate::objects::unusable(handle, DATATYPE_NULL, "MPI_DATATYPE_NULL", "a datatype"))
}

/// What the small binding of envelope and contents says of a type made through the large one.
pub fn small_form_only(ty: &Datatype) -> Result {
    if ty.contents().large_counts.is_empty() {
        return Ok(());
    }
    fail(
        Class::TYPE,
        "was constructed with large counts; ask through MPI_Type_get_envelope_c and MPI_Type_get_contents_c",
    )
}

impl Combiner {
    /// Whether `MPI_Type_get_contents` has an answer (MPI 5.0 section 5.1.13).
    pub fn has_contents(self) -> bool {
        self != Combiner::Named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Form;

    const INT: Handle = Handle(0x209);

    #[test]
    fn handles_are_committed_named_and_freed() {
        let mut types = Types::default();
        let int = types.get(INT).unwrap().ty.clone();
        let pair = types.add(Datatype::contiguous(2, &int, Form::Small).unwrap()).unwrap();
        let error = types.get(pair).unwrap().committed().unwrap_err();
        assert!(error.class == Class::TYPE && error.text.contains("not committed"));
        let early = types.dup(pair).unwrap();
        types.commit(pair).unwrap();
        let late = types.dup(pair).unwrap();
        assert!(!types.get(early).unwrap().is_committed() && types.get(late).unwrap().is_committed());
        assert_eq!(
            (types.get(INT).unwrap().name(), types.get(pair).unwrap().name()),
            (&b"MPI_INT"[..], &b""[..])
        );
        types.get_mut(pair).unwrap().set_name(b"pair");
        assert_eq!(types.get(pair).unwrap().name(), b"pair");
        types.free(pair).unwrap();
        assert!(types.get(pair).unwrap_err().text.contains("freed"));
        assert_eq!(types.get(late).unwrap().ty.size(), 8, "a duplicate outlives its origin");
        assert_eq!(types.free(INT).unwrap_err().class, Class::TYPE);
        assert_eq!(types.get(DATATYPE_NULL).unwrap_err().text, "is MPI_DATATYPE_NULL");
        assert_eq!(types.live(), 2);
    }

    #[test]
    fn unnamed_predefined_types_exist_once() {
        let mut types = Types::default();
        let a = types.unnamed(Datatype::f90_real(6, 30).unwrap()).unwrap();
        let b = types.unnamed(Datatype::f90_real(6, 30).unwrap()).unwrap();
        let other = types.unnamed(Datatype::f90_real(7, 30).unwrap()).unwrap();
        assert_eq!(a, b);
        assert_ne!(a, other);
        assert!(types.get(a).unwrap().is_committed());
        assert_eq!(types.free(a).unwrap_err().class, Class::TYPE);
        let wrapped = Datatype::contiguous(3, &types.get(a).unwrap().ty.clone(), Form::Small).unwrap();
        assert_eq!(types.reveal(&wrapped.contents().types[0]).unwrap(), a);
        assert_eq!(types.reveal(Datatype::of(INT).unwrap()).unwrap(), INT);
        let (first, second) = (types.reveal(&wrapped).unwrap(), types.reveal(&wrapped).unwrap());
        assert_ne!(first, second);
    }

    #[test]
    fn a_long_chain_of_duplicates_is_released_without_recursion() {
        let mut ty = Datatype::contiguous(3, Datatype::of(INT).unwrap(), Form::Small).unwrap();
        for _ in 0..if cfg!(miri) { 100 } else { 1_000_000 } {
            ty = Datatype::dup(&ty).unwrap();
        }
        drop(ty);
    }
}
