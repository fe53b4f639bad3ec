//! `MPI_T_category_*`: the same categories from the start to the end.

use mpi::error::Result;
use mpi::tools::{self, Category};

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::kind::tool::{MaybeOut, ToolLength, ToolText};

/// `MPI_T_category_changed`: never.
pub fn changed(_: &Cx, update_number: Out<i32>) -> Result {
    update_number.set(0);
    Ok(())
}

/// `MPI_T_category_get_num`.
pub fn get_num(_: &Cx, num_cat: Out<i32>) -> Result {
    num_cat.set(tools::CATEGORIES);
    Ok(())
}

/// `MPI_T_category_get_index`.
pub fn get_index(_: &Cx, name: Text, cat_index: Out<i32>) -> Result {
    // SAFETY: not kept beyond this call.
    cat_index.set(tools::category_named(unsafe { name.bytes() })?);
    Ok(())
}

/// `MPI_T_category_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn get_info(
    _: &Cx,
    cat_index: i32,
    name: ToolText,
    name_len: ToolLength,
    desc: ToolText,
    desc_len: ToolLength,
    num_cvars: MaybeOut<i32>,
    num_pvars: MaybeOut<i32>,
    num_categories: MaybeOut<i32>,
) -> Result {
    let category = tools::category(cat_index)?;
    name.set(name_len, &category.name);
    desc.set(desc_len, category.doc);
    num_cvars.set(category.controls.len() as i32);
    num_pvars.set(category.variables.len() as i32);
    num_categories.set(category.categories.len() as i32);
    Ok(())
}

/// `MPI_T_category_get_cvars`.
pub fn get_cvars(_: &Cx, cat_index: i32, len: usize, indices: Array<i32>) -> Result {
    list(cat_index, len, indices, |category| category.controls)
}

/// `MPI_T_category_get_pvars`.
pub fn get_pvars(_: &Cx, cat_index: i32, len: usize, indices: Array<i32>) -> Result {
    list(cat_index, len, indices, |category| category.variables)
}

/// `MPI_T_category_get_categories`.
pub fn get_categories(_: &Cx, cat_index: i32, len: usize, indices: Array<i32>) -> Result {
    list(cat_index, len, indices, |category| category.categories)
}

/// `MPI_T_category_get_events`.
pub fn get_events(_: &Cx, cat_index: i32, len: usize, indices: Array<i32>) -> Result {
    list(cat_index, len, indices, |category| category.events)
}

/// `MPI_T_category_get_num_events`.
pub fn get_num_events(_: &Cx, cat_index: i32, num_events: Out<i32>) -> Result {
    num_events.set(tools::category(cat_index)?.events.len() as i32);
    Ok(())
}

/// Stores as many indices as there is room for.
fn list(cat_index: i32, len: usize, indices: Array<i32>, part: impl Fn(Category) -> Vec<i32>) -> Result {
    let found = part(tools::category(cat_index)?);
    let count = found.len().min(len);
    // SAFETY: the application says that the array has `len` elements.
    unsafe { indices.slice_mut(count)? }.copy_from_slice(&found[..count]);
    Ok(())
}
