//! MPI 5.0, chapter 13 Generalized requests.

use crate::kind::function::{GrequestCancelFn, GrequestFreeFn, GrequestQueryFn};
use crate::kind::handle::Request;
use crate::kind::output::RequestOut;
use crate::kind::scalar::Addr;
use crate::table::rows;

rows! { "13 Generalized requests";
    MPI_Grequest_complete(request: Request) => crate::grequest::complete;
    MPI_Grequest_start(query_fn: GrequestQueryFn, free_fn: GrequestFreeFn, cancel_fn: GrequestCancelFn,
        extra_state: Addr, request: RequestOut) => crate::grequest::start;
}
