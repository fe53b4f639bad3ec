//! The secret of the job, which devices authenticate their connections with.
use super::client::Client;
use crate::sys::{self, board};

/// Where it is, if the launcher gives none.
const KEY: &str = "tern-secret";

/// Tern's own `mpiexec` writes the secret on the board that ranks inherit, so that it is in no environment, on no
/// command line and, between hosts, on no connection but that of ssh. The board must have been adopted
/// ([`Control::from_env`](crate::control::Control::from_env)) before. Under any other launcher rank 0 makes one and puts
/// it into the key-value space: there it is as safe as the launcher's own connections are.
impl Client {
    /// Sees to it that there is a secret after the next barrier; every rank calls it.
    pub fn offer_secret(&mut self) -> Result<(), String> {
        if self.rank() != 0 || board::secret().is_some() {
            return Ok(());
        }
        let mut secret = [0; 16];
        sys::random(&mut secret).map_err(|error| format!("random numbers: {error}"))?;
        self.put(KEY, &secret)
    }

    /// The secret of the job, after a barrier that follows [`Client::offer_secret`].
    pub fn secret(&mut self) -> Result<[u8; 16], String> {
        if let Some(secret) = board::secret() {
            return Ok(secret);
        }
        let bytes = self.get(KEY)?;
        let length = bytes.len();
        bytes.try_into().map_err(|_| format!("the secret of the job has {length} bytes, not 16"))
    }
}
